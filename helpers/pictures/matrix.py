"""Heatmaps: who listens to whom, as colours with numbers.

A heatmap is decided once (`decide`: which value, which colour, which text in which cell) and drawn
three times from that one decision: as a matplotlib picture, as an HTML table, and in words. So the
three cannot disagree.

Row = query (who reads), column = key (who is read). In a mask, True = may attend.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.numbers import as_array, listed, needed, number
from helpers.pictures import base
from helpers.pictures.checks import as_mask, as_matrix
from helpers.pictures.colours import GREY, INK, QUIET, ink, paint
from helpers.pictures.table import FRAME, HATCH, html_table, side_by_side, td
from helpers.show import align_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


QUERY, KEY = "query (who reads)", "key (who is read)"


MASKED = "–"


ANNOTATE_UP_TO = 12


Labels = str | Sequence[Any] | Mapping[str, Sequence[Any]] | None


@dataclass(frozen=True)
class Decided:
    """All that a heatmap shows, decided before anything is drawn.

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
    ink: np.ndarray  # the colour of each text: "black" or "white"
    texts: list[list[str]]  # empty when not annotated
    decimals: int
    outline: tuple[tuple[int, int], ...]


class Heatmap(base.Picture):
    """A heatmap as a `Picture`; `decided` holds all that it shows."""

    def __init__(self, decided: Decided, ax: Axes | None = None) -> None:
        self.decided = decided
        super().__init__(
            alt=_alt([decided], decided.title),
            tell=lambda: _tell(decided),
            draw=lambda: _draw([decided], "") if ax is None else ax.get_figure(root=True),
            html=lambda: _html(decided),
        )
        if ax is not None:
            _draw_cells(ax, decided)


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
    matrix : tensor, array or nested lists, (n_row, n_col)
        Never changed; may require grad or lie on another device.
    rows, cols : str, sequence or one-entry dict
        A str names the axis, a sequence labels its ticks, ``{"token": ["Life", …]}`` does both.
        Without: "query (who reads)" and "key (who is read)", ticks 0, 1, 2, …
    mask : bool, (n_row, n_col)
        True = may attend. The other cells are hatched grey.
    center : float
        Diverging colours, white here; 0 if any value is negative.
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
        If the matrix is not 2-D, empty, ragged or complex, or if labels, mask, limits or outline
        do not fit to it.

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
    values = as_matrix(matrix, "the matrix")
    may = as_mask(mask, values.shape, "mask")
    scale = _scale([values[may]], center, vmin, vmax)
    return Heatmap(decide(values, may, scale, rows, cols, title, annotate, fmt, outline), ax)


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
) -> base.Picture:
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
    titles = keys if titles is None else list(titles)
    if len(titles) != len(keys):
        raise ValueError(
            f"titles needs one title for each of the {len(keys)} matrices, got {len(titles)}"
        )
    if isinstance(mask, Mapping) and (unknown := [key for key in mask if key not in matrices]):
        raise ValueError(f"mask names {unknown[0]!r}, but the matrices are {keys}")
    values = [as_matrix(matrices[key], f"the matrix {key!r}") for key in keys]
    masks = [mask.get(key) if isinstance(mask, Mapping) else mask for key in keys]
    may = [
        as_mask(m, v.shape, f"the mask of {key!r}")
        for key, m, v in zip(keys, masks, values, strict=True)
    ]
    scale = _scale([v[m] for v, m in zip(values, may, strict=True)], center, vmin, vmax)
    panels = [
        decide(v, m, scale, rows, cols, str(name), annotate, fmt)
        for v, m, name in zip(values, may, titles, strict=True)
    ]
    return base.Picture(
        alt=_alt(panels, title),
        tell=lambda: _tell_all(panels, title),
        draw=lambda: _draw(panels, title),
        html=lambda: side_by_side([_html(d) for d in panels], title),
    )


