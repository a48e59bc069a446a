"""Which mutants `make mutants` makes, and what it says of them."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

pytest.importorskip("mutmut", reason="make mutants installs it with the other tools for developers")

from tools import mutants
from tools.mutants import Mutant, Verdict


def made_of(source):
    """The texts of all mutants of a source."""
    return {text for place in mutants.places(source) for text in place()}


@pytest.mark.parametrize(
    ("source", "mutant"),
    [
        ("x = a + b", "x = a - b"),
        ("x = a < b", "x = a <= b"),
        ("x = a and b", "x = a or b"),
        ("x = 3", "x = 4"),
        ("x = True", "x = False"),
        ("x = 'key'", "x = 'XXkeyXX'"),
        ("x = f(a, b)", "x = f(b)"),
        ("x = f(a)", "x = f(None)"),
        ("if a:\n    b = c\n", "if not (a):\n    b = c\n"),
        ("while a or b:\n    b = c\n", "while not (a or b):\n    b = c\n"),
        ("x = [i for i in a if b]", "x = [i for i in a if not (b)]"),
        ("raise ValueError", "pass"),
        ("log(a)", "pass"),
    ],
)
def test_a_place_is_changed(source, mutant):
    assert mutant in made_of(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring of 2 lines."""',
        "'docstring'",
        "def f(a: 1 + 2, b: 'Tensor') -> 3: return a",
        "if TYPE_CHECKING:\n    x = 1 + 2\n",
        "class A:\n    def __repr__(self):\n        return str(1)\n",
        "class A:\n    __repr__ = 'str'\n",
        "Labels = str | None",
        "import a  # 1 + 2",
        "def f(): return 'The rows sum to 1.'",
    ],
)
def test_what_changes_nothing_that_runs_is_left_alone(source):
    assert made_of(source) == set()


@pytest.fixture
def project(tmp_path):
    """A project that is a module with a few places, and one test of each kind."""
    for file, text in {
        "helpers/__init__.py": "",
        "attention_clinic/__init__.py": "",
        "attention_clinic/a.py": "own = 1\nrest = 1\nnotebook = 1\nslow = 1\n"
        "def nobody():\n return 1\n",
        "tools/__init__.py": "",
        "notebooks/01_a.ipynb": "",
        "tests/attention_clinic/test_a.py": "import pytest\nfrom attention_clinic import a\n"
        "def test_of_a(): assert a.own == 1\n@pytest.mark.slow\ndef test(): assert a.slow == 1",
        "tests/tools/test_b.py": "from attention_clinic.a import rest\n"
        "def test(): assert rest == 1",
        mutants.SOUND: "import pytest\nfrom attention_clinic.a import notebook\n@pytest.mark.slow\n"
        "@pytest.mark.parametrize('name', ['01_a'])\n"
        "def test_sound_helpers_leave_a_notebook_as_it_is(name): assert notebook == 1",
        "pyproject.toml": "[tool.pytest.ini_options]\n"
        "addopts = '--import-mode=importlib -p no:nbval'\nmarkers = ['slow']\n",
    }.items():
        path = tmp_path / "project" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "project"


def test_the_same_number_and_seed_give_the_same_mutants(project):
    first, places = mutants.choose(4, "7", project)
    assert places == 9, "four assignments, and five numbers"
    assert mutants.choose(4, "7", project) == (first, places)
    assert mutants.choose(3, "7", project)[0] == first[:3]
    assert mutants.choose(4, "41aad03", project)[0] != first


def test_a_mutant_tells_what_was_changed_and_where(project):
    source = (project / "attention_clinic/a.py").read_text().splitlines()
    for mutant in mutants.choose(8, "7", project)[0]:
        changed = [*source]
        assert changed[mutant.line - 1] == mutant.old[0]
        changed[mutant.line - 1] = mutant.new[0]
        assert changed == mutant.text.splitlines() and changed != source
        assert str(mutant).splitlines() == [
            f"attention_clinic/a.py:{mutant.line}",
            f"  - {mutant.old[0]}",
            f"  + {mutant.new[0]}",
        ]


def test_every_place_is_equally_likely_however_many_mutants_it_has(project):
    (project / "attention_clinic/a.py").write_text("x = f(a, b, c, d, e) or 1\n")
    picked = Counter()
    for seed in range(200):
        (mutant,), places = mutants.choose(1, str(seed), project)
        kinds = {"assignment": "x = None", "or": " and ", "number": "or 2"}
        picked[next((kind for kind, new in kinds.items() if new in mutant.text), "call")] += 1
    assert places == 4
    assert all(30 < times < 70 for times in picked.values()), picked


