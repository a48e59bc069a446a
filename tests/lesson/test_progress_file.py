"""Progress on the disk: what a line holds, who may write at once, and what may go wrong."""

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from lesson import CheckFailed, cells, progress, progress_file
from lesson.exercises import EXERCISES, PREDICTIONS
from lesson.progress_file import earlier, keep, read
from lesson.question import Question
from tests.lesson.examples import EXERCISE, PREDICTION, running_sum
from tests.tools.test_make import bound_by_rights
from tools import notebooks

COMES_ONCE = "Your progress is not kept, because "


@pytest.fixture(autouse=True)
def example(monkeypatch):
    monkeypatch.setitem(EXERCISES, "99.1", EXERCISE)
    monkeypatch.setitem(PREDICTIONS, "99.p1", PREDICTION)


def lines(path):
    """The lines of a file, each of which has to be whole."""
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def said(entry):
    return {name: value for name, value in entry.items() if name not in ("version", "time")}


def stub(x):
    raise NotImplementedError


def over_the_channels(x):
    return x.cumsum(dim=-1)


def other(x):
    return x.cumsum(dim=1) * 1.5


# ---------------------------------------------------------------- what is kept


def test_every_check_and_every_answer_becomes_a_line(kept):
    cells.check("99.1", stub)
    for wrong in (over_the_channels, other):
        with pytest.raises(CheckFailed):
            cells.check("99.1", wrong)
    cells.check("99.1", running_sum)
    cells.predict("99.p1")
    cells.predict("99.p1", "a")
    cells.predict("99.p1").buttons["b"].click()
    check = {"notebook": "99", "id": "99.1", "kind": "check"}
    predict = {"notebook": "99", "id": "99.p1", "kind": "predict"}
    assert [said(line) for line in lines(kept)] == [
        check | {"status": "not attempted"},
        check | {"status": "failed", "mistake": "over the channels"},
        check | {"status": "failed"},
        check | {"status": "passed"},
        predict | {"status": "wrong", "answer": "a"},
        predict | {"status": "right", "answer": "b"},
    ]


def test_a_line_has_a_version_and_the_time_in_utc(kept):
    before = time.time()
    keep("03.1", "check", "passed")
    (line,) = lines(kept)
    assert line["version"] == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", line["time"])
    os.environ["TZ"], zone = "UTC", os.environ.get("TZ")
    try:
        time.tzset()
        told = time.mktime(time.strptime(line["time"], "%Y-%m-%dT%H:%M:%SZ"))
    finally:
        os.environ.pop("TZ") if zone is None else os.environ.update(TZ=zone)
        time.tzset()
    assert before - 2 <= told <= time.time() + 1  # whole seconds, of a coarser clock


def test_nothing_about_the_person_the_machine_or_the_code_is_kept(kept):
    def my_secret_function(x):
        return x * 98765

    with pytest.raises(CheckFailed):
        cells.check("99.1", my_secret_function)
    text = kept.read_text()
    for private in ("secret", "98765", os.uname().nodename, str(os.getpid()), str(kept.parent)):
        assert private not in text
    assert set(lines(kept)[0]) == {"version", "time", "notebook", "id", "kind", "status"}


def test_what_is_kept_is_read_again(kept):
    name = 'e⁰ = “1” \\ "no"'
    keep("99.1", "check", "failed", mistake=name)
    keep("99.p1", "predict", "right", answer="b")
    (first, second), broken, _ = read(kept)
    assert (first.id, first.status, first.mistake) == ("99.1", "failed", name)
    assert (second.kind, second.answer, second.mistake) == ("predict", "b", "")
    assert broken == [] and len(lines(kept)) == 2


# ---------------------------------------------------------------- where


def test_it_lies_in_work_of_this_project_unless_another_place_is_named(monkeypatch):
    monkeypatch.delenv("ATTENTION_PROGRESS")
    assert progress_file.place() == notebooks.WORK / "progress.jsonl"
    monkeypatch.setenv("ATTENTION_PROGRESS", "~/mine.jsonl")
    assert str(progress_file.place()) == os.path.expanduser("~/mine.jsonl")
    monkeypatch.setenv("ATTENTION_PROGRESS", "0")
    assert progress_file.place() is None