def decide(
    values: np.ndarray,
    may: np.ndarray,
    scale: tuple[float, float, float | None],
    rows: Labels = None,
    cols: Labels = None,
    title: str = "",
    annotate: bool | None = None,
    fmt: str = ".2f",
    outline: Sequence[tuple[int, int]] | None = None,
) -> Decided:
    """Decide what every cell shows. `values` and `may` (n_row, n_col) and `scale` are checked."""
    n_row, n_col = values.shape
    row_name, row_labels = _axis(rows, n_row, "rows", QUERY)
    col_name, col_labels = _axis(cols, n_col, "cols", KEY)
    decimals = needed(values[may], _decimals(fmt))
    if annotate is None:
        annotate = max(n_row, n_col) <= ANNOTATE_UP_TO
    low, high, center = scale
    colours = paint(values, low, high, center)
    colours[~may] = GREY
    cells = []
    if annotate:
        cells = [
            [number(v, decimals) if m else MASKED for v, m in zip(vs, ms, strict=True)]
            for vs, ms in zip(values.tolist(), may.tolist(), strict=True)
        ]
    return Decided(
        title=str(title),
        names=(row_name, col_name),
        labels=(row_labels, col_labels),
        values=values,
        may=may,
        limits=(low, high),
        center=center,
        colours=colours,
        ink=ink(colours),
        texts=cells,
        decimals=decimals,
        outline=_outline(outline, values.shape),
    )


def _scale(
    visible: list[np.ndarray], center: float | None, vmin: float | None, vmax: float | None
) -> tuple[float, float, float | None]:
    """Ends and centre of the colour scale over all visible values (lists of 1-D arrays)."""
    for name, limit in (("center", center), ("vmin", vmin), ("vmax", vmax)):
        if limit is not None and not np.isfinite(limit):
            raise ValueError(f"{name} must be a finite number, got {limit}")
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
    if isinstance(labels, str) or not hasattr(labels, "__len__"):
        raise TypeError(f"{what}: the tick labels must be a list, got {type(labels).__name__}")
    if len(labels) != n:
        raise ValueError(f"{what} needs one label for each of the {n} {what}, got {len(labels)}")
    labels = labels.tolist() if hasattr(labels, "tolist") else labels
    return name, [str(label).replace("\n", "\\n") for label in labels]


def _decimals(fmt: str) -> int:
    found = re.fullmatch(r"\.(\d)f", fmt) if isinstance(fmt, str) else None
    if not found:
        raise ValueError(f'fmt must be ".0f", ".1f", ".2f", … up to ".9f", got {fmt!r}')
    return int(found[1])


