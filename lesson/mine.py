"""The learner's own file, `work/mine.py`: the answers to builds that `check` has passed.

Nothing is written that does not work: the new text of the whole file first runs in a process of
its own, with a limit of time; then it is imported, and every part is judged in it.
"""

import contextlib
import io
import linecache
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from attention_base.arguments import typed
from attention_base.files import write_whole
from attention_base.home import PROJECT
from attention_base.numbers import joined, wrap_text
from feedback.grading import Exercise
from lesson import own_file, progress_file, sources
from lesson.errors import LessonError
from lesson.exercises import EXERCISES
from lesson.own_file import History, MyFile, NotKept, Part, history, place, read

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

SECONDS = 30  # that the file may take to run; PyTorch alone takes up to ten on a slow disk
RUN = """\
import contextlib, io, sys
text = sys.stdin.buffer.read().decode()
with contextlib.redirect_stdout(io.StringIO()):
    exec(compile(text, "mine.py", "exec"), {"__name__": "mine"})
print("done")
"""


def is_build(id: str) -> bool:
    """Whether this is the id of a build, whose answer is kept, as "03.generate"."""
    return not re.fullmatch(r"p?\d+", id.split(".")[-1])


def builds() -> dict[str, Exercise]:
    """All builds, by id, in the order of the notebooks."""
    return {id: exercise for id, exercise in EXERCISES.items() if is_build(id)}


@typed
def earlier(name: str = "") -> None:
    """Print the texts of a part that newer ones have replaced in `work/mine.py`.

    Parameters
    ----------
    name
        Of the part or its build, such as "generate" or "03.generate".
    """
    if place() is None:
        print("Nothing is kept here, because ATTENTION_PROGRESS is 0.")
        return
    name, now = name.split(".")[-1], None
    try:
        kept = history()
    except NotKept as problem:
        print(wrap_text(str(problem)))
        return
    with contextlib.suppress(NotKept):  # what was kept can be seen also where the file is broken
        now = read(place()).parts.get(name)
    older = {said["text"]: said for said in kept.texts(name)}
    older.pop(now.text if now else "", None)
    if not older:
        names = joined(sorted({said["name"] for said in kept.lines if "name" in said}))
        print(f"There is no earlier {name or 'part'}. Kept were so far: {names or 'none'}.")
    for said in older.values():
        print(f"# {said['id']}, kept {said['time'].replace('T', ' ')[:16]} UTC\n{said['text']}")


def failed_in(file: MyFile, module: ModuleType) -> dict[str, str]:
    """Why parts that a build asks for do not pass, by name, in the module of this text."""
    found = {}
    for part in file.parts.values():
        asked = [build for id, build in builds().items() if id.split(".")[1] == part.name]
        own = [build for build in asked if build.id == part.id] or asked
        if own and (verdict := own[0].check(getattr(module, part.name))).status != "passed":
            found[part.name] = verdict.mistake or verdict.message.split("\n")[0]
    return found


# ---------------------------------------------------------------- keeping


def keep(id: str, thing: Callable) -> str:
    """Keep what passed a build; return a sentence or two for the learner.

    Nothing is raised, whatever goes wrong: the answer has passed, and stands in its notebook.
    """
    path = place()
    if path is None:
        return ""
    for _ in range(3):  # again if another notebook has written meanwhile
        try:
            old = read(path)
            new, said = _with_answer(old, id, thing)
            if new is None:
                return said
            failed = _tried(new, old)
            if _written(new, old, failed):
                return f"Kept: {new.told(failed)}"
        except NotKept as problem:
            return f"Not kept: {problem}"
        except OSError as error:
            return f"Not kept: {progress_file.why(error, path)}."
    return f"Not kept: other notebooks write {progress_file.shown(path)} all the time. Try again."


