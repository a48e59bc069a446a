"""Check the form of the notebooks without a kernel: ``python -m tools.lint_notebooks [03 ...]``.

One small function a rule. Each yields ``(cell number or None, what is wrong, what to do)``; cells
count from 1, as in their ids. A rule looks at a ``Book``, which carries the notebook and what its
exercise file says, read as text: nothing is imported or run, so the whole lint takes a moment.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools import ignored_cells, notebooks
from tools.prose_numbers import (
    Number,
    claims,
    marks,
    numbers,
    rows,
    sentences,
    stand_in_a_row,
    sums,
    wholes,
)
from tools.refresh import WIDGET_VIEW

Finding = tuple[int | None, str, str]
RULES: dict[str, Callable[["Book"], Iterator[Finding]]] = {}

MAX_LINES = 25  # of code in a cell
MAX_CODE_CELLS = 3  # in a row, without words
MAX_OUTPUT_LINES = 40
NEAR_BEFORE, NEAR_AFTER = 3, 2  # code cells whose numbers a text may state
MAX_BYTES = 310_000
# How many asserts each notebook has: one that is deleted makes no other check red.
ASSERTS = {f"{i:02}": n for i, n in enumerate((1, 5, 0, 0, 1, 3, 1, 1, 10, 6, 10, 2, 6, 0, 2, 0))}
MOST_TOLERANCE = 1e-3
SLIDE_TYPES = ("slide", "subslide", "fragment", "notes", "skip")
OF_HELPERS = (
    "attention circuits cost diagnosis gpt letters measured opened pictures positions real show "
    "sorter stack tasks toy training ward"
)
PUBLIC = ("attention_clinic", "explorers", "lesson", *map("helpers.{}".format, OF_HELPERS.split()))
EXERCISES = notebooks.ROOT / "lesson" / "exercises"
BUILDS = notebooks.ROOT / "lesson" / "builds"


# ---------------------------------------------------------------- what a rule looks at


@dataclass
class Book:
    """A notebook with all that the rules ask about it.

    ``exercises`` and ``page`` are the texts of its exercise file and its page, None where there is
    none; ``asserts`` says how many it has to have.
    """

    name: str
    nb: NotebookNode
    size: int
    exercises: str | None = None
    page: str | None = None
    asserts: int = 0

    @property
    def number(self) -> str:
        """The two digits that the name begins with."""
        return self.name[:2]

    @cached_property
    def cells(self) -> list[tuple[int, NotebookNode]]:
        """All cells with their numbers."""
        return list(enumerate(self.nb.cells, 1))

    @cached_property
    def code(self) -> list[tuple[int, NotebookNode]]:
        """The code cells with their numbers."""
        return [(n, c) for n, c in self.cells if c.cell_type == "code"]

    @cached_property
    def prose(self) -> list[tuple[int, str]]:
        """The markdown cells' text, without code in fences."""
        fence = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.M | re.S)
        return [(n, fence.sub("", c.source)) for n, c in self.cells if c.cell_type == "markdown"]

    @cached_property
    def headings(self) -> list[tuple[int, int, str]]:
        """Headings as (cell number, level, text)."""
        found = re.compile(r"^(#{1,6}) +(.+?) *#* *$", re.M)
        return [(n, len(m[1]), m[2]) for n, text in self.prose for m in found.finditer(text)]

    @cached_property
    def trees(self) -> list[tuple[int, ast.Module]]:
        """The code cells as syntax trees; a cell that is no Python is left to ruff."""
        return [(n, tree) for n, c in self.code if (tree := _parsed(c.source))]

    @cached_property
    def outputs(self) -> list[tuple[int, NotebookNode]]:
        """Every output with the number of its cell."""
        return [(n, output) for n, cell in self.code for output in cell.outputs]

    @cached_property
    def numbers(self) -> dict[int, list[Number]]:
        """All numbers in the code and in the outputs of each code cell."""
        said = {n: [cell.source, *map(_said, cell.outputs)] for n, cell in self.code}
        return {
            n: numbers(re.sub(r"</?[a-zA-Z][^>]*>", " ", "\n".join(parts)))
            for n, parts in said.items()
        }

    @cached_property
    def lessons(self) -> "Lessons":
        """What exercise file and page declare."""
        return Lessons.read(self.exercises or "", self.page or "")


