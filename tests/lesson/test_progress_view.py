"""progress(): what its picture, its tables and its text say, against what was put into the file."""

import pytest
from matplotlib.text import Text

from helpers.pictures.base import png_of
from lesson import EXERCISES, PREDICTIONS, progress
from lesson.mine import is_build
from lesson.progress_file import keep
from lesson.progress_view import state
from tests.helpers.pictures import reading

OPTIONAL = [id for id, exercise in EXERCISES.items() if exercise.optional]
SINCE = {True: "✓ solved since", False: "✗ not solved since"}


def fill_in(kept):
    """Answer every third exercise wrongly, every fourth rightly, and so on; count what is done."""
    states, times, solved = {}, {}, {}
    for i, id in enumerate([*EXERCISES, *PREDICTIONS]):
        kind, right, wrong = ("check", "passed", "failed")
        if id in PREDICTIONS:
            kind, right, wrong = ("predict", "right", "wrong")
        states[id] = "open"
        if kind == "check" and i % 2:
            keep(id, kind, "not attempted")
        if i % 3 == 0:
            mistake = EXERCISES[id].mistakes[0].name if id in EXERCISES else ""
            for _ in range(1 + i % 2):
                keep(id, kind, wrong, mistake=mistake)
            if mistake:
                times[f"{id} {mistake}"] = 1 + i % 2
                solved[f"{id} {mistake}"] = i % 4 == 0
            states[id] = "tried"
        if i % 4 == 0:
            keep(id, kind, right)
            states[id] = "corrected" if id in PREDICTIONS and i % 3 == 0 else "done"
        if i % 8 == 0:
            keep(id, kind, wrong)  # later: it stays done
    order = sorted(reversed(times), key=solved.get)  # what was met last stands first
    return states, {name: (f"{times[name]} ×", SINCE[solved[name]]) for name in order}


def drawn(picture):
    (page,) = picture.figure().axes
    return reading.read_page(page)


def check_against(tables, states, times):
    """Compare what was read from one face of the picture with what was put in."""
    overview, builds, *mistakes = tables
    states = {id: what for id, what in states.items() if id not in OPTIONAL}
    assert overview.names == sorted({id[:2] for id in states})
    assert set(overview.columns) == {"done", *(id[3:] for id in states if not is_build(id))}
    signs = {"done": "✓ done", "corrected": "◐ corrected", "tried": "✗ tried", "open": "○ open"}
    for notebook, cells in zip(overview.names, overview.cells, strict=True):
        told = dict(zip(overview.columns, cells, strict=True))
        own = {id[3:]: what for id, what in states.items() if id[:2] == notebook}
        right = [what for what in own.values() if what in ("done", "corrected")]
        assert told.pop("done") == f"{len(right)} of {len(own)}"
        assert told == {name: signs[own[name]] if name in own else "–" for name in told}
    told = {id: signs[what] for id, what in states.items() if is_build(id)}
    assert dict(zip(builds.names, [cells[0] for cells in builds.cells], strict=True)) == told
    assert len(mistakes) == bool(times)
    for table in mistakes:
        assert table.columns == ["met", "exercise"]
        assert dict(zip(table.names, map(tuple, table.cells), strict=True)) == times
        assert table.names == list(times), "in this order"


def test_picture_table_and_text_say_what_is_done_tried_and_open(kept):
    states, times = fill_in(kept)
    assert len(set(states.values())) == 4 and len({since for _, since in times.values()}) == 2
    picture = progress()
    tables = reading.read_html(picture.html())
    check_against(tables, states, times)
    check_against(drawn(picture), states, times)
    check_against(reading.in_words(tables, str(picture)), states, times)
    assert all(table.caption in str(picture) for table in tables)
    exercises, predictions = picture.alt.split("Predictions:")
    assert "corrected" not in exercises
    for what in ("done", "tried", "open"):
        core = [states[id] for id in EXERCISES if id not in OPTIONAL]
        assert f"{core.count(what)} {what}" in exercises
    for what in ("done", "corrected", "tried", "open"):
        assert f"{[states[id] for id in PREDICTIONS].count(what)} {what}" in predictions
    assert f"Mistakes met, by name: {len(times)}." in picture.alt


def test_nothing_done_yet(kept):
    picture = progress()
    states = dict.fromkeys([*EXERCISES, *PREDICTIONS], "open")
    check_against(reading.read_html(picture.html()), states, {})
    check_against(drawn(picture), states, {})
    assert "Mistakes that" not in str(picture) and not kept.exists()


@pytest.mark.parametrize(
    ("statuses", "wanted"),
    [
        ([], "open"),
        (["not attempted"], "open"),
        (["not attempted", "failed"], "tried"),
        (["failed", "not attempted"], "tried"),
        (["wrong"], "tried"),
        (["wrong", "right"], "corrected"),
        (["wrong", "right", "wrong"], "corrected"),
        (["right", "wrong"], "done"),
        (["right", "wrong", "right"], "done"),
        (["failed", "passed"], "done"),
        (["passed", "failed", "not attempted"], "done"),
    ],
)
def test_what_is_done_stays_done_and_a_stub_is_open(kept, statuses, wanted):
    class Line:
        def __init__(self, status):
            self.status = status

    assert state(map(Line, statuses)) == wanted


def test_a_mistake_made_after_the_exercise_has_passed_is_not_solved_since(kept):
    one, two = EXERCISES["03.1"].mistakes[:2]
    for status, mistake in (("failed", one), ("passed", None), ("failed", two), ("failed", None)):
        keep("03.1", "check", status, mistake=mistake.name if mistake else "")
    assert "✓ done" in str(progress())
    told = reading.read_html(progress().html())[2]
    assert dict(zip(told.names, [since for _, since in told.cells], strict=True)) == {
        f"03.1 {two.name}": SINCE[False],
        f"03.1 {one.name}": SINCE[True],
    }