def test_0_switches_it_off(kept, monkeypatch, capsys):
    keep("99.p1", "predict", "wrong", answer="a")
    before = kept.read_bytes()
    monkeypatch.setenv("ATTENTION_PROGRESS", "0")
    monkeypatch.chdir(kept.parent)
    cells.check("99.1", running_sum)
    cells.predict("99.p1", "b")
    assert "earlier" not in str(cells.predict("99.p1"))
    assert capsys.readouterr().out.startswith("✓ 99.1"), "nothing else is said"
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert kept.read_bytes() == before


def test_tests_and_refresh_keep_nothing_whatever_a_learner_has_set(monkeypatch):
    assert progress_file.place() is None, "tests/plugin.py has switched it off"
    monkeypatch.setattr(os, "environ", {"ATTENTION_PROGRESS": "/somewhere/mine.jsonl"})
    notebooks.one_environment()
    assert progress_file.place() is None


# ---------------------------------------------------------------- several kernels, and a kill

WRITER = """
import sys
sys.path.insert(0, "lesson")  # by itself, without torch: it is there at once
import progress_file
from progress_file import keep
if sys.argv[3:]:
    progress_file.fcntl = None
print("ready", flush=True)
sys.stdin.readline()
for i in range(int(sys.argv[2])):
    assert keep("03.1", "check", "failed", mistake=f"{sys.argv[1]} {i} " + "x" * 150) == ""
    print(i, flush=True)
"""


def start_writer(name, times, *without_locks):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, name, str(times), *without_locks],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=notebooks.ROOT,
    )  # fmt: skip
    assert writer.stdout.readline() == "ready\n"
    return writer


@pytest.mark.parametrize("without_locks", [(), ("without locks",)])
def test_two_kernels_may_write_at_once(kept, without_locks):
    writers = [start_writer(name, 500, *without_locks) for name in ("one", "two")]
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    log = read(kept)
    assert log.broken == []
    if not without_locks:  # otherwise an empty line may have come in
        assert len(lines(kept)) == 1000
    met = [entry.mistake.split()[:2] for entry in log.entries]
    for name in ("one", "two"):
        assert [int(i) for who, i in met if who == name] == list(range(500)), "all, in order"


def test_a_lock_that_is_never_released_holds_up_a_check_for_a_moment_only(kept):
    keep("99.1", "check", "failed")
    with open(kept) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        start = time.monotonic()
        assert keep("99.1", "check", "passed") == ""
        assert 0.1 <= time.monotonic() - start < 5
    assert len(lines(kept)) == 2