@dataclass
class Lessons:
    """What an exercise file and its page declare, read from their texts."""

    exercises: dict[str, ast.FunctionDef | ast.ClassDef | None] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)  # ids of exercises whose stub is to be mended
    predictions: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, exercises: str, page: str) -> "Lessons":
        """Find ``Exercise("03.1", name, …)``, ``build("Head")`` and the headings ``# 03.p1``."""
        tree = ast.parse(exercises)
        lessons = cls(predictions=re.findall(r"^# (\d\d\.p\d+)$", page, re.M))
        newer = [file.read_text("utf-8") for file in sorted(BUILDS.glob("right_*.py"))]
        parts = [node for text in newer for node in ast.parse(text).body]
        named = {getattr(node, "name", ""): node for node in parts}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                named[node.name] = node  # of two with one name, the last above the exercise counts
            for call in _calls(node, "Exercise"):
                id_, reference = _text(_argument(call, 0, "id")), _argument(call, 1, "reference")
                by_name = isinstance(reference, ast.Name)
                lessons.exercises[id_] = named.get(reference.id) if by_name else None
                if any(keyword.arg == "given" for keyword in call.keywords):
                    lessons.given.add(id_)
            for call in _calls(node, "build"):
                lessons.exercises |= _build(_text(_argument(call, 0, "name")))
        return lessons


def _build(name: str) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """The id of a build, which its name may be, and its right program."""
    page = (BUILDS / "builds.md").read_text("utf-8")
    id_ = re.findall(rf"^# ((?:\d\d\.)?{name}|\d\d\.{name}) ", page, re.M)[0]
    newer, _, name = name.rpartition(".")
    file = BUILDS / (f"right_{newer}.py" if newer else "right.py")
    programs = {getattr(node, "name", ""): node for node in ast.parse(file.read_text("utf-8")).body}
    return {id_: programs[name]}


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except SyntaxError:
        return None


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    """All calls of ``name``, ``module.name`` or ``value.name``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if name in (getattr(called, "id", None), getattr(called, "attr", None)):
                yield node


def _argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """An argument by its place or its name."""
    by_name = {keyword.arg: keyword.value for keyword in call.keywords}
    return call.args[place] if place < len(call.args) else by_name.get(name)


def _text(node: ast.expr | None) -> str:
    """The string that a node holds; "" where it holds none."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def rule(function: Callable[[Book], Iterator[Finding]]) -> Callable[[Book], Iterator[Finding]]:
    """Register a rule under its name."""
    RULES[function.__name__] = function
    return function


# ---------------------------------------------------------------- the file


@rule
def file_name(book: Book) -> Iterator[Finding]:
    """The name is NN_snake_title.ipynb."""
    if not re.fullmatch(r"\d\d_[a-z0-9]+(_[a-z0-9]+)*\.ipynb", book.name):
        yield None, f"is called {book.name}", "name it NN_snake_title.ipynb"


@rule
def file_size(book: Book) -> Iterator[Finding]:
    """A notebook has at most 310 KB."""
    if book.size > MAX_BYTES:
        yield None, f"has {book.size} bytes", f"at most {MAX_BYTES}: smaller pictures"


@rule
def metadata(book: Book) -> Iterator[Finding]:
    """Metadata are in normal form."""
    if {k: v for k, v in book.nb.metadata.items() if k != "widgets"} != notebooks.METADATA:
        yield None, "has metadata of one machine", "run make refresh"
    set_up = next((n for n, _ in book.code), None)
    for n, cell in book.cells:
        allowed = {*notebooks.CELL_METADATA, *(["jupyter"] if n == set_up else [])}
        if extra := set(cell.metadata) - allowed:
            yield n, f"has metadata {', '.join(sorted(extra))}", "run make refresh"


@rule
def widget_state(book: Book) -> Iterator[Finding]:
    """No widget state is stored."""
    if "widgets" in book.nb.metadata:
        yield None, "stores widget state (GitHub may refuse the notebook)", "run make refresh"


@rule
def cell_ids(book: Book) -> Iterator[Finding]:
    """Cells have the ids of their places."""
    for n, cell in book.cells:
        if cell.get("id") != (wanted := notebooks.cell_id(book.number, n)):
            yield n, f"has the id {cell.get('id')}, not {wanted}", "run make refresh"
            return  # all later ones are wrong too