def test_it_says_where_one_was_and_what_is_left_there(kept):
    assert "Answered last" not in str(progress())
    keep("00.2", "check", "failed")
    keep("00.p2", "predict", "wrong")
    for id in (id for id in EXERCISES if id[:2] == "00" and id != "00.2"):
        keep(id, "check", "passed")
    keep("01.1", "check", "not attempted")  # that was run, not answered
    last = [id for id in EXERCISES if id[:2] == "00" and id != "00.2"][-1]
    predictions = [id for id in PREDICTIONS if id[:2] == "00"]
    left = ", ".join(["00.2", *predictions[:-1]])
    told = f"Answered last: {last}, in notebook 00. Not done there yet: {left} and "
    for face in (str(progress()), progress().html()):
        assert told + f"{predictions[-1]}." in face
    for id in predictions:
        keep(id, "predict", "right")
    keep("00.2", "check", "passed")
    told = "Answered last: 00.2, in notebook 00. There, all is done."
    assert told in str(progress()) and told in " ".join(texts(progress()))


def test_optional_exercises_are_named_and_not_waited_for(kept):
    assert "11.10" in OPTIONAL and "11.4" not in OPTIONAL
    for id in (id for id in EXERCISES if id[:2] == "11" and id not in OPTIONAL):
        keep(id, "check", "passed")
    for id in (id for id in PREDICTIONS if id[:2] == "11"):
        keep(id, "predict", "right")
    assert "Optional" not in str(progress())
    keep("11.7", "check", "failed")
    keep("11.10", "check", "passed")
    keep("11.6", "check", "passed")
    for told in (str(progress()), " ".join(texts(progress()))):
        assert "Answered last: 11.6, in notebook 11. There, all is done." in told
        assert "Optional exercises that are done: 11.6 and 11.10." in told
    assert reading.read_html(progress().html())[0].cells[11][0] == "7 of 7"


def test_broken_lines_and_unknown_exercises_are_left_out_and_told(kept):
    keep("00.count", "check", "passed")
    with open(kept, "a") as file:
        file.write("broken\n" * 7 + '{"version": 1, "torn')
    keep("00.2", "check", "passed")
    keep("99.3", "check", "passed")
    keep("00.p1", "check", "passed")  # a prediction is not checked
    keep("00.1", "check", "passed")  # which has gone
    keep("00.3", "check", "failed")
    keep("00.write", "check", "failed", mistake="a name that no mistake has " * 5)
    picture = progress()
    for face in (str(picture), picture.html(), " ".join(texts(picture))):
        assert (
            "Broken lines were left out: line 2, line 3, line 4, line 5, line 6 and 3 more." in face
        )
        assert "that these notebooks do not have were left out: 00.p1, 99.3." in face
        assert "a name that no" not in face
        assert "Done, and no longer in these notebooks: 00.1 (The mean token)." in face
    first = reading.read_html(picture.html())[0]
    assert first.cells[0][0] == "2 of 7"


def texts(picture):
    (page,) = picture.figure().axes
    return [text for text, _ in reading.texts_on(page)]


def test_a_file_that_cannot_be_read_is_told(kept):
    kept.mkdir()
    assert "progress.jsonl cannot be read (it is no ordinary file)." in str(progress())


def test_switched_off_it_says_so_and_reads_nothing(kept, monkeypatch):
    keep("00.2", "check", "passed")
    monkeypatch.setenv("ATTENTION_PROGRESS", "0")
    assert "because ATTENTION_PROGRESS is 0." in str(progress())
    assert "✓" not in str(progress())


def test_texts_from_the_file_are_escaped(kept, monkeypatch):
    monkeypatch.setenv("ATTENTION_PROGRESS", str(kept.parent / "<b>&.jsonl"))
    keep("<i>.1", "check", "passed")
    html = progress().html()
    assert "<b>" not in html and "<i>" not in html and "&lt;b&gt;&amp;.jsonl" in html


@pytest.mark.slow
def test_many_mistakes_are_cut_off_nowhere(kept, monkeypatch):
    most = max(EXERCISES.values(), key=lambda exercise: len(exercise.mistakes))
    longest = [max(e.mistakes, key=lambda m: len(m.name)) for e in EXERCISES.values()]
    for mistake in [*most.mistakes, *longest]:
        keep(mistake.exercise.id, "check", "failed", mistake=mistake.name)
    assert_readable(progress(), monkeypatch)


def test_nothing_lies_on_another_thing(kept, monkeypatch):
    fill_in(kept)
    assert_readable(progress(), monkeypatch)


def assert_readable(picture, monkeypatch):
    seen = []
    draw = Text.draw
    monkeypatch.setattr(Text, "draw", lambda self, to: (seen.append(self), draw(self, to)))
    figure = picture.figure()
    png_of(figure)
    width, height = figure.bbox.size
    assert width <= 2 * 980
    boxes = [(text.get_text(), text.get_window_extent()) for text in seen if text.get_text()]
    for text, box in boxes:
        assert box.x0 >= 0 and box.y0 >= 10 and box.x1 <= width and box.y1 <= height, text
    boxes.sort(key=lambda pair: pair[1].y0)
    for i, (one, first) in enumerate(boxes):
        for other, second in boxes[i + 1 : i + 30]:  # a row has ten texts
            assert not first.padded(-1).overlaps(second.padded(-1)), f"{one!r} lies on {other!r}"
