"""The learner's own file as a text, `work/mine.py`: its parts, and what was put into it.

It stands beside `progress.jsonl`, and under ``ATTENTION_PROGRESS=0`` there is none. A second file
beside it, `mine_history.jsonl`, has every text that was put into it. So `earlier` can show what was
replaced, and what a learner has changed by hand is known from what `check` has kept.
"""

import ast
import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attention_base.numbers import joined
from lesson import progress_file, sources

HEAD = '''"""What I wrote in “Attention from a for-loop”.

When `check` passes a part, it puts it here; above each part stands which exercise it was.
What I change by hand stays as I wrote it.
"""
'''
MOST_BYTES = 1_000_000
# What the file can do, once it has a part of this name.
ABILITIES = {
    "count": "count pairs of letters",
    "write": "write from counts",
    "generate": "write with any model",
    "Head": "attend with one head",
    "train": "train a model",
    "MultiHeadAttention": "attend with many heads",
    "turn": "turn queries and keys",
    "Block": "stack transformer blocks",
    "TinyGPT": "make a GPT",
}


class NotKept(Exception):
    """The file stays as it is, or cannot be used; this says why, as a sentence for the learner."""


@dataclass
class Part:
    """A definition in the file: its text, the line where it begins, and the build of its mark."""

    name: str
    text: str
    line: int
    id: str = ""


@dataclass
class MyFile:
    """What the learner's file holds.

    Parameters
    ----------
    path
        Where it is; it need not exist.
    text
        All of it, "" for none.

    Raises
    ------
    NotKept
        When the text is no Python, or two of its parts have one name.
    """

    path: Path
    text: str
    parts: dict[str, Part] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            body = ast.parse(self.text).body
        except (SyntaxError, ValueError) as error:
            line = f", line {error.lineno}" if getattr(error, "lineno", None) else ""
            raise NotKept(
                f"{self}{line}, is no Python ({getattr(error, 'msg', error)}). Mend it there."
            ) from None
        for node in body:
            name, first = sources.name_of(node), sources.first_line(node)
            mark = re.fullmatch(r"# (\d\d\.\w+)", self.lines[first - 2]) if first > 1 else None
            if not name or not (mark or isinstance(node, sources.DEFINITIONS)):
                continue
            text = "\n".join(self.lines[first - 1 : node.end_lineno]) + "\n"
            if twice := self.parts.get(name):
                raise NotKept(
                    f"{self} defines {name} twice, in lines {twice.line} and {first}. Delete "
                    "one of them there."
                )
            self.parts[name] = Part(name, text, first, mark[1] if mark else "")

    def __str__(self) -> str:
        return progress_file.shown(self.path)

    @property
    def lines(self) -> list[str]:
        """Its lines, as Python counts them."""
        return self.text.rstrip("\n").split("\n")

    def told(self, failed: Mapping[str, str]) -> str:
        """How long it is, what it can do, and which parts do not pass."""
        now = [can for name, can in ABILITIES.items() if name in self.parts.keys() - failed]
        can = f", and can {joined(now)}" if now else ""
        broken = "".join(
            f" Its {name} does not pass: {why.rstrip('.')}." for name, why in failed.items()
        )
        return f"{self} has {len(self.lines)} lines{can}.{broken}"

    def with_answer(self, parts: list[Part], gone: set[str]) -> "MyFile":
        """The same file with the parts of an answer, its last one where the old one was.

        Those of their names are replaced, and those in `gone` are left out.
        """
        main, lines = self.parts.get(parts[-1].name), self.lines
        at = main.line - 1 - bool(main.id) if main else len(lines)
        old = [part for name, part in self.parts.items() if name in gone | {p.name for p in parts}]
        for part in sorted(old, key=lambda part: -part.line):
            start, end = part.line - 1 - bool(part.id), part.line - 1 + part.text.count("\n")
            del lines[start:end]
            at -= (end - start) * (start < at)
        block = "\n\n".join(f"# {part.id}\n{part.text}" for part in parts)
        text = "\n".join([*lines[:at], "", "", block, "", *lines[at:]])
        return MyFile(self.path, re.sub(r"\n{4,}", "\n\n\n", text).rstrip("\n") + "\n")

    def until(self, notebook: str, kept: "History") -> "MyFile":
        """The same file with parts as they were after a notebook, such as "07".

        A part of a later one stays if the history has no earlier text of it.
        """
        file = self
        for part in [part for part in self.parts.values() if part.id[:2] > notebook]:
            then = [said for said in kept.texts(part.name) if said["id"][:2] <= notebook]
            if then:
                file = file.with_answer(
                    [Part(part.name, then[-1]["text"], 0, then[-1]["id"])], set()
                )
        return file

    def with_import(self, line: str) -> "MyFile":
        """The same file with one more import, behind those of its kind."""
        body, lines = ast.parse(self.text).body, self.lines
        if line in lines:
            return self
        start = body[0].end_lineno if body and isinstance(body[0], ast.Expr) else 0
        places = [  # of each import: what it comes after, and its first and last line
            (_order(lines[node.lineno - 1]), node.lineno, node.end_lineno)
            for node in body
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        group = [place for place in places if place[0][0] == _order(line)[0]]
        above = [place for place in group or places if place[0] <= _order(line)]
        at = above[-1][2] if above else group[0][1] - 1 if group else start
        lines[at:at] = [line] if group or not at else ["", line]
        return MyFile(self.path, "\n".join(lines) + "\n")

    def without_old_imports(self, replaced: str) -> "MyFile":
        """The same file without imports for which it has parts now, or that `replaced` alone used.

        `replaced` is the text of the parts that it has no more.
        """
        body = "\n".join(line for line in self.lines if not line.startswith(("import ", "from ")))
        gone = {*re.findall(r"\w+", replaced)} - {*re.findall(r"\w+", body)}
        lines = [
            line
            for line in self.lines
            if _stands_in(line) not in self.parts
            and not (line.startswith("from ") and line.split()[-1] in gone)
        ]
        return MyFile(self.path, re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines) + "\n"))


