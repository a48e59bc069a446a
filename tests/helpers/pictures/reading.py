"""Read a picture back from what was made of it: the artists of a figure, the HTML, the text.

Nothing here knows what was handed to a picture. Lengths are CSS pixels, y runs down.
"""

import re
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
from matplotlib.collections import Collection, PolyCollection, QuadMesh
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from helpers.pictures.base import size_of
from helpers.pictures.colours import PALE


@dataclass(frozen=True)
class ReadTable:
    """A table as a reader finds it: headers and the texts of its cells, row by row."""

    columns: list[str]
    names: list[str]  # the headers of the rows
    cells: list[list[str]]
    caption: str = ""
    corner: str = ""
    over: str = ""
    styles: tuple = ()  # of each cell in HTML: {"background": "#1f5f99", …}
    notes: tuple = ()

    @property
    def numbers(self):
        return np.array([[float(text) for text in row] for row in self.cells])

    def said(self):
        """What every face of a picture has to say alike."""
        return self.columns, self.names, self.cells


# --- HTML --------------------------------------------------------------------------------------


def parse(html):
    """The elements of a piece of HTML; an element that is not closed is an error."""
    return ElementTree.fromstring(f"<div>{html}</div>")


def words(element):
    return "".join(element.itertext())


def style_of(element):
    rules = [rule.partition(":") for rule in element.get("style", "").split(";") if rule]
    return {name: value for name, _, value in rules}  # the last one counts


def read_html(html):
    """The tables in a piece of HTML. Each header says what it heads, each row is complete."""
    return [_html_table(table) for table in parse(html).iter("table")]


def _html_table(table):
    head, body = table.find("thead"), table.find("tbody")
    *above, headers = head.findall("tr")
    for header in headers:  # one without words heads nothing
        tag, scope = ("th", "col") if words(header) else ("td", None)
        assert (header.tag, header.get("scope")) == (tag, scope)
    corner, *columns = map(words, headers)
    over = ""
    if above:
        (empty, group), *_ = above
        assert not words(empty) and empty.tag == "td"
        assert (group.get("scope"), group.get("colspan")) == ("colgroup", str(len(columns)))
        over = words(group)
    names, cells, styles, notes = [], [], [], []
    for row in body.findall("tr"):
        header, *data = row
        tag, scope = ("th", "row") if words(header) else ("td", None)
        assert (header.tag, header.get("scope")) == (tag, scope)
        assert [cell.tag for cell in data] == ["td"] * len(columns)
        names.append(words(header))
        cells.append([words(cell) for cell in data])
        styles.append([style_of(cell) for cell in data])
        notes.append([cell.get("title", "") for cell in data])
    caption = table.find("caption")
    return ReadTable(
        columns, names, cells, "" if caption is None else words(caption), corner, over,
        tuple(styles), tuple(notes),
    )  # fmt: skip


def in_words(tables, text):
    """Find each of these tables in a text version, and read it there."""
    found, seen = [], {}
    for table in tables:
        corner = [] if table.over else [table.corner]  # both names are told elsewhere
        headers = (*corner, *table.columns)
        seen[headers] = seen.get(headers, -1) + 1
        found.append(read_text(text, [*headers], len(table.names), seen[headers]))
    return found


# --- Text --------------------------------------------------------------------------------------