@rule
def execution_counts(book: Book) -> Iterator[Finding]:
    """Code cells have run once, from top to bottom: nbval passes a cell that has not run."""
    for count, (n, cell) in enumerate(book.code, 1):
        if cell.execution_count != count:
            yield n, f"has execution count {cell.execution_count}, not {count}", "run make refresh"
            return


# ---------------------------------------------------------------- the words


@rule
def title(book: Book) -> Iterator[Finding]:
    """The first cell holds the one h1, a question."""
    tops = [(n, text) for n, level, text in book.headings if level == 1]
    if [n for n, _ in tops] != [1]:
        where = ", ".join(str(n) for n, _ in tops) or "no cell"
        yield None, f"has its # title in {where}", "put one # title in cell 1"
    for n, text in tops:
        if not text.endswith("?"):
            yield n, f"has the title {text!r}", "make it a question that ends with ?"


@rule
def heading_levels(book: Book) -> Iterator[Finding]:
    """No heading level is skipped on the way down."""
    last = 1
    for n, level, text in book.headings:
        if level > last + 1:
            yield n, f"has {text!r} at level {level} after level {last}", f"use {'#' * (last + 1)}"
        last = level


@rule
def sections(book: Book) -> Iterator[Finding]:
    """There are headings "Break it" and "What we found"."""
    for wanted in ("Break it", "What we found"):
        if not any(wanted.lower() in text.lower() for _, _, text in book.headings):
            yield None, f'has no heading "{wanted}"', "every notebook has one: write it"


@rule
def words(book: Book) -> Iterator[Finding]:
    """Words that belittle the reader, or say the wrong thing, stay out, unless quoted."""
    quoted = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”")
    unwanted = re.compile(r"\b(simply|obviously|trivially|of course|previous tokens)\b", re.I)
    for n, text in book.prose:
        for match in unwanted.finditer(quoted.sub("", text)):
            word = match[1].lower()
            todo = "leave it out"
            if word == "previous tokens":
                todo = 'say "this token and everything before it", or what you mean'
            yield n, f'says "{word}"', todo


@rule
def words_between(book: Book) -> Iterator[Finding]:
    """At most three code cells follow each other without words."""
    run = 0
    for n, cell in book.cells:
        run = run + 1 if cell.cell_type == "code" else 0
        if run == MAX_CODE_CELLS + 1:
            yield n, f"is code cell {run} in a row", "say in words what comes"


@rule
def markdown_images(book: Book) -> Iterator[Finding]:
    """A picture in the text has alt text."""
    for n, text in book.prose:
        tags_without = [
            tag
            for tag in re.findall(r"<img\b[^>]*>", text)
            if not re.search(r"\balt=([\"'])\s*[^\s\"'].*?\1", tag)
        ]
        for found in re.findall(r"!\[\s*\]\([^)]*\)", text) + tags_without:
            yield n, f"has a picture without alt text: {found[:40]}", "say in it what it shows"


@rule
def prose_numbers(book: Book) -> Iterator[Finding]:
    """A decimal, a signed number, a % or a power of ten in the text is computed by a cell nearby.

    All those of a sentence stand together in the code and outputs of one cell, or in one text cell
    above, which it repeats. Any other has a mark, see ``tools.prose_numbers``. The decimals that
    a mark derives it from stand in such a cell in their turn, or have a mark. So do whole numbers
    from 10, each for itself.
    """
    told: dict[int, list[Number]] = {}
    for n, cell in book.cells:
        if cell.cell_type != "markdown":
            continue
        before = [m for m in book.numbers if m < n][-NEAR_BEFORE:]
        after = [m for m in book.numbers if m > n][:NEAR_AFTER]
        sources = [*(book.numbers[m] for m in before + after), *told.values()]
        told[n] = [x for text in sentences(cell.source) for x in claims(text) + wholes(text)]
        for number, fault in _unaccounted(cell.source, sources):
            yield (
                n,
                fault.format(number.text),
                f"correct it, or say where it comes from: <!-- {number.text} = 1 - 0.27 -->"
                f" or <!-- {number.text}: read off the live picture -->",
            )


