"""Diagrams of boxes and arrows: how tensors go through a model.

A diagram is described once, as boxes on a grid and arrows between them. `diagram` draws any such
description, and writes it as a list of steps: what each box takes, does and gives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from attention_base.numbers import WIDTH
from helpers.attention.checks import refuse_uneven_heads
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import is_whole
from helpers.pictures.colours import CELL, INK, LINE, MARKED_CELL, ORANGE, PALE, QUIET
from helpers.pictures.table import Cell, Table, side_by_side, text_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# How a box looks: its background, its border, its text.
LOOKS = {
    "plain": (CELL, LINE, INK),
    "accent": (MARKED_CELL, ORANGE, INK),
    "pale": ("white", PALE, QUIET),
}
LINE_HEIGHT = 14  # of a line of text
HEAD_STYLE = {"size": 12, "weight": "bold"}
BETWEEN_ROWS, BETWEEN_PANELS = 14, 44
FRAME = 8  # from the boxes to the frame around them
CIRCLES = {"+": 20, "": 8}  # texts of boxes that are drawn as circles: their diameters

Size = int | str  # of an axis: a number, or a letter for it
Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """One box on the grid."""

    name: str  # what arrows call it
    # What stands in it. "+" is drawn as a circle, "" as a point where an arrow branches off.
    text: str
    column: int
    row: float = 0  # where its middle is
    rows: float = 1  # how many rows it is tall
    shape: str = ""  # "(B, T, C)", if it is a tensor
    look: str = "plain"  # "plain", "accent" for what matters, "pale" for what is not reached
    data: bool = False  # whether it is no operation, but something that goes in or comes out
    note: str = ""  # written below it

    @property
    def bold(self) -> bool:
        """Whether it is written in bold letters."""
        return self.look == "accent" or (self.data and self.look == "plain")


@dataclass(frozen=True)
class Arrow:
    """A straight arrow between two boxes that share some of their rows, or of their columns."""

    start: str  # the name of a box
    end: str
    name: str = ""  # what it carries, where that does not stand in the box at one of its ends
    shape: str = ""  # of what it carries
    shown: bool = True  # whether that is written on the arrow; it is told in words in any case
    width: float = 1.2  # how thick it is, in CSS pixels
    accent: bool = False  # whether it is what matters

    @property
    def text(self) -> str:
        """What is written on it, in lines."""
        return f"{self.name}\n{self.shape}"


@dataclass(frozen=True)
class Frame:
    """A dashed line around some boxes, with a text above."""

    text: str
    boxes: Sequence[str]
    accent: bool = False


@dataclass(frozen=True)
class Panel:
    """Boxes and arrows on one grid."""

    boxes: Sequence[Box]  # in the order in which the steps are told
    arrows: Sequence[Arrow]  # what connects them
    frames: Sequence[Frame] = ()  # what holds several of them together
    title: str = ""  # stands above them
    heads: Sequence[str] = ()  # one above each column
    row_height: float = 48
    gap: float = 24  # between columns, at least: a text on an arrow takes more


def diagram(
    title: str,
    panels: Sequence[Panel],
    *,
    alt: str,
    kind: str = "operation",
    about: str = "",
    heading: bool = True,
) -> Picture:
    """Draw panels of boxes and arrows side by side.

    Parameters
    ----------
    title : str
    panels : sequence of Panel
        From left to right.
    alt : str
        For those who cannot see it.
    kind, about : str
        What the boxes are, and what their notes are: headers of the HTML table.
    heading : bool
        Whether the title is drawn.

    Raises
    ------
    ValueError
        If it would be wider than a page.
    """
    layouts = [Layout(panel) for panel in panels]
    width = sum(layout.all.size[0] for layout in layouts) + BETWEEN_PANELS * (len(panels) - 1)
    if width > base.WIDEST - 2 * base.PAD:
        raise ValueError(
            f"the diagram needs {width:.0f} pixels and has {base.WIDEST - 2 * base.PAD}; write "
            f"letters such as T instead of large numbers, or leave out the batch if you can"
        )

    def html() -> str:
        if len(panels) == 1:
            return as_html(panels[0], title, kind, about)
        tables = [f"<div>{as_html(panel, panel.title, kind, about)}</div>" for panel in panels]
        return side_by_side(tables, title)

    return Picture(
        alt=f"{title}. {alt}",
        text="\n".join([titled("Diagram", title), *map(as_text, panels)]),
        draw=lambda: _draw(title if heading else "", panels, layouts, width),
        html=html,
    )


# --- In words ----------------------------------------------------------------------------------


class Step(NamedTuple):
    """What one box does, in words."""

    takes: str
    does: str
    gives: str
    shape: str  # of what it gives
    note: str
    accent: bool


def steps(panel: Panel) -> list[Step]:
    """Follow the arrows: one step for each operation, in the order of the boxes."""
    boxes = {box.name: box for box in panel.boxes}

    def carried(arrow: Arrow) -> tuple[str, str]:
        """Say what an arrow carries, (name, shape): as it says itself, or as its ends do."""
        if arrow.name or arrow.shape:
            return arrow.name.replace("\n", " "), arrow.shape
        start, end = boxes[arrow.start], boxes[arrow.end]
        if not start.text:  # whatever comes to the point goes both ways
            return next(carried(before) for before in panel.arrows if before.end == start.name)
        return next(((_one_line(box), box.shape) for box in (start, end) if box.data), ("", ""))

    done = []
    for box in panel.boxes:
        if box.data or not box.text:
            continue
        head = f"{panel.heads[box.column]}: " if panel.heads else ""
        # Several arrows may carry the same.
        takes = dict.fromkeys(carried(arrow) for arrow in panel.arrows if arrow.end == box.name)
        gives = dict.fromkeys(carried(arrow) for arrow in panel.arrows if arrow.start == box.name)
        shapes = {shape for _, shape in gives}
        done.append(
            Step(
                takes=", ".join(
                    f"{name} {shape}".strip() if len(takes) == 1 else name for name, shape in takes
                ),
                does=head + _one_line(box),
                gives=", ".join(name for name, _ in gives),
                shape=shapes.pop() if len(shapes) == 1 else "",
                note=box.note,
                accent=box.look == "accent",
            )
        )
    return done


def _one_line(box: Box) -> str:
    return box.text.replace("\n", " ")


def as_text(panel: Panel) -> str:
    """Write the steps of a panel as lines: x (B, T, C) -> @ W_query -> q (B, T, head_size)."""
    lines = [panel.title] if panel.title else []
    for takes, does, gives, shape, note, _ in steps(panel):
        parts = [takes, f"{does} [{note}]" if note else does, f"{gives} {shape}".strip()]
        first, *rest = [part for part in parts if part]
        lines.append(first)
        for part in rest:
            if len(lines[-1]) + len(f" -> {part}") <= WIDTH:
                lines[-1] += f" -> {part}"
            else:
                lines.append(f"    -> {part}")
    return "\n".join([*lines, *frame_lines(panel)])


def as_html(panel: Panel, caption: str, kind: str, about: str) -> str:
    """Write the steps of a panel as a table, with a row for each box."""
    done = steps(panel)
    columns = {
        "takes": [step.takes for step in done],
        "gives": [step.gives for step in done],
        "shape": [step.shape for step in done],
        about: [step.note for step in done],
    }
    columns = {name: texts for name, texts in columns.items() if any(texts)}
    rows = [
        (step.does, [Cell(text, "marked" if step.accent else "plain") for text in texts])
        for step, *texts in zip(done, *columns.values(), strict=True)
    ]
    table = Table([*columns], rows, caption=caption, corner=kind).html()
    return table + "".join(f"<p>{text_html(line)}</p>" for line in frame_lines(panel))


def frame_lines(panel: Panel) -> list[str]:
    """Say of each frame which boxes it holds, and what stands above it."""
    lines = []
    for frame in panel.frames:
        names = list(frame.boxes)
        held = f"{names[0]} to {names[-1]}" if len(names) > 2 else ", ".join(names)
        lines.append(f"{held}: {frame.text}".replace("\n", "\n    "))
    return lines


# --- Where everything stands -------------------------------------------------------------------


class Rect(NamedTuple):
    """A rectangle in CSS pixels; y runs down."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def x(self) -> float:
        """The middle of its width."""
        return (self.left + self.right) / 2

    @property
    def y(self) -> float:
        """The middle of its height."""
        return (self.top + self.bottom) / 2

    @property
    def size(self) -> tuple[float, float]:
        """Its width and its height."""
        return self.right - self.left, self.bottom - self.top