def _outline(cells: Any, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    done = []
    for cell in () if cells is None else cells:
        row, col = (int(i) for i in cell)
        if not (0 <= row < shape[0] and 0 <= col < shape[1]):
            raise ValueError(
                f"outline names the cell {(row, col)}, but the matrix has shape {shape}"
            )
        done.append((row, col))
    return tuple(done)


def _alt(panels: list[Decided], title: str) -> str:
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


def _tell(d: Decided, shared: bool = False) -> str:
    """Tell one heatmap in words. `shared`: axes and colours were told already."""
    told = [] if shared else [f"Heatmap: {d.title}".rstrip(": "), *_tell_frame(d)]
    if hidden := int((~d.may).sum()):
        told.append(f"mask: {hidden} of {d.may.size} cells may not attend, written {MASKED}")
    odd = [(int(r), int(c)) for r, c in np.argwhere(d.may & ~np.isfinite(d.values.astype(float)))]
    if odd:
        few = "; ".join(f"row {r}, column {c} is {number(d.values[r, c])}" for r, c in odd[:3])
        told.append(f"not finite: {few}" + (f"; and {len(odd) - 3} more" if len(odd) > 3 else ""))
    if d.outline:
        told.append(f"outlined: {_tell_cells(d.outline)}")
    rows = _tell_rows(d) if max(d.values.shape) <= ANNOTATE_UP_TO else _tell_sums(d)
    return "\n".join([*told, *rows])


def _tell_cells(cells: Sequence[tuple[int, int]]) -> str:
    """Name cells row by row: "row 1, columns 0 and 1; row 2, columns 0 to 2"."""
    columns: dict[int, list[int]] = {}
    for row, column in sorted(cells):
        columns.setdefault(row, []).append(column)
    return "; ".join(
        f"row {row}, column{'s' * (len(found) > 1)} {listed(found)}"
        for row, found in columns.items()
    )


def _tell_frame(d: Decided) -> list[str]:
    low, high = (_limit(limit) for limit in d.limits)
    middle = "" if d.center is None else f", white at {_limit(d.center)}"
    return [f"row = {d.names[0]}, column = {d.names[1]}", f"colours: {low} to {high}{middle}"]


def _limit(value: float) -> str:
    return number(value, needed(np.array(value), 2))


def _tell_rows(d: Decided) -> list[str]:
    # Fewer than two decimals only where they say it all, or a test could miss a change.
    seen = d.values[d.may].astype(float)
    seen = seen[np.isfinite(seen)]
    decimals = d.decimals
    if (np.abs(seen - seen.round(decimals)) > 1e-6).any():
        decimals = max(2, decimals)
    cells = [
        [number(v, decimals) if m else MASKED for v, m in zip(vs, ms, strict=True)]
        for vs, ms in zip(d.values.tolist(), d.may.tolist(), strict=True)
    ]
    return _table(d.labels[0], [list(d.labels[1]), *cells])


def _tell_sums(d: Decided) -> list[str]:
    """Too many cells to print: sums and largest values, which change when any cell does."""
    values = np.where(d.may & np.isfinite(d.values.astype(float)), d.values.astype(float), 0.0)
    many = max(1, -(-values.shape[0] // 32))  # this many rows a line, at most 32 lines
    told, names = [["sum", "largest", "in column"]], []
    for start in range(0, len(values), many):
        part = values[start : start + many]
        top = float(part.max())
        # The first that comes near the largest: equal weights differ in the last bit.
        column = int(np.argwhere((part > top - 1e-6).any(0))[0, 0])
        told.append([number(part.sum()), number(top), d.labels[1][column]])
        last = min(start + many, len(values)) - 1
        names.append(d.labels[0][start] + (f"…{d.labels[0][last]}" if last > start else ""))
    many = max(1, -(-values.shape[1] // 32))
    sums = [number(values[:, c : c + many].sum()) for c in range(0, values.shape[1], many)]
    each = "column" if many == 1 else f"{many} columns"
    ten = [sums[i : i + 10] for i in range(0, len(sums), 10)]
    ten[-1] += [""] * (len(ten[0]) - len(ten[-1]))
    return [
        f"{values.shape[0]} x {values.shape[1]} cells, too many to print; for each row:",
        *_table(names, told),
        f"sum of each {each}:",
        *align_columns(ten),
    ]


def _table(names: Sequence[str], rows: list[list[str]]) -> list[str]:
    """Lines of text: a header line, then each row under its name."""
    width = max(map(len, names))
    return align_columns([[n.ljust(width), *r] for n, r in zip(["", *names], rows, strict=True)])


def _tell_all(panels: list[Decided], title: str) -> str:
    told = [f"{len(panels)} heatmaps: {title}".rstrip(": "), *_tell_frame(panels[0])]
    for d in panels:
        told += ["", d.title, _tell(d, shared=True)]
    return "\n".join(told)


# Heights of an axis name and of a label; labels to cells; between two heatmaps.
NAME, LINE, GAP, GUTTER = 17, 13, 6, 24


@dataclass(frozen=True)
class Room:
    """How much room one heatmap takes, in CSS pixels."""

    cell: tuple[float, float]  # width, height
    left: float  # from the left edge to the cells: axis name, tick labels
    top: float  # from the upper edge to the cells: title, axis name, tick labels
    head: float  # from the name of the columns to the cells
    size: tuple[float, float]  # all in all: width, height
    steps: tuple[int, int]  # every how many rows and columns are labelled
    turned: bool  # column labels are turned
    title: str  # broken into lines, as the names are
    title_size: float
    row_name: str
    col_name: str


def _draw(panels: list[Decided], title: str) -> Figure:
    rooms, per_line = _arrange(panels)
    widths = _columns(rooms, per_line)
    heights = [
        max(r.size[1] for r in rooms[i : i + per_line]) for i in range(0, len(rooms), per_line)
    ]
    width = sum(widths) + GUTTER * (per_line - 1) + 2 * base.PAD
    if title:  # two lines over a narrow picture are better than six
        width = max(width, min(base.text_width(title, base.TITLE, True) + 2 * base.PAD + 4, 420))
    over, y = base.heading(title, width - 2 * base.PAD)
    y += base.PAD
    height = y + sum(heights) + GUTTER * (len(heights) - 1) + base.PAD
    figure = base.canvas(width, height)
    width, height = (72 * inches for inches in figure.get_size_inches())
    if over:
        figure.text(
            base.PAD / width, 1 - base.PAD / height, "\n".join(over), ha="left", **_TITLE_STYLE
        )
    for i, (d, room) in enumerate(zip(panels, rooms, strict=True)):
        line, place = divmod(i, per_line)
        left = base.PAD + sum(widths[:place]) + GUTTER * place
        top = y + sum(heights[:line]) + GUTTER * line
        _draw_panel(figure, d, room, left, top)
    return figure


def _arrange(panels: list[Decided]) -> tuple[list[Room], int]:
    """Choose how large the cells are and how many heatmaps stand in a line."""
    many = len(panels) > 1
    wide = max(max(p.values.shape) for p in panels)
    roomy = 50 if wide <= 6 else 46 if wide <= 8 else 37 if wide <= 12 else max(2, 400 // wide)
    small = roomy if not many else 31 if panels[0].texts else max(2, 150 // wide)
    for per_line in range(min(4, len(panels)), 0, -1):
        n_line = -(-len(panels) // per_line)
        per_line = -(-len(panels) // n_line)  # four as 2 + 2, not as 3 + 1
        for cell in range(roomy, small - 1, -1):
            rooms = [_room(p, cell, many) for p in panels]
            room = base.WIDEST - 2 * base.PAD - GUTTER * (per_line - 1)
            if sum(_columns(rooms, per_line)) <= room:
                return rooms, per_line
    return rooms, 1


def _columns(rooms: list[Room], per_line: int) -> list[float]:
    return [max(r.size[0] for r in rooms[c::per_line]) for c in range(per_line)]


def _room(d: Decided, cell: float, many: bool) -> Room:
    """Measure everything around the cells, so that nothing overlaps or is cut off."""
    n_row, n_col = d.values.shape
    title_size = 11.5 if many else base.TITLE
    size = _number_size(cell)
    cell_w = max([cell, *(base.text_width(t, size) + 7 for row in d.texts for t in row)])
    longest = max(base.text_width(label) for label in d.labels[1])
    if not many and n_col <= 8 and cell_w < longest + 8 <= 62:
        cell_w = longest + 8  # a little wider cells, and the words stay level
    # Short labels stay level, with gaps if need be; of longer ones, turned, the height counts.
    step = _step(cell_w, longest + 6 if longest <= 22 else LINE)
    turned = longest + 4 > cell_w * step
    grid_w, grid_h = n_col * cell_w, n_row * cell
    row_name, col_name = _fold(d.names[0], grid_h + 30), _fold(d.names[1], max(grid_w, 110))
    left = NAME * len(row_name) + max(base.text_width(label) for label in d.labels[0]) + GAP + 4
    right = _bar_width(d)
    if turned:
        last = base.text_width(d.labels[1][-1])
        right = max(right, (max(last, longest - cell_w) + 12) * 0.71 - cell_w / 2)
    names_w = max(base.text_width(line) for line in col_name)
    width = left + max(grid_w + right, names_w) + 2
    title, top = base.heading(d.title, width if many else max(width, 300), title_size)
    width = max([width, *(base.text_width(line, title_size, True) + 4 for line in title)])
    head = NAME * len(col_name) + (round(longest * 0.71) + 14 if turned else 15) + GAP
    spill = (max(base.text_width(line) for line in row_name) - grid_h) / 2  # above and below
    top = round(top + max(head, spill))
    return Room(
        cell=(cell_w, cell), left=left, top=top, head=head, turned=turned,
        steps=(_step(cell, LINE), step),
        size=(width, top + grid_h + max(2, spill)),
        title="\n".join(title), title_size=title_size,
        row_name="\n".join(row_name), col_name="\n".join(col_name),
    )  # fmt: skip


def _fold(name: str, room: float) -> list[str]:
    """Break the name of an axis, best before its bracket: query / (who reads)."""
    if base.text_width(name) <= room:
        return [name]
    return [
        line
        for part in name.replace(" (", "\n(").split("\n")
        for line in base.break_lines(part, max(room, 70))
    ]


def _number_size(cell: float) -> float:
    return base.BODY if cell >= 36 else 10


def _step(cell: float, need: float) -> int:
    """Label every cell, or only every 2nd, 5th, 10th … where the cells are smaller than needed."""
    return next(s for s in (1, 2, 5, 10, 20, 50, 100, 1000) if s * cell >= need or s == 1000)


def _bar_width(d: Decided) -> float:
    """Room for a colour bar, where there are no numbers to tell what a colour means."""
    return 0 if d.texts else 32 + max(base.text_width(_limit(limit)) for limit in d.limits)


def _draw_panel(figure: Figure, d: Decided, room: Room, left: float, top: float) -> None:
    """Draw one heatmap with its upper left corner at (left, top) CSS pixels."""
    width, height = (72 * inches for inches in figure.get_size_inches())
    n_row, n_col = d.values.shape
    grid_w, grid_h = n_col * room.cell[0], n_row * room.cell[1]
    x, y = round(left + room.left), round(top + room.top)
    ax = figure.add_axes((x / width, 1 - (y + grid_h) / height, grid_w / width, grid_h / height))
    _draw_cells(ax, d, room)
    ax.set_aspect("auto")
    edge = -room.left / grid_w
    style = _TITLE_STYLE | {"size": room.title_size}
    ax.set_title(room.title, loc="left", x=edge, y=1 + room.top / grid_h, pad=0, **style)
    middle = max(grid_w, base.text_width(max(room.col_name.split("\n"), key=len))) / 2 / grid_w
    ax.xaxis.set_label_coords(middle, 1 + room.head / grid_h)
    ax.set_xlabel(room.col_name, va="top", **_NAME_STYLE)
    ax.yaxis.set_label_coords(edge, 0.5)
    ax.set_ylabel(room.row_name, va="top", **_NAME_STYLE)
    if not d.texts:
        _draw_bar(figure, d, x + grid_w + 14, y, min(grid_h, 160))


_TITLE_STYLE = {
    "size": base.TITLE,
    "weight": "bold",
    "color": INK,
    "family": base.FONT,
    "va": "top",
    "linespacing": 1.25,
    "parse_math": False,
}


_NAME_STYLE = {
    "size": base.BODY,
    "color": QUIET,
    "family": base.FONT,
    "parse_math": False,
    "linespacing": 1.3,
}


def _draw_cells(ax: Axes, d: Decided, room: Room | None = None) -> None:
    """Draw cells, numbers and labels into any axes; `room` tells how large the cells are."""
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.patches import Rectangle

    n_row, n_col = d.values.shape
    size, steps = (_number_size(room.cell[1]), room.steps) if room else (base.BODY, (1, 1))
    columns, rows = np.arange(n_col + 1) - 0.5, np.arange(n_row + 1) - 0.5
    ax.pcolormesh(columns, rows, d.colours)
    ax.set(xlim=columns[[0, -1]], ylim=rows[[-1, 0]], aspect="equal")
    if (~d.may).any():
        corners = [
            [(c - 0.5, r - 0.5), (c + 0.5, r - 0.5), (c + 0.5, r + 0.5), (c - 0.5, r + 0.5)]
            for r, c in np.argwhere(~d.may)
        ]
        hatched = PolyCollection(
            corners, facecolors=[GREY], edgecolors="#a6a6a6", linewidths=0, hatch="////"
        )
        ax.add_collection(hatched, autolim=False)
    if d.texts:
        edges = [[(c - 0.5, -0.5), (c - 0.5, n_row - 0.5)] for c in range(1, n_col)]
        edges += [[(-0.5, r - 0.5), (n_col - 0.5, r - 0.5)] for r in range(1, n_row)]
        gaps = LineCollection(edges, colors="white", linewidths=1.5, capstyle="projecting")
        gaps.set_clip_on(False)
        ax.add_collection(gaps, autolim=False)
    for r, words in enumerate(d.texts):
        for c, word in enumerate(words):
            if d.may[r, c]:
                base.write(ax, c, r, word, size=size, color=d.ink[r, c], va="center_baseline")
    for r, c in d.outline:
        for colour, width in (("white", 5), ("black", 2.5)):
            frame = Rectangle(
                (c - 0.5, r - 0.5), 1, 1, fill=False, edgecolor=colour, linewidth=width
            )
            ax.add_patch(frame)
            frame.set_clip_on(False)
    for axis, labels, step in zip((ax.yaxis, ax.xaxis), d.labels, steps, strict=True):
        axis.set_ticks(range(0, len(labels), step), labels[::step])
    ax.tick_params(
        length=0, pad=GAP - 2, labelsize=base.BODY, labelcolor=INK, labelfontfamily=base.FONT,
        top=True, labeltop=True, bottom=False, labelbottom=False,
    )  # fmt: skip
    if room and room.turned:
        for label in ax.get_xticklabels():
            label.set(rotation=45, ha="left", rotation_mode="anchor")
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        label.set_parse_math(False)
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(d.names[1])
    ax.set_ylabel(d.names[0])
    ax.set_title(d.title, loc="left", size=base.TITLE, color=INK, parse_math=False)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _draw_bar(figure: Figure, d: Decided, left: float, top: float, tall: float) -> None:
    width, height = (72 * inches for inches in figure.get_size_inches())
    ax = figure.add_axes((left / width, 1 - (top + tall) / height, 10 / width, tall / height))
    low, high = d.limits
    ramp = paint(np.linspace(high, low, 128)[:, None], low, high, d.center)
    ax.imshow(ramp, aspect="auto", extent=(0, 1, low, high))
    marks = [low, high] if d.center in (None, low, high) else [low, d.center, high]
    ax.set_yticks(marks, [_limit(mark) for mark in marks])
    ax.set_xticks([])
    ax.tick_params(
        length=0, labelsize=base.BODY, labelcolor=INK, labelfontfamily=base.FONT,
        left=False, labelleft=False, labelright=True,
    )  # fmt: skip
    for spine in ax.spines.values():
        spine.set_visible(False)


def _html(d: Decided) -> str:
    codes = (np.round(d.colours * 255).astype(int) @ (65536, 256, 1)).tolist()
    inks, may = d.ink.tolist(), d.may.tolist()
    # Without room for numbers they are still there, for screen readers and for the mouse.
    small = "" if d.texts else "padding:0;min-width:14px;height:14px;font-size:0;"
    rows = []
    for r, label in enumerate(d.labels[0]):
        cells = []
        for c, code in enumerate(codes[r]):
            word = d.texts[r][c] if d.texts else number(d.values[r, c], d.decimals)
            note = "" if d.texts else word
            look = f"background:#{code:06x};color:{inks[r][c]};"
            if not may[r][c]:
                look, word, note = HATCH, MASKED, "masked"
            if (r, c) in d.outline:
                look += FRAME
            cells.append(td(word, look + small, note))
        rows.append((label, cells))
    return html_table(
        d.title, d.labels[1], rows, corner=d.names[0], over=d.names[1], small=not d.texts
    )