def _unaccounted(text: str, sources: list[list[Number]]) -> Iterator[tuple[Number, str]]:
    """The numbers of a text, and those its marks begin with, that have no source; and the fault."""
    derivations = list(marks(text))
    accounted = [number for mark in derivations for number in mark.accounted]
    supposed = [number for mark in derivations for number in mark.supposed]
    anywhere = [abs(number) for number in (*chain(*sources), *accounted)]
    for number in supposed:
        if number.place < 0 and not _stands_in(abs(number), anywhere):
            yield number, "has a mark with {}, which no cell nearby computes"
    marked = {(number.value, number.place) for number in accounted + supposed}
    for sentence in sentences(text):
        for number in wholes(sentence):
            if not _stands_in(number, anywhere + supposed):
                yield number, "says {}, which no cell nearby computes"
        stated = [c for c in claims(sentence) if (c.value, c.place) not in marked]
        missing = min(
            ([c for c in stated if not _stands_in(c, s)] for s in [*sources, []]), key=len
        )
        together = " with the rest of its sentence" if len(missing) < len(stated) else ""
        for number in missing:
            yield number, "says {}, which no cell nearby computes" + together


def _stands_in(claim: Number, numbers: list[Number]) -> bool:
    return any(claim.stands_for(number) for number in numbers)


@rule
def numbers_in_a_row(book: Book) -> Iterator[Finding]:
    """Three numbers in a row, or two in brackets, stand so in some cell, a text above, or a mark.

    And a sum comes to what the text says. A small number alone stands in any cell, so it is not
    looked for. The worked instance of an exercise is computed by tests/lesson/proofs.
    """
    told: list[list[Number]] = []
    for n, cell in book.cells:
        if cell.cell_type != "markdown":
            continue
        texts = sentences(cell.source)
        sources = [*book.numbers.values(), *told, *(mark.accounted for mark in marks(cell.source))]
        for row in chain(*map(rows, texts)):
            is_there = any(stand_in_a_row(row, source) for source in sources)
            if not is_there and not re.search("^### Exercise", cell.source, re.M):
                text = " ".join(number.text for number in row)
                todo = f"correct it, or say where it comes from: <!-- {text}: an example -->"
                yield n, f"says {text}, which stands so in no cell", todo
        for equation in chain(*map(sums, texts)):
            if fault := equation.fault():
                yield n, f"says {equation.right} = {equation.left}, which {fault}", "correct it"
        told.append([number for text in texts for number in numbers(text)])


@rule
def asserts(book: Book) -> Iterator[Finding]:
    """No assert is lost: there are as many as ``ASSERTS`` says, and each can fail."""
    found = [(n, a) for n, tree in book.trees for a in ast.walk(tree) if isinstance(a, ast.Assert)]
    if len(found) != book.asserts:
        yield (
            None,
            f"has {len(found)} asserts, not {book.asserts}",
            "put back what is lost, or correct ASSERTS in tools/lint_notebooks.py",
        )
    for n, statement in found:
        if _holds_always(statement.test):
            said = ast.unparse(statement.test)
            yield n, f"has an assert that cannot fail: {said[:60]}", "compare what was computed"


def _holds_always(test: ast.expr) -> bool:
    """Whether a condition names nothing, or has a part that is true, or compares equal things."""
    pairs = [(c.left, c.comparators[0]) for c in ast.walk(test) if isinstance(c, ast.Compare)]
    pairs += [c.args[:2] for name in ("equal", "allclose", "isclose") for c in _calls(test, name)]
    parts = [
        part for node in ast.walk(test) if isinstance(node, ast.BoolOp) for part in node.values
    ]
    return (
        not any(isinstance(node, ast.Name) for node in ast.walk(test))
        or any(isinstance(part, ast.Constant) for part in parts)
        or any(len(pair) == 2 and len(set(map(ast.dump, pair))) == 1 for pair in pairs)
    )