def read_text(text, headers, n_row, n_before=0):
    """The table under these headers (after some others under the same ones), as text tells it."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    heads = [i for i, line in enumerate(lines) if line == headers]
    assert len(heads) > n_before, f"no headers {headers} in\n{text}"
    rows = lines[heads[n_before] + 1 :][:n_row]
    n_corner = len(headers) - len(rows[0][1:])
    return ReadTable(headers[n_corner:], [row[0] for row in rows], [row[1:] for row in rows])


def read_bare_text(text, caption, n_row):
    """The cells below a line, where the text tells no headers."""
    lines = text.splitlines()
    start = lines.index(caption) + 1
    return [line.split() for line in lines[start : start + n_row]]


# --- Pages of boxes and texts --------------------------------------------------------------------


def rgb(colour):
    return np.array(to_rgb(colour))


def contrast(one, other):
    """The contrast of two colours as WCAG 2 defines it, 1 to 21."""
    light = []
    for colour in (one, other):
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb(colour)]
        light.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2])
    return (max(light) + 0.05) / (min(light) + 0.05)


def letters_on_grounds(figure):
    """Each text with its colour, and the colour of what lies behind its middle."""
    grounds = []  # of each axes: its meshes, how they are found, and its filled patches from below
    for ax in figure.axes:
        meshes = [c for c in ax.collections if isinstance(c, QuadMesh)]
        filled = [patch for patch in ax.patches if patch.get_fill()]
        filled.sort(key=lambda patch: patch.get_zorder())
        # The frame of a patch is asked first, since whether its outline holds a point takes long.
        framed = [
            (patch, patch.get_window_extent().padded(2 * patch.get_linewidth() + 1))
            for patch in filled
        ]
        grounds.append((meshes, ax.transData.inverted(), framed))
    found = []
    for text in figure.findobj(Text):
        if not (text.get_text() and text.get_visible()):
            continue
        box = text.get_window_extent()
        at, ground = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2), "#ffffff"
        for meshes, to_data, framed in grounds:
            for mesh in meshes:
                column, row = (round(part) for part in to_data.transform(at))
                n_row, n_col = mesh.get_array().shape[:2]
                if 0 <= row < n_row and 0 <= column < n_col:
                    ground = to_hex(mesh.get_array()[row, column])
            for patch, frame in framed:
                if frame.contains(*at) and patch.contains_point(at):
                    ground = to_hex(patch.get_facecolor())
        found.append((text.get_text(), to_hex(text.get_color()), ground))
    return found


def marks(figure):
    """The colours of lines, arrows, bars and borders, but for those that only part or calm."""
    found = {to_hex(line.get_color()) for ax in figure.axes for line in ax.lines}
    for ax in figure.axes:
        arrows = [text.arrow_patch for text in ax.texts if getattr(text, "arrow_patch", None)]
        found |= {to_hex(arrow.get_facecolor()) for arrow in arrows}
        for patch in ax.patches:  # bars and large arrows have no border
            border = patch.get_edgecolor()
            found.add(to_hex(border if border[3] else patch.get_facecolor()))
        found |= {to_hex(spine.get_edgecolor()) for spine in ax.spines.values() if ax.axison}
    return found - {"#ffffff", PALE}


@dataclass(frozen=True)
class Box:
    """A filled cell of a page, and the text in it."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    text: str
    ink: str
    marked: bool  # a frame lies exactly around it


def boxes_on(ax):
    """The cells of a page; a text belongs to the cell in whose middle it stands."""
    filled = [p for p in ax.patches if type(p) is Rectangle and p.get_fill()]
    frames = [p.get_bbox().bounds for p in ax.patches if type(p) is Rectangle and not p.get_fill()]
    middles = {tuple(np.round(t.get_position(), 3)): t for t in ax.texts}
    found = []
    for patch in filled:
        x, y, width, height = patch.get_bbox().bounds
        text = middles.get((round(x + width / 2, 3), round(y + height / 2, 3)))
        if text is None:  # a bar
            continue
        ink, fill = to_hex(text.get_color()), to_hex(patch.get_facecolor())
        assert contrast(ink, fill) >= 4.5, f"{text.get_text()!r} cannot be read"
        marked = any(np.allclose(frame, (x, y, width, height)) for frame in frames)
        found.append(Box(x, y, width, height, fill, text.get_text(), ink, marked))
    marks = sum(box.marked for box in found)
    assert marks == len(frames), f"{len(frames)} frames, {marks} of them around a cell"
    return found


def grids_on(ax):
    """Cells that touch make a grid: lists of rows of boxes, from left to right, line by line."""
    rest, grids = boxes_on(ax), []
    while rest:
        grid, rest = [rest[0]], rest[1:]
        for box in grid:  # grows while it is walked through
            near = [b for b in rest if _touch(box, b)]
            grid += near
            rest = [b for b in rest if b not in near]
        tops = sorted({round(box.y, 3) for box in grid})
        rows = [
            sorted((b for b in grid if round(b.y, 3) == top), key=lambda b: b.x) for top in tops
        ]
        assert len({len(row) for row in rows}) == 1, "a grid with rows of different lengths"
        grids.append(rows)
    return grids


def _touch(a, b, slack=0.01):
    across = a.x <= b.x + b.width + slack and b.x <= a.x + a.width + slack
    down = a.y <= b.y + b.height + slack and b.y <= a.y + a.height + slack
    return across and down


def read_page(ax):
    """The tables of a page: its grids with the texts to the left of their rows and above them."""
    return [_page_table(ax, grid) for grid in grids_on(ax)]