def _order(line: str) -> tuple[int, bool, str]:
    """Of a line that imports: Python's own first, this project last, `import` before `from`."""
    name = line.split()[1].split(".")[0]
    group = 0 if name in sys.stdlib_module_names else 1 + name.startswith(("helpers", "lesson"))
    return group, line.startswith("from"), line


def _stands_in(line: str) -> str:
    """The name of the part that a line imports for as long as the file has none; "" for none."""
    found = re.fullmatch(r"from .+ import (\w+)  # until .+", line)
    return found[1] if found else ""


def place() -> Path | None:
    """Where the file is; None where nothing is kept."""
    beside = progress_file.place()
    return beside and beside.with_name("mine.py")


def read(path: Path) -> MyFile:
    """Read the learner's file; one that is not there is empty.

    Raises
    ------
    NotKept
        When it cannot be read; the text says what to do.
    """
    name = progress_file.shown(path)
    try:
        if path.is_symlink() and not path.exists():
            raise NotKept(f"{name} is a link to a file that is not there. Remove the link.")
        if not path.exists():
            return MyFile(path, "")
        if not path.is_file():
            what = "a folder" if path.is_dir() else "no ordinary file"
            raise NotKept(f"{name} is {what}. Move it away, then run this cell again.")
        data = path.read_bytes()
        if len(data) > MOST_BYTES:
            raise NotKept(f"{name} has {len(data):,} bytes; more than {MOST_BYTES:,} are not read.")
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise NotKept(f'{name} cannot be read ("{error.strerror}").') from None
    except UnicodeDecodeError as error:
        raise NotKept(
            f"{name} is no text in UTF-8 (byte {error.start}). Save it as UTF-8."
        ) from None
    return MyFile(path, text if text.strip() else "")


def look() -> tuple[MyFile | None, str]:
    """The learner's file, if there is one, and what it holds or why it is not read."""
    try:
        path = place()
        file = read(path) if path else None
        if file and file.text:
            return file, file.told(history().verdicts(file) or {})
    except NotKept as problem:
        return None, str(problem)
    return None, ""


@dataclass
class History:
    """The texts that were put into the file, and those of the whole file that have passed."""

    path: Path
    lines: list[dict] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.path.exists() and not self.path.is_file():
            name = progress_file.shown(self.path)
            raise NotKept(f"{name} is no ordinary file. Move it away, then run this cell again.")
        with contextlib.suppress(OSError):
            for line in self.path.read_text("utf-8", "replace").splitlines():
                with contextlib.suppress(ValueError):
                    said = json.loads(line)
                    self.lines += [said] if isinstance(said, dict) else []

    def add(self, **said: Any) -> None:
        """Add a line."""
        self.lines.append(said)
        with open(self.path, "a", encoding="utf-8") as file:
            # On a new line, in case the one before was cut off.
            file.write("\n" + json.dumps(said, ensure_ascii=False) + "\n")

    def texts(self, name: str) -> list[dict]:
        """What was kept as this part, the latest last."""
        return [said for said in self.lines if said.get("name") == name and "text" in said]

    def verdicts(self, file: MyFile) -> dict[str, str] | None:
        """Why each part did not pass when this very file was judged; None if it never was."""
        found = [said for said in self.lines if said.get("file") == hash_of(file.text)]
        return found[-1].get("failed") if found else None


def hash_of(text: str) -> str:
    """A short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def history() -> History:
    """The history beside the file."""
    return History(place().with_name("mine_history.jsonl"))
