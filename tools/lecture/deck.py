"""Slides of what a plan names: questions, predictions and their answers, pictures, explorers."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from lesson import PREDICTIONS
from tools.lecture import drawn
from tools.lecture.plan import PLACE, Chapter, Plan, Row, Unplanned
from tools.site import live, pages

HERE = Path(__file__).parent
MAP = "Map of the series"  # the first picture of each notebook
# In px, of the slide's 1280 × 720: the room for a drawing on the board, and its letters.
BOARD, LETTERS, LETTER_WIDTH, LINE_HEIGHT = (1180, 620), 44, 0.603, 1.35
THEN = " // "  # in words of a plan: what follows appears with the next key


@dataclass
class Slide:
    """One slide: which kind of template it has, what the template needs, and the notes."""

    kind: str
    notes: str = ""
    values: dict = field(default_factory=dict)
    name: str = ""  # as steps and run sheets call it: 03.p1, "board", "live", …


@dataclass(frozen=True)
class Shown:
    """Something that a notebook shows: in which section and part of it, under which title."""

    sections: tuple[str, ...]  # their anchors
    kind: str  # "picture", "live", "prediction", "code" or "sentence"
    title: str
    source: str = ""  # of its cell
    printed: str = ""  # by its cell


class Book:
    """A notebook, seen as what can be put on a slide.

    Parameters
    ----------
    number
        Its two digits.
    nb
        The notebook, with its outputs.
    """

    def __init__(self, number: str, nb: NotebookNode) -> None:
        self.number, self.nb = number, nb
        self.shown = list(_shown(nb))
        self._rest = iter([cell for cell in nb.cells if cell.cell_type == "code"])
        self._names: dict[str, Any] = {}
        self._values: dict[str, Any] = {}

    def value(self, source: str) -> Any:
        """What a cell shows, a picture or an explorer: runs all cells up to this one, once each.

        Raises
        ------
        CannotRun
            Where one of them fails.
        """
        while source not in self._values:
            cell = next(self._rest)
            self._values[cell.source] = None
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    self._values[cell.source] = _run(cell.source, self._names)
            except Exception as error:
                if "raises-exception" in cell.metadata.get("tags", ()):
                    continue
                first = cell.source.partition("\n")[0]
                raise live.CannotRun(
                    f"the cell `{first}` raised {type(error).__name__}: {error}"
                ) from None
        return self._values[source]

    def find(self, name: str, section: str) -> Shown:
        """What a plan names: "live", "code", the title of a picture, or a sentence in bold."""
        here = [one for one in self.shown if section in one.sections]
        for one in here:
            if name == (one.kind if one.kind in ("live", "code") else one.title):
                return one
        told = [one.title for one in here if one.kind in ("picture", "sentence")]
        there = ", ".join(f"“{title}”" for title in told) or "nothing"
        raise Unplanned(f"section #{section} of notebook {self.number} shows no {name!r}: {there}")


def _run(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell; gives the value of its last expression, if it ends with one."""
    body, last = ast.parse(cell).body, None
    if body and isinstance(body[-1], ast.Expr):
        last = body.pop()
    name = f"<cell {len(linecache.cache)}>"
    linecache.cache[name] = len(cell), None, cell.splitlines(keepends=True), name  # check reads it
    exec(compile(ast.Module(body, []), name, "exec", dont_inherit=True), names)
    if last:
        return eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), names)
    return None


def _shown(nb: NotebookNode) -> Iterator[Shown]:
    at: tuple[str, ...] = ()
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            for line in cell.source.splitlines():
                if heading := re.match(r"(##+) (.*)", line):
                    at = (*at[: len(heading[1]) - 2], pages.anchor(heading[2]))
                for bold in line.split("**")[1::2]:
                    yield Shown(at, "sentence", bold)
        elif found := pages.PREDICT.fullmatch(cell.source.strip()):
            yield Shown(at, "prediction", found[1])
        elif live.is_explorer(cell.source):
            yield Shown(at, "live", cell.source)
        else:
            printed = "".join(output.get("text", "") for output in cell.outputs)
            yield Shown(at, "code", cell.source, cell.source, printed)
            for output in cell.outputs:
                if "image/png" in output.get("data", {}):
                    first = output.data["text/plain"].partition("\n")[0]
                    title = first.partition(": ")[2] or first
                    yield Shown(at, "picture", title, cell.source)


