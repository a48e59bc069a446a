"""Write notebooks as slides that need no kernel and no network: ``python -m tools.slides.static``.

``python -m tools.slides.static 03`` writes slides/03_softmax_masking.html, and beside it, in
assets/, what its pages share: reveal.js, which turns the pages, and MathJax, which sets formulas.
Both come from npm (`make slides-html` installs them). A prediction is shown as its question and
choices. An explorer cannot be moved: its picture in the first state is computed anew, since a
stored notebook has only its words.
"""

import copy
import shutil
import sys
from html import escape
from pathlib import Path

import nbformat
from nbconvert import SlidesExporter
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

from helpers.explorers.explorer import RULES
from helpers.lesson.exercises import PREDICTIONS
from helpers.lesson.question import Prediction, as_html
from tools import notebooks, npm
from tools.lab import Unreadable, read
from tools.refresh import CellFailed, execute

HERE = Path(__file__).parent
FOLDER = notebooks.ROOT / "slides"
ASSETS = {
    "reset.css": "reveal.js/dist/reset.css",
    "reveal.css": "reveal.js/dist/reveal.css",
    "reveal.js": "reveal.js/dist/reveal.js",
    "notes.js": "reveal.js/plugin/notes/notes.js",
    "mathjax.js": "mathjax/es5/tex-svg.js",
}
# In px, as in slides.css: what a slide holds, a line of code, the edges of a block, a line of text.
WIDE, HIGH, LINE, EDGES, PROSE = 1256, 676, 26, 40, 40
LETTERS = 72  # in a line of text, at least
# Code grows where it has room: so much, while a line has at most so many letters.
LARGE, LARGE_LETTERS = 1.3, 76
MANY_WORDS = 120  # a text with more has smaller letters
# How much larger than in a notebook a picture is drawn. The smallest numbers on a slide have 14 px;
# heatmaps have numbers of 10 px, and other pictures of 11 px.
LEAST = {"Heatmap": 1.4, "": 1.28}
MOST = 2.0
# Run below an explorer, in its kernel: its picture.
PICTURE = """from IPython.display import HTML
explorer = Out[max(Out)]  # not _, which a notebook may have assigned
HTML(f'<div class="{" ".join(explorer.view._dom_classes)}">{explorer.view.value}</div>')"""


def write(path: Path, folder: Path) -> Path:
    """Write the slides of one notebook into a folder, with all that they load."""
    page = folder / f"{path.stem}.html"
    text = html(with_pictures(path))
    assets = folder / "assets"
    with notebooks.writing(assets):
        assets.mkdir(exist_ok=True)
        for name, source in ASSETS.items():
            partial = assets / f"{name}.part"
            shutil.copyfile(npm.PACKAGES / source, partial)
            partial.replace(assets / name)
    notebooks.write_whole(page, text)
    return page