def centred(x: float, y: float, width: float, height: float) -> Rect:
    """Make a rectangle around a point."""
    return Rect(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def around(rects: Sequence[Rect], margin: float = 0) -> Rect:
    """Make the smallest rectangle that holds all of them, with a margin."""
    left, top, right, bottom = zip(*rects, strict=True)
    return Rect(min(left) - margin, min(top) - margin, max(right) + margin, max(bottom) + margin)


class Layout:
    """Where everything in a panel stands: `boxes` and `notes` by name; `all` is around it all."""

    def __init__(self, panel: Panel, x: float = 0, y: float = 0) -> None:
        self.columns = _columns(panel, x, y)
        self.boxes: dict[str, Rect] = {}
        self.notes: dict[str, Rect] = {}
        for box in panel.boxes:
            column = self.columns[box.column]
            size = column.size[0], box.rows * panel.row_height - BETWEEN_ROWS
            if box.text in CIRCLES:
                size = CIRCLES[box.text], CIRCLES[box.text]
            place = centred(column.x, y + (box.row + 0.5) * panel.row_height, *size)
            self.boxes[box.name] = place
            if box.note:
                width, high = _text_size(box.note)
                self.notes[box.name] = centred(place.x, place.bottom + 3 + high / 2, width, high)
        self.frames: list[Rect] = []
        self.frame_texts: list[Rect] = []
        for frame in panel.frames:
            held = [self.boxes[name] for name in frame.boxes]
            held += [self.notes[name] for name in frame.boxes if name in self.notes]
            place = around(held, FRAME)
            top = min(place.top, *(box.top for box in self.boxes.values()))
            width, high = _text_size(frame.text)
            self.frames.append(place)
            self.frame_texts.append(centred(place.x, top - 4 - high / 2, width, high))
        heads = self.columns if panel.heads else []
        parts = [*self.boxes.values(), *self.notes.values(), *self.frames, *self.frame_texts]
        self.all = around([*parts, *heads])


def _columns(panel: Panel, x: float, y: float) -> list[Rect]:
    """Make columns as wide as what stands in them, and as far apart as what arrows carry.

    Gives the place of each column's head.
    """
    width = [base.text_width(head, HEAD_STYLE["size"], True) for head in panel.heads]
    width += [0.0] * (1 + max(box.column for box in panel.boxes) - len(width))
    gap = [panel.gap] * len(width)
    for box in panel.boxes:
        text = CIRCLES.get(box.text) or 14 + _text_size(f"{box.text}\n{box.shape}", box.bold)[0]
        width[box.column] = max(width[box.column], text, _text_size(box.note)[0])
    column = {box.name: box.column for box in panel.boxes}
    for arrow in panel.arrows:
        first, last = sorted([column[arrow.start], column[arrow.end]])
        if arrow.shown and first < last:  # a text stands in the gap where its arrow starts
            beside = first if first == column[arrow.start] else last - 1
            sides = sum((arrow.start in f.boxes) != (arrow.end in f.boxes) for f in panel.frames)
            gap[beside] = max(gap[beside], 16 + _text_size(arrow.text)[0] + FRAME * sides)
    heads = []
    for wide, apart in zip(width, gap, strict=True):
        heads.append(Rect(x, y - 16, x + wide, y + 2))
        x += wide + apart
    return heads


def _text_size(text: str, bold: bool = False) -> tuple[float, float]:
    lines = text.split("\n")
    return max(base.text_width(line, base.BODY, bold) for line in lines), LINE_HEIGHT * len(lines)


def ends(start: Rect, end: Rect) -> tuple[Point, Point]:
    """Go straight from edge to edge, in the middle of what two boxes share: two points (x, y)."""
    left, right = max(start.left, end.left), min(start.right, end.right)
    top, bottom = max(start.top, end.top), min(start.bottom, end.bottom)
    x, y = (left + right) / 2, (top + bottom) / 2
    if top < bottom:  # side by side
        return ((right, y), (left, y)) if start.x < end.x else ((left, y), (right, y))
    return ((x, bottom), (x, top)) if start.y < end.y else ((x, top), (x, bottom))


# --- Drawn -------------------------------------------------------------------------------------


def _draw(title: str, panels: Sequence[Panel], layouts: Sequence[Layout], width: float) -> Figure:
    lines, high = base.heading(title, width)
    over = base.PAD + high
    top = over + 22 * any(panel.title for panel in panels)
    high = top + max(layout.all.size[1] for layout in layouts) + base.PAD
    figure, page = base.empty_page(width + 2 * base.PAD, high)
    base.write_heading(page, lines)
    left = base.PAD
    for panel, layout in zip(panels, layouts, strict=True):
        if panel.title:
            base.write(page, left, over, panel.title, ha="left", va="top", **HEAD_STYLE)
        own = Layout(panel, left - layout.all.left, top - layout.all.top)
        _draw_panel(page, panel, own)
        left += layout.all.size[0] + BETWEEN_PANELS
    return figure


def _draw_panel(ax: Axes, panel: Panel, layout: Layout) -> None:
    for head, place in zip(panel.heads, layout.columns, strict=False):
        base.write(ax, place.x, place.y, head, **HEAD_STYLE)
    for frame, place, text in zip(panel.frames, layout.frames, layout.frame_texts, strict=True):
        _draw_frame(ax, frame, place, text)
    points = {box.name for box in panel.boxes if not box.text}
    for arrow in panel.arrows:
        start, end = ends(layout.boxes[arrow.start], layout.boxes[arrow.end])
        _draw_arrow(ax, arrow, start, end, tip=arrow.end not in points)
        if arrow.shown and arrow.text.strip():
            leaves = any(arrow.start in f.boxes and arrow.end not in f.boxes for f in panel.frames)
            _write_on_arrow(ax, arrow, start, end, FRAME * leaves)
    for box in panel.boxes:
        _draw_box(ax, box, layout.boxes[box.name])
        if box.note:
            place = layout.notes[box.name]
            colour = ORANGE if box.look == "accent" else QUIET
            base.write(ax, place.x, place.y, box.note, color=colour)


def _draw_frame(ax: Axes, frame: Frame, place: Rect, text: Rect) -> None:
    from matplotlib.patches import Rectangle

    colour = ORANGE if frame.accent else QUIET
    style = {"edgecolor": colour, "linestyle": "--", "fill": False}
    ax.add_patch(Rectangle(place[:2], *place.size, gid="frame", **style))
    base.write(ax, text.x, text.y, frame.text, color=colour, linespacing=1.25)


def _draw_box(ax: Axes, box: Box, place: Rect) -> None:
    from matplotlib.patches import Circle, FancyBboxPatch

    background, border, ink = LOOKS[box.look]
    style = {"edgecolor": border, "linewidth": 1.2, "gid": f"box {box.name}"}
    if box.text in CIRCLES:
        style["facecolor"] = background if box.text else border
        ax.add_patch(Circle((place.x, place.y), place.size[0] / 2, **style))
    else:
        style["facecolor"] = "white" if box.data else background
        corner = f"round,pad=0,rounding_size={10 if box.data else 3}"
        ax.add_patch(FancyBboxPatch(place[:2], *place.size, corner, **style))
    lines = [(text, ink, "bold" if box.bold else "normal") for text in box.text.split("\n")]
    if box.shape:
        lines.append((box.shape, QUIET, "normal"))
    y = place.y - LINE_HEIGHT * (len(lines) - 1) / 2
    for text, colour, weight in lines:
        base.write(ax, place.x, y, text, color=colour, weight=weight, va="center_baseline")
        y += LINE_HEIGHT


def _draw_arrow(ax: Axes, arrow: Arrow, start: Point, end: Point, *, tip: bool) -> None:
    """Draw an arrow as one surface; its tip touches the box."""
    from matplotlib.patches import Polygon

    (x, y), (to_x, to_y) = start, end
    length = abs(to_x - x) + abs(to_y - y)
    right, down = (to_x - x) / length, (to_y - y) / length
    half = arrow.width / 2
    neck, wing = (length - 7 - half, 3.5 + half) if tip else (length, half)
    side = [(0, half), (neck, half), (neck, wing)]  # along the arrow, and beside it
    outline = [*side, (length, 0), *((along, -beside) for along, beside in reversed(side))]
    corners = [(x + a * right - b * down, y + a * down + b * right) for a, b in outline]
    style = {"facecolor": ORANGE if arrow.accent else QUIET, "linewidth": 0}
    ax.add_patch(Polygon(corners, gid=f"arrow {arrow.start} {arrow.end}", **style))


def _write_on_arrow(ax: Axes, arrow: Arrow, start: Point, end: Point, away: float) -> None:
    """Write what an arrow carries, next to its start: above and below it, or to its right."""
    (x, y), half = start, arrow.width / 2
    style = {"color": ORANGE if arrow.accent else INK, "linespacing": 1.25}
    if x == end[0]:
        text = f"{arrow.name} {arrow.shape}".strip()
        base.write(ax, x + half + 7, (y + end[1]) / 2, text, ha="left", **style)
        return
    away += 8 + _text_size(arrow.text)[0] / 2
    x += away if x < end[0] else -away
    base.write(ax, x, y - half - 3, arrow.name, va="bottom", **style)
    base.write(ax, x, y + half + 4, arrow.shape, va="top", **style)


# --- The diagrams ------------------------------------------------------------------------------


def shape_text(*sizes: Size) -> str:
    """Write a shape: (B, T, C)."""
    return f"({', '.join(map(str, sizes))})"


def refuse_bad_shape_sizes(**sizes: Size) -> None:
    """Refuse a size that is neither a whole number of at least 1 nor a name."""
    for name, size in sizes.items():
        is_name = isinstance(size, str) and size.isidentifier()
        if not is_name and not is_whole(size, 1, math.inf):
            raise ValueError(
                f"{name} must be a whole number of at least 1, or a name such as 'T'; got {size!r}"
            )


def lookup_diagram() -> Picture:
    """Draw a lookup in a dictionary beside attention, with the same query and the same keys.

    The query is what "it" looks for in "the cat was tired, so it slept". The weights are made up.
    """
    tokens = (
        ("the", "article", 0.03),
        ("cat", "noun", 0.70),
        ("was", "verb", 0.07),
        ("tired", "adjective", 0.20),
    )
    query = Box("query", "“it” looks\nfor a\nnoun", 0, 1.5, 4, data=True)
    exact, soft, arrows = [query], [query], []
    for row, (word, kind, weight) in enumerate(tokens):
        key = Box(f"key {row}", kind, 1, row)
        value = Box(f"value {row}", f"value\nof “{word}”", 2, row, data=True)
        soft += [key, value]
        if kind == "noun":
            exact += [replace(key, text=f"{kind}\n= query", look="accent"), value]
        else:
            exact += [
                replace(key, text=f"{kind}\n≠ query", look="pale"),
                replace(value, look="pale"),
            ]
        thick = {"width": 18 * weight, "accent": True}
        arrows += [
            Arrow("query", key.name),
            Arrow(key.name, value.name, f"{weight:.2f}", **thick),
            Arrow(value.name, "output", **thick),
        ]
    exact.append(Box("output", "value\nof “cat”", 3, 1.5, 4, data=True))
    total = "\n+ ".join(f"{weight:.2f} × “{word}”" for word, _, weight in tokens)
    soft.append(Box("output", total, 3, 1.5, 4))
    path = [("query", "key 1"), ("key 1", "value 1"), ("value 1", "output")]
    heads = ("query", "key", "value", "output")
    return diagram(
        "A dictionary finds one value, attention averages all of them",
        [
            Panel(
                exact,
                [Arrow(start, end, width=3, accent=True) for start, end in path],
                title="Dictionary: one key is equal to the query",
                heads=heads,
            ),
            Panel(soft, arrows, title="Attention: every key gets a weight", heads=heads),
        ],
        alt=(
            "Two panels with the columns query, key, value and output. Dictionary: the query "
            "“noun” is equal to one of four keys, and one arrow leads through this key to the "
            "value of “cat”. Attention: arrows lead from the same query to all four keys, and on "
            "through all four values into one output, as thick as their weights: 0.70 for “cat”, "
            "0.20 for “tired”, 0.07 for “was”, 0.03 for “the”."
        ),
    )


def head_diagram(
    *,
    B: Size | None = "B",
    T: Size = "T",
    C: Size = "C",
    head_size: Size = "head_size",
    value_size: Size | None = None,
) -> Picture:
    """Draw one attention head: queries and keys give the weights, the weights average the values.

    Parameters
    ----------
    B, T, C, head_size : int or str
        The sizes to write into the shapes; `B=None`: without a batch.
    value_size : int or str
        Channels of a value, where it has others than queries and keys.

    Raises
    ------
    ValueError
        If a size is neither a number of at least 1 nor a name, or if the shapes are too long.
    """
    value_size = head_size if value_size is None else value_size
    refuse_bad_shape_sizes(
        B=1 if B is None else B, T=T, C=C, head_size=head_size, value_size=value_size
    )
    batch = [] if B is None else [B]
    tokens, square = shape_text(*batch, T, C), shape_text(*batch, T, T)
    roles, values = shape_text(*batch, T, head_size), shape_text(*batch, T, value_size)
    boxes = [
        Box("x", "x", 0, 1, 3, shape=tokens, data=True),
        Box("query", "@ W_query", 1, 0),
        Box("key", "@ W_key", 1, 1),
        Box("value", "@ W_value", 1, 2),
        Box("scores", f"q @ k.mT\n/ √{head_size}", 2, 0.5, 2),
        Box("mask", "mask", 3, 0.5, 2),
        Box("softmax", "softmax\nof each\nrow", 4, 0.5, 2),
        Box("average", "weights\n@ v", 5, 1, 3, look="accent"),
        Box("out", "out", 6, 1, shape=values, data=True),
    ]
    arrows = [
        Arrow("x", "query"),
        Arrow("x", "key"),
        Arrow("x", "value"),
        Arrow("query", "scores", "q", roles),
        Arrow("key", "scores", "k", roles),
        Arrow("scores", "mask", "scaled\nscores", square),
        Arrow("mask", "softmax", "masked", square),
        Arrow("softmax", "average", "weights", square, width=3, accent=True),
        Arrow("value", "average", "v", values),
        Arrow("average", "out"),
    ]
    return diagram(
        "One head: queries and keys give the weights that average the values",
        [Panel(boxes, arrows, row_height=54, gap=18)],
        alt=(
            f"Boxes and arrows from left to right: x {tokens} is multiplied by W_query, W_key and "
            f"W_value. q and k meet in q @ k.mT / √{head_size}, which gives scaled scores "
            f"{square}; the mask and a softmax of each row follow. The weights {square} are "
            f"marked: they meet v in weights @ v, which gives out {values}."
        ),
    )


def multi_head_diagram(n_head: int = 4, *, B: Size = "B", T: Size = "T", C: Size = "C") -> Picture:
    """Draw multi-head attention: the channels are split, every head attends, the heads are merged.

    Parameters
    ----------
    n_head : int
        How many heads, 2 to 6.
    B, T, C : int or str
        The sizes to write into the shapes.

    Raises
    ------
    ValueError
        If a size is wrong, or if n_head does not divide C.
    """
    if not is_whole(n_head, 2, 6):
        raise ValueError(f"multi_head_diagram draws 2 to 6 heads, got n_head={n_head!r}")
    refuse_bad_shape_sizes(B=B, T=T, C=C)
    if isinstance(C, int):
        refuse_uneven_heads(C, n_head)
    head_size = C // n_head if isinstance(C, int) else "head_size"
    whole, part = shape_text(B, T, C), shape_text(B, T, head_size)
    layers, heads = ("query", "key", "value"), [f"head {h}" for h in range(n_head)]
    rows = max(3, n_head)
    middle = (rows - 1) / 2

    def spread(names: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Give each name its row, evenly over the whole height."""
        for i, name in enumerate(names):
            yield name, (i + 0.5) * rows / len(names) - 0.5

    boxes = [
        Box("x", "x", 0, middle, rows, shape=whole, data=True),
        *(Box(name, f"{name}\nlayer", 1, row) for name, row in spread(layers)),
        Box("split", f"split\nq, k, v into\n{n_head} slices\neach", 2, middle, rows),
        *(Box(name, f"{name}:\nattention", 3, row, look="accent") for name, row in spread(heads)),
        Box("merge", "merge:\nput side\nby side", 4, middle, rows),
        Box("proj", "proj", 5, middle),
        Box("out", "out", 6, middle, shape=whole, data=True),
    ]
    arrows = [
        *(Arrow("x", name) for name in layers),
        *(Arrow(name, "split", name[0], whole) for name in layers),
        *(Arrow("split", name, f"slice {h}", part) for h, name in enumerate(heads)),
        *(Arrow(name, "merge", f"out {h}", part) for h, name in enumerate(heads)),
        Arrow("merge", "proj", "merged", whole),
        Arrow("proj", "out"),
    ]
    together = (
        f"all heads in one batched matmul: the scores are q @ k.mT,\n"
        f"{shape_text(B, n_head, T, head_size)} @ {shape_text(B, n_head, head_size, T)}; "
        "then weights @ v"
    )
    return diagram(
        "Multi-head attention: each head gets a slice of q, k and v, not of x",
        [Panel(boxes, arrows, [Frame(together, heads, accent=True)], row_height=50, gap=18)],
        alt=(
            f"Boxes and arrows from left to right: a query, a key and a value layer turn x {whole} "
            f"into q, k and v, which are split into {n_head} slices. {n_head} marked boxes, one "
            f"for each head, attend in parallel, each with slices {part}; one batched matmul "
            f"computes the scores of all heads. Their outs are put side by side to {whole}, and "
            f"proj gives out {whole}."
        ),
    )


def block_diagram() -> Picture:
    """Draw a transformer block with pre-norm and with post-norm, side by side."""
    tensor = "(B, T, C)"
    x = Box("x", "x", 0, 0, shape=tensor, data=True)
    out = Box("out", "out", 0, 7, shape=tensor, data=True)
    stream = {"width": 5, "accent": True}
    heads = ("residual stream", "residual branch")
    attends, feeds = "attention:\nacross tokens", "feed-forward:\neach token alone"
    pre = Panel(
        [
            x,
            Box("branch 1", "", 0, 1, look="accent"),
            Box("norm_1", "norm_1", 1, 1),
            Box("attention", attends, 1, 2),
            Box("add 1", "+", 0, 2),
            Box("branch 2", "", 0, 4, look="accent"),
            Box("norm_2", "norm_2", 1, 4),
            Box("feed-forward", feeds, 1, 5),
            Box("add 2", "+", 0, 5),
            out,
        ],
        [
            Arrow("x", "branch 1", **stream),
            Arrow("branch 1", "add 1", **stream),
            Arrow("branch 1", "norm_1"),
            Arrow("norm_1", "attention", "norm_1(x)", shown=False),
            Arrow("attention", "add 1", "attention(norm_1(x))", shown=False),
            Arrow("add 1", "branch 2", "x", tensor, **stream),
            Arrow("branch 2", "add 2", **stream),
            Arrow("branch 2", "norm_2"),
            Arrow("norm_2", "feed-forward", "norm_2(x)", shown=False),
            Arrow("feed-forward", "add 2", "feed_forward(norm_2(x))", shown=False),
            Arrow("add 2", "out", **stream),
        ],
        title="pre-norm: x + f(norm(x))",
        heads=heads,
        gap=90,
    )
    post = Panel(
        [
            x,
            Box("branch 1", "", 0, 1, look="accent"),
            Box("attention", attends, 1, 1.5, 2),
            Box("add 1", "+", 0, 2),
            Box("norm_1", "norm_1", 0, 3),
            Box("branch 2", "", 0, 4, look="accent"),
            Box("feed-forward", feeds, 1, 4.5, 2),
            Box("add 2", "+", 0, 5),
            Box("norm_2", "norm_2", 0, 6),
            out,
        ],
        [
            Arrow("x", "branch 1", **stream),
            Arrow("branch 1", "add 1", **stream),
            Arrow("branch 1", "attention"),
            Arrow("attention", "add 1", "attention(x)", shown=False),
            Arrow("add 1", "norm_1", "x + attention(x)", shown=False, **stream),
            Arrow("norm_1", "branch 2", "x", tensor, **stream),
            Arrow("branch 2", "add 2", **stream),
            Arrow("branch 2", "feed-forward"),
            Arrow("feed-forward", "add 2", "feed_forward(x)", shown=False),
            Arrow("add 2", "norm_2", "x + feed_forward(x)", shown=False, **stream),
            Arrow("norm_2", "out", **stream),
        ],
        title="post-norm: norm(x + f(x))",
        heads=heads,
        gap=90,
    )
    return diagram(
        "The block: with pre-norm, no norm stands on the residual stream",
        [pre, post],
        alt=(
            "Two panels, each with the residual stream as a thick line from x down to out, and two "
            "branches that leave it and come back to be added: attention, then feed-forward. With "
            "pre-norm the norms stand in the branches, and nothing but the two additions is on "
            "the line. With post-norm each norm stands on the line, after the addition."
        ),
    )


def encoder_decoder_diagram() -> Picture:
    """Draw an encoder beside a decoder, with their three attentions and the mask of each."""
    boxes = [
        Box("word", "what is read", 0, 0, shape="(B, T_k)", data=True),
        Box("encoder", "self-attention\nmask: padding", 0, 1),
        Box("encoder FFN", "feed-forward", 0, 2),
        Box("memory", "memory", 0, 3, shape="(B, T_k, C)", data=True),
        Box("written", "what is written so far", 1, 0, shape="(B, T_q)", data=True),
        Box("decoder", "self-attention\nmask: causal", 1, 1),
        Box("cross", "cross-attention\nmask: padding of what is read", 1, 3, look="accent"),
        Box("decoder FFN", "feed-forward", 1, 4),
        Box("next", "what comes next", 1, 5, shape="(B, T_q, 26)", data=True),
    ]
    arrows = [
        Arrow("word", "encoder"),
        Arrow("encoder", "encoder FFN"),
        Arrow("encoder FFN", "memory"),
        Arrow("memory", "cross", "keys,\nvalues", width=3, accent=True),
        Arrow("written", "decoder"),
        Arrow("decoder", "cross", "queries"),
        Arrow("cross", "decoder FFN"),
        Arrow("decoder FFN", "next"),
    ]
    return diagram(
        "Three attentions, each with its own mask",
        [Panel(boxes, arrows, heads=("encoder", "decoder"), row_height=58)],
        alt=(
            "Two columns of boxes. Encoder, downwards: what is read, self-attention with a mask "
            "for padding, feed-forward, memory. Decoder, downwards: what is written so far, "
            "self-attention with a causal mask, cross-attention, feed-forward, what comes next. A "
            "thick arrow brings keys and values from the memory to the cross-attention, whose "
            "mask closes the padding of what is read; its queries come from above."
        ),
    )
