"""Pages out of notebooks: text, code, results, predictions, exercises, figures, live explorers."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from bs4 import BeautifulSoup, Comment, Tag
from markupsafe import Markup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from helpers.pictures.base import darkened
from lesson import EXERCISES, PREDICTIONS, TERMS
from lesson.terms import Term
from tools import notebooks
from tools.site import live, marked
from tools.site.marked import anchor

FORMULA = re.compile("\ue000(\\d+)\ue001")  # stands for a formula until all are rendered
DRAWN = (
    "\ue002{}\ue003"  # stands for what an explorer draws: BeautifulSoup would write it differently
)
CHECK = re.compile(r'check\("([^"]+)"')
PREDICT = re.compile(r'predict\("([^"]+)"\)')
NOTEBOOK_LINK = re.compile(r"(?:notebooks/)?(\d\d_\w+)\.ipynb(#.*)?")
LONG = 5  # lines of code above a picture, which a phone folds
NO_CODE = re.compile(r"(predict|series_map|explore_\w+)\(")  # a reader of the site calls none


SIGNS = {  # in formulas, for a reader of plain text
    r"\infty": "∞", r"\sqrt": "√", r"\cdot": "·", r"\top": "ᵀ", r"\gamma": "γ", r"\beta": "β",
    r"\varepsilon": "ε", r"\sum": "Σ", r"\dots": "…", r"\leftarrow": "←", r"\log": "log ",
    r"\qquad": "  ",
}  # fmt: skip


class Formulas:
    """The formulas of all pages, rendered together at the end."""

    def __init__(self) -> None:
        self.tex: list[tuple[str, bool]] = []

    def add(self, tex: str, alone: bool) -> str:
        """Note a formula, and return what stands for it."""
        self.tex.append((tex.strip(), alone))
        return f"\ue000{len(self.tex) - 1}\ue001"

    def put_in(self, text: str, rendered: list[str]) -> str:
        """Put the rendered formulas into a text."""
        return FORMULA.sub(lambda found: rendered[int(found[1])], text)

    def put_in_words(self, text: str) -> str:
        """Put the formulas into a plain text, without the commands of TeX."""
        return FORMULA.sub(lambda found: in_words(self.tex[int(found[1])][0]), text)


def in_words(tex: str) -> str:
    """A formula as a search shows it: without commands and braces."""
    for command, sign in SIGNS.items():
        tex = tex.replace(command, sign)
    tex = re.sub(r"\\text\{([^{}]*)\}", r"\1", tex)
    part = r"\{((?:[^{}]|\{[^{}]*\})*)\}"  # holds at most one pair of braces inside of another
    tex = re.sub(rf"\\frac{part}{part}", r"(\1) / (\2)", tex)
    return " ".join(re.sub(r"\\[a-zA-Z]+|\\.|[{}&]", "", tex).split())


class _Renderer(IPythonRenderer):
    """Markdown to HTML, as nbconvert does it but for formulas and headings."""

    def __init__(self, formulas: Formulas) -> None:
        super().__init__(escape=False)
        self._formulas = formulas

    def block_math(self, body: str) -> str:
        return self._formulas.add(body, True)

    def inline_math(self, body: str) -> str:
        return self._formulas.add(body, False)

    def heading(self, text: str, level: int, **_: Any) -> str:
        return f"<h{level}>{text}</h{level}>\n"


@dataclass
class Section:
    """A part of a page that a search can find: its heading, its anchor, its text."""

    heading: str
    anchor: str
    text: str = ""


@dataclass
class Page:
    """A notebook as a page.

    Attributes
    ----------
    name
        Of its file, without an ending: "03_softmax_masking".
    title, minutes, sentence
        What its first cell says: the question, how long it takes, the answer in one sentence.
    body
        Its HTML, in which marks stand for formulas.
    contents
        The headings below the title: (level, anchor, text).
    pictures
        File names and PNGs, of each picture one for a light and one for a dark page.
    live
        Its explorers, by the source of their cells.
    terms
        The terms of the glossary that its text has marks for.
    """

    name: str
    title: str = ""
    minutes: str = ""
    sentence: str = ""
    body: str = ""
    contents: list[tuple[int, str, str]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    pictures: dict[str, bytes] = field(default_factory=dict)
    live: dict[str, live.Live] = field(default_factory=dict)
    terms: list[Term] = field(default_factory=list)

    @property
    def number(self) -> str:
        """The two digits of the notebook."""
        return self.name[:2]

    @property
    def label(self) -> str:
        """How a search names the page."""
        return f"{self.number} {self.title}" if self.number.isdigit() else self.title

    @property
    def file(self) -> str:
        """The name of its HTML file."""
        return f"{self.name}.html"


class Maker:
    """Makes the pages of one site.

    Parameters
    ----------
    names
        The names of all notebooks of the site: links to others lose their target.
    """

    def __init__(self, names: list[str]) -> None:
        self.names, self.formulas = names, Formulas()
        self._markdown = MarkdownWithMath(renderer=_Renderer(self.formulas))

    def page(self, name: str, nb: NotebookNode) -> Page:
        """Make the page of a notebook."""
        explorers = live.explorers_of(nb)
        page = Page(name, live={call: live.Live(call, made) for call, made in explorers.items()})
        body = BeautifulSoup("".join(self._cell(page, cell) for cell in nb.cells), "html.parser")
        marked.note_definitions(body, page.number)
        self._read_first_cell(page, body)
        self._split_into_sections(page, body)
        _fold_optional(body)
        page.terms = marked.mark(body, page.number)
        page.body = str(body)
        for shown in page.live.values():
            page.body = page.body.replace(DRAWN.format(shown.name), shown.html)
        return page

    def markdown(self, source: str) -> str:
        """Write Markdown as HTML: links lead to pages of the site, headings have anchors."""
        soup = BeautifulSoup(self._markdown(source), "html.parser")
        for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
            comment.extract()
        for heading in soup.find_all(re.compile("^h[1-6]$")):
            heading["id"] = anchor(heading.get_text())
        for link in soup.find_all("a"):
            self._lead(link)
        for table in soup.find_all("table"):
            table.wrap(soup.new_tag("div", attrs={"class": "scroll"}))
        return str(soup)

    def _lead(self, link: Tag) -> None:
        if link["href"] == "teaching/GLOSSARY.md":
            link["href"] = "glossary.html"
        elif found := NOTEBOOK_LINK.fullmatch(link["href"]):
            if found[1] in self.names:
                link["href"] = f"{found[1]}.html{found[2] or ''}"
            else:
                link.unwrap()

    def _cell(self, page: Page, cell: NotebookNode) -> str:
        if cell.cell_type == "markdown":
            return f'<div class="cell text">{self.markdown(cell.source)}</div>\n'
        if found := PREDICT.fullmatch(cell.source.strip()):
            return macro("prediction", prediction=PREDICTIONS[found[1]])
        if live.is_explorer(cell.source):
            shown = page.live[cell.source]
            return macro("explorer", live=shown, drawn=DRAWN.format(shown.name))
        code = "" if NO_CODE.match(cell.source) else python(cell.source)
        if found := CHECK.search(cell.source):
            return macro("exercise", code=code, exercise=EXERCISES[found[1]], page=page)
        outputs = [self._output(page, output) for output in cell.outputs]
        folded = cell.metadata.get("jupyter") == notebooks.FOLDED
        draws = code and code.count("\n") >= LONG and any("file" in shown for shown in outputs)
        return macro("code", code=code, outputs=outputs, folded=folded, draws=draws)

    def _output(self, page: Page, output: NotebookNode) -> dict[str, Any]:
        data = output.get("data", {})
        text = output.get("text") or data.get("text/plain") or _traceback(output)
        if "image/png" not in data:
            return {"text": text}
        file = f"{page.number}-{len(page.pictures) // 2:02d}"
        png = base64.b64decode(data["image/png"])
        page.pictures |= {f"{file}.png": png, f"{file}-dark.png": darkened(png)}
        return {"text": text, "file": file, **output.metadata["image/png"]}

    def _read_first_cell(self, page: Page, body: BeautifulSoup) -> None:
        page.title = body.h1.get_text()
        first = body.h1.parent.get_text()
        found = re.search(r"(\d+) minutes", first)
        page.minutes = found[1] if found else ""
        paragraph = body.h1.find_next_sibling("p")
        if paragraph and paragraph.strong:
            sentence = paragraph.get_text().removeprefix(paragraph.strong.get_text()).strip()
            page.sentence = sentence[0].upper() + sentence[1:]

    def _split_into_sections(self, page: Page, body: BeautifulSoup) -> None:
        for element in body.select(".cell > *"):
            text = "" if element.name == "figure" else " ".join(element.get_text().split())
            if element.name in ("h1", "h2", "h3"):
                page.sections.append(Section(text, element["id"]))
                if element.name != "h1":
                    page.contents.append((int(element.name[1]), element["id"], text))
            elif page.sections:
                page.sections[-1].text += f" {self.formulas.put_in_words(text)}"


def _fold_optional(body: BeautifulSoup) -> None:
    """Put what follows a heading "Optional: …" into a box, which a phone folds."""
    for heading in body.select('h2[id^="Optional:"]'):
        box = body.new_tag("details", attrs={"class": "long", "open": ""})
        box.append(body.new_tag("summary", string="The optional part"))
        heading.find_parent(class_="cell").insert_after(box)
        while (cell := box.find_next_sibling(class_="cell")) and not cell.h2:
            box.append(cell)


def python(source: str) -> Markup:
    """Colour Python code."""
    return Markup(highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)))


def told(text: str) -> Markup:
    """Write a text of the lesson as HTML: what stands in backticks becomes code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False)))


def _traceback(output: NotebookNode) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output.get("traceback", [])))


@cache
def templates() -> jinja2.Environment:
    """The templates of the site."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    found = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.filters |= {"told": told, "anchor": anchor}
    return found


def macro(name: str, **values: Any) -> str:
    """Write a cell with the macro of this name from cells.html."""
    return str(getattr(templates().get_template("cells.html").module, name)(**values))


def terms(made: list[Page]) -> Iterator[tuple[Term, str]]:
    """Every term with the place that introduces it; "" where the site does not have that page."""
    by_number = {page.number: page for page in made}
    for term in sorted(TERMS.values(), key=lambda term: term.name.lower()):
        page = by_number.get(term.notebook)
        mark = f"term-{anchor(term.name)}"
        place = f"#{mark}" if page and f'id="{mark}"' in page.body else ""
        yield term, f"{page.file}{place}" if page else ""


def glossary_page() -> Page:
    """The glossary as a search sees it: each term is a section."""
    sections = []
    for term in TERMS.values():
        also = f"Also: {', '.join(term.also)}. " if term.also else ""
        sections.append(Section(term.name, anchor(term.name), also + term.meaning))
    return Page("glossary", "Glossary", sections=sections)