def _with_answer(file: MyFile, id: str, thing: Callable) -> tuple[MyFile | None, str]:
    """The file with an answer in it; None where it stays as it is, and why."""
    name, own = id.split(".")[1], sources.names_of(thing)
    if (called := getattr(thing, "__name__", "")) != name:
        raise NotKept(
            f"your answer is called {called or 'nothing'}, and the file needs a {name}. Write it "
            f"as `def {name}` or `class {name}`, without a decorator that hides it."
        )
    try:
        cell = sources.definitions(sources.cell_of(thing))
    except (sources.NoSource, SyntaxError) as problem:
        raise NotKept(f"{name} stays in this notebook: {problem}.") from None
    wanted, missing, texts, open_names = set(), {}, {}, [name]
    while open_names:
        one = open_names.pop()
        texts[one] = cell[one]
        for used in sorted(sources.taken_from_outside(cell[one]) - {*texts}):
            if used in cell:
                open_names.append(used)
            elif used not in file.parts and (line := _import(used, own.get(used))):
                wanted.add(line)
            elif used not in file.parts:
                missing[used] = one
    if missing:
        raise NotKept(_told_missing(missing, own))
    names = [*list(texts)[:0:-1], name]  # what it uses stands above it
    parts = []
    for one in names:
        old, own_id = file.parts.get(one), _id_of(one, id)
        if one == name or old is None or old.id in ("", id, own_id):
            parts.append(Part(one, texts[one], 0, own_id))
        elif old.text != texts[one]:
            raise NotKept(f"{file} has another {one}, of {old.id}. Give yours another name.")
    if all(_same(file.parts.get(part.name), part.text) for part in parts):
        return None, f"{file} has it already."
    kept = history()
    for part in parts:
        if not _same(file.parts.get(part.name), part.text):
            _refuse_older(file.parts.get(part.name), part, kept, file)
    new = file if file.text else MyFile(file.path, own_file.HEAD)
    new = new.with_answer(parts, _orphans(file, parts, kept))
    for line in sorted(wanted):
        new = new.with_import(line)
    before = "\n".join(file.parts[part.name].text for part in parts if part.name in file.parts)
    return new.without_old_imports(before), ""


def _id_of(name: str, id: str) -> str:
    """Whose answer a definition in the cell of a build is: of its own, in the same notebook."""
    own = f"{id[:2]}.{name}"
    return own if own in builds() else id


def _orphans(file: MyFile, parts: list[Part], kept: History) -> set[str]:
    """Helpers of the old answer that the new one does not use, and nobody else."""
    new, id = {part.name for part in parts}, parts[-1].id
    others = [p for p in file.parts.values() if p.id != id or not _is_kept(p, kept)]
    used = set().union(*(sources.taken_from_outside(part.text) for part in others))
    return {
        name
        for name, part in file.parts.items()
        if part.id == id == _id_of(name, id) and name not in new | used and _is_kept(part, kept)
    }


def _is_kept(part: Part, kept: History) -> bool:
    """Whether it stands as `check` has kept it, and was not changed by hand."""
    return part.text in [said["text"] for said in kept.texts(part.name)]


def _import(used: str, value: Any) -> str:
    """The line that imports what a part uses; "" where nothing can be imported."""
    line = sources.import_line(used, value)
    ids = [id for id in builds() if id.split(".")[1] == used]
    return f"{line}  # until {ids[0]} is yours" if line and ids else line


def _told_missing(missing: Mapping[str, str], own: Mapping[str, Any]) -> str:
    """What parts use that the file would not have, by name, and what to do."""
    nowhere, elsewhere = "is defined nowhere", "stands in another cell of this notebook only"
    told = [
        f"{part} uses {used}, which {elsewhere if used in own else nowhere}"
        for used, part in missing.items()
    ]
    return (
        f"{'; '.join(told)}. In a file of its own it may use its arguments, what it "
        "imports, and what its own cell defines. Put it there, then run check again."
    )


def _same(old: Part | None, text: str) -> bool:
    return old is not None and old.text == text


def _refuse_older(old: Part | None, part: Part, kept: History, file: MyFile) -> None:
    """Refuse to replace what was changed by hand, or what a later notebook has made better."""
    if old is None:
        return
    if not _is_kept(old, kept):
        raise NotKept(
            f"you have changed {part.name} in {file} by hand, and it stays as it is. If this one "
            "shall take its place, delete it there, save the file, and run check again."
        )
    if old.id[:2] > part.id[:2]:
        raise NotKept(f"{file} keeps your {part.name} of {old.id}, which came later.")


def _tried(new: MyFile, old: MyFile) -> dict[str, str]:
    """Run and judge a new text; raises NotKept where it does not work, or breaks another part."""
    failed = Loaded(new).judge()
    if set(failed) - set(before := Loaded(old).failed if old.text and failed else {}):
        name = next(name for name in failed if name not in before)
        told = (
            f"with it, your {name} in {new} would no longer pass"
            if name in old.parts
            else f"in a file of its own, {name} does not pass"
        )
        raise NotKept(f"{told}: {failed[name].rstrip('.')}.")
    return failed


def _written(new: MyFile, old: MyFile, failed: dict[str, str]) -> bool:
    """Write the file, unless it is no longer the old one; say whether it is written."""
    kept = history()
    with open(kept.path, "a") as lock:
        if fcntl:
            fcntl.flock(lock, fcntl.LOCK_EX)
        if read(new.path).text != old.text:
            return False
        if old.text and not new.path.stat().st_mode & 0o222:
            raise NotKept(f"{new} may only be read. Give yourself the right to write it.")
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for part in new.parts.values():
            if not _same(old.parts.get(part.name), part.text):
                kept.add(time=now, id=part.id, name=part.name, text=part.text)
        kept.add(time=now, file=own_file.hash_of(new.text), failed=failed)
        write_whole(new.path, new.text.encode())
    return True


