import numpy as np
import pytest
import torch
from matplotlib.colors import same_color

from helpers.pictures import curves
from helpers.pictures.base import png_of
from helpers.pictures.colours import CURVES
from helpers.pictures.lines import decades
from tests.helpers.pictures import reading

X = [1, 4, 16, 64]
PANELS = {
    "size": {"raw": [1.0, 4, 16, 64], "scaled": [1.0, 1, 1, 1.01]},
    "share": {"raw": [0.25, 0.1, 0.0052, 0], "scaled": [0.25] * 4},
}
TWO = {"xlabel": "d", "logx": True, "logy": ["size"]}


def panels(shown):
    return shown.figure().axes[1:]  # the first holds title and legend


def test_every_line_is_drawn_through_its_numbers():
    size, share = panels(curves(X, PANELS, **TWO))
    assert (size.get_xscale(), size.get_yscale(), share.get_yscale()) == ("log", "log", "linear")
    assert (size.get_title(loc="left"), share.get_title(loc="left")) == (
        "size (logarithmic)",
        "share",
    )
    for ax, given in zip((size, share), PANELS.values(), strict=True):
        assert [line.get_label() for line in ax.lines] == list(given)
        for line, values in zip(ax.lines, given.values(), strict=True):
            assert np.array_equal(line.get_xydata(), np.column_stack([X, values]))
        colours = [line.get_color() for line in ax.lines]
        assert colours == [colour for colour, *_ in CURVES[:2]]  # the same in every panel


OTHER = {
    "loss": {"short": [3.0, 2.0, 1.5], "long": [4.0, 3.5, 0.5]},
    "grad": {"long": [0.1, -0.2, 0.3], "wide": [-0.5, 0.25, 0.75]},
    "norm": {"wide": [10.0, 20.0, 50.0], "short": [7.0, 1.0, 2.0]},
    "rank": {"short": [1.0, 2.0, 5.0]},
}


@pytest.mark.parametrize(
    ("x", "data", "options"),
    [(X, PANELS, TWO), ([0, 5, 10], OTHER, {"xlabel": "step", "columns": 2})],
)
def test_legend_lines_and_tables_belong_together(x, data, options):
    shown = curves(x, data, **options, title="All")
    page, *axes = shown.figure().axes
    assert reading.texts_on(page)[0][0] == "All"
    looks = {}
    for line, text in zip(
        page.get_legend().get_lines(), page.get_legend().get_texts(), strict=True
    ):
        looks[text.get_text()] = (line.get_color(), line.get_marker(), line.get_linestyle())
    assert len(set(looks.values())) == len(looks)
    tables = reading.read_html(shown.html())
    told = reading.in_words(tables, str(shown))
    for i, (ax, (panel, lines), table) in enumerate(zip(axes, data.items(), tables, strict=True)):
        assert ax.get_title(loc="left").split() == table.caption.split()
        assert table.caption.removesuffix(" (logarithmic)") == panel
        assert table.caption.endswith("(logarithmic)") == (ax.get_yscale() == "log")
        assert table.names == list(lines) and table.over == options["xlabel"]
        drawn = {line.get_label(): line for line in ax.lines}
        assert {
            name: (line.get_color(), line.get_marker(), line.get_linestyle())
            for name, line in drawn.items()
        } == {name: looks[name] for name in lines}
        for name, values in lines.items():
            assert drawn[name].get_xydata().T.tolist() == [list(map(float, x)), list(values)]
        for name, row in zip(table.names, table.numbers, strict=True):
            assert np.allclose(row, drawn[name].get_ydata(), rtol=0.05)
        assert [float(column) for column in table.columns] == list(x)
        assert told[i].said() == table.said()
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            for place, label in zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True):
                if limits[0] <= place <= limits[1]:
                    assert float(label.get_text().replace("−", "-")) == pytest.approx(place)
    # Panels stand as a text is read, and only the lowest of each column name the x axis.
    columns = options.get("columns", 2)
    corners = [(-round(ax.get_position().y1, 4), round(ax.get_position().x0, 4)) for ax in axes]
    assert corners == sorted(corners)
    assert len({left for _, left in corners}) == columns
    assert [ax.get_xlabel() for ax in axes] == [""] * (len(axes) - columns) + [
        options["xlabel"]
    ] * columns