@rule
def marked_numbers(book: Book) -> Iterator[Finding]:
    """A mark such as ``<!-- 0.73 = 1 - 0.27 -->`` comes out, and its number stands in the text."""
    for n, cell in book.cells:
        if cell.cell_type != "markdown":
            continue
        for comment in re.findall(r"<!--(.*?)-->", cell.source, re.S):
            if "--" in comment:
                yield n, f"has -- in the mark{comment}", "GitHub would show it: write - -3"
        if re.search(r"^ *<!--", cell.source, re.M):
            yield (
                n,
                "has a mark at the start of a line",
                "it ends the paragraph: put it after a sentence",
            )
        stated = {x.text for s in sentences(cell.source) for x in numbers(s)}
        for mark in marks(cell.source):
            if fault := mark.fault():
                yield n, f"has the mark {mark.left}, which {fault}", "correct the text or the mark"
            if not mark.accounted or any(x.text not in stated for x in mark.accounted):
                yield n, f"marks {mark.left}, which its text does not say", "correct the mark"


# ---------------------------------------------------------------- the code


@rule
def set_up_cell(book: Book) -> Iterator[Finding]:
    """The first code cell holds imports only, and is folded: in JupyterLab a bar stands for it."""
    for n, cell in book.code[:1]:
        if cell.metadata.get("jupyter") != notebooks.FOLDED:
            yield n, "is the first code cell and is not folded", "run make refresh"
    for n, tree in book.trees[:1]:
        if not tree.body or not all(isinstance(s, ast.Import | ast.ImportFrom) for s in tree.body):
            yield n, "is the first code cell and holds more than imports", "move the rest down"


@rule
def public_imports(book: Book) -> Iterator[Finding]:
    """What comes from a room comes from one of its public modules, not from a file inside."""
    for n, tree in book.trees:
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                if name.partition(".")[0] in notebooks.ROOMS and name not in PUBLIC:
                    yield n, f"imports from {name}", f"import from {', '.join(PUBLIC)}"


@rule
def cross_references(book: Book) -> Iterator[Finding]:
    """Where a text names another notebook, it leads there, and each such link leads to one."""
    files = {path.name[:2]: path.name for path in notebooks.names()}
    for n, text in book.prose:
        for file in re.findall(r"\]\((\d\d_[^)#]*)", text):
            if file not in files.values():
                yield n, f"has a link to {file}", "no notebook of this series has that name"
        told = re.sub(r"(?ms)<!--.*?-->|`[^`]*`|\[[^\]]*\]\([^)]*\)|^#.*?$", "", text)
        for number in re.findall(r"\b[Nn]otebook (\d\d)\b", told):
            if number in files and number != book.name[:2]:
                yield n, f"names notebook {number}", f"write [notebook {number}]({files[number]})"


@rule
def cell_length(book: Book) -> Iterator[Finding]:
    """A code cell has at most 25 lines, and the set-up one more: it says what to do if it fails."""
    for place, (n, cell) in enumerate(book.code):
        most = MAX_LINES + (place == 0)
        if (lines := len(cell.source.splitlines())) > most:
            yield n, f"has {lines} lines", f"at most {most}: cut it up, or move it to helpers/"


@rule
def no_magics(book: Book) -> Iterator[Finding]:
    """No shell, no magics, no paths, no star imports."""
    banned = re.compile(r"^\s*([%!].*|.*\bsys\.path\b.*|from\s+\S+\s+import\s+\*.*)$", re.M)
    for n, cell in book.code:
        for match in banned.finditer(cell.source):
            yield n, f"has {match[1].strip()!r}", "install, import and name things the plain way"


@rule
def no_semicolons(book: Book) -> Iterator[Finding]:
    """A ; at the end hides nothing from nbval."""
    for n, cell in book.code:
        try:
            found = list(tokenize.generate_tokens(io.StringIO(cell.source).readline))
        except (tokenize.TokenError, SyntaxError):
            continue
        if any(token.type == tokenize.OP and token.string == ";" for token in found):
            yield n, "has a ;", "one statement a line; assign to _ what is not to be shown"


@rule
def softmax_axis(book: Book) -> Iterator[Finding]:
    """The softmax runs over the keys, dim=-1; dim=1 is the mistake, shown only to be broken."""
    for n, tree in book.trees:
        if "break-it" in tags(book.nb.cells[n - 1]):
            continue
        for call in _calls(tree, "softmax"):
            # F.softmax(x, 1) has its dim in second place, x.softmax(1) in first.
            given = [*call.args[:2], _argument(call, 2, "dim")]
            if any(isinstance(dim, ast.Constant) and dim.value == 1 for dim in given):
                yield n, "has softmax with dim=1", "use dim=-1, or tag the cell break-it"


