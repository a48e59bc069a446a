"""How long does a heatmap take? Ratios of interleaved runs, because machines are noisy.

Compares `heatmap(...)` to PNG with the barest matplotlib code that shows the same 8 x 8 numbers
(same size, same dots an inch), and times the HTML table: wanted, 0.3 ms for 12 x 12 cells.

Run: python benchmarks/heatmap.py [rounds]
"""

from __future__ import annotations

import io
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from helpers.pictures import heatmap
from helpers.pictures.colours import fills, paint
from helpers.pictures.table import Cell, Table

MATRIX = np.random.default_rng(0).dirichlet(np.ones(8), 8)  # (8, 8), rows sum to 1


def ours() -> bytes:
    return heatmap(MATRIX, title="Weights").png()


def bare(size: tuple[float, float]) -> bytes:
    figure = Figure(figsize=size, dpi=144)
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    ax.imshow(MATRIX, cmap="cividis", vmin=0, vmax=1)
    for row in range(8):
        for col in range(8):
            value = MATRIX[row, col]
            ax.text(
                col,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                color="w" if value < 0.5 else "k",
            )
    ax.set_title("Weights")
    ax.set_xlabel("key (who is read)")
    ax.set_ylabel("query (who reads)")
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def clock(call: Callable[..., object], *args: object, **options: object) -> float:
    start = time.perf_counter()
    call(*args, **options)
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    size = tuple(heatmap(MATRIX, title="Weights").figure().get_size_inches())
    print(f"PNG: {len(ours()) / 1024:.0f} KB, bare {len(bare(size)) / 1024:.0f} KB")
    pairs = [(clock(ours), clock(bare, size)) for _ in range(rounds)]
    ratios = sorted(a / b for a, b in pairs)
    a, b = (statistics.median(times) for times in zip(*pairs, strict=True))
    middle, low, high = (ratios[int(part * rounds)] for part in (0.5, 0.25, 0.75))
    print(f"picture to PNG: {a:.0f} ms, bare {b:.0f} ms, {rounds} pairs:")
    print(f"ratio {middle:.2f} (middle half {low:.2f} to {high:.2f})")
    names = [str(i) for i in range(12)]
    colours = fills(paint(np.random.default_rng(0).random((12, 12)), 0, 1, None))
    rows = [[Cell("0.25", fill=fill) for fill in row] for row in colours]
    table = Table(names, list(zip(names, rows, strict=True)), "Weights", "query", "key")
    styles, classes = (
        statistics.median(clock(table.html, classes=short) for _ in range(200))
        for short in (False, True)
    )
    print(f"HTML table of 12 x 12: {styles:.2f} ms with styles, {classes:.2f} ms with classes")


if __name__ == "__main__":
    main()
