"""Read an explorer back from what a notebook shows of it, as the models say it."""

import itertools
import math
import re
from typing import NamedTuple
from xml.etree import ElementTree

import ipywidgets as widgets
import numpy as np
import pytest

from attention_base.numbers import number
from helpers.pictures.base import text_width
from helpers.pictures.colours import Fill, fills, paint
from helpers.pictures.table import Cell, Table

SLIDERS = widgets.IntSlider, widgets.FloatSlider
RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"


class Chart(NamedTuple):
    """A drawing in the units of its axes: powers where they tell powers of ten, or else pixels."""

    label: str  # for those who do not see it
    words: list[str]  # all of them
    marks: list[tuple]  # colour, opacity, place; and the name of the axis below
    lines: list[tuple]  # colour, width, places across, places up


class Quilt(NamedTuple):
    """A drawing of a matrix in blocks, without numbers; those show where the mouse rests."""

    label: str  # for those who do not see it
    names: list[str]  # of the parts of columns and rows
    columns: list[str]
    rows: list[str]
    cells: dict[tuple[int, int], tuple[str, str]]  # (row, column) -> colour, number


def shown(widget):
    """All that a notebook displays of a widget such as an explorer's `box`, from top to bottom."""
    if "none" in (widget.layout.display, widget.layout.visibility):
        return []
    return [widget, *itertools.chain(*map(shown, getattr(widget, "children", ())))]


def controls(explorer):
    """The sliders, lists and boxes that are shown, by the words beside them."""
    kinds = *SLIDERS, widgets.SelectionSlider, widgets.Dropdown, widgets.Checkbox
    kinds += widgets.Textarea, widgets.Text
    found = [w for w in shown(explorer.box) if isinstance(w, kinds) and not w.disabled]
    return {w.description: w for w in found}


def move(explorer, settings, *clicks):
    """Set controls by the words beside them, as a hand does; click buttons by their places."""
    for name, value in settings.items():
        controls(explorer)[name].value = value
    for place in clicks:
        [w for w in shown(explorer.box) if isinstance(w, widgets.Button)][place].click()


def now(explorer):
    """What the text version says of the state, on one line."""
    return " ".join(str(explorer).split("\nNow: ")[1].split())


def drawing(explorer):
    """The drawing that is shown, as a tree of elements; unsafe or open tags fail."""
    (view,) = [w for w in shown(explorer.box) if "attention-explorer" in w._dom_classes]
    assert 'role="alert"' not in view.value, view.value
    return ElementTree.fromstring(f"<div>{view.value}</div>")


def page(explorer):
    """All that a reader sees beside the controls, in order; first, what the text version says."""
    parts = [now(explorer)]
    for widget in shown(explorer.box):
        if isinstance(widget, widgets.Button):
            parts.append((widget.tooltip, widget.description, widget.style.font_weight))
        elif widget is explorer.view:
            parts += _parts(drawing(explorer))
        elif isinstance(widget, widgets.HTML):
            parts.append(words(ElementTree.fromstring(widget.value)))
    return parts


def _parts(element):
    if element.tag == "table":
        yield _table(element)
    elif element.tag == "svg":
        assert_dots_and_words_have_room(element)
        yield chart(element) if element.find("g[@shape-rendering]") is None else quilt(element)
    elif element.text:
        yield words(element)
    else:
        for child in element:
            assert not child.tail, "words that stand between parts"
            yield from _parts(child)


def words(element):
    return "".join(element.itertext())


def _table(table):
    head, body = table.find("thead"), table.find("tbody")
    corner, *columns = [words(th) for th in head.findall("tr")[-1]]
    (framed,) = [r for r, row in enumerate(body) if row.get("class") == "framed"] or [None]
    return Table(
        columns,
        [(words(row.find("th")), [_cell(td) for td in row.findall("td")]) for row in body],
        caption="".join(map(words, table.findall("caption"))),
        corner=corner,
        over="".join(words(th) for th in head.iter("th") if th.get("scope") == "colgroup"),
        size=table.get("class").removeprefix("attention-table").strip(),
        framed_row=framed,
    )


def _cell(td):
    light = re.sub(r"light-dark\((.*?),.*?\)", r"\1", td.get("style", ""))
    fill = re.search(r"background:(#[0-9a-f]{6});color:(\w+)", light)
    cell = Cell(words(td), td.get("class", ""), fill and Fill(*fill.groups()), td.get("title", ""))
    for bar in td.findall("i"):  # in pixels
        cell = cell._replace(look=bar.get("class", ""), bar=near(floats(bar.get("style"))[0]))
    return cell


