import numpy as np
import pytest
from matplotlib.patches import Rectangle

from helpers.pictures import bars, scatter
from helpers.pictures.base import png_of
from tests.helpers.pictures import reading
from tests.helpers.pictures.examples import EXAMPLES

POINTS = {"right": (1.8, 1.8), "no mask": (0.1, 6.25), "strict mask": (0.2, 3.7)}
LOSSES = {"xlabel": "parallel", "ylabel": "left to right"}
SECONDS = {"classic": (60, 50, 70), "small": 30.0, "ours": (6, 6, 6.5)}


def plane(shown):
    _, ax = shown.figure().axes  # the first holds the title
    return ax


def names_of(ax):
    """The names of points, each with the point that it belongs to."""
    return {text.get_text(): tuple(text.xy) for text in ax.texts if text.get_text()}


def test_every_point_is_drawn_where_it_is_and_has_its_name():
    ax = plane(scatter(POINTS, **LOSSES))
    (dots,) = ax.lines
    assert np.array_equal(dots.get_xydata(), [*POINTS.values()])
    assert names_of(ax) == POINTS
    assert (ax.get_xlabel(), reading.texts_on(ax.figure.axes[0])[0][0]) == (*LOSSES.values(),)


def test_on_the_diagonal_both_numbers_are_the_same_and_both_axes_have_one_scale():
    shown = scatter(POINTS, **LOSSES, diagonal="equal", title="Losses")
    ax = plane(shown)
    line, _ = ax.lines
    assert np.array_equal(*line.get_xydata().T) and line.is_dashed()
    assert tuple(line.get_xdata()) == ax.get_xlim() == ax.get_ylim()
    assert list(ax.get_xticks()) == list(ax.get_yticks())
    box = ax.get_window_extent()
    assert box.width == pytest.approx(box.height, abs=1)
    (end,) = [text for text in ax.figure.axes[0].texts if text.get_text() == "equal"]
    corner = end.get_window_extent()
    assert 0 < corner.x0 - box.x1 < 20 and abs((corner.y0 + corner.y1) / 2 - box.y1) < 6
    assert "equal" not in str(scatter(POINTS, **LOSSES))


@pytest.mark.parametrize("name", ["points", "points on one spot"])
def test_a_name_covers_no_point_and_a_line_leads_to_one_that_is_away(name):
    ax = plane(EXAMPLES[name]())
    png_of(ax.figure)
    dots = ax.transData.transform(ax.lines[-1].get_xydata())
    for text in ax.texts:
        if text.get_text():
            at, box = ax.transData.transform(text.xy), text.get_window_extent()
            assert not any(box.padded(4).contains(*dot) for dot in dots)
            level = abs((box.y0 + box.y1) / 2 - at[1]) < 10
            lines = [t.xyann for t in ax.texts if t.arrow_patch and tuple(t.xy) == tuple(text.xy)]
            assert level != (text.xyann in lines)


@pytest.mark.parametrize("name", ["points", "points on one spot", "bars", "bars with spans"])
def test_drawing_html_and_words_tell_the_same_numbers(name):
    shown = EXAMPLES[name]()
    (table,) = reading.read_html(shown.html())
    assert reading.in_words([table], str(shown))[0].said() == table.said()
    for row, cells in zip(table.names, table.cells, strict=True):
        assert f"{row} {' '.join(cells).removesuffix(' – –')}" in shown.alt
    assert (name == "bars") == ("5" in table.cells[-1]), "whole numbers have no decimals"


def test_the_text_version_tells_the_numbers():
    assert str(scatter(POINTS, **LOSSES, diagonal="equal", title="Losses")).splitlines() == [
        "Points: Losses",
        "across: parallel; up: left to right",
        "dashed line, where both are the same: equal",
        "",
        "       name  parallel  left to right",
        "      right      1.80           1.80",
        "    no mask      0.10           6.25",
        "strict mask      0.20           3.70",
    ]
    assert str(bars(SECONDS, xlabel="seconds", decimals=1, reference="small")).splitlines() == [
        "Bars",
        "along: seconds",
        "dashed line: small",
        "",
        "   name  seconds  lowest  highest",
        "classic     60.0    50.0     70.0",
        "  small     30.0       –        –",
        "   ours      6.0     6.0      6.5",
    ]


