import re

import pytest
from matplotlib.colors import to_hex

from helpers.pictures import base
from helpers.pictures.colours import CELL, MARKED_CELL, ORANGE, Fill, by_theme, dark
from helpers.pictures.table import CSS, RULES, SIZES, Cell, Table, grid, plain_cells
from tests.helpers.pictures.reading import contrast

BLUE = Fill("#1f5f99", "white")
TABLE = Table(
    ["key", "<b>"],
    [
        ("a", [Cell("1.00", "plain"), Cell("0.50", "best", bar=0.5)]),
        ("bb", [Cell("–", "masked", note="a & b"), Cell("0.25", "framed", BLUE)]),
    ],
    caption="Two rows",
    corner="query",
)


def test_a_corner_heads_the_names_of_the_rows():
    assert TABLE.text().splitlines() == [
        "query   key   <b>",
        "    a  1.00  0.50",
        "   bb     –  0.25",
    ]


def test_without_a_corner_of_their_own_names_are_aligned_left():
    rows = [("1", [Cell("2")]), ("10", [Cell("3")])]
    assert Table(["0"], rows, corner="row", over="column").text() == "    0\n1   2\n10  3"
    assert Table(["0"], rows).text(headers=False) == "2\n3"


@pytest.mark.parametrize("classes", [False, True])
def test_html_has_scoped_headers_and_safe_texts(classes):
    html = Table(TABLE.columns, TABLE.rows, "a < b", "query", "key").html(classes=classes)
    assert html.count('scope="row"') == 2
    assert html.count('scope="col"') == 3
    assert html.count('scope="colgroup"') == 1
    assert "a &lt; b</caption>" in html
    assert "&lt;b&gt;</th>" in html
    assert 'title="a &amp; b"' in html
    assert html.count(by_theme("background:#1f5f99;color:white") if classes else "#1f5f99;") == 1
    assert html.count("width:55.0px") == 1


def styled_by_classes(html: str, size: str) -> list[str]:
    """The style of each element as the style sheet gives it, in the order of the document."""
    found = []
    for tag, attributes in re.findall(r"<(\w+)([^>]*)>", html):
        looks = re.findall(r' class="([^"]*)"', attributes)
        style = CSS.get(tag, "") + SIZES[size].get(tag, "")
        if tag != "table":
            style += "".join(CSS[f".{look}"] for look in "".join(looks).split())
        found.append(by_theme(style) + "".join(re.findall(r' style="([^"]*)"', attributes)))
    return [style for style in found if style]


@pytest.mark.parametrize("size", SIZES)
def test_classes_and_styles_describe_the_same_looks(size):
    table = Table(TABLE.columns, TABLE.rows, "title", "query", "key", size=size, framed_row=1)
    inline, short = table.html(), table.html(classes=True)
    styles = re.findall(r' style="([^"]*)"', inline)
    assert styled_by_classes(short, size) == [*map(by_theme, styles)]
    assert len(short) < len(inline) / 2
    rules = dict(re.findall(r"([^{}<>]+)\{([^{}]*)\}", RULES))
    for css, of_size in ((CSS, ""), (SIZES[size], f".{size}" if size else "")):
        for name, declarations in css.items():
            element = "" if name == "table" else f" {name}"
            assert rules[3 * ".attention-table" + of_size + element] == by_theme(declarations)


@pytest.mark.parametrize("look", [".plain", ".marked", ".masked"])
def test_every_cell_brings_its_own_letters_for_light_and_dark_pages(look):
    background, *_, letters = re.findall(r"#\w{6}", CSS[look].partition("outline")[0])
    assert contrast(background, letters) >= 4.5
    assert contrast(dark(background), dark(letters)) >= 4.5
    assert f"light-dark({background},{dark(background)})" in RULES


@pytest.mark.parametrize("size", SIZES)
def test_reference(size, snapshot):
    """How each kind of cell looks. If a change is wanted: make refresh."""
    rows = [("plain", [Cell("a", "plain")]), ("marked", [Cell("b", "marked")])]
    rows += [
        ("masked", [Cell("–", "masked framed", note="masked")]),
        ("faint", [Cell("c", "faint bold")]),
    ]
    rows += [("bar", [Cell("d", "best", bar=0.3)])]
    table = Table(["over"], rows, "caption", "corner", "columns", size, framed_row=1)
    assert table.html().replace("><", ">\n<") == snapshot


def test_the_grid_draws_the_cells_of_the_table():
    _, ax = base.empty_page(200, 100)
    cells = plain_cells([["1", "2"], ["3", "4"]], marked=[(1, 0)])
    cells[0][1] = Cell("2", fill=BLUE)
    grid(ax, 20, 10, cells, [50, 80], 30, names=["a", "b"], columns=["x", "y"])
    *papers, frame = ax.patches
    assert [to_hex(paper.get_facecolor()) for paper in papers] == [
        CELL,
        BLUE.code,
        MARKED_CELL,
        CELL,
    ]
    assert papers[3].get_bbox().bounds == (70, 40, 80, 30)
    assert frame.get_bbox().bounds == papers[2].get_bbox().bounds
    assert to_hex(frame.get_edgecolor()) == ORANGE
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert places["4"] == (110, 55)
    assert ax.texts[1].get_color() == "white"
    assert places["b"][1] == 55 and places["y"][0] == 110


def test_no_header_is_empty():
    empty = Table(["a", ""], [("", [Cell("1"), Cell("2")]), ("r", [Cell("3"), Cell("4")])])
    named = Table(["a"], [("r", [Cell("1")])], corner="rows", over="columns")
    for table, headers in ((empty, ["a", "r"]), (named, ["columns", "rows", "a", "r"])):
        assert re.findall(r"<th(?: [^>]*)?>(.*?)</th>", table.html()) == headers
        assert "<caption" not in table.html()
        cells = table.html().count("</td>") + table.html().count("</th>")
        wide = table.html().count("colspan")
        assert cells == (len(table.rows) + 1) * (len(table.columns) + 1) + 2 * wide