def test_the_legend_names_the_lines_of_all_panels():
    page = curves(X, PANELS, **TWO).figure().axes[0]
    legend = page.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["raw", "scaled"]
    for line, (colour, *_) in zip(legend.get_lines(), CURVES, strict=False):
        assert same_color(line.get_color(), colour)
    alone = curves(X, {"size": {"raw": X}}, xlabel="d").figure().axes[0]
    assert alone.get_legend() is None


def test_the_text_version_tells_the_numbers():
    assert str(curves(X, PANELS, **TWO)).splitlines() == [
        "Curves",
        "across: d (logarithmic)",
        "",
        "size (logarithmic)",
        "          1    4   16   64",
        "raw       1    4   16   64",
        "scaled  1.0  1.0  1.0  1.0",
        "",
        "share",
        "           1     4      16    64",
        "raw     0.25  0.10  0.0052     0",
        "scaled  0.25  0.25    0.25  0.25",
    ]


@pytest.mark.parametrize(
    ("values", "log", "ticks"),
    [
        ([1e-27, 7], True, ["10⁻²⁴", "10⁻¹⁸", "10⁻¹²", "10⁻⁶", "1"]),
        ([0.99, 1000], True, ["1", "10", "100", "1000"]),
        ([2, 8], True, ["1", "10"]),
        ([0, 1.0], False, ["0", "0.5", "1"]),
        ([-1200, 1500], False, ["−2000", "−1000", "0", "1000", "2000"]),
        ([3, 3], False, ["0", "1", "2", "3"]),
        ([0, 0], False, ["0", "0.5", "1"]),
    ],
)
def test_ticks_are_few_and_readable(values, log, ticks):
    (ax,) = panels(curves([1, 2], {"p": {"a": values}}, xlabel="x", logy=["p"] * log))
    low, high = ax.get_ylim()
    labels = [
        label.get_text()
        for place, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
        if low <= place <= high
    ]
    assert labels == ticks


def shown_ticks(ax):
    low, high = ax.get_xlim()
    ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    return [label.get_text() for place, label in ticks if low <= place <= high]


def test_labels_of_x_have_room():
    (ax,) = panels(curves(X, {"p": {"a": X}}, xlabel="x", logx=True))
    assert shown_ticks(ax) == ["1", "4", "16", "64"]  # every x
    (ax,) = panels(curves(range(1, 101), {"p": {"a": range(100)}}, xlabel="x"))
    assert shown_ticks(ax) == ["0", "20", "40", "60", "80", "100"]  # round numbers
    (ax,) = panels(curves(range(1, 101), {"p": {"a": range(100)}}, xlabel="x", logx=True))
    labels = shown_ticks(ax)
    assert (labels[0], labels[-1]) == ("1", "100") and 5 < len(labels) < 25


def test_statements_stand_in_place_of_the_numbers():
    words = ["At the end, the loss of a is below 0.1.", "b < a"]
    shown = curves(X, PANELS, **TWO, statements=words, title="Loss")
    assert str(shown).splitlines() == ["Curves: Loss", "across: d (logarithmic)", "", *words]
    assert "below 0.1. b &lt; a</p>" in shown.html() and "<table" not in shown.html()
    assert len(panels(shown)[0].lines) == 2  # drawn all the same