def _page_table(ax, grid):
    first = grid[0][0]
    placed = [(text.get_text(), *text.get_position(), text.get_ha()) for text in ax.texts]

    def beside(box):
        found = [
            t
            for t, x, y, ha in placed
            if ha == "right" and abs(y - box.y - box.height / 2) < 1 and 0 < first.x - x < 12
        ]
        return "".join(found)

    def above(box):
        found = [
            t
            for t, x, y, _ in placed
            if abs(x - box.x - box.width / 2) < 1 and 0 < first.y - y < 12
        ]
        return " ".join("".join(found).split("\n"))

    return ReadTable(
        [above(box) for box in grid[0]],
        [beside(row[0]) for row in grid],
        [[box.text for box in row] for row in grid],
    )


def texts_on(ax):
    """Every text of a page with its place."""
    return [(text.get_text(), text.get_position()) for text in ax.texts if text.get_text()]


# --- Heatmaps ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadHeatmap:
    """A heatmap as its axes show it; cells are (row, column), counted from above and the left."""

    title: str
    names: tuple[str, str]  # of the rows, of the columns
    labels: tuple[dict[int, str], dict[int, str]]
    colours: np.ndarray  # (n_row, n_col, 3)
    texts: dict[tuple[int, int], str]
    inks: dict[tuple[int, int], str]
    masked: set[tuple[int, int]]
    outlined: set[tuple[int, int]]

    def table(self, masked="–"):
        n_row, n_col = self.colours.shape[:2]
        assert set(self.texts) | self.masked == {(r, c) for r in range(n_row) for c in range(n_col)}
        assert not set(self.texts) & self.masked
        rows = [[self.texts.get((r, c), masked) for c in range(n_col)] for r in range(n_row)]
        return ReadTable([*self.labels[1].values()], [*self.labels[0].values()], rows)