@rule
def broken_on_purpose(book: Book) -> Iterator[Finding]:
    """What stands below a heading "Break it" is tagged break-it, and nothing else is."""
    headings = dict((n, text) for n, _, text in book.headings)  # the last one of each cell
    breaks = False
    for n, cell in book.cells:
        breaks = "break it" in headings[n].lower() if n in headings else breaks
        if cell.cell_type == "markdown":
            continue
        is_tagged, tree = "break-it" in tags(cell), _parsed(cell.source)
        if is_tagged and not breaks:
            yield n, "is tagged break-it", 'put it below a heading "Break it", or drop the tag'
        elif breaks and not is_tagged and not any(_calls(tree, "predict") if tree else ()):
            yield n, 'stands below "Break it"', "tag it break-it, or give it a heading of its own"


@rule
def tolerances(book: Book) -> Iterator[Finding]:
    """Allclose says its tolerance: the default one decides differently on other processors.

    And a small one: 0.1 would hold for what is wrong, too.
    """
    for n, tree in book.trees:
        for name in ("allclose", "isclose"):
            for call in _calls(tree, name):
                if _argument(call, 3, "atol") is None:
                    yield n, f"has {name} without atol", "state it: atol=1e-6"
                for by in (_argument(call, 2, "rtol"), _argument(call, 3, "atol")):
                    if isinstance(by, ast.Constant) and by.value > MOST_TOLERANCE:
                        yield n, f"has {name} within {by.value}", f"at most {MOST_TOLERANCE}"


# ---------------------------------------------------------------- the lesson


@rule
def lesson_ids(book: Book) -> Iterator[Finding]:
    """Each exercise and prediction of this number stands there, once, or a part to build twice."""
    lessons = book.lessons
    declared = {"check": list(lessons.exercises), "predict": lessons.predictions}
    for file, text in ((f"nb{book.number}.py", book.exercises), (f"{book.number}.md", book.page)):
        if text is None:
            yield None, f"has no {file}", f"write lesson/exercises/{file}"
            return
    if "" in lessons.exercises:
        yield None, "has an exercise whose id is no plain string", 'write it out: "03.1"'
    known = {"check": set(lessons.exercises), "predict": set(lessons.predictions)}
    known["hint"] = known["solution"] = known["check"]
    met: list[str] = []
    for n, tree in book.trees:
        for name, ids in known.items():
            for call in _calls(tree, name):
                if not isinstance(call.func, ast.Name):
                    continue
                asked = _text(_argument(call, 0, "id"))
                if asked not in ids:
                    there = ", ".join(sorted(ids)) or "none"
                    yield n, f"calls {name}({asked!r})", f"the ids of this notebook are: {there}"
                elif name == "check" or (name == "predict" and not _argument(call, 1, "answer")):
                    met.append(asked)
    for wanted in [i for ids in declared.values() for i in ids if i]:
        if not 0 < (times := met.count(wanted)) <= 1 + wanted[3:].isalpha():  # a part, twice
            yield None, f"asks {wanted} {times} times", "ask it once; answers do not count"


@rule
def stubs(book: Book) -> Iterator[Finding]:
    """What is checked was defined before as a stub that raises, or holds a program to mend."""
    defined: dict[str, ast.AST] = {}
    for n, tree in book.trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined[node.name] = node
        for call in _calls(tree, "check"):
            exercise = _text(_argument(call, 0, "id"))
            candidate = _argument(call, 1, "candidate")
            name = candidate.id if isinstance(candidate, ast.Name) else None
            if name not in defined:
                yield n, f"checks {exercise} with something that is no stub", "def it just above"
                continue
            to_mend = exercise in book.lessons.given
            if "NotImplementedError" not in ast.dump(defined[name]) and not to_mend:
                yield n, f"checks {name}, which is no stub", "let it raise NotImplementedError"
            reference = book.lessons.exercises.get(exercise)
            if reference is not None and reference.name != name:
                yield n, f"checks {name} for {exercise}", f"name the stub {reference.name}"