def html(nb: NotebookNode) -> str:
    """Make the page of a notebook whose explorers have their pictures."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if cell.cell_type == "code":
            for output in cell.outputs:
                _replace(output)
            if _is_call(cell.source) and any(len(_data(o)) > 1 for o in cell.outputs):
                cell.source = ""  # the call says nothing that its picture or question does not
        elif len(cell.source.split()) > MANY_WORDS:
            cell.metadata.tags = ["small"]
    cells, nb.cells = nb.cells, []
    for place, cell in enumerate(cells):
        if cell.cell_type == "code":
            nb.cells += divide(cell, _below(cells[place + 1 :]))
        else:
            nb.cells.append(cell)
    exporter = SlidesExporter(template_name="template", extra_template_basedirs=[str(HERE)])
    title = nb.cells[0].source.splitlines()[0].lstrip("# ")
    css = (HERE / "slides.css").read_text(encoding="utf-8")
    code = HtmlFormatter().get_style_defs(".highlight")
    styles = "\n".join([code, RULES, css])
    body, _ = exporter.from_notebook_node(nb, {"title": title, "styles": styles})
    return body


def with_pictures(path: Path) -> NotebookNode:
    """Read a notebook, and add to each explorer's output the picture of its first state.

    Raises
    ------
    SystemExit
        In one sentence, where the notebook cannot be read or a cell fails.
    """
    try:
        read(path)
    except Unreadable as error:
        notebooks.stop(f"{error}: clone the repository again, or restore that file with git.")
    nb = nbformat.read(path, as_version=4)
    for place, cell in enumerate(nb.cells):
        live = [o for o in cell.get("outputs", []) if _words(o).startswith("Live: ")]
        if live:
            start = NotebookNode(nb | {"cells": [*nb.cells[: place + 1]]})
            start.cells.append(nbformat.v4.new_code_cell(PICTURE))
            try:
                drawn = execute(start, path.parent).cells[-1].outputs[0]
            except CellFailed as error:
                notebooks.stop(f"{path.name} cannot be shown, because its {error}.")
            live[0].data["text/html"] = drawn.data["text/html"]
    return nb


def divide(cell: NotebookNode, below: float) -> list[NotebookNode]:
    """Move pictures, or all outputs, to the next slide where they have no room below their code.

    Pictures grow until they fill the slide, but for the height of what follows ``below`` them.
    """
    code = LINE * len(cell.source.splitlines()) + EDGES if cell.source else 0
    drawn = [o for o in cell.outputs if "image/png" in _data(o)]
    told = [o for o in cell.outputs if o not in drawn]
    text = sum(LINE * len(_words(o).splitlines()) + EDGES for o in told)
    least = sum(_least(o) * _size(o)["height"] for o in drawn)
    widest = max(map(len, "\n".join([cell.source, *map(_words, told)]).splitlines()), default=0)
    if widest <= LARGE_LETTERS and LARGE * (code + text) + least + below <= HIGH:
        code, text = LARGE * code, LARGE * text
        cell.metadata.tags = ["large"]
    parts = [cell]
    if code and cell.outputs and code + text + least + below > HIGH:
        first, cell = copy.deepcopy(cell), copy.deepcopy(cell)
        fits = drawn and code + text <= HIGH
        first.outputs, cell.outputs = (told, drawn) if fits else ([], cell.outputs)
        cell.source, cell.id = "", f"{cell.id}-output"
        if cell.metadata.slideshow.slide_type not in ("notes", "skip"):
            cell.metadata.slideshow.slide_type = "subslide"
        parts, code, text = [first, cell], 0, 0 if fits else text
    for output in cell.outputs:
        if "image/png" in _data(output):
            size = _size(output)
            room = (HIGH - code - text - below) / len(drawn) / size["height"]
            zoom = max(min(room, MOST, WIDE / size["width"]), _least(output))
            size["width"] = round(zoom * size["width"])
    return parts


def _below(cells: list[NotebookNode]) -> float:
    """How high the fragments stand that these cells begin with."""
    height = 0
    for cell in cells:
        kind = cell.metadata.slideshow.slide_type
        if kind in ("slide", "subslide"):
            break
        if kind == "fragment" and cell.cell_type == "markdown":
            height += PROSE * (len(cell.source) // LETTERS + 1) + EDGES
    return height


def _least(output: NotebookNode) -> float:
    """How much a picture has to grow so that its numbers can be read."""
    return next(zoom for kind, zoom in LEAST.items() if _words(output).startswith(kind))


def _size(output: NotebookNode) -> NotebookNode:
    """Width and height of a picture, in px."""
    return output.metadata["image/png"]


def _replace(output: NotebookNode) -> None:
    """Give predictions and explorers the form they have on a slide, in place."""
    words = _words(output)
    if words.startswith("Prediction "):
        output.data["text/html"] = question(PREDICTIONS[words.split()[1]])
    elif words.startswith("Live: "):
        about = words.splitlines()[0].removeprefix("Live: ")
        picture = output.data["text/html"]
        output.data["text/html"] = (
            f'<div class="live"><p>Live in the notebook: {escape(about)}</p>{picture}</div>'
        )


def question(prediction: Prediction) -> str:
    """Make the HTML of a prediction: its question and its choices, not its answer."""
    choices = "".join(f"<li>{_inline(c.text)}</li>" for c in prediction.choices.values())
    return (
        f'<div class="prediction"><h3>Prediction {prediction.id}</h3>'
        f'{_inline(prediction.question)}<ol type="a">{choices}</ol></div>'
    )


def _inline(text: str) -> str:
    return as_html(text).replace("max-width:60em;", "")


def _is_call(source: str) -> bool:
    """Whether a cell is nothing but one call, such as ``predict("03.p1")``."""
    return source.endswith(")") and "\n" not in source and "=" not in source.split("(")[0]


def _data(output: NotebookNode) -> NotebookNode:
    return output.get("data", NotebookNode())


def _words(output: NotebookNode) -> str:
    """The text of an output."""
    return _data(output).get("text/plain") or output.get("text", "")


def main(nb: str) -> None:
    """Write the slides of the notebook that ``nb`` names, of all for ""."""
    chosen = notebooks.chosen(nb)
    npm.need("slides-html")
    notebooks.one_environment()
    notebooks.need_room(FOLDER)
    for path in chosen:
        print(notebooks.shown(write(path, FOLDER)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
