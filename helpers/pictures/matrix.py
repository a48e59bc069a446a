"""Heatmaps: which query attends to which key, as colours with numbers.

What a heatmap shows is computed once (`make_content`: which value, colour and text in which cell).
The matplotlib picture, the HTML table and the text version are all made from it, so they cannot
disagree.

Row = query (who reads), column = key (who is read). In a mask, True = may attend.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import (
    align_columns,
    as_array,
    as_real,
    as_whole,
    decimals_for,
    described,
    listed,
    number,
    texts,
)
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_list, as_mask, as_matrix, as_names, as_switch, as_text
from helpers.pictures.colours import INK, MASKED, PALE, QUIET, Fill, fills, paint
from helpers.pictures.table import Cell, Table, side_by_side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


QUERY, KEY = "query (who reads)", "key (who is read)"
NOT_ALLOWED = "–"  # instead of a number, where the mask is False
ANNOTATE_UP_TO = 12
MOST = 200  # rows and columns: a cell of two dots, and a table of 40 000 cells

Labels = str | Sequence[Any] | Mapping[str, Sequence[Any]] | None


@dataclass(frozen=True)
class Content:
    """All that a heatmap shows, computed before anything is drawn.

    Arrays are (n_row, n_col). `may` is the mask, True = may attend.
    """

    title: str
    names: tuple[str, str]  # of the axes: rows, columns
    labels: tuple[list[str], list[str]]
    values: np.ndarray
    may: np.ndarray
    limits: tuple[float, float]
    center: float | None  # a number: diverging colours around it
    colours: np.ndarray  # (n_row, n_col, 3), each 0…1
    texts: list[list[str]]  # empty when not annotated
    decimals: int
    outline: tuple[tuple[int, int], ...]

    @cached_property
    def fills(self) -> list[list[Fill]]:
        """The colours once more, with letters that can be read on them."""
        return fills(self.colours)


class Heatmap(Picture):
    """A heatmap as a `Picture`; `content` holds all that it shows."""

    def __init__(self, content: Content, ax: Axes | None = None) -> None:
        self.content = content
        text_lines = [titled("Heatmap", content.title), *_axes_in_words(content)]
        super().__init__(
            alt=_alt([content], content.title),
            text="\n".join(text_lines + _cells_in_words(content)),
            draw=lambda: (
                _draw([replace(content, title="")], content.title)
                if ax is None
                else ax.get_figure(root=True)
            ),
            html=lambda: _html(content),
        )
        if ax is not None:
            _draw_cells(ax, content)


def heatmap(
    matrix: Any,
    *,
    rows: Labels = None,
    cols: Labels = None,
    title: str = "",
    mask: Any = None,
    center: float | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    annotate: bool | None = None,
    fmt: str = ".2f",
    outline: Sequence[tuple[int, int]] | None = None,
    ax: Axes | None = None,
) -> Heatmap:
    """Draw a matrix as coloured cells, with its numbers.

    Parameters
    ----------
    matrix : tensor, array or nested lists, (n_row, n_col), up to 200 rows and columns
        Never changed; may require grad or lie on another device.
    rows, cols : str, sequence or one-entry dict
        A str names the axis, a sequence labels its ticks, ``{"token": ["Life", …]}`` does both.
        Without: "query (who reads)" and "key (who is read)", ticks 0, 1, 2, …
    mask : bool, (n_row, n_col)
        True = may attend. The other cells are hatched grey.
    center : float
        Diverging colours, none here; 0 if any value is negative.
    vmin, vmax : float
        Ends of the colour scale. Without: 0 to 1 if all values lie there, else 0 to the largest;
        with a centre, equally far on both sides.
    annotate : bool
        Numbers in the cells; without: up to 12 x 12.
    fmt : str
        ".2f", ".1f", ".0f", …; integers and booleans are written as they are.
    outline : list of (row, column)
        Cells to draw a thick border around.
    ax : matplotlib Axes
        Draw into it, instead of making a picture of its own.

    Raises
    ------
    TypeError, ValueError
        If the matrix is not 2-D, empty, too large, ragged or complex, or if labels, mask, limits
        or outline do not fit to it.

    Examples
    --------
    >>> print(heatmap([[1.0, 0.0], [0.5, 0.5]], rows=["a", "b"], cols="key", title="Two tokens"))
    Heatmap: Two tokens
    row = query (who reads), column = key
    colours: 0 to 1
          0     1
    a  1.00     0
    b  0.50  0.50
    """
    values = _small_matrix(matrix, "the matrix")
    may = as_mask(mask, values.shape, "mask")
    scale = _scale([values[may]], center, vmin, vmax)
    if ax is not None:
        _refuse_other_than_axes(ax)
    return Heatmap(make_content(values, may, scale, rows, cols, title, annotate, fmt, outline), ax)


def heatmaps(
    matrices: Any,
    *,
    rows: Labels = None,
    cols: Labels = None,
    titles: Sequence[str] | None = None,
    title: str = "",
    mask: Any = None,
    center: float | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    annotate: bool | None = None,
    fmt: str = ".2f",
    outline: Mapping[str, Sequence[tuple[int, int]]] | None = None,
) -> Picture:
    """Draw several matrices side by side, on one common colour scale.

    Parameters
    ----------
    matrices : dict of name -> (n_row, n_col), or tensor (n_head, n_row, n_col)
        Without tick labels, a dict's matrices may differ in shape.
    titles : sequence of str
        One for each matrix; without: the dict's names, or "head 0", "head 1", …
    title : str
        Over all of them.
    mask : bool, or dict of name -> bool
        One for all, or one for each name; True = may attend.
    rows, cols, center, vmin, vmax, annotate, fmt
        As in `heatmap`.
    outline : dict of name -> list of (row, column)
        Cells to draw a thick border around.

    Raises
    ------
    TypeError, ValueError
        As in `heatmap`, naming the matrix.
    """
    if not isinstance(matrices, Mapping):
        stack = as_array(matrices, "the matrices")
        if stack.ndim != 3 or stack.size == 0:
            raise ValueError(
                f"heatmaps takes a dict of name -> matrix or a tensor (n_head, T_q, T_k), "
                f"got shape {stack.shape}; for one matrix call heatmap"
            )
        matrices = {f"head {h}": matrix for h, matrix in enumerate(stack)}
    if not matrices:
        raise ValueError("heatmaps needs at least one matrix, got an empty dict")
    keys = list(matrices)
    titles = as_names(keys if titles is None else titles, len(keys), "titles", "matrices")
    if isinstance(mask, Mapping) and (unknown := [key for key in mask if key not in matrices]):
        raise ValueError(f"mask names {unknown[0]!r}, but the matrices are {keys}")
    outline = {} if outline is None else outline
    if not isinstance(outline, Mapping) or (unknown := [key for key in outline if key not in keys]):
        wrong = repr(unknown[0]) if isinstance(outline, Mapping) else described(outline)
        raise (ValueError if isinstance(outline, Mapping) else TypeError)(
            f"outline must be a dict of name -> list of (row, column), got {wrong}; "
            f"the matrices are {keys}"
        )
    values = [_small_matrix(matrices[key], f"the matrix {key!r}") for key in keys]
    masks = [mask.get(key) if isinstance(mask, Mapping) else mask for key in keys]
    may = [
        as_mask(m, v.shape, f"the mask of {key!r}")
        for key, m, v in zip(keys, masks, values, strict=True)
    ]
    scale = _scale([v[m] for v, m in zip(values, may, strict=True)], center, vmin, vmax)
    panels = [
        make_content(v, m, scale, rows, cols, name, annotate, fmt, outline.get(key))
        for key, v, m, name in zip(keys, values, may, titles, strict=True)
    ]
    text_lines = [titled(f"{len(panels)} heatmaps", title), *_axes_in_words(panels[0])]
    for panel in panels:
        text_lines += ["", panel.title, *_cells_in_words(panel)]
    return Picture(
        alt=_alt(panels, title),
        text="\n".join(text_lines),
        draw=lambda: _draw(panels, title),
        html=lambda: side_by_side([_html(d) for d in panels], title),
        parts=[partial(_draw, [panel], title) for panel in panels],
    )


def _small_matrix(matrix: Any, what: str) -> np.ndarray:
    """Copy a matrix to NumPy, or say how to make it small enough to be drawn."""
    values = as_matrix(matrix, what)
    if (largest := max(values.shape)) > MOST:
        raise ValueError(
            f"a heatmap has room for {MOST} rows and columns, but {what} has shape {values.shape}; "
            f"draw a part, as in x[:{MOST}, :{MOST}], or the mean of each block of cells, as in "
            f"torch.nn.functional.avg_pool2d(x[None], {-(-largest // MOST)}, ceil_mode=True)[0]"
        )
    return values


def _refuse_other_than_axes(ax: Any) -> None:
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be matplotlib axes, as from figure.subplots(), got {described(ax)}"
        )


def make_content(
    values: np.ndarray,
    may: np.ndarray,
    scale: tuple[float, float, float | None],
    rows: Labels = None,
    cols: Labels = None,
    title: str = "",
    annotate: bool | None = None,
    fmt: str = ".2f",
    outline: Sequence[tuple[int, int]] | None = None,
) -> Content:
    """Decide what every cell shows. `values` and `may` (n_row, n_col) and `scale` are checked."""
    n_row, n_col = values.shape
    row_name, row_labels = _axis(rows, n_row, "rows", QUERY)
    col_name, col_labels = _axis(cols, n_col, "cols", KEY)
    decimals = decimals_for(values[may], _decimals(fmt))
    if annotate is None:
        annotate = max(n_row, n_col) <= ANNOTATE_UP_TO
    annotate = as_switch(annotate, "annotate")
    low, high, center = scale
    colours = paint(values, low, high, center)
    colours[~may] = MASKED
    return Content(
        title=as_text(title, "title"),
        names=(row_name, col_name),
        labels=(row_labels, col_labels),
        values=values,
        may=may,
        limits=(low, high),
        center=center,
        colours=colours,
        texts=_texts(values, may, decimals) if annotate else [],
        decimals=decimals,
        outline=_outline(outline, values.shape),
    )


def _texts(values: np.ndarray, may: np.ndarray, decimals: int) -> list[list[str]]:
    return [
        [number(v, decimals) if m else NOT_ALLOWED for v, m in zip(vs, ms, strict=True)]
        for vs, ms in zip(values.tolist(), may.tolist(), strict=True)
    ]


def _scale(
    visible: list[np.ndarray], center: float | None, vmin: float | None, vmax: float | None
) -> tuple[float, float, float | None]:
    """Ends and centre of the colour scale over all visible values (lists of 1-D arrays)."""
    center, vmin, vmax = (
        None if limit is None else as_real(limit, name)
        for name, limit in {"center": center, "vmin": vmin, "vmax": vmax}.items()
    )
    values = np.concatenate([v.astype(float) for v in visible])
    values = values[np.isfinite(values)]
    if values.size == 0:
        values = np.zeros(1)
    if center is None and (values.min() < 0 or (vmin is not None and vmin < 0)):
        center = 0.0
    if center is None:
        low, high = 0.0, (1.0 if values.max() <= 1 else float(values.max()))
    else:
        # A limit that is given decides the other one too: both ends lie equally far off.
        ends = [abs(limit - center) for limit in (vmin, vmax) if limit is not None]
        reach = max(ends or [float(np.abs(values - center).max())]) or 1.0
        low, high = center - reach, center + reach
    low = low if vmin is None else float(vmin)
    high = high if vmax is None else float(vmax)
    if low >= high:
        raise ValueError(
            f"vmin must be smaller than vmax, got the limits {low:g} and {high:g}; "
            f"give both, or leave them to the values"
        )
    if center is not None and not low <= center <= high:
        raise ValueError(
            f"center must lie between vmin and vmax, got {center:g}, limits {low:g}…{high:g}"
        )
    return low, high, center


def _axis(given: Labels, n: int, what: str, name: str) -> tuple[str, list[str]]:
    labels: Sequence[Any] = range(n)
    if isinstance(given, str):
        name = given
    elif isinstance(given, Mapping):
        if len(given) != 1:
            raise ValueError(
                f"{what} as a dict has one entry, name -> labels, got {len(given)} entries"
            )
        ((name, labels),) = given.items()
    elif given is not None:
        labels = given
    if not as_text(name, f"{what}: the name of the axis"):
        raise ValueError(f"{what}: the name of the axis is empty; say what {what} are")
    if hasattr(labels, "detach"):
        labels = as_array(labels, f"{what}: the tick labels")
    labels = labels.tolist() if hasattr(labels, "tolist") else labels
    labels = as_list(labels, f"{what}: the tick labels")
    if any(isinstance(label, list) for label in labels):
        raise ValueError(f"{what}: the tick labels must be one list, got lists in it")
    if len(labels) != n:
        raise ValueError(f"{what} needs one label for each of the {n} {what}, got {len(labels)}")
    return name, [str(label).replace("\n", "\\n") for label in labels]


def _decimals(fmt: str) -> int:
    found = re.fullmatch(r"\.(\d)f", fmt) if isinstance(fmt, str) else None
    if not found:
        raise ValueError(f'fmt must be ".0f", ".1f", ".2f", … up to ".9f", got {fmt!r}')
    return int(found[1])


def _outline(cells: Any, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    done = []
    for cell in () if cells is None else as_list(cells, "outline"):
        if not isinstance(cell, (tuple, list)) or len(cell) != 2:
            raise TypeError(
                "outline must be a list of (row, column), as in [(0, 1)], "
                f"got {described(cell)} in it"
            )
        row, col = (as_whole(place, "each place in outline", -sys.maxsize) for place in cell)
        if not (0 <= row < shape[0] and 0 <= col < shape[1]):
            raise ValueError(
                f"outline names the cell {(row, col)}, but the matrix has shape {shape}"
            )
        done.append((row, col))
    return tuple(done)


def _alt(panels: list[Content], title: str) -> str:
    first = panels[0]
    what = "Heatmap" if len(panels) == 1 else f"{len(panels)} heatmaps side by side"
    name = f" “{title}”" if title else ""
    sizes = sorted({p.values.shape for p in panels})
    size = " and ".join(f"{n_row} by {n_col}" for n_row, n_col in sizes)
    text = (
        f"{what}{name}: {size} cells, row = {first.names[0]}, column = {first.names[1]}, "
        f"colours from {_limit(first.limits[0])} to {_limit(first.limits[1])}"
    )
    if hidden := sum(int((~p.may).sum()) for p in panels):
        text += f", {hidden} masked"
    return f"{text}. The numbers are in the text version of this output."


def _limit(value: float) -> str:
    """Write an end of the colour scale, without decimals if it is whole."""
    return texts(np.array(value))


def _axes_in_words(d: Content) -> list[str]:
    low, high = map(_limit, d.limits)
    middle = "" if d.center is None else f", none at {_limit(d.center)}"
    return [f"row = {d.names[0]}, column = {d.names[1]}", f"colours: {low} to {high}{middle}"]


def _cells_in_words(d: Content) -> list[str]:
    """Say which cells are special, and then all numbers, or what can be said of very many."""
    lines = []
    if hidden := int((~d.may).sum()):
        lines.append(f"mask: {hidden} of {d.may.size} cells may not attend, written {NOT_ALLOWED}")
    odd = np.argwhere(d.may & ~np.isfinite(d.values.astype(float))).tolist()
    if odd:
        few = "; ".join(f"row {r}, column {c} is {number(d.values[r, c])}" for r, c in odd[:3])
        lines.append(f"not finite: {few}" + (f"; and {len(odd) - 3} more" if len(odd) > 3 else ""))
    if d.outline:
        lines.append(f"outlined: {_places_in_words(d.outline)}")
    if max(d.values.shape) > ANNOTATE_UP_TO:
        return lines + _sums_in_words(d)
    # Fewer than two decimals only where they say it all, or a test could miss a change.
    seen = d.values[d.may].astype(float)
    seen = seen[np.isfinite(seen)]
    hiding = (np.abs(seen - seen.round(d.decimals)) > 1e-6).any()
    words = _texts(d.values, d.may, max(2, d.decimals) if hiding else d.decimals)
    return [*lines, _table(d, words).text()]


def _places_in_words(cells: Sequence[tuple[int, int]]) -> str:
    """Name cells row by row: "row 1, columns 0 and 1; row 2, columns 0 to 2"."""
    columns: dict[int, list[int]] = {}
    for row, column in sorted(cells):
        columns.setdefault(row, []).append(column)
    return "; ".join(
        f"row {row}, column{'s' * (len(found) > 1)} {listed(found)}"
        for row, found in columns.items()
    )


def _sums_in_words(d: Content) -> list[str]:
    """Too many cells to print: sums and largest values, which change when any cell does."""
    values = np.where(d.may & np.isfinite(d.values.astype(float)), d.values.astype(float), 0.0)
    many = max(1, -(-values.shape[0] // 32))  # this many rows a line, at most 32 lines
    rows = []
    for start in range(0, len(values), many):
        part = values[start : start + many]
        top = float(part.max())
        # The first that comes near the largest: equal weights differ in the last bit.
        column = int(np.argwhere((part > top - 1e-6).any(0))[0, 0])
        last = min(start + many, len(values)) - 1
        name = d.labels[0][start] + (f"…{d.labels[0][last]}" if last > start else "")
        rows.append((name, [*map(Cell, [number(part.sum()), number(top), d.labels[1][column]])]))
    many = max(1, -(-values.shape[1] // 32))
    sums = [number(values[:, c : c + many].sum()) for c in range(0, values.shape[1], many)]
    each = "column" if many == 1 else f"{many} columns"
    ten = [sums[i : i + 10] for i in range(0, len(sums), 10)]
    ten[-1] += [""] * (len(ten[0]) - len(ten[-1]))
    return [
        f"{values.shape[0]} x {values.shape[1]} cells, too many to print; for each row:",
        Table(["sum", "largest", "in column"], rows).text(),
        f"sum of each {each}:",
        *align_columns(ten),
    ]


def _table(d: Content, words: list[list[str]], size: str = "") -> Table:
    """Describe the cells with these texts; in tiny cells the mouse finds them."""
    rows, may, framed = [], d.may.tolist(), set(d.outline)
    for r, label in enumerate(d.labels[0]):
        cells = []
        for c, word in enumerate(words[r]):
            look = "framed" if (r, c) in framed else ""
            if may[r][c]:
                cells.append(Cell(word, look, d.fills[r][c], word if size else ""))
            else:
                cells.append(Cell(word, f"masked {look}".strip(), note="masked"))
        rows.append((label, cells))
    return Table(d.labels[1], rows, d.title, d.names[0], d.names[1], size)


def _html(d: Content) -> str:
    # Without room for numbers they are still there, for screen readers and for the mouse.
    words = d.texts or _texts(d.values, d.may, d.decimals)
    return _table(d, words, "" if d.texts else "tiny").html()


# --- Drawn with matplotlib --------------------------------------------------------------------

# Heights of an axis name and of a label; from labels to cells; between two heatmaps.
NAME, LABEL, GAP, GUTTER = 17, 13, 6, 24
PANEL_TITLE = 11.5  # letter size of a title over one of several heatmaps


@dataclass(frozen=True)
class Size:
    """How large the cells of one heatmap are, and how much room the rest takes, in CSS pixels."""

    cell: tuple[float, float]  # width, height
    left: float  # from the left edge to the cells: axis name, tick labels
    head: float  # from the name of the columns to the cells
    top: float  # from the upper edge to the cells: title and head
    whole: tuple[float, float]  # width, height
    steps: tuple[int, int]  # every how many rows and columns are labelled
    turned: bool  # column labels are turned
    title: str  # broken into lines


def _draw(panels: list[Content], title: str) -> Figure:
    """Draw heatmaps side by side, with cells of one size.

    matplotlib's constrained layout goes the other way: it fits the axes into a given figure, so
    that cells come out differently large. It would also take a third more time.
    """
    if not base.TITLED:  # a slide has no room for the numbers of many rows
        low = (base.HIGHEST - 80) / (base.BODY + 2)
        panels = [p if len(p.values) <= low else replace(p, texts=[]) for p in panels]
    sizes, per_line = _arrange(panels)
    widths = _column_widths(sizes, per_line)
    heights = [
        max(size.whole[1] for size in sizes[i : i + per_line])
        for i in range(0, len(sizes), per_line)
    ]
    width = sum(widths) + GUTTER * (per_line - 1) + 2 * base.PAD
    if title:  # two lines over a narrow picture are better than six
        width = max(width, min(base.text_width(title, base.TITLE, True) + 2 * base.PAD + 4, 360))
    lines, y = base.heading(title, width - 2 * base.PAD)
    y += base.PAD
    figure = base.empty_figure(width, y + sum(heights) + GUTTER * (len(heights) - 1) + base.PAD)
    if title:
        wide, high = base.size_of(figure)
        figure.text(base.PAD / wide, 1 - base.PAD / high, lines, va="top", **base.TITLE_STYLE)
    for i, (panel, size) in enumerate(zip(panels, sizes, strict=True)):
        line, place = divmod(i, per_line)
        left = base.PAD + sum(widths[:place]) + GUTTER * place
        top = y + sum(heights[:line]) + GUTTER * line
        _draw_panel(figure, panel, size, left, top)
    return figure


def _arrange(panels: list[Content]) -> tuple[list[Size], int]:
    """Choose how large the cells are and how many heatmaps stand in a line."""
    many = len(panels) > 1
    n = max(max(panel.values.shape) for panel in panels)
    largest = 50 if n <= 6 else 46 if n <= 8 else 37 if n <= 12 else max(2, 400 // n)
    smallest = largest if not many else 31 if panels[0].texts else max(2, 150 // n)
    if not base.TITLED:
        smallest = min(smallest, 15)
    for per_line in range(min(4, len(panels)), 0, -1):
        n_line = -(-len(panels) // per_line)
        per_line = -(-len(panels) // n_line)  # four as 2 + 2, not as 3 + 1
        room = base.WIDEST - 2 * base.PAD - GUTTER * (per_line - 1)
        high = (base.HIGHEST - 2 * base.PAD - GUTTER * (n_line - 1)) / n_line
        for cell in range(largest, smallest - 1, -1):
            sizes = [_size(panel, cell, many, high) for panel in panels]
            if sum(_column_widths(sizes, per_line)) <= room:
                return sizes, per_line
    return sizes, 1


def _column_widths(sizes: list[Size], per_line: int) -> list[float]:
    return [max(size.whole[0] for size in sizes[c::per_line]) for c in range(per_line)]


def _size(d: Content, cell: float, many: bool, high: float = math.inf) -> Size:
    """Measure everything around the cells, so that nothing overlaps or is cut off.

    Cells are square, or lower where `high` has no room for them.
    """
    n_row, n_col = d.values.shape
    size = _number_size(cell)
    cell_w = max([cell, *(base.text_width(word, size) + 7 for row in d.texts for word in row)])
    longest = max(map(base.text_width, d.labels[1]))
    if not many and n_col <= 8 and cell_w < longest + 8 <= 62:
        cell_w = longest + 8  # a little wider cells, and the words stay level
    # Short labels stay level, with gaps if need be; of longer ones, turned, the height counts.
    # Single letters may stand close together, as in a word: a reader looks for each of them.
    apart = 2 if all(len(label) == 1 for label in d.labels[1]) else 6
    step = _step(cell_w, longest + apart if longest <= 22 else LABEL)
    turned = longest + min(apart, 4) > cell_w * step
    grid_w = n_col * cell_w
    left = NAME + max(map(base.text_width, d.labels[0])) + GAP + 4
    right = 0.0
    if not d.texts:  # a colour bar
        right = 32 + max(base.text_width(_limit(limit)) for limit in d.limits)
    if turned:
        last = base.text_width(d.labels[1][-1])
        right = max(right, (max(last, longest - cell_w) + 12) * 0.71 - cell_w / 2)
    width = left + max(grid_w + right, base.text_width(d.names[1])) + 2
    title, over = base.heading(d.title, width, PANEL_TITLE)
    width = max([width, *(base.text_width(t, PANEL_TITLE, True) + 4 for t in title.split("\n"))])
    head = NAME + (round(longest * 0.71) + 14 if turned else 15) + GAP
    least = base.BODY + 2 if d.texts else 2  # for letters
    cell = max(min(cell, (high - over - head - 2) / n_row), min(cell, least))
    grid_h = n_row * cell
    spill = max(0, base.text_width(d.names[0]) - grid_h) / 2  # of the rows' name, at either end
    top = round(over + max(head, spill))
    return Size(
        cell=(cell_w, cell), left=left, head=head, top=top, turned=turned, title=title,
        whole=(width, top + grid_h + max(2, spill)), steps=(_step(cell, LABEL), step),
    )  # fmt: skip


def _number_size(cell: float) -> float:
    return base.BODY if cell >= 36 or not base.TITLED else 10


def _step(cell: float, need: float) -> int:
    """Label every cell, or only every 2nd, 5th, 10th … where the cells are smaller than needed."""
    return next(s for s in (1, 2, 5, 10, 20, 50, 100, 1000) if s * cell >= need or s == 1000)


def _draw_panel(figure: Figure, d: Content, size: Size, left: float, top: float) -> None:
    """Draw one heatmap with its upper left corner at (left, top) CSS pixels."""
    n_row, n_col = d.values.shape
    grid_w, grid_h = n_col * size.cell[0], n_row * size.cell[1]
    x, y = round(left + size.left), round(top + size.top)
    ax = base.axes_at(figure, x, y, grid_w, grid_h)
    _draw_cells(ax, d, size)
    ax.set_aspect("auto")
    edge = -size.left / grid_w
    # By its baseline: the top of a text depends on its letters, and neighbours would not be level.
    under = round(1.31 * PANEL_TITLE) * (1 + size.title.count("\n")) - 0.3 * PANEL_TITLE
    ax.set_title(
        size.title, loc="left", x=edge, y=1 + (size.top - under) / grid_h, pad=0, va="baseline",
        **base.TITLE_STYLE | {"size": PANEL_TITLE},
    )  # fmt: skip
    style = base.TEXT_STYLE | {"color": QUIET, "va": "top"}
    middle = max(grid_w, base.text_width(d.names[1])) / 2 / grid_w
    ax.xaxis.set_label_coords(middle, 1 + size.head / grid_h)
    ax.set_xlabel(d.names[1], **style)
    ax.yaxis.set_label_coords(edge, 0.5)
    ax.set_ylabel(d.names[0], **style)
    if not d.texts:
        _draw_bar(base.axes_at(figure, x + grid_w + 14, y, 10, min(grid_h, 160)), d)


def _draw_cells(ax: Axes, d: Content, size: Size | None = None) -> None:
    """Draw cells, numbers and labels into any axes; `size` says how large the cells are."""
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.patches import Rectangle

    n_row, n_col = d.values.shape
    columns, rows = np.arange(n_col + 1) - 0.5, np.arange(n_row + 1) - 0.5
    ax.pcolormesh(columns, rows, d.colours)
    ax.set(xlim=columns[[0, -1]], ylim=rows[[-1, 0]], aspect="equal")
    if not d.may.all():
        square = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
        corners = np.argwhere(~d.may)[:, None, ::-1] + square  # (n_masked, 4, 2)
        hatched = PolyCollection(
            corners, facecolors=[MASKED], edgecolors="#a6a6a6", linewidths=0, hatch="////"
        )
        ax.add_collection(hatched, autolim=False)
    if d.texts:
        edges = [[(x, -0.5), (x, n_row - 0.5)] for x in columns[1:-1]]
        edges += [[(-0.5, y), (n_col - 0.5, y)] for y in rows[1:-1]]
        gaps = LineCollection(edges, colors="white", linewidths=1.5, capstyle="projecting")
        gaps.set_clip_on(False)
        ax.add_collection(gaps, autolim=False)
        letters = {"size": _number_size(size.cell[1]) if size else base.BODY}
        for r, c in np.argwhere(d.may).tolist():
            colour = d.fills[r][c].ink
            base.write(ax, c, r, d.texts[r][c], color=colour, va="center_baseline", **letters)
    for colour, width in (("white", 5), ("black", 2.5)):
        for r, c in d.outline:
            frame = Rectangle((c - 0.5, r - 0.5), 1, 1, fill=False, edgecolor=colour)
            frame.set(linewidth=width, zorder=2.5)  # over the white gaps
            ax.add_patch(frame).set_clip_on(False)
    _label_axes(ax, d, size)


def _label_axes(ax: Axes, d: Content, size: Size | None) -> None:
    """Put labels and names to the left and above; without a size, every label and level."""
    n_row, n_col = d.values.shape
    steps = size.steps if size else (1, 1)
    turned = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
    ax.set_yticks(range(0, n_row, steps[0]), d.labels[0][:: steps[0]], parse_math=False)
    ax.set_xticks(
        range(0, n_col, steps[1]), d.labels[1][:: steps[1]], parse_math=False,
        **turned if size and size.turned else {},
    )  # fmt: skip
    ax.tick_params(
        length=0, pad=GAP - 2, labelsize=base.BODY, labelcolor=INK, labelfontfamily=base.FONT,
        top=True, labeltop=True, bottom=False, labelbottom=False,
    )  # fmt: skip
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(d.names[1], parse_math=False)
    ax.set_ylabel(d.names[0], parse_math=False)
    ax.set_title(d.title, loc="left", size=base.TITLE, color=INK, parse_math=False)
    ax.spines[:].set(edgecolor=PALE, linewidth=1)


def _draw_bar(ax: Axes, d: Content) -> None:
    """Draw the colours from the lower to the upper limit."""
    low, high = d.limits
    ramp = paint(np.linspace(high, low, 128)[:, None], low, high, d.center)
    ax.imshow(ramp, aspect="auto", extent=(0, 1, low, high))
    marks = [low, high] if d.center in (None, low, high) else [low, d.center, high]
    ax.set_yticks(marks, map(_limit, marks))
    ax.set_xticks([])
    ax.tick_params(
        length=0, labelsize=base.BODY, labelcolor=INK, labelfontfamily=base.FONT,
        left=False, labelleft=False, labelright=True,
    )  # fmt: skip
    ax.spines[:].set(edgecolor=PALE, linewidth=1)