def _run(file: MyFile) -> str:
    """Run the file in a process of its own; return what is wrong, "" for nothing."""
    paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", RUN],
            input=file.text.encode(),
            capture_output=True,
            timeout=SECONDS,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
    except subprocess.TimeoutExpired:
        return f"It takes longer than {SECONDS} seconds."
    told = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode:
        where = [re.search(r'"mine.py", line (\d+)', line) for line in told]
        line = next((f" in line {found[1]}" for found in reversed(where) if found), "")
        return f"It stops{line}: {told[-1] if told else 'without a word'}"
    return "" if done.stdout.endswith(b"done\n") else "It ends Python."


# ---------------------------------------------------------------- using it


@dataclass
class Loaded:
    """A file as a module, and what its parts are worth."""

    file: MyFile

    @cached_property
    def module(self) -> ModuleType:
        """What its text defines; what it prints is left out."""
        module, name = ModuleType("mine"), str(self.file.path)
        module.__file__, lines = name, self.file.text.splitlines(keepends=True)
        linecache.cache[name] = len(self.file.text), None, lines, name  # for errors and sources
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(self.file.text, name, "exec"), vars(module))
        except BaseException as error:
            raise NotKept(f"{self.file} stops: {type(error).__name__}: {error}") from None
        return module

    def judge(self) -> dict[str, str]:
        """Run the file in a process of its own, then judge it: why parts do not pass, by name."""
        if problem := _run(self.file):
            raise NotKept(f"{self.file} would not run as a file of its own. {problem}")
        return failed_in(self.file, self.module)

    @cached_property
    def failed(self) -> dict[str, str]:
        """Why parts do not pass: as the history knows it, or else they are judged now."""
        kept = history()
        if (known := kept.verdicts(self.file)) is not None:
            return known
        failed = self.judge()
        with contextlib.suppress(OSError):
            kept.add(file=own_file.hash_of(self.file.text), failed=failed)
        return failed


_loaded: Loaded | None = None


def kept(*names: str) -> Any:
    """Take parts from your file `work/mine.py`, or the reference where it has none.

    Parameters
    ----------
    *names
        Names of parts, such as "generate"; or "06.MultiHeadAttention" for the one that stood in the
        file after notebook 06.

    Returns
    -------
    Callable or tuple of Callable
        One for each name, the latest that `check` has kept, or as you changed it by hand. A line is
        printed for each that is the reference.

    Raises
    ------
    LessonError
        When the notebooks build no part of that name.
    """
    found = [_part(name) for name in names]
    return found[0] if len(found) == 1 else tuple(found)


def _part(name: str) -> Callable:
    until, _, name = name.rpartition(".")
    asked = [build for id, build in builds().items() if id.split(".")[1] == name]
    asked = [build for build in asked if not until or build.id[:2] <= until]
    if not asked:
        known = joined([*dict.fromkeys(id.split(".")[1] for id in builds())])
        raise LessonError(f"No notebook builds a part {name!r}. The parts are {known}.")
    path, first = place(), asked[0].id[:2]
    when = f"from {first} on" if asked[1:] else f"in {first}"
    why = f"work/mine.py has none yet (you write it {when})"
    try:
        file = read(path) if path else None
        file = file.until(until, history()) if file and until else file
        if file and name in file.parts:
            loaded = _load(file)
            if not (problem := loaded.failed.get(name)):
                return getattr(loaded.module, name)
            why = f"the one in {file} does not pass: {problem}"
        elif file and file.text:
            why = why.replace("work/mine.py", str(file))
    except NotKept as problem:
        why = str(problem)
    print(wrap_text(f"The reference stands in for your {name}: {why}".rstrip(".") + "."))
    return asked[-1].reference


def _load(file: MyFile) -> Loaded:
    """The file as a module, loaded once for each text."""
    global _loaded
    if _loaded is None or (_loaded.file.text, _loaded.file.path) != (file.text, file.path):
        _loaded = Loaded(file)
    _ = _loaded.failed  # it runs in a process of its own before it is imported
    sys.modules["mine"] = _loaded.module  # where pickle and torch.load look
    return _loaded


def passed_before(id: str) -> Callable | None:
    """The learner's part of a build if the file has one that passes; None for none."""
    name, path = id.split(".")[1], place()
    try:
        file = read(path).until(id[:2], history()) if path else None
        if file and name in file.parts and name not in _load(file).failed:
            own, part = getattr(_load(file).module, name), file.parts[name]
            # The part of an earlier notebook is not yet what this one asks for.
            if part.id[:2] == id[:2] or builds()[id].check(own).status == "passed":
                return own
    except (NotKept, OSError):
        pass
    return None
