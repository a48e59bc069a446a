"""Diagrams of boxes and arrows: how tensors go through a model.

A diagram is described once, as boxes on a grid and arrows between them. `diagram` draws any such
description, and writes it as a list of steps: what each box takes, does and gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from attention_base.numbers import WIDTH
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
    "accent": (MARKED_CELL, ORANGE, INK),  # what matters
    "pale": ("white", PALE, QUIET),  # what is not reached
}
LINE_HEIGHT = 14  # of a line of text
HEAD_STYLE = {"size": 12, "weight": "bold"}
BETWEEN_PANELS = 44
FRAME = 8  # from the boxes to the frame around them
CIRCLES = {"+": 20, "": 8}  # texts of boxes that are drawn as circles: their diameters


def air() -> tuple[int, int, int]:
    """How far rows lie apart, and how much room a text has in its box, and on its arrow."""
    return (14, 14, 16) if base.TITLED else (9, 8, 10)


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
    look: str = "plain"  # a key of LOOKS, or the colour of its background
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
    width = _width([Layout(panel) for panel in panels])
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
        draw=lambda: _draw(title if heading else "", panels),
        html=html,
        parts=[partial(_draw, "", [panel]) for panel in panels],
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
                note=box.note.replace("\n", ", "),
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
            size = column.size[0], box.rows * panel.row_height - air()[0]
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
            beside = [box.top for box in self.boxes.values() if box.bottom > place.top]
            top = min(place.top, *beside)  # in line with the text of a frame beside it
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
        text = (
            CIRCLES.get(box.text) or air()[1] + _text_size(f"{box.text}\n{box.shape}", box.bold)[0]
        )
        width[box.column] = max(width[box.column], text, _text_size(box.note)[0])
    column = {box.name: box.column for box in panel.boxes}
    for arrow in panel.arrows:
        first, last = sorted([column[arrow.start], column[arrow.end]])
        if arrow.shown and first < last:  # a text stands in the gap where its arrow starts
            beside = first if first == column[arrow.start] else last - 1
            sides = sum((arrow.start in f.boxes) != (arrow.end in f.boxes) for f in panel.frames)
            gap[beside] = max(gap[beside], air()[2] + _text_size(arrow.text)[0] + FRAME * sides)
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


def _draw(title: str, panels: Sequence[Panel]) -> Figure:
    panels = [_fitted(panel) for panel in panels]
    layouts = [Layout(panel) for panel in panels]
    width = _width(layouts)
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


def _width(layouts: Sequence[Layout]) -> float:
    return sum(layout.all.size[0] for layout in layouts) + BETWEEN_PANELS * (len(layouts) - 1)


def _fitted(panel: Panel) -> Panel:
    """Make it fit a slide: with lower rows, then with one line in a box, then without shapes."""
    if base.TITLED:
        return panel
    wide = base.WIDEST - 2 * base.PAD
    high = base.HIGHEST - 2 * base.PAD - 22 * bool(panel.title)

    def lower(panel: Panel) -> Panel:
        rows = max(box.row + 0.5 + box.rows / 2 for box in panel.boxes)
        around = Layout(panel).all.size[1] - rows * panel.row_height
        return replace(panel, row_height=min(panel.row_height, (high - around) / rows))

    def in_one_line(box: Box) -> Box:
        return replace(box, text=_one_line(box) + f" {box.shape}".rstrip(), shape="")

    flat = replace(panel, boxes=[in_one_line(box) for box in panel.boxes])
    bare = replace(
        panel,
        boxes=[replace(box, shape="") for box in panel.boxes],
        arrows=[replace(arrow, shape="") for arrow in panel.arrows],
        gap=10,
    )
    found = panel
    for found in (panel, lower(panel), lower(flat), lower(bare)):
        layout = Layout(found)
        lines = max(f"{box.text}\n{box.shape}".strip().count("\n") + 1 for box in found.boxes)
        roomy = found.row_height - air()[0] >= LINE_HEIGHT * lines
        if layout.all.size[0] <= wide and layout.all.size[1] <= high and (roomy or found is panel):
            break
    return found


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

    background, border, ink = LOOKS.get(box.look, (box.look, LINE, INK))
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