def test_a_disk_without_locks_does(kept, monkeypatch):
    def fails(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(progress_file.fcntl, "flock", fails)
    assert keep("99.1", "check", "passed") == "" and len(lines(kept)) == 1
    monkeypatch.setattr(progress_file, "fcntl", None)  # Windows
    assert keep("99.1", "check", "passed") == "" and len(lines(kept)) == 2


def test_a_kernel_that_is_killed_while_it_writes_loses_nothing_that_was_written(kept):
    writer = start_writer("killed", 1_000_000)
    writer.stdin.write("\n")
    writer.stdin.flush()
    for _ in range(300):
        last = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    more = writer.communicate()[0].split("\n")[:-1]
    last = int(more[-1]) if more else last
    log = read(kept)
    assert len(log.entries) > last and len(log.broken) <= 1
    told = [int(entry.mistake.split()[1]) for entry in log.entries]
    assert told == list(range(len(told)))
    keep("99.1", "check", "passed")
    assert read(kept).entries[-1].id == "99.1" and len(read(kept).entries) == len(told) + 1


@pytest.mark.parametrize("cut", [1, 20, -2, -1])
def test_a_line_that_was_cut_off_damages_no_other(kept, cut):
    for status in ("failed", "passed"):
        keep("99.1", "check", status)
    whole = kept.read_bytes()
    first = whole.index(b"\n") + 1
    kept.write_bytes(whole[:first] + whole[first:][:cut])
    keep("99.p1", "predict", "right", answer="b")
    keep("99.p1", "predict", "wrong", answer="a")
    log = read(kept)
    is_whole = cut == -1  # but for its line end
    assert [entry.status for entry in log.entries] == [
        "failed", *["passed"] * is_whole, "right", "wrong",
    ]  # fmt: skip
    assert log.broken == [2][is_whole:]


# ---------------------------------------------------------------- broken files


RIGHT = {
    "version": 1, "notebook": "03", "id": "03.1", "kind": "check", "status": "passed",
}  # fmt: skip
BROKEN = {
    "no JSON": b"hello",
    "another JSON": b'["version", 1]',
    "a number": b"1",
    "zeros": b"\0\0\0\0",
    "no UTF-8": b'{"version": 1, "id": "\xff\xfe"}',
    "deep": b"[" * 100_000,
    "a long number": b"9" * 10_000,
    "nothing in it": b"{}",
} | {
    f"{name} {value}": json.dumps(RIGHT | {name: value}).encode()
    for name, value in [
        ("version", 2),
        ("version", []),
        ("kind", "exam"),
        ("kind", []),
        ("status", "right"),
        ("id", 3.1),
        ("notebook", "04"),
        ("mistake", ["a"]),
        ("mistake", "a" * 200),
        ("mistake", "\ud800"),
        ("time", "now\x1b[31m"),
    ]
}


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_skipped_and_named(kept, line):
    keep("99.1", "check", "failed")
    with open(kept, "ab") as file:
        file.write(b"\n" + line + b"\r\n \n")  # empty lines are no fault
    keep("99.p1", "predict", "right", answer="b")
    log = read(kept)
    assert [entry.id for entry in log.entries] == ["99.1", "99.p1"]
    assert log.broken == [3]
    assert earlier("99.p1") == "b"


def test_a_file_that_an_editor_on_windows_has_saved_is_read(kept):
    keep("99.1", "check", "failed")
    keep("99.1", "check", "passed")
    kept.write_bytes(b"\xef\xbb\xbf" + kept.read_bytes().replace(b"\n", b"\r\n"))
    assert [entry.status for entry in read(kept).entries] == ["failed", "passed"]


def test_a_file_that_is_not_there_is_empty_and_a_device_is_refused(tmp_path):
    assert read(tmp_path / "none") == ([], [], 0)
    with pytest.raises(OSError, match="no ordinary file"):
        read(type(tmp_path)("/dev/zero"))
    with pytest.raises(OSError, match="ordinary"):
        read(tmp_path)


def test_of_a_very_large_file_the_end_is_read(kept, capsys):
    keep("99.1", "check", "failed")
    keep("99.p1", "predict", "right", answer="b")
    line = kept.read_bytes().splitlines(keepends=True)[0]
    kept.write_bytes(line * (progress_file.MOST_BYTES // len(line) + 10) + kept.read_bytes())
    log = read(kept)
    assert not log.broken and log.left_out and earlier("99.p1") == "b"
    assert len(log.entries) == (kept.stat().st_size - log.left_out) // len(line)
    assert "its first 0 MB were left out" in str(progress())


# ---------------------------------------------------------------- what cannot be written


def test_a_pipe_and_a_link_to_nothing_are_told(kept, capsys, monkeypatch):
    os.mkfifo(kept)
    assert "cannot be written" in keep("99.1", "check", "failed")
    kept.unlink()
    kept.symlink_to(kept.parent / "gone" / "p.jsonl")
    monkeypatch.setattr(progress_file, "_told", False)
    assert "is a link to " in keep("99.1", "check", "failed")


def test_a_setting_of_spaces_is_none(monkeypatch):
    monkeypatch.setenv("ATTENTION_PROGRESS", "  ")
    assert progress_file.place() == notebooks.WORK / "progress.jsonl"


def answers(capsys):
    """Check and predict, right and wrong, and what is said about progress in all of that."""
    assert cells.check("99.1", running_sum) is running_sum
    passed = capsys.readouterr().out
    assert "✓ 99.1 Running sum: two shapes" in passed
    with pytest.raises(CheckFailed, match="over the channels"):
        cells.check("99.1", over_the_channels)
    in_code = str(cells.predict("99.p1", "b"))
    assert "✓ Right: 0.1 has no" in in_code
    question = cells.predict("99.p1")
    question.buttons["a"].click()
    assert "✗ In decimals it is." in question.shown_feedback.value
    everything = [passed, capsys.readouterr().out, in_code, question.shown_feedback.value]
    everything = " ".join("".join(everything).split())  # lines are wrapped
    assert everything.count(COMES_ONCE) <= 1
    found = re.search(f"{COMES_ONCE}[^✓✗<]*", everything)
    return found[0].strip() if found else ""


def test_a_missing_folder_is_told_once_and_the_check_goes_on(kept, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_PROGRESS", str(kept.parent / "gone" / "p.jsonl"))
    said = answers(capsys)
    assert said.startswith(f"{COMES_ONCE}there is no folder") and "gone: make it, or set" in said
    assert answers(capsys) == ""
    assert not (kept.parent / "gone").exists()


def test_a_full_disk_is_told(kept, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_PROGRESS", "/dev/full")
    assert answers(capsys) == f"{COMES_ONCE}the disk is full: free some disk space."


def test_a_disk_that_is_full_in_the_middle_of_a_line_is_told(kept, monkeypatch, capsys):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:9]))
    assert answers(capsys) == f"{COMES_ONCE}the disk is full: free some disk space."
    monkeypatch.setattr(os, "write", write)
    keep("99.1", "check", "passed")
    log = read(kept)
    assert [entry.status for entry in log.entries] == ["passed"] and len(log.broken) == 4


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "you have no right to write"),
        (OSError(errno.EROFS, "Read-only file system"), "you have no right to write"),
        (OSError(errno.EIO, "Input/output error"), 'cannot be written ("Input/output error")'),
        (ZeroDivisionError("surprise"), "has a bug (ZeroDivisionError: surprise)"),
    ],
)
def test_no_error_spoils_a_check_or_a_prediction(kept, monkeypatch, capsys, error, says):
    def fails(*_):
        raise error

    monkeypatch.setattr(os, "open", fails)
    said = answers(capsys)
    assert says in said and said.endswith(".")