@rule
def no_solutions(book: Book) -> Iterator[Finding]:
    """No reference solution stands in the notebook, in its code or in its text."""
    solutions = {_shape(r): i for i, r in book.lessons.exercises.items() if r is not None}
    fenced = re.compile(r"^ *(?:```|~~~)\w*\n(.*?)^ *(?:```|~~~) *$", re.M | re.S)
    trees = list(book.trees)
    for n, cell in book.cells:
        if cell.cell_type == "markdown":
            trees += [(n, t) for text in fenced.findall(cell.source) if (t := _parsed(text))]
    for n, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and _shape(node) in solutions:
                found = solutions[_shape(node)]
                yield n, f"holds the solution of {found}", "take it out: solution() shows it"


def _shape(node: ast.FunctionDef | ast.ClassDef) -> str:
    """A definition without its names, docstrings and annotations, to compare what it does."""
    names: dict[str, str] = {}
    node = ast.parse(ast.unparse(node)).body[0]
    local = {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)} | {
        a.id for a in ast.walk(node) if isinstance(a, ast.Name) and isinstance(a.ctx, ast.Store)
    }
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            part.name = "_"
            if ast.get_docstring(part) is not None:
                part.body = part.body[1:]
        if isinstance(part, ast.FunctionDef):
            part.returns = None
        elif isinstance(part, ast.arg):
            part.annotation = None
            part.arg = names.setdefault(part.arg, f"v{len(names)}")
        elif isinstance(part, ast.Name) and part.id in local:
            part.id = names.setdefault(part.id, f"v{len(names)}")
    return ast.dump(node)


# ---------------------------------------------------------------- the slides