def test_what_python_cannot_read_or_reads_alike_is_no_mutant():
    assert not mutants._differs("x = 1\n", "x = \n")
    assert not mutants._differs("x = 1\n", "x = (1)  # one\n")
    assert mutants._differs("x = 1\n", "x = 2\n")


def test_every_file_has_tests_of_its_own():
    for folder in (*mutants.ROOMS, "tools"):
        for path in (mutants.ROOT / folder).rglob("*.py"):
            for tests in mutants.own_tests(path.relative_to(mutants.ROOT).as_posix()):
                assert (mutants.ROOT / tests).exists(), f"{tests}: tests of {path}"


def test_the_report_names_survivors_and_shares():
    def mutant(file, line):
        return Mutant(file, "", line, ("x = 1",), ("x = 2",))

    text = mutants.report(
        {
            mutant("attention_clinic/a.py", 3): Verdict("own tests", 4),
            mutant("attention_clinic/b.py", 5): Verdict("", 60),
            mutant("helpers/show.py", 7): Verdict("notebooks", 6),
        }
    )
    assert "attention_clinic/b.py:5\n  - x = 1\n  + x = 2\n" in text
    assert "a.py" not in text and "show.py" not in text
    shares = {" ".join(line.split()) for line in text.splitlines()}
    assert {"attention_clinic 1 of 2 50%", "the rest of helpers 1 of 1 100%"} <= shares
    assert {"all 2 of 3 67%", "helpers.pictures –"} <= shares
    assert {"A seen mutant took 5 s (median).", "A surviving mutant took 60 s (median)."} <= shares


def test_the_report_without_survivors_names_none():
    seen = {Mutant("helpers/show.py", "", 7, ("x = 1",), ()): Verdict("notebooks", 6)}
    text = mutants.report(seen)
    assert "Survived" not in text and "x = 1" not in text
    assert "A seen mutant took 6 s (median)." in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "by"),
    [
        ("own = 1", "own = 2", "own tests"),
        ("rest = 1", "rest = 2", "other tests"),
        ("notebook = 1", "notebook = 2", "notebooks"),
        ("slow = 1", "slow = 2", "all own tests"),
        ("return 1", "return 2", ""),
        ("return 1", "while True: pass", ""),
        ("own = 1", "while True: pass", "own tests: too long"),
    ],
)
def test_a_mutant_is_judged_by_what_runs_its_lines(project, tmp_path, monkeypatch, old, new, by):
    monkeypatch.setattr(mutants, "PATIENCE", 3)
    trials = mutants.Trials(tmp_path, project)
    for part in trials.parts():
        trials.sound(part)
    file = project / "attention_clinic/a.py"
    sound = file.read_text()
    line = sound[: sound.index(old)].count("\n") + 1
    changed = Mutant("attention_clinic/a.py", sound.replace(old, new), line, (), ())
    assert trials.judge(changed).by == by
    assert file.read_text() == sound and [path.name for path in tmp_path.iterdir()] == ["project"]