def test_bars_are_as_long_as_their_numbers_say():
    (page,) = bars(SECONDS, xlabel="seconds", decimals=0, reference="small").figure().axes
    long, middle, short = [p for p in page.patches if isinstance(p, Rectangle)]
    assert long.get_width() == pytest.approx(2 * middle.get_width())
    assert long.get_width() == pytest.approx(10 * short.get_width())
    assert long.get_y() < middle.get_y() < short.get_y()
    texts = {text.get_text(): text for text in page.texts}
    for name, wanted, bar in zip(SECONDS, ("60", "30", "6"), (long, middle, short), strict=True):
        for text in (name, wanted):
            y = texts[text].get_position()[1]
            assert y == pytest.approx(bar.get_y() + bar.get_height() / 2)
    dashed = [line for line in page.lines if line.is_dashed()]
    first, last, axis = [line for line in page.lines if not line.is_dashed()]
    scale = long.get_width() / 60
    assert np.allclose((first.get_xdata() - long.get_x()) / scale, [50, 70])
    assert np.allclose((last.get_xdata() - long.get_x()) / scale, [6, 6.5])
    assert np.allclose(axis.get_xdata(), long.get_x())
    assert len(dashed) == 3, "the line to compare with goes through all rows"
    assert np.allclose([line.get_xdata() for line in dashed], long.get_x() + 30 * scale)
    number = texts["60"].get_position()[0]
    assert number > first.get_xdata()[1], "the number stands behind the line"


def test_the_line_to_compare_with_crosses_no_number():
    near = bars({"just below": 29.0, "there": 30.0}, xlabel="seconds", reference="there")
    (page,) = near.figure().axes
    above, below, whole = [line.get_ydata() for line in page.lines if line.is_dashed()]
    crossed, there = [text.get_position()[1] for text in page.texts if text.get_ha() == "right"]
    assert above[1] < crossed < below[0], "broken where the number stands, and only there"
    assert np.mean(whole) == pytest.approx(there)


@pytest.mark.parametrize(
    "draw",
    [
        lambda **words: scatter({"a": (1.0499999672, 1)}, **LOSSES, **words),
        lambda **words: bars({"a": 1.0499999672}, xlabel="s", decimals=1, **words),
    ],
)
def test_statements_stand_for_numbers_on_the_edge_of_two_roundings(draw, monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    shown = draw(statements=["a is about 1.", "a < 2"], title="One")
    assert str(shown).splitlines()[-3:] == ["", "a is about 1.", "a < 2"]
    assert "a is about 1. a &lt; 2</p>" in shown.html() and "<table" not in shown.html()
    assert "1.0" not in shown.alt
    assert shown.png()  # drawn all the same


def test_a_number_on_the_edge_of_two_roundings_is_refused_without_statements(monkeypatch):
    monkeypatch.setenv("ATTENTION_STRICT", "1")
    with pytest.raises(ValueError, match="may differ on another machine"):
        bars({"a": 1.0499999672}, xlabel="s", decimals=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: scatter({}, **LOSSES), "points must be 1 to 12, got 0"),
        (lambda: scatter({str(i): (i, i) for i in range(13)}, **LOSSES), "1 to 12, got 13"),
        (lambda: scatter({"a": (1, 2, 3)}, **LOSSES), r"two, \(x, y\), got .*3.0\] for 'a'"),
        (lambda: scatter({"a": (1, np.nan)}, **LOSSES), "finite .* got .*nan"),
        (lambda: bars({"a": (1, 2)}, xlabel="s"), r"one or three, \(number, lowest.*for 'a'"),
        (lambda: bars({"a": -1}, xlabel="s"), r"at least 0.*got \[-1.0\] for 'a'"),
        (lambda: bars({"a": (1, -2, 3)}, xlabel="s"), "at least 0"),
        (lambda: bars({"a": (3, 1, 2)}, xlabel="s"), "between its lowest and its highest"),
        (lambda: bars({"a": (3, 4, 2)}, xlabel="s"), "between its lowest and its highest"),
        (lambda: bars({"a": 1}, xlabel="s", reference="b"), r"'b', but the bars are \['a'\]"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