def slide_type(cell: NotebookNode) -> str:
    """The slide type of a cell; "" where it has none."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "")


@rule
def slide_types(book: Book) -> Iterator[Finding]:
    """Every cell says what it is when the notebook is shown as slides."""
    todo = f"choose one of {', '.join(SLIDE_TYPES)} (in JupyterLab: Property Inspector)"
    for n, cell in book.cells:
        if slide_type(cell) not in SLIDE_TYPES:
            yield n, f"has the slide type {slide_type(cell) or 'none'}", todo


@rule
def predictions_on_slides(book: Book) -> Iterator[Finding]:
    """A prediction has a slide of its own: what answers it stands on a later one."""
    begins = ("slide", "subslide")
    asked = None  # the prediction whose slide goes on
    for n, cell in book.cells:
        if slide_type(cell) in begins:
            asked = None
        elif slide_type(cell) == "fragment" and asked:
            yield n, f"is on the slide of the prediction in cell {asked}", "make it a subslide"
        tree = _parsed(cell.source) if cell.cell_type == "code" else None
        if tree and any(not _argument(c, 1, "answer") for c in _calls(tree, "predict")):
            asked = n
            if slide_type(cell) not in begins:
                yield n, "asks a prediction below other things on a slide", "make it a subslide"


# ---------------------------------------------------------------- the outputs


@rule
def errors(book: Book) -> Iterator[Finding]:
    """A stored error is a wanted one."""
    for n, output in book.outputs:
        if output.output_type == "error" and "raises-exception" not in tags(book.nb.cells[n - 1]):
            yield n, f"stores a {output.ename}", "mend the cell, or tag it raises-exception"


@rule
def stderr(book: Book) -> Iterator[Finding]:
    """Nothing is written to stderr: warnings carry paths and process ids."""
    for n, output in book.outputs:
        if output.output_type == "stream" and output.name == "stderr":
            yield n, f"writes to stderr: {output.text.strip()[:60]!r}", "mend what warns"


@rule
def widget_view(book: Book) -> Iterator[Finding]:
    """A stored widget view points to state that is not stored."""
    for n, output in book.outputs:
        if WIDGET_VIEW in output.get("data", {}):
            yield n, "stores a widget view", "run make refresh"


@rule
def no_svg(book: Book) -> Iterator[Finding]:
    """Stored SVG differs in every run."""
    for n, output in book.outputs:
        if "image/svg+xml" in output.get("data", {}):
            yield n, "stores an SVG picture", "show a PNG with its text (helpers.pictures)"


@rule
def picture_words(book: Book) -> Iterator[Finding]:
    """A stored picture has alt text and a text version: nbval compares only the text."""
    for n, output in book.outputs:
        if "image/png" not in output.get("data", {}):
            continue
        if not str(output.metadata.get("image/png", {}).get("alt", "")).strip():
            yield n, "has a picture without alt text", "show it through helpers.pictures"
        words = "".join(output.data.get("text/plain", "")).strip()
        if not words or words.startswith("<Figure"):
            yield (
                n,
                "has a picture without a text version",
                "show it through helpers.pictures",
            )


@rule
def traces_of_a_machine(book: Book) -> Iterator[Finding]:
    """No address, path, process id, grad_fn or widget repr stands in an output."""
    trace = re.compile(
        r"0x[0-9a-fA-F]{6,}|ipykernel_\d+|grad_fn|\w*Box\(|[A-Z]:\\\w+|(?<![\w.:/<])(?:/[\w.+-]+){2,}"
    )
    for n, output in book.outputs:
        if match := trace.search(_said(output)):
            yield n, f"prints {match[0][:40]!r}", "print through show(), or print less"


@rule
def output_length(book: Book) -> Iterator[Finding]:
    """The text below a cell has at most 40 lines."""
    for n, cell in book.code:
        shown = [_said(o) for o in cell.outputs if "image/png" not in o.get("data", {})]
        if (lines := sum(len(text.splitlines()) for text in shown)) > MAX_OUTPUT_LINES:
            yield n, f"prints {lines} lines", f"at most {MAX_OUTPUT_LINES}: show a part"


def _said(output: NotebookNode) -> str:
    """All text of one output."""
    data = output.get("data", {})
    parts = [data[kind] for kind in ("text/plain", "text/html", "text/markdown") if kind in data]
    parts += [output.get("text", ""), output.get("evalue", ""), *output.get("traceback", [])]
    return "\n".join("".join(part) for part in parts if part)


@rule
def ignored_outputs(book: Book) -> Iterator[Finding]:
    """The cells that nbval does not compare are those that tools/ignored_cells.py lists."""
    met = []
    for n, cell in book.code:
        ways = {tag for tag in tags(cell) if tag.startswith(("nbval", "pytest-validate"))}
        ways |= set(re.findall(r"^\s*#\s*((?:NBVAL|PYTEST_VALIDATE)_\w+)", cell.source, re.M))
        for way in sorted(ways - {ignored_cells.TAG}):
            yield n, f"is marked {way}", f"take it out, or tag the cell {ignored_cells.TAG}"
        listed = ignored_cells.listed(book.number, cell.source)
        met.append(listed)
        if ignored_cells.TAG in ways and not listed:
            yield n, f"is tagged {ignored_cells.TAG}", "list it in tools/ignored_cells.py, with why"
        if listed and ignored_cells.TAG not in ways:
            yield n, f"stands in tools/ignored_cells.py without {ignored_cells.TAG}", "tag it"
    for listed in ignored_cells.IGNORED_CELLS:
        if listed.notebook == book.number and met.count(listed) != 1:
            yield (
                None,
                f"has {met.count(listed)} cells that begin with {listed.first_line!r}",
                "mend tools/ignored_cells.py",
            )


# ---------------------------------------------------------------- the run


def read(path: Path, exercises: Path = EXERCISES) -> Book:
    """Read a notebook, its exercise file and its page."""
    text = path.read_text(encoding="utf-8")
    files = exercises / f"nb{path.name[:2]}.py", exercises / f"{path.name[:2]}.md"
    lessons, page = (f.read_text(encoding="utf-8") if f.exists() else None for f in files)
    return Book(
        name=path.name,
        # nbformat.read would validate too, which takes longer than all rules together.
        nb=nbformat.v4.reads(text),
        size=len(text.encode()),
        exercises=lessons,
        page=page,
        asserts=ASSERTS.get(path.name[:2], 0),
    )


def lint(book: Book) -> list[str]:
    """All messages about one notebook, "name cell 7: what is wrong: what to do"."""
    return [
        f"{book.name}{f' cell {n}' if n else ''}: {wrong}: {todo}"
        for check in RULES.values()
        for n, wrong, todo in check(book)
    ]


def main(wanted: list[str]) -> None:
    """Print all messages; the exit code is 1 where there is one."""
    books = [path for nb in wanted or [""] for path in notebooks.chosen(nb)]
    messages = [message for path in books for message in lint(read(path))]
    print("\n".join(messages) or f"{len(books)} notebooks: nothing to mend.")
    raise SystemExit(bool(messages))


if __name__ == "__main__":
    main(sys.argv[1:])
