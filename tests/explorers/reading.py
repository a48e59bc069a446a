"""Read an explorer back from what a notebook shows of it: its controls, its drawing, its words."""

import re
from typing import NamedTuple
from xml.etree import ElementTree

import ipywidgets as widgets
import pytest
import torch
from matplotlib import colormaps
from matplotlib.colors import to_hex

SLIDERS = widgets.IntSlider, widgets.FloatSlider
CHOICES = widgets.SelectionSlider, widgets.Dropdown


def shown(explorer):
    """All widgets that a notebook displays, from top to bottom; `box` is what it displays."""
    return list(_inside(explorer.box))


def _inside(widget):
    if "none" in (widget.layout.display, widget.layout.visibility):
        return
    yield widget
    for child in getattr(widget, "children", ()):
        yield from _inside(child)


def controls(explorer):
    """The sliders, lists and boxes to tick that are shown, by the words beside them."""
    kinds = *SLIDERS, *CHOICES, widgets.Checkbox
    return {w.description: w for w in shown(explorer) if isinstance(w, kinds) and not w.disabled}


def buttons(explorer):
    """The buttons that are shown, by their tooltips."""
    return {w.tooltip: w for w in shown(explorer) if isinstance(w, widgets.Button)}


def move(explorer, settings):
    """Set controls by the words beside them, as a hand does."""
    for name, value in settings.items():
        controls(explorer)[name].value = value


def drawing(explorer):
    """The drawing that is shown, as a tree of elements; unsafe or open tags fail."""
    (view,) = [w for w in shown(explorer) if "attention-explorer" in w._dom_classes]
    assert 'role="alert"' not in view.value, view.value
    return ElementTree.fromstring(f"<div>{view.value}</div>")


def now(explorer):
    """What the text version says of the state, on one line."""
    return " ".join(str(explorer).split("\nNow: ")[1].split())


def words(element):
    return "".join(element.itertext())


def paragraphs(explorer):
    return [words(paragraph) for paragraph in drawing(explorer).iter("p")]


class ShownCell(NamedTuple):
    text: str
    look: str
    fill: str  # "#1f5f99"
    note: str
    bar: float | None  # in pixels
    bar_look: str


class ShownTable(NamedTuple):
    caption: str
    corner: str
    over: str
    columns: list[str]
    names: list[str]
    rows: list[list[ShownCell]]
    framed: list[str]  # names of rows

    def column(self, name):
        return [row[self.columns.index(name)] for row in self.rows]


def tables(explorer):
    return [_table(table) for table in drawing(explorer).iter("table")]


def _table(table):
    head, body = table.find("thead"), table.find("tbody")
    corner, *columns = [words(th) for th in head.findall("tr")[-1]]
    return ShownTable(
        caption="".join(map(words, table.findall("caption"))),
        corner=corner,
        over="".join(words(th) for th in head.iter("th") if th.get("scope") == "colgroup"),
        columns=columns,
        names=[words(row.find("th")) for row in body],
        rows=[[_cell(td) for td in row.findall("td")] for row in body],
        framed=[words(row.find("th")) for row in body if row.get("class") == "framed"],
    )


def _cell(td):
    fill = re.search("background:(#[0-9a-f]{6})", td.get("style", ""))
    bar = td.find("i")
    return ShownCell(
        text=words(td),
        look=td.get("class", ""),
        fill=fill[1] if fill else "",
        note=td.get("title", ""),
        bar=None if bar is None else floats(bar.get("style"))[0],
        bar_look="" if bar is None else bar.get("class", ""),
    )


def floats(text):
    """All numbers of a text."""
    return [float(n) for n in re.findall(r"-?(?:\d*\.)?\d+(?:e[+-]\d+)?|nan|-?inf", text)]


def numbers(cells):
    """The numbers of cells, in order; an empty cell is left out."""
    return [float(cell.text) for cell in cells if cell.text]


def near(values, decimals=2):
    """Equal numbers when rounded to so many decimals."""
    values = torch.as_tensor(values).flatten().tolist()
    return pytest.approx(values, rel=0, abs=0.51 * 10.0**-decimals, nan_ok=True)


def pixel(value):
    """The same place on the screen, to a tenth of a pixel."""
    return pytest.approx(value, rel=0, abs=0.11)


def colours(values, low=0.0, high=1.0, name="cividis"):
    """The colours of numbers between two limits."""
    shares = (torch.as_tensor(values).double().flatten() - low) / (high - low)
    return [to_hex(colormaps[name](share)) for share in shares.nan_to_num().tolist()]
