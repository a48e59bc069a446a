"""Slides of what a plan names: questions, predictions and their answers, pictures, explorers."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
from markupsafe import Markup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from lesson import PREDICTIONS
from tools.lecture.plan import PLACE, Chapter, Plan, Unplanned
from tools.site import live, pages

HERE = Path(__file__).parent
MAP = "Map of the series"  # the first picture of each notebook
# In px, of the slide's 1280 × 720: the room for a drawing on the board, and its letters.
BOARD, LETTERS, LETTER_WIDTH, LINE_HEIGHT = (1180, 600), 44, 0.61, 1.35


@dataclass
class Slide:
    """One slide: which kind of template it has, what the template needs, and the notes."""

    kind: str
    notes: str = ""
    values: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Shown:
    """Something that a notebook shows: in which section and part of it, under which title."""

    sections: tuple[str, ...]  # their anchors
    kind: str  # "picture", "live", "prediction", "code" or "sentence"
    title: str
    output: NotebookNode | None = None


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

    @property
    def live(self) -> dict[str, live.Live]:
        """Its explorers, by the code of their cells; they are made when first asked for."""
        if not hasattr(self, "_live"):
            made = live.explorers_of(self.nb)
            self._live = {call: live.Live(call, explorer) for call, explorer in made.items()}
        return self._live

    def find(self, name: str, section: str) -> Shown:
        """What a plan names: "live", "code", the title of a picture, or a sentence in bold."""
        here = [one for one in self.shown if section in one.sections]
        for one in here:
            if name == (one.kind if one.kind in ("live", "code") else one.title):
                return one
        told = [one.title for one in here if one.kind in ("picture", "sentence")]
        there = ", ".join(f"“{title}”" for title in told) or "nothing"
        raise Unplanned(f"section #{section} of notebook {self.number} shows no {name!r}: {there}")


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
            yield Shown(at, "code", cell.source)
            for output in cell.outputs:
                if "image/png" in output.get("data", {}):
                    first = output.data["text/plain"].partition("\n")[0]
                    yield Shown(at, "picture", first.partition(": ")[2] or first, output)


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
        for row in plan.rows:
            start = len(self.slides)
            for name in row.slides:
                try:
                    self.slides += self._slides(name)
                except Unplanned as error:
                    raise Unplanned(f"{plan.name}, {row.when}: {error}") from None
            told = markdown(f"**{row.when}.** {row.what}")
            for slide in self.slides[start:]:
                slide.notes += told

    def _slides(self, name: str) -> Iterator[Slide]:
        """The slides that one name of a plan stands for."""
        words = name.split()
        if place := PLACE.fullmatch(name):
            book = self._book(place[2])
            yield self._one(book, book.find(place[1].strip("*"), place[3]))
        elif name in PREDICTIONS:
            yield from self._prediction(name)
        elif name.startswith("“") and name.endswith("”"):
            lines = name[1:-1].split(" / ")
            yield Slide("sentence", values={"text": markdown("\n\n".join(lines))})
        elif re.fullmatch(r"\d\d", name):
            yield from self._whole(name)
        elif re.fullmatch(r"\d\d\.e\d", name):
            yield self._exit(name)
        elif words[0] == "question" and len(words) == 2:
            yield self._question(words[1])
        elif words[0] == "board" and len(words) == 2:
            yield self._board(words[1])
        else:
            raise Unplanned(
                f"{name!r} names no slide: it is a prediction such as 03.p1, an exit question "
                "such as 03.e1, “question 03”, “board 03”, a text in quotation marks, or “live”, "
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
                yield self._one(book, one)
        yield self._board(number)
        for id in self._chapter(number).exits:
            yield self._exit(id)

    def _one(self, book: Book, shown: Shown) -> Slide:
        if shown.kind == "sentence":
            said = shown.title[:1].upper() + shown.title[1:]
            return Slide("sentence", values={"text": markdown(said)})
        if shown.kind == "code":
            return self._drawn(shown.title)
        if shown.kind == "picture":
            data, size = shown.output.data["image/png"], shown.output.metadata["image/png"]
            uri = f"data:image/png;base64,{base64.b64encode(base64.b64decode(data)).decode()}"
            return Slide("picture", values={"src": uri, "alt": size["alt"]})
        found = book.live[shown.title]
        self.live[found.name] = found
        html = pages.macro("explorer", live=found, drawn=Markup(found.html))
        html = html.replace("<section ", "<div ").replace("</section>", "</div>")  # slides are such
        return Slide("live", values={"html": Markup(html)})

    def _question(self, number: str) -> Slide:
        chapter = self._chapter(number)
        notes = markdown(f"Question to open with. {chapter.opening}")
        return Slide("question", notes, {"number": number, "text": chapter.question})

    def _board(self, number: str) -> Slide:
        told, drawing = self._chapter(number).board
        return self._drawn(drawing, markdown(f"On the board. {told}"))

    def _drawn(self, drawing: str, notes: str = "") -> Slide:
        """A drawing of letters, or code, as large as it can be."""
        lines = drawing.rstrip().splitlines()
        wide = BOARD[0] / (LETTER_WIDTH * max(map(len, lines)))
        size = min(LETTERS, wide, BOARD[1] / (LINE_HEIGHT * len(lines)))
        return Slide("board", notes, {"text": drawing.rstrip(), "size": round(size, 1)})

    def _exit(self, id: str) -> Slide:
        """An exit question; its key stands in the notes."""
        exits = self._chapter(id[:2]).exits
        if id not in exits:
            raise Unplanned(f"teaching/{id[:2]}.md has no exit question {id}")
        told = exits[id]
        notes = markdown(f"**Key:** {told.key}\n\n**Wrong answers:** {told.wrong}")
        return Slide("exit", notes, {"id": id, "text": markdown(told.question)})

    def _prediction(self, id: str) -> Iterator[Slide]:
        """The question without its answer, and then the answer."""
        prediction, stop = PREDICTIONS[id], self._chapter(id[:2]).stops[id]
        notes = (
            f"**Right:** {stop.right}. **Expect hands at** {stop.expected}. {stop.why} "
            "Everybody chooses alone; on your sign, all hands go up together."
        )
        values = {"prediction": prediction}
        yield Slide("prediction", markdown(notes), values)
        wrong = "\n\n".join(
            f"{letter}) {prediction.choices[letter].explanation}" for letter in stop.wrong
        )
        yield Slide("answer", markdown(f"{wrong}\n\n{stop.why}"), values)

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


def markdown(text: str) -> Markup:
    """Write Markdown as HTML; a link keeps its words only, since a deck leads nowhere."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return Markup(MarkdownWithMath(renderer=IPythonRenderer(escape=False))(text))


def template() -> jinja2.Template:
    """The page of a deck."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.filters["told"] = pages.told
    return found.get_template("deck.html")