def test_a_folder_without_the_right_to_write_is_told(kept):
    folder = kept.parent / "readonly"
    folder.mkdir(mode=0o555)
    code = (
        "import sys; sys.path.insert(0, 'lesson')\n"
        "from progress_file import keep\n"
        "print([keep('99.1', 'check', 'passed') for _ in range(2)])"
    )
    told = subprocess.check_output(
        [sys.executable, "-c", code], text=True, cwd=notebooks.ROOT, preexec_fn=bound_by_rights,
        env={**os.environ, "ATTENTION_PROGRESS": str(folder / "p.jsonl")},
    )  # fmt: skip
    assert told.startswith(f"['{COMES_ONCE}you have no right to write {folder}/p.jsonl: get")
    assert told.endswith("or set ATTENTION_PROGRESS=0 to do without.', '']\n")


def test_a_file_that_cannot_be_read_shows_no_earlier_answer(kept):
    kept.mkdir()
    assert earlier("99.p1") == ""
    assert "earlier" not in str(cells.predict("99.p1"))


# ---------------------------------------------------------------- the earlier answer


@pytest.mark.slow
def test_after_a_restart_a_prediction_shows_the_earlier_answer(kept):
    cells.predict("99.p1", "b")
    cells.predict("99.p1", "a")
    keep("00.p1", "predict", "right", answer="b")
    code = (
        "from lesson import cells, PREDICTIONS\n"
        "from tests.lesson.examples import PREDICTION\n"
        "PREDICTIONS['99.p1'] = PREDICTION\n"
        "print(cells.predict('99.p1'))"
    )
    text = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=notebooks.ROOT)
    assert "Your answer on an earlier run: a) yes\n✗ In decimals it is." in text
    assert text.endswith('Answer with a button, or in code: predict("99.p1", "…")\n')


def test_the_earlier_answer_is_marked_and_the_buttons_stay_usable():
    answered = []
    question = Question(PREDICTION, earlier="a", keep=lambda letter: answered.append(letter) or "")
    shown = question.shown_feedback
    assert "Your answer on an earlier run: a) yes" in shown.value and "✗ In decimals" in shown.value
    assert [button.icon for button in question.buttons.values()] == ["times", ""]
    assert not any(button.disabled for button in question.buttons.values()) and answered == []
    question.buttons["b"].click()
    assert "✓ Right:" in shown.value and "earlier" not in shown.value + str(question)
    assert [button.icon for button in question.buttons.values()] == ["", "check"]
    assert answered == ["b"]


@pytest.mark.parametrize("earlier", ["", "z", "<b>"])
def test_an_earlier_answer_that_is_no_choice_any_more_is_not_shown(earlier):
    question = Question(PREDICTION, earlier=earlier)
    assert str(question) == str(Question(PREDICTION))
    assert question.shown_feedback.value == ""


def test_an_answer_in_code_stands_alone(kept):
    cells.predict("99.p1", "a")
    text = str(cells.predict("99.p1", "b"))
    assert "earlier" not in text and "Your answer: b)" in text