def read_heatmap(ax):
    """Read a heatmap from its artists, by where on the page they stand."""
    (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
    corners = ax.transData.transform(mesh.get_coordinates().reshape(-1, 2))  # page, y up
    n_row, n_col = (n - 1 for n in mesh.get_coordinates().shape[:2])
    (left, low), (right, high) = corners.min(0), corners.max(0)

    def cell(x, y, how=ax.transData):
        across, up = how.transform((x, y))
        column, row = (across - left) / (right - left) * n_col, (high - up) / (high - low) * n_row
        assert abs(column % 1 - 0.5) < 0.01 and abs(row % 1 - 0.5) < 0.01, "not in a cell's middle"
        return int(row), int(column)

    colours = np.zeros((n_row, n_col, 3))
    quads = mesh.get_coordinates()
    middles = (quads[:-1, :-1] + quads[1:, 1:]) / 2
    for (x, y), colour in zip(middles.reshape(-1, 2), mesh.get_array().reshape(-1, 3), strict=True):
        colours[cell(x, y)] = colour
    written = {cell(*text.get_position()): text for text in ax.texts}
    assert len(written) == len(ax.texts), "two texts in one cell"
    hatched = [c for c in ax.collections if isinstance(c, PolyCollection) and c.get_hatch()]
    masked = {cell(*path.vertices[:4].mean(0)) for c in hatched for path in c.get_paths()}
    frames = [p for p in ax.patches if not p.get_fill() and to_hex(p.get_edgecolor()) == "#000000"]
    outlined = {cell(*p.get_bbox().get_points().mean(0)) for p in frames}
    for p in frames:
        assert np.allclose([p.get_width(), p.get_height()], 1)
    ticks = [
        (axis.get_ticklabels(), ax.transData, name)
        for axis, name in ((ax.yaxis, "row"), (ax.xaxis, "column"))
    ]
    rows = {cell(0, label.get_position()[1])[0]: label.get_text() for label in ticks[0][0]}
    columns = {cell(label.get_position()[0], 0)[1]: label.get_text() for label in ticks[1][0]}
    assert list(rows) == sorted(rows) and list(columns) == sorted(columns)
    assert ax.xaxis.get_label_position() == "top"
    return ReadHeatmap(
        title=ax.get_title(loc="left"),
        names=(ax.get_ylabel(), ax.get_xlabel()),
        labels=(rows, columns),
        colours=colours,
        texts={at: text.get_text() for at, text in written.items()},
        inks={at: to_hex(text.get_color()) for at, text in written.items()},
        masked=masked,
        outlined=outlined,
    )


def read_bar(ax):
    """The colour bar: its colours from the lowest to the highest value, and where they stand."""
    (image,) = ax.get_images()
    *_, bottom, top = image.get_extent()
    colours = np.asarray(image.get_array())[::-1, 0]  # row 0 is drawn on top
    assert image.origin == "upper" and ax.get_ylim() == (bottom, top)
    values = np.linspace(bottom, top, len(colours))
    labels = {
        y: label.get_text() for y, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
    }
    return values, colours, labels


def values_by(bar, colours):
    """What each colour means on a colour bar."""
    """Between two of the bar's shades it goes straight on."""
    values, known, _ = bar
    fine = np.linspace(values[0], values[-1], 16 * len(values))
    values, known = fine, np.stack([np.interp(fine, values, part) for part in known.T], -1)
    distance = np.abs(colours[..., None, :] - known).sum(-1)
    assert distance.min(-1).max() < 0.05, "a colour that is not on the bar"
    return values[distance.argmin(-1)]


# --- Everything that stands in a figure ----------------------------------------------------------


def listing(figure):
    """A line for each artist of a figure, as drawn: what, where (CSS pixels, y down), how."""
    wide, high = (round(side) for side in size_of(figure))
    lines = [f"page {wide} x {high}"]
    lines += [_text_line(text, high) for text in figure.texts]
    for ax in figure.axes:
        lines.append(f"axes {_extent(ax.bbox, high)}")
        parts = [*ax.collections, *ax.patches, *ax.lines, *ax.texts]
        if ax.axison:
            parts += [ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]
            parts += [*ax.get_xticklabels(), *ax.get_yticklabels()]
            parts += [spine for spine in ax.spines.values() if spine.get_visible()]
            grid = [line for line in ax.get_ygridlines() if line.get_visible()]
            lines += [f"  grid {colour(line.get_color())}" for line in grid[:1]]
        if ax.get_legend():
            parts += ax.get_legend().get_texts()
        for part in parts:
            if isinstance(part, Text):
                lines += [f"  {_text_line(part, high)}"] if part.get_text() else []
                if getattr(part, "arrow_patch", None):
                    lines.append(f"  {_patch_line(part.arrow_patch, high)}")
            elif isinstance(part, Line2D):
                lines.append(f"  {_line_line(part, high)}")
            elif isinstance(part, Collection):
                lines.append(f"  {_collection_line(part, high)}")
            else:
                lines.append(f"  {_patch_line(part, high)}")
    return "\n".join(lines)


def colour(given):
    return to_hex(given) if len(np.shape(given)) < 2 else " ".join(sorted({*map(to_hex, given)}))


def _px(dots):
    return f"{dots / 2 + 1e-6:.1f}".removesuffix(".0")  # 1e-6: a tie is the same everywhere


def _extent(box, high):
    return " ".join(_px(d) for d in (box.x0, 2 * high - box.y1, box.x1, 2 * high - box.y0))


def _text_line(text, high):
    font = f"{text.get_size():g} {text.get_weight()} {text.get_style()} {colour(text.get_color())}"
    box = text.get_window_extent()
    turned = f" turned {text.get_rotation():g}" if text.get_rotation() else ""
    return f"{text.get_text()!r} {_extent(box, high)} {font} {text.get_fontname()}{turned}"


def _line_line(line, high):
    points = line.get_transform().transform(line.get_xydata())
    places = " ".join(f"{_px(x)},{_px(2 * high - y)}" for x, y in points)
    mark = f"{line.get_marker()} {line.get_markersize():g}"
    how = f"{line.get_linestyle()} {line.get_linewidth():g} {mark} {line.get_zorder():g}"
    return f"line {places} {colour(line.get_color())} {how}"


def _collection_line(part, high):
    box = part.get_window_extent()
    how = f"hatch {part.get_hatch()} lines {max(part.get_linewidths()):g}"
    return (
        f"{type(part).__name__} {_extent(box, high)} {len(part.get_paths())} "
        f"{colour(part.get_facecolor())} {colour(part.get_edgecolor())} {how}"
    )


def _patch_line(patch, high):
    box = patch.get_path().get_extents(patch.get_transform())
    fill = colour(patch.get_facecolor()) if patch.get_fill() else "empty"
    edge = f"{colour(patch.get_edgecolor())} {patch.get_linewidth():g} {patch.get_linestyle()}"
    return f"{type(patch).__name__} {_extent(box, high)} {fill} {edge} {patch.get_zorder():g}"