def test_statements_stand_for_numbers_on_the_edge_of_two_roundings(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    edge = {"loss": {"a": [1.0499999672, 1.0]}}
    with pytest.raises(ValueError, match="may differ on another machine"):
        curves([1, 2], edge, xlabel="x")
    curves([1, 2], edge, xlabel="x", statements=["The loss is about 1."])


LEVELS = {"die": 4.63, "three letters": 1.95, "four letters": 1.8}


def test_a_single_number_is_a_level_with_its_name_at_the_right_end():
    shown = curves([0, 10, 20], {"loss": {"model": [4.7, 2, 1.9], **LEVELS}}, xlabel="step")
    (ax,) = panels(shown)
    png_of(ax.figure)
    (without,) = panels(curves([0, 10, 20], {"loss": {"model": [4.7, 2, 1.9]}}, xlabel="step"))
    assert ax.get_window_extent().height > 1.5 * without.get_window_extent().height
    _, *levels = ax.lines
    assert [line.get_ydata() for line in levels] == [[y, y] for y in LEVELS.values()]
    assert all(line.get_marker() == "None" and line.is_dashed() for line in levels)
    right = ax.get_window_extent().x1
    heights = []
    for text, y in zip(ax.texts, LEVELS.values(), strict=True):
        box = text.get_window_extent()
        assert text.xy == (1, y) and right <= box.x0 < right + 30
        assert box.x1 < ax.figure.bbox.x1
        heights.append(ax.transAxes.inverted().transform((0, box.y0))[1])
    assert heights == sorted(heights, reverse=True)
    assert [text.get_text() for text in ax.texts] == [*LEVELS]
    assert ax.figure.axes[0].get_legend() is None, "one line, which the panel names"
    assert str(shown).splitlines()[3:] == [
        "loss",
        "         0   10   20",
        "model  4.7  2.0  1.9",
        "",
        "loss, horizontal lines",
        "               level",
        "die             4.63",
        "three letters   1.95",
        "four letters    1.80",
    ]
    lines, horizontal = reading.read_html(shown.html())
    assert (lines.names, horizontal.names) == (["model"], [*LEVELS])
    assert "with the line model and horizontal lines at die, three letters, four" in shown.alt


def test_a_level_counts_for_the_limits_and_takes_no_colour_of_a_line():
    shown = curves(X, {"p": {"far": 500, "a": X, "b": X}, "q": {"near": 0.5}}, xlabel="x")
    p, q = panels(shown)
    assert p.get_ylim()[1] > 500 and q.get_ylim()[1] > 0.5
    assert [line.get_color() for line in p.lines[:2]] == [colour for colour, *_ in CURVES[:2]]
    legend = shown.figure().axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_of_many_points_only_some_have_a_marker():
    for n, every in (40, 1), (41, 2), (400, 10):
        (ax,) = panels(curves(range(n), {"p": {"a": range(n)}}, xlabel="x"))
        assert ax.lines[0].get_markevery() == every


def test_decades_hold_all_values_and_two_ticks():
    powers, (low, high) = decades(0.02, 0.03)
    assert powers == [-2, -1]
    assert low < 0.01 and high > 0.1


def test_next_to_nothing_is_written_only_on_a_logarithmic_axis():
    data = {"log": {"a": [1e-9, 0.5]}, "linear": {"a": [1e-9, 0.5]}}
    shown = str(curves([1, 2], data, xlabel="x", logy=["log"]))
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("a ")] == [
        "1.0e-09",
        "0",
    ]


def test_a_gap_is_left_where_there_is_no_number():
    shown = curves([1, 2, 3], {"p": {"a": [1.0, torch.nan, 2.5]}}, xlabel="x")
    line = panels(shown)[0].lines[0]
    assert np.isnan(line.get_ydata()).tolist() == [False, True, False]
    assert str(shown).splitlines()[-1] == "a  1.0  nan  2.5"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: curves([2, 1], PANELS, xlabel="x"), "increasing"),
        (lambda: curves([0, 1], {"p": {"a": [1, 2]}}, xlabel="x", logx=True), "above 0, got 0"),
        (lambda: curves([1, 2], {}, xlabel="x"), "at least one panel"),
        (
            lambda: curves([1, 2], {"p": {"a": torch.nan}}, xlabel="x"),
            "'a' in 'p' must be a finite",
        ),
        (lambda: curves(X, {"p": {"a": 0}}, xlabel="x", logy=["p"]), "no place for 0, in 'a'"),
        (lambda: curves([1, 2], {"p": {"a": [1]}}, xlabel="x"), r"'a' in 'p'.*2 x, got .*\(1,\)"),
        (lambda: curves(X, PANELS, xlabel="x", logy=["q"]), r"'q'.*\['size', 'share'\]"),
        (lambda: curves(X, PANELS, xlabel="x", logy=["share"]), "no place for 0, in 'raw'"),
        (lambda: curves(X, PANELS, xlabel="x", columns=4), "columns must be .* from 1 to 3, got 4"),
        (
            lambda: curves([1, 2], {"p": {n: [1, 2] for n in "abcdefg"}}, xlabel="x"),
            "6 lines apart, got 7",
        ),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