def chart(svg):
    """Read a chart by the numbers that stand in a row, and in a column, each at its line."""
    drawn = list(_drawn(svg))
    texts = [(x, y, words(e)) for e, _, x, y in drawn if e.tag == "text" and e.get("x")]
    ticks = [(x, y - 4, tick(text)) for x, y, text in texts if tick(text) is not None]
    below = [(x, value) for x, y, value in ticks if [at[1] for at in ticks].count(y) > 1]
    left = [(y, value) for x, y, value in ticks if [at[0] for at in ticks].count(x) > 1]
    across, up = axis(below, 1), axis(left, -1)
    marks, lines, upright, level, heights, ends = [], [], [], [], [], [-math.inf, math.inf]
    for element, look, x, y in drawn:
        path, stroke = element.get("d", ""), look.get("stroke")
        if element.tag == "circle" or (path and element.get("transform")):
            marks.append((look["fill"], look.get("opacity"), across(x), up(y)))
        elif element.tag == "polyline" or "L" in path:
            numbers = floats(element.get("points", path))
            look = stroke or look["fill"], look.get("stroke-width")
            lines.append((*look, across(numbers[::2]), up(numbers[1::2])))
            heights += numbers[1::2]
        elif "H" in path:
            level += floats(path)[1::3]
        elif path:
            place, *ends = floats(path)
            if stroke == "currentColor":
                upright.append(place)
            else:
                marks.append((stroke, look.get("opacity"), across(place), None))
    marks += [(name, None, across(x), None) for x, _, name in texts if left and tick(name) is None]
    assert level == [near(y) for y, _ in left] or not left
    assert upright == [near(x) for x, _ in below] or not upright
    assert all(ends[0] <= y <= ends[1] for y in heights), "lines stay in the chart"
    return Chart(svg.get("aria-label"), [words(e) for e in svg.iter("text")], marks, lines)


def quilt(svg):
    """Read a matrix by the names in whose row and column the middle of a cell lies."""
    texts = [(x, y, look, words(e)) for e, look, x, y in _drawn(svg) if e.tag == "text"]
    names = [text for *_, look, text in texts if "font-size" not in look]
    texts = [text for text in texts if "font-size" in text[2]]
    across = [(x, text) for x, _, look, text in texts if look["text-anchor"] == "middle"]
    down = [(y - 3, text) for _, y, look, text in texts if look["text-anchor"] == "end"]
    grounds = [[float(r.get(at)) for at in ("x", "y", "width", "height")] for r in svg.iter("rect")]
    cells = {}
    for path in svg.iter("path"):
        fill = re.fullmatch(r"fill:light-dark\((#\w{6}),#\w{6}\)", path.get("style"))[1]
        number = words(path.find("title"))
        for part in path.get("d").removeprefix("M").split("M"):
            x, y, right, below, back = floats(part)
            assert right == below == -back
            assert any(
                0 <= x - a <= w - right and 0 <= y - b <= h - right for a, b, w, h in grounds
            )
            (column,) = [j for j, (at, _) in enumerate(across) if abs(at - x - right / 2) < 1]
            (row,) = [i for i, (at, _) in enumerate(down) if abs(at - y - right / 2) < 1]
            assert (row, column) not in cells
            cells[row, column] = fill, number
    columns, rows = [text for _, text in across], [text for _, text in down]
    return Quilt(svg.get("aria-label"), names, columns, rows, cells)


def tick(text):
    """The number that a text begins with, if nothing or an explanation follows."""
    text = re.sub(f"10(?=[{RAISED}])", "1e", text).translate(str.maketrans(RAISED, "-0123456789"))
    found = re.match(r"-?\d+(\.\d+)?(e-?\d+)?(?=:|$)", text)
    return float(found[0]) if found else None


def axis(ticks, way):
    """From (pixels, value) of its ticks: what each place on an axis tells, known to 0.15 pixels."""
    if not ticks:
        return near
    if all(value > 0 and math.log10(value).is_integer() for _, value in ticks):
        ticks = [(pixels, math.log10(value)) for pixels, value in ticks]
    (a, first), *_, (b, last) = ticks
    scale = (last - first) / (b - a)

    def value(pixels):
        return near(first + scale * (np.array(pixels) - a), 0.15 * abs(scale))

    assert scale * way > 0, "numbers grow to the right, and upwards"
    assert [v for _, v in ticks] == [value(p) for p, _ in ticks], "the ticks stand at even steps"
    return value


def assert_dots_and_words_have_room(svg):
    left, top, width, height = floats(svg.get("viewBox"))
    for element, look, x, y in _drawn(svg):
        r = float(element.get("r", 0))
        a, b, c, d = x - r, y - r, x + r, y + r
        if element.tag == "text":
            long = 0.85 * text_width(words(element), 12)  # the letters of a page are narrower
            start = {"start": 0, "middle": 0.5, "end": 1}[look.get("text-anchor", "start")] * long
            a, b, c, d = x - start, y - 10, x - start + long, y + 3
            if "rotate(-90)" in element.get("transform", ""):
                a, b, c, d = x - 10, y + start - long, x + 3, y + start
        assert element.tag != "circle" or r > 2, "too small to be seen"
        inside = left <= a and top <= b and c <= left + width and d <= top + height
        assert inside, ElementTree.tostring(element)


def _drawn(element, look=None, left=0, top=0):
    """All elements inside: each with the look that its groups and it itself have, and its place."""
    for child in element:
        own = (look or {}) | child.attrib
        a, b, *_ = [*floats(child.get("transform", "")), 0, 0]
        x, y = (float(child.get(at, child.get(f"c{at}", 0))) for at in "xy")
        yield child, own, left + a + x, top + b + y
        yield from _drawn(child, own, left + a, top + b)


def floats(text):
    """All numbers of a text."""
    return [float(n) for n in re.findall(r"-?(?:\d*\.)?\d+", text)]


def near(value, distance=0.06):
    return pytest.approx(value, rel=0, abs=distance)


def cells(values, look=""):
    return [Cell(number(value), look) for value in values]


def heat(values, low=0.0, high=1.0, center=None):
    """The cells of a heatmap: numbers on their colours."""
    rows = zip(values.tolist(), fills(paint(values.numpy(), low, high, center)), strict=True)
    return [[Cell(number(v), "", fill) for v, fill in zip(*row, strict=True)] for row in rows]