def test_tests_run_from_the_narrowest_on_until_some_are_red(project, tmp_path, monkeypatch):
    trials, ran = mutants.Trials(tmp_path, project), []
    file, own = "attention_clinic/a.py", "tests/attention_clinic/test_a.py"
    trials.seconds = {own: 1.9, "tests/tools/test_b.py": 20.0, "01_a": 9.0, "tests/test_c.py": 8.0}
    trials.ran = {part: {file: {2}} for part in trials.seconds} | {"tests/test_c.py": {file: {3}}}

    def run(tests, copy, limit):
        assert (copy / file).read_text() == "own = 2"
        ran.append((tests, limit))
        return codes.pop(0), ""

    monkeypatch.setattr(trials, "_run", run)
    left_out = [f"--ignore={path}" for path in (*mutants.LEFT_OUT, mutants.LIMITED)]
    four = [
        ([own, "-m", "not slow"], 33),
        (["tests/tools/test_b.py", "-m", "not slow"], 90),
        ([mutants.SOUND, "-k", "sound_helpers and 01_a"], 57),
        (["tests/attention_clinic", *left_out], 144),
    ]
    for returned, by in (
        ([1], "own tests"),
        ([5, 2], "other tests"),
        ([0, 5, None], "notebooks: too long"),
        ([-signal.SIGXCPU], "own tests: too long"),
        ([-signal.SIGKILL], "own tests: too long"),
        ([0, 0, 0, 1], "all own tests"),
        ([0, 0, 0, 0], ""),
    ):
        codes, ran[:] = [*returned], []
        assert trials.judge(Mutant(file, "own = 2", 2, (), ())).by == by
        assert ran == four[: len(returned)]


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (1, {1, 2}),
        (2, {1, 2}),
        (4, {3, 4, 5}),
        (5, {3, 4, 5}),
        (7, {6, 7, 8}),
        (9, {9}),
        (10, {10}),
    ],
)
def test_lines_of_one_statement_run_together(tmp_path, line, lines):
    source = tmp_path / "a.py"
    source.write_text(
        "a = f(1,\n 2)\n@g(\n 1)\ndef h():\n  if (\n   a\n  ):\n    pass\n# a comment\n"
    )
    assert mutants._statement(source, Mutant("a.py", "", line, (), ())) == lines


def test_each_verdict_is_told_and_then_the_report(monkeypatch, capsys):
    made = [Mutant("helpers/a.py", "", n, ("x = 1",), ("x = 2",)) for n in (1, 2)]
    ran = []
    monkeypatch.setattr(sys, "argv", ["mutants", "2", "7"])
    monkeypatch.setattr(mutants, "as_completed", list)  # in order
    monkeypatch.setattr(mutants, "choose", lambda *asked: (made, 50) if asked == (2, "7") else 0)
    monkeypatch.setattr(mutants.Trials, "parts", lambda self: ["01_a", "tests/helpers/test_a.py"])
    monkeypatch.setattr(mutants.Trials, "sound", lambda self, part: ran.append(part))
    verdicts = {1: Verdict("own tests", 4.0), 2: Verdict("", 6.0)}
    monkeypatch.setattr(mutants.Trials, "judge", lambda self, mutant: verdicts[mutant.line])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    mutants.main()
    assert ran == ["01_a", "tests/helpers/test_a.py"]
    assert capsys.readouterr().out.splitlines() == [
        "2 mutants of 50 places: make mutants N=2 SEED=7",
        "Without a mutant all is green (0 s).",
        f"  1  helpers/a.py:1{'':30}    4 s  seen by own tests",
        f"  2  helpers/a.py:2{'':30}    6 s  SURVIVED",
        *mutants.report({m: verdicts[m.line] for m in made}).splitlines(),
        "All in all: 0 min.",
    ]


def started(project, scratch, in_background=False):
    """The tool, run by a project on its own files; in the background a shell ignores Ctrl-C."""
    on_interrupt = signal.SIG_IGN if in_background else signal.SIG_DFL
    for name in ("mutants", "notebooks"):
        (project / f"tools/{name}.py").write_text((mutants.ROOT / f"tools/{name}.py").read_text())
    scratch.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "tools.mutants", "4", "1"],
        cwd=project,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, on_interrupt),
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_reports_and_leaves_nothing_behind(project, tmp_path, how):
    begun = tmp_path / "begun"
    sleeps = (
        f"import pathlib, time\ndef test():\n pathlib.Path({str(begun)!r}).touch(); time.sleep(60)"
    )
    (project / "tests/attention_clinic/test_a.py").write_text(sleeps)
    running = started(project, tmp_path / "scratch", in_background=how == signal.SIGTERM)
    while not begun.exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    running.send_signal(how)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, err) == (0, "")
    assert "Interrupted: 0 of 4 mutants are judged." in out and "all" in out
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.slow
def test_without_a_mutant_all_must_be_green(project, tmp_path):
    (project / "tests/attention_clinic/test_a.py").write_text("def test_of_a(): assert False")
    running = started(project, tmp_path / "scratch")
    _, err = running.communicate(timeout=120)
    assert running.returncode == 1 and "red: mend that first" in err and "test_of_a" in err
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("asked", [["0", "1"], ["x", ""], ["", ""], ["-5", "7"]])
def test_another_number_of_mutants_ends_in_one_sentence(asked, capsys):
    with pytest.raises(SystemExit):
        mutants._asked(*asked)
    assert "give a whole number from 1 on" in capsys.readouterr().err