class Deck:
    """The slides of a plan.

    Parameters
    ----------
    plan
        What to show, and when.
    chapters
        What teaching/ says of each notebook.
    books
        The notebooks, by number.
    """

    def __init__(self, plan: Plan, chapters: dict[str, Chapter], books: dict[str, Book]) -> None:
        self.plan, self.chapters, self.books = plan, chapters, books
        self.live: dict[str, live.Live] = {}  # by name: those that are shown
        self.slides: list[Slide] = []
        self.spans: list[range] = []  # which slides each row has
        for row in plan.rows:
            start = len(self.slides)
            for name in row.slides:
                try:
                    self.slides += self._slides(name)
                except Unplanned as error:
                    raise Unplanned(f"{plan.name}, {row.when}: {error}") from None
            told = markdown(f"**{row.when}.** {row.told}")
            for slide in self.slides[start:]:
                slide.notes += told
            self.spans.append(range(start, len(self.slides)))

    def _slides(self, name: str) -> Iterator[Slide]:
        """The slides that one name of a plan stands for."""
        words = name.split()
        if place := PLACE.fullmatch(name):
            book = self._book(place[2])
            yield from self._one(book, book.find(place[1].strip("*"), place[3]))
        elif name in PREDICTIONS:
            yield from self._prediction(name)
        elif name.startswith("“") and name.endswith("”"):
            parts = ["\n\n".join(part.split(" / ")) for part in name[1:-1].split(THEN)]
            yield Slide("sentence", values={"parts": [*map(markdown, parts)]})
        elif re.fullmatch(r"\d\d", name):
            yield from self._whole(name)
        elif re.fullmatch(r"\d\d\.e\d", name):
            yield from self._exit(name)
        elif name == "formula":
            yield Slide("formula", values=drawn.formula())
        elif words[0] == "question" and len(words) == 2:
            yield self._question(words[1])
        elif words[0] == "board" and words[2:] in ([], ["line", "by", "line"]):
            yield self._board(words[1], step=1 if words[2:] else 0)
        else:
            raise Unplanned(
                f"{name!r} names no slide: it is a prediction such as 03.p1, an exit question "
                "such as 03.e1, “question 03”, “board 03”, “board 03 line by line”, “formula”, a "
                "text in quotation marks, or “live”, "
                "“code”, *the title of a picture* or *a sentence in bold*, in [a section](of a "
                "notebook)"
            )

    def _book(self, number: str) -> Book:
        if number not in self.books:
            raise Unplanned(f"there is no notebook {number}")
        return self.books[number]

    def _whole(self, number: str) -> Iterator[Slide]:
        """All of a notebook: its question, what it shows in order, the board, exit questions."""
        book = self._book(number)
        yield self._question(number)
        for one in book.shown:
            if one.kind == "prediction":
                yield from self._prediction(one.title)
            elif one.kind in ("picture", "live") and one.title != MAP:
                yield from self._one(book, one)
        yield self._board(number)
        for id in self._chapter(number).exits:
            yield from self._exit(id)

    def _one(self, book: Book, shown: Shown) -> Iterator[Slide]:
        if shown.kind == "sentence":
            yield Slide("sentence", values={"parts": [markdown(shown.title)]})
        elif shown.kind == "code":
            yield _drawn([shown.title, *[shown.printed] * bool(shown.printed)], kind="code")
        elif shown.kind == "picture":
            picture = book.value(shown.source)
            values = {"title": shown.title, "alt": picture.alt}
            for svg in (found := drawn.drawings(picture)):
                yield Slide("picture", values=values | {"src": drawn.as_uri(svg)})
            if not found:
                html = re.sub(r"<caption.*?</caption>|^<p.*?</p>", "", picture.html())
                yield Slide("table", values=values | {"html": Markup(html)})
        else:
            found = live.Live(shown.title, book.value(shown.title))
            self.live[found.name] = found
            html = pages.macro("explorer", live=found, drawn=Markup(found.html))
            html = html.replace("<section ", "<div ")  # slides are such
            html = html.replace("</section>", "</div>")
            yield Slide("live", values={"html": Markup(html)}, name="live")

    def _question(self, number: str) -> Slide:
        chapter = self._chapter(number)
        notes = markdown(f"Question to open with. {chapter.opening}")
        return Slide("question", notes, {"number": number, "text": chapter.question}, "question")

    def _board(self, number: str, step: int = 0) -> Slide:
        told, drawing = self._chapter(number).board
        parts = drawing.rstrip().splitlines() if step else [drawing]
        return _drawn(parts, markdown(f"On the board. {told}"), "board")

    def _exit(self, id: str) -> Iterator[Slide]:
        """An exit question, and then its key; what wrong answers say stands in the notes."""
        exits = self._chapter(id[:2]).exits
        if id not in exits:
            raise Unplanned(f"teaching/{id[:2]}.md has no exit question {id}")
        told = exits[id]
        notes = markdown(f"**Key:** {told.key}\n\n**Wrong answers:** {told.wrong}")
        values = {"id": id, "text": markdown(told.question)}
        yield Slide("exit", notes, values, id)
        yield Slide("key", notes, values | {"key": markdown(told.key)}, f"{id}, answer")

    def _prediction(self, id: str) -> Iterator[Slide]:
        """The question without its answer, and then the answer."""
        prediction, stop = PREDICTIONS[id], self._chapter(id[:2]).stops[id]
        notes = (
            f"**Right:** {stop.right}. **Expect hands at** {stop.expected}. {stop.why} "
            "Everybody chooses alone; on your sign, all hands go up together."
        )
        values = {"prediction": prediction}
        yield Slide("prediction", markdown(notes), values, id)
        wrong = "\n\n".join(
            f"{letter}) {prediction.choices[letter].explanation}" for letter in stop.wrong
        )
        yield Slide("answer", markdown(f"{wrong}\n\n{stop.why}"), values, f"{id}, answer")

    def _chapter(self, number: str) -> Chapter:
        if number not in self.chapters:
            raise Unplanned(f"teaching/ says nothing of notebook {number}")
        return self.chapters[number]

    def html(self) -> str:
        """The page."""
        shown = [slide for slide in self.slides if slide.kind == "question"]
        return template().render(
            name=self.plan.name, slides=self.slides, live=self.live,
            questions=[(self.slides.index(slide) + 1, slide.values) for slide in shown],
        )  # fmt: skip

    def run_sheet(self) -> str:
        """A page to print: for each row when, which slides, what to say and what to do."""
        lines = [
            (row.when, _from_to(span), markdown(row.say), markdown(self._to_do(row)))
            for row, span in zip(self.plan.rows, self.spans, strict=True)
        ]
        slides, opening = [], ""
        if self.plan.steps:
            lines = [self._step(row) for row in self.plan.steps]
            slides = [slide.values.get("title") or slide.name for slide in self.slides]
            opening = markdown(self._chapter(self.plan.rows[0].slides[0]).opening)
        return template("sheet.html").render(
            name=self.plan.name, lines=lines, late=self.plan.late, slides=slides, opening=opening
        )

    def _to_do(self, row: Row) -> str:
        """What to do in a row, the answers to expect at its predictions, and to a question."""
        stops = [self._chapter(id[:2]).stops[id] for id in row.slides if id in PREDICTIONS]
        keys = [f"Right: **{stop.right[0]}**, expect {' and '.join(stop.wrong)}." for stop in stops]
        return " ".join([row.do, *keys, f"*{row.asked}*" * bool(row.asked)])

    def _step(self, step: Row) -> tuple[str, str, Markup, Markup]:
        """A step of a session: its slides are those that it names."""
        named = re.findall(r"\b\d\d\.p\d\b|\bboard\b|\blive\b", step.do)
        places = [n for n, slide in enumerate(self.slides) if slide.name in named]
        stops = [(id, self._chapter(id[:2]).stops[id]) for id in named if id in PREDICTIONS]
        say = [f"{id}: **{stop.right}**; expect {stop.expected}. {stop.why}" for id, stop in stops]
        shown = ", ".join(_from_to(range(n, n + 1)) for n in places)
        return step.when, shown, markdown(" ".join(say)), markdown(step.do)


def _from_to(span: range) -> str:
    """The numbers of slides as a deck shows them, where the title is slide 1."""
    numbers = [str(n + 2) for n in (span[0], span[-1])] if span else []
    return "–".join(dict.fromkeys(numbers))


def _drawn(parts: list[str], notes: str = "", name: str = "", kind: str = "board") -> Slide:
    """A drawing of letters, or code, as large as it can be; its parts appear one by one."""
    lines = [line for part in parts for line in part.rstrip().splitlines()]
    wide = BOARD[0] / (LETTER_WIDTH * max(map(len, lines)))
    size = min(LETTERS, wide, BOARD[1] / (LINE_HEIGHT * len(lines)))
    parts = [part.rstrip() for part in parts]
    return Slide(kind, notes, {"parts": parts, "size": round(size, 1)}, name)


def markdown(text: str) -> Markup:
    """Write Markdown as HTML; a link keeps its words only, since a deck leads nowhere."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return Markup(MarkdownWithMath(renderer=IPythonRenderer(escape=False))(text))


def template(name: str = "deck.html") -> jinja2.Template:
    """The page of a deck, or of its run sheet."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.filters["told"] = pages.told
    return found.get_template(name)
