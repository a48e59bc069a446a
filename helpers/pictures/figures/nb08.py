"""Pictures that only notebook 08 shows: `turned_arrows`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attention_base.numbers import as_real, texts
from helpers.pictures import base
from helpers.pictures.base import Picture, titled
from helpers.pictures.checks import as_matrix
from helpers.pictures.colours import BLUE, INK, LINE, ORANGE, PALE, QUIET
from helpers.pictures.figures.vectors import draw_vector
from helpers.pictures.table import in_columns, side_by_side

if TYPE_CHECKING:
    from matplotlib.figure import Figure


KEY_AT = 40  # degrees from the query to the key while both stand at position 0


def turned_arrows(pairs: Any, *, degrees: float, title: str = "") -> Picture:
    """Draw a query and a key as arrows that are turned by their positions, for some pairs of them.

    At position 0 the query stands at 0° and the key at 40°.

    Parameters
    ----------
    pairs : (n, 2), one to four
        The positions of the query and of the key, at least 0; one panel per pair.
    degrees : float
        The angle by which one position turns an arrow.

    Raises
    ------
    ValueError
        If pairs is not (n, 2), a position is negative, nan or inf, or degrees is not finite.
    """
    places, degrees = as_matrix(pairs, "pairs").astype(float), as_real(degrees, "degrees")
    if places.shape[1] != 2 or len(places) > 4:
        raise ValueError(
            f"turned_arrows draws 1 to 4 pairs (query, key) of positions, got pairs {places.shape}"
        )
    if not (np.isfinite(places) & (places >= 0)).all():
        raise ValueError(
            f"positions count from 0, so pairs are finite and at least 0; got {places.tolist()}"
        )
    angles = degrees * places + (0, KEY_AT)  # (n, 2) degrees
    between = 180 - np.abs(180 - (angles[:, 1] - angles[:, 0]) % 360)  # (n,)
    columns = {"query at": places[:, 0], "key at": places[:, 1]}
    columns |= {"query's angle": angles[:, 0] % 360, "key's angle": angles[:, 1] % 360}
    columns["angle between"] = between
    marked = [(i, len(columns) - 1) for i in range(len(places))]
    table = in_columns("panel", range(len(places)), columns, marked)
    names = [f"query at {i:g}, key at {j:g}" for i, j in places]
    told = [f"{angle}°" for angle in texts(between, 1)]
    rule = (
        f"At position 0, the query stands at 0° and the key at {KEY_AT}°; each position turns them "
        f"by {texts(np.array(degrees), 1)}°."
    )
    of_each = "; ".join(f"{angle} with {name}" for name, angle in zip(names, told, strict=True))
    return Picture(
        alt=f"{titled('Turned arrows', title)}: a query and a key in each of {len(places)} panels, "
        f"turned by their positions. Angle between them: {of_each}.",
        text=f"{titled('Turned arrows', title)}\n{rule}\n{table.text()}",
        draw=lambda: _draw_turned(np.radians(angles), names, told, rule, title),
        html=lambda: side_by_side([f"<p>{rule}</p>{table.html()}"], title),
    )


def _draw_turned(
    angles: np.ndarray, names: list[str], told: list[str], rule: str, title: str
) -> Figure:
    """Draw one circle per pair of angles (n, 2), and outside of it the arc from arrow to arrow."""
    from matplotlib.patches import Circle

    radius, side = 58, min(205, (base.WIDEST - 2 * base.PAD) / len(names))
    notes = ["wide, grey: the query · thin, blue: the key · orange: the angle between them", rule]
    least = max(base.text_width(note) for note in notes)
    width = 2 * base.PAD + max(len(names) * side, least)
    lines, y = base.heading(title, width - 2 * base.PAD)
    top = base.PAD + y
    figure, ax = base.empty_page(width, top + 2 * radius + 124)
    base.write_heading(ax, lines)
    for i, ((query, key), name, text) in enumerate(zip(angles, names, told, strict=True)):
        middle = np.array([base.PAD + (i + 0.5) * side, top + radius + 52])

        def place(angle: Any, far: Any, middle: np.ndarray = middle) -> np.ndarray:
            return middle + np.stack([far * np.cos(angle), -far * np.sin(angle)], -1)

        base.write(ax, middle[0], top + 8, name)
        ax.add_patch(Circle(middle, radius, fill=False, edgecolor=PALE, linewidth=1))
        turn = (key - query + np.pi) % (2 * np.pi) - np.pi  # the short way
        arc = place(np.linspace(query, query + turn, 60), radius + 6)
        ax.plot(*arc.T, color=ORANGE, linewidth=2.5)
        half = query + turn / 2
        room = base.text_width(text, 12, bold=True) / 2 * abs(np.cos(half))
        x, y = place(half, radius + 14 + room + 4 * abs(np.sin(half)))
        base.write(ax, x, y, text, size=12, weight="bold", color=ORANGE)
        draw_vector(ax, middle, place(query, radius), LINE, 8)
        draw_vector(ax, middle, place(key, radius), BLUE, 2.2)
        ax.plot(*middle, "o", color=INK, markersize=6, zorder=3)
    for n, note in enumerate(notes):
        low = top + 2 * radius + 90 + 18 * n
        base.write(ax, base.PAD, low, note, ha="left", color=QUIET)
    return figure
