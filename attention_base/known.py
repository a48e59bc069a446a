"""Known mistakes: pages of prose in which each is a change of a right program.

A page is Markdown. A section begins with ``# ``, an entry in it with ``## ``. Below an entry's
name stand its changes, indented by four spaces, and then what is told about it, each paragraph on
one line. Lines that begin with ``> `` are notes to those who edit the page::

    # 02.1 The causal mean as one matmul
    two random batches: the same numbers as the loop of notebook 01, within 0.00001
    - Build for T tokens the matrix that the 3 × 3 example had, then put it to the left of x.
    ## upper triangle
        tril → triu
    Output t is the mean of token t and everything after it, the future. …

In a change ``⏎`` stands for a line break, and nothing after the arrow takes the text out.
"""

import ast
import difflib
import functools
import inspect
import itertools
import linecache
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

Change = tuple[str, str]  # an old text and a new one


class PageError(ValueError):
    """A page is faulty; the text names file and line. Jupyter shows it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


@dataclass(frozen=True)
class Known:
    """An entry of a page: something that people get wrong."""

    name: str  # what is wrong, in a few words
    # Pairs of an old and a new text, put in one after the other; each old text stands in the right
    # program exactly once.
    changes: tuple[Change, ...] = ()
    message: str = ""  # what is told about it, a paragraph a line
    where: str = ""  # file and line, such as "02.md, line 12"
    # In the place of changes, where it is another program: the name of a function.
    function: str = ""
    # In the place of changes, where it is a call: the arguments that make it.
    settings: dict[str, Any] = field(default_factory=dict, compare=False)
    meant: bool = False  # on_purpose=True on the page: some models are like this on purpose


class Line(NamedTuple):
    """A line of a page, and its place, such as "02.md, line 12"."""

    text: str
    where: str


@dataclass
class Section:
    """A section of a page: its heading, plain lines, items ("- …") and entries."""

    head: str
    where: str
    lines: list[Line] = field(default_factory=list)
    items: list[Line] = field(default_factory=list)
    entries: list[Known] = field(default_factory=list)


def read(path: Path) -> list[Section]:
    """Read a page.

    Raises
    ------
    PageError
        When a line has no meaning where it stands, or two entries of a section share a name.
    """
    sections: list[Section] = []
    blocks: list[tuple[str, str, list[str]]] = []  # of the last section: name, where, lines
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        where = f"{path.name}, line {number}"
        if not line.strip() or line.startswith("> "):
            continue
        if line.startswith("# "):
            _close(sections, blocks)
            sections.append(Section(line[2:].strip(), where))
        elif not sections:
            raise PageError(f"{where}: a page begins with a heading, such as `# 02.1 A title`.")
        elif line.startswith("## "):
            blocks.append((line[3:].strip(), where, []))
        elif blocks:
            blocks[-1][2].append(line)
        elif line.startswith("- "):
            sections[-1].items.append(Line(line[2:].strip(), where))
        else:
            sections[-1].lines.append(Line(line.strip(), where))
    _close(sections, blocks)
    return sections


def _close(sections: list[Section], blocks: list[tuple[str, str, list[str]]]) -> None:
    """Make entries of the blocks of the last section."""
    for name, where, lines in blocks:
        known = _entry(name, where, lines)
        for other in sections[-1].entries:
            if name == other.name:
                raise PageError(f"{where}: “{name}” stands in {other.where}, too. Rename one.")
        sections[-1].entries.append(known)
    blocks.clear()


def _entry(name: str, where: str, lines: list[str]) -> Known:
    code = [line.strip() for line in lines if line.startswith("    ")]
    told = "\n".join(line.strip() for line in lines if not line.startswith("    "))
    told = re.sub(r"(?<![.!?:)”\n])\n", " ", told)  # a sentence goes on
    changes, function, settings = [], "", {}
    for line in code:
        if line.startswith("def "):
            function = line[4:].partition("(")[0]
            continue
        old, arrow, new = (part.strip().replace("⏎", "\n") for part in line.partition("→"))
        if arrow and old:
            changes.append((old, new))
            continue
        try:
            call = ast.parse(f"call({line})", mode="eval").body
            settings |= {one.arg: ast.literal_eval(one.value) for one in call.keywords}
            assert call.keywords and not call.args
        except (SyntaxError, ValueError, AssertionError):
            raise PageError(
                f"{where}, “{name}”: `{line}` is no change. Write what stands in the right "
                "program, an arrow, and what stands there instead: `old → new`."
            ) from None
    meant = bool(settings.pop("on_purpose", False))
    return Known(name, tuple(changes), told, where, function, settings, meant)


# ---------------------------------------------------------------- programs


def source(function: Callable) -> str:
    """The source of a ``def`` at the top level of a file, or of a changed one, and decorators."""
    code = inspect.unwrap(function).__code__
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    first = next(i for i, line in enumerate(lines, 1) if line[0] != "@")
    lines[first:] = itertools.takewhile(lambda line: line[0] in " \n)", lines[first:])
    return "".join(lines).rstrip() + "\n"


def changed_source(function: Callable, changes: Iterable[Change], name: str) -> str:
    """The source of a function with changes put in, as `changed_text` does."""
    return changed_text(source(function), changes, name, function.__name__)


def changed_text(text: str, changes: Iterable[Change], name: str, program: str) -> str:
    """The text of a program with changes put in one after the other, without empty lines.

    Parameters
    ----------
    text
    changes
        Pairs of an old and a new text.
    name
        What errors call the new text, such as "01.md, line 12, divided by T".
    program
        What they call the old one.

    Raises
    ------
    PageError
        When an old text does not stand in the program exactly once.
    """
    for old, new in changes:
        if (count := text.count(old)) != 1:
            (near,) = difflib.get_close_matches(old, map(str.strip, text.splitlines()), 1, 0.0)
            todo = "more of its line" if count else f"what stands there, as in `{near}`"
            raise PageError(
                f"{name}: the change of `{old}` must fit {program} exactly once, but "
                f"this text stands there {count} times. Quote {todo}."
            )
        text = text.replace(old, new)
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


def execute(text: str, name: str, names: dict[str, Any], into: dict[str, Any]) -> None:
    """Run a changed program, which defines functions or classes.

    Parameters
    ----------
    text
    name
        What tracebacks and errors call it.
    names
        The globals of what it defines.
    into
        Gets what it defines; may be `names`.

    Raises
    ------
    PageError
        When the text is no Python.
    """
    file = f"<{name}>"
    if file in linecache.cache:  # of one bug in several programs, each keeps its own lines
        file = f"<{name}, {len(linecache.cache)}>"
    # Without a time (None), the lines are never compared with a file, and stay.
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    try:
        code = compile(text, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise PageError(f"{name}: this makes `{line}`, which is no Python.") from None
    exec(code, names, into)


def patched(function: Callable, changes: Iterable[Change], name: str) -> Callable:
    """Compile a function again, with some of its source changed.

    Parameters
    ----------
    function
        A plain ``def`` at the top level of a module.
    changes
        Pairs of an old and a new text, put in one after the other.
    name
        What tracebacks and errors call the new source, such as "01.md, line 12, divided by T".

    Returns
    -------
    Callable
        Has the name and the globals of the old one; `source` and ``inspect.getsource`` show what
        was compiled.

    Raises
    ------
    PageError
        When an old text does not stand in the source exactly once, or the new source is no Python.
    """
    defined: dict[str, Callable] = {}
    text, around = changed_source(function, changes, name), inspect.unwrap(function).__globals__
    execute(text, name, around, defined)
    return defined[function.__name__]


@functools.cache
def program(function: Callable, *mistakes: Known) -> Callable | None:
    """A right program with one or several mistakes put in; None where they exclude each other.

    Raises
    ------
    PageError
        When a single mistake does not fit.
    """
    changes = [change for mistake in mistakes for change in mistake.changes]
    told = " and ".join(f"{mistake.where}, “{mistake.name}”" for mistake in mistakes)
    text = source(function)
    for old, new in changes if len(mistakes) > 1 else ():  # an error would take long to word
        if text.count(old) != 1:
            return None
        text = text.replace(old, new)
    try:
        return patched(function, changes, told)
    except PageError:
        if len(mistakes) > 1:
            return None
        raise
