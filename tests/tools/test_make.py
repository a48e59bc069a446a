"""Make and the tools behind it, in a small copy of the project with a Python that only pretends.

The pretended Python makes a .venv and "installs" at once, and writes down what it was asked. The
real install is tried by tools/try_install.sh, which takes minutes.
"""

import ctypes
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import notebooks

pytestmark = [
    pytest.mark.skipif(not shutil.which("make"), reason="needs make"),
    pytest.mark.slow,  # a hundred starts of make, which few changes touch
]

PRETEND = r"""#!/bin/sh
echo "$*" | tr '\n' ' ' >> "$PRETEND/calls"; echo >> "$PRETEND/calls"
case "$*" in
*"sys.version_info"*) cat "$PRETEND/version"; grep -q '^3\.1[1-9]' "$PRETEND/version" ;;
"-m venv .venv")
    [ -f "$PRETEND/no-venv" ] && { echo "ensurepip is not available."; exit 1; }
    [ -f "$PRETEND/venv-hangs" ] && { : > "$PRETEND/hanging"; exec sleep 30; }
    mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
"-m pip"*)
    [ -f "$PRETEND/pip-hangs" ] && { : > "$PRETEND/hanging"; exec sleep 30; }
    [ -f "$PRETEND/pip-edits" ] && { sleep 0.02; touch requirements.txt; sleep 0.02; }
    [ -f "$PRETEND/pip-fails" ] && { echo "ERROR: No matching distribution for torch"; exit 1; }
    exit 0 ;;
esac
"""


class Project:
    """A copy of what make needs, with a pretended Python."""

    def __init__(self, folder: Path):
        self.folder, self.pretend = folder / "the project", folder / "pretend"
        self.before_start: Callable[[], object] | None = None  # runs in make's process
        self.folder.mkdir(parents=True)
        self.pretend.mkdir()
        for name in ("Makefile", "requirements.txt", "pyproject.toml"):
            shutil.copy(notebooks.ROOT / name, self.folder / name)
        shutil.copytree(
            notebooks.ROOT / "tools", self.folder / "tools", ignore=lambda *_: ["__pycache__"]
        )
        self.python = folder / "python3"
        self.python.write_text(PRETEND)
        self.python.chmod(self.python.stat().st_mode | stat.S_IXUSR)
        self.says("version", "3.12.1")

    def says(self, name: str, text: str = "") -> None:
        (self.pretend / name).write_text(text)

    def forgets(self, name: str) -> None:
        (self.pretend / name).unlink()

    def calls(self, what: str = "") -> list[str]:
        """What the pretended Python was asked since the last look, where it contains ``what``."""
        path = self.pretend / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [line.strip() for line in lines if what in line]

    def start(self, *arguments: str, **settings: str) -> subprocess.Popen:
        # Nothing of a make that runs these tests, such as its N=60.
        kept = ("PATH", "HOME", "LANG", "TMPDIR")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        settings = {"PYTHON": str(self.python), **settings}
        return subprocess.Popen(
            ["make", *arguments, *(f"{k}={v}" for k, v in settings.items())],
            cwd=self.folder,
            env={**environment, "PRETEND": str(self.pretend)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=self._before_start,
        )

    def _before_start(self) -> None:
        # A test run in the background ignores Ctrl-C, and would hand that on.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if self.before_start:
            self.before_start()

    def make(self, *arguments: str, **settings: str) -> tuple[int, str, list[str]]:
        """Run make; returns its exit code, its stdout, and its stderr without make's own line."""
        running = self.start(*arguments, **settings)
        out, err = running.communicate(timeout=30)
        own = re.compile(r"^make(\[\d+\])?: ")
        return running.returncode, out, [line for line in err.splitlines() if not own.match(line)]


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def one_sentence(lines: list[str], *parts: str) -> bool:
    """Whether this is one line that ends as a sentence and holds all parts."""
    return len(lines) == 1 and lines[0].endswith(".") and all(part in lines[0] for part in parts)


def test_help_lists_every_target(project):
    text = (project.folder / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split()) - {"FORCE"}
    code, out, err = project.make()
    assert (code, err) == (0, [])
    assert set(re.findall(r"^  ([\w-]+)", out, re.MULTILINE)) == targets
    assert project.make("help")[1] == out
    assert project.calls() == []


def test_the_first_make_installs_the_second_starts_at_once(project):
    assert project.make("lab", LAB_ARGS="--no-browser --port 8899")[0] == 0
    calls = project.calls()
    assert "-m pip install" in " ".join(calls) and "-r requirements.txt -e ." in " ".join(calls)
    assert calls[-1] == "-m tools.lab --no-browser --port 8899"
    assert project.make("lab")[0] == 0
    assert project.calls() == ["-m tools.lab"]


def test_an_edit_while_pip_installs_is_installed_by_the_next_make(project):
    project.says("pip-edits")
    assert project.make("lab")[0] == 0
    assert project.calls("-m pip install")
    project.forgets("pip-edits")
    assert project.make("lab")[0] == 0
    assert project.calls("-m pip install")


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
@pytest.mark.parametrize("target", ["lab", "test"])
def test_an_edit_of_the_requirements_installs_again(project, name, target):
    project.make("lab")
    project.calls()
    (project.folder / name).touch()
    project.make(target)
    calls = project.calls()
    assert any("-m pip install" in call for call in calls)
    assert not any("-m venv" in call for call in calls)
    project.make(target)
    assert project.calls("-m pip") == []


def test_test_runs_nbval_strictly_over_notebooks_and_tests(project):
    project.make("test", TEST_ARGS="-x")
    last = project.calls()[-1]
    strictly = "-m pytest --nbval --nbval-current-env --nbval-cell-timeout=60"
    assert last.startswith(strictly) and last.endswith("-m not slow -x notebooks tests")
    assert not (project.folder / "work").exists()


def test_test_all_runs_the_tests_then_the_slow_ones_then_notebooks_on_two_threads(project):
    (project.folder / "notebooks").mkdir()
    for name, source in {"00_a": "1", "01_b": "torch.set_num_threads(1)", "02_c": "2"}.items():
        (project.folder / f"notebooks/{name}.ipynb").write_text(source)
    project.make("lab")
    project.calls()
    project.make("test-all")
    first, second, third = project.calls("-m pytest")
    assert "-m not slow" in first and second.endswith("-m slow tests")
    assert "--nbval " in third and "--numprocesses=1" in third
    assert third.endswith(" notebooks/00_a.ipynb notebooks/02_c.ipynb")  # 01 takes one thread
    for target, its in {"test-slow": second, "test-two-threads": third}.items():
        project.make(target)
        assert project.calls("-m pytest") == [its]


def test_mutants_installs_what_makes_them_and_hands_on_number_and_seed(project):
    project.make("mutants", N="5", SEED="3")
    calls = project.calls()
    assert "-e .[dev]" in " ".join(calls) and calls[-1] == "-m tools.mutants 5 3"
    project.make("mutants")
    assert project.calls() == ["-m tools.mutants 60"]


def test_report_hands_on_what_it_is_told(project):
    told = {"NB": "05", "SINCE": "2026-01-31", "ROSTER": "the class.csv", "CSV": "o ut.csv"}
    project.make("report", FROM="handed in", OUT="the page.html", NAMES="0", **told)
    said = "--nb=05 --since=2026-01-31 --roster=the class.csv --csv=o ut.csv --out=the page.html"
    assert project.calls()[-1] == f"-m tools.report --no-names {said} -- handed in"
    project.make("report", FROM="handed in")
    said = "--nb= --since= --roster= --csv= --out="
    assert project.calls() == [f"-m tools.report {said} -- handed in"]


def test_check_upgrade_hands_on_the_packages_that_are_named(project):
    project.make("check-upgrade", PKG="torch==2.15.0 numpy")
    assert project.calls()[-1] == "-m tools.check_upgrade torch==2.15.0 numpy"
    project.make("check-upgrade")
    assert project.calls() == ["-m tools.check_upgrade"]


def test_torch_comes_first_from_its_own_index_where_one_is_named(project):
    project.make("lab", TORCH_INDEX="https://torch.example/cpu")
    first, second = project.calls("-m pip install")
    assert first.endswith("--no-deps --index-url https://torch.example/cpu torch==2.13.0")
    assert "--index-url" not in second


def test_no_python_ends_in_one_sentence(project):
    code, _, err = project.make("lab", PYTHON="/no/such/python3")
    assert code and one_sentence(err, "/no/such/python3 does not run", "install it")
    assert not (project.folder / ".venv").exists()
    assert project.make("lab")[0] == 0


def test_an_old_python_ends_in_one_sentence(project):
    project.says("version", "3.8.18")
    code, _, err = project.make("test")
    assert code and one_sentence(err, "Python 3.11 or newer is needed", "is Python 3.8.18")
    assert not (project.folder / ".venv").exists()


def test_a_python_without_venv_ends_in_one_sentence(project):
    project.says("no-venv")
    code, _, err = project.make("lab")
    assert code and one_sentence(err, "ensurepip is not available", "apt install python3-venv")
    project.forgets("no-venv")
    assert project.make("lab")[0] == 0


def test_a_failed_install_ends_in_one_sentence_and_the_next_make_goes_on(project):
    project.says("pip-fails")
    code, _, err = project.make("lab")
    assert code and one_sentence(err, "ERROR: No matching distribution for torch", "network")
    assert (project.folder / ".venv/install.log").read_text().startswith("ERROR")
    assert project.make("lab")[0]
    project.forgets("pip-fails")
    project.calls()
    assert project.make("lab")[0] == 0
    assert project.calls("-m venv") == []


def test_failed_dev_tools_leave_the_rest_usable(project):
    project.make("lab")
    project.says("pip-fails")
    assert project.make("lint")[0]
    project.calls()
    assert project.make("lab")[0] == 0
    assert project.calls("-m pip") == []
    project.forgets("pip-fails")
    assert project.make("lint")[0] == 0
    assert "-e .[dev]" in " ".join(project.calls("-m pip"))
    project.make("lint")
    assert project.calls("-m pip") == []


def stopped(project: Project, how: signal.Signals, *arguments: str, **settings: str) -> list[str]:
    """Run make, stop it as a terminal does once a program hangs; returns what it said then."""
    running = project.start(*arguments, **settings)
    while not (project.pretend / "hanging").exists():
        assert running.poll() is None, "make ended before it installed anything"
        time.sleep(0.01)
    os.killpg(running.pid, how)
    _, err = running.communicate(timeout=30)
    assert running.returncode
    return [line for line in err.splitlines() if line and not line.startswith("make")]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize(
    ("target", "hangs"), [("lab", "venv-hangs"), ("lab", "pip-hangs"), ("lint", "pip-hangs")]
)
def test_after_an_interrupted_install_the_next_make_starts_anew(project, how, target, hangs):
    if target == "lint":
        project.make("lab")
        project.calls()
    project.says(hangs)
    said = stopped(project, how, target)
    if how == signal.SIGINT:
        assert one_sentence(said, "interrupted", "run the same make command again")
    project.forgets(hangs)
    project.calls()
    code, out, err = project.make("lab")
    assert (code, err) == (0, [])
    assert "interrupted: starting .venv anew" in out
    assert len(project.calls("-m venv .venv")) == 1


def test_a_moved_project_installs_anew(project):
    project.make("lab")
    project.folder = project.folder.rename(project.folder.with_name("moved"))
    project.calls()
    code, out, _ = project.make("lab")
    assert code == 0 and "made in another folder" in out
    assert len(project.calls("-m venv .venv")) == 1


@pytest.mark.parametrize("state", ["ready", "incomplete"])
def test_a_venv_whose_python_is_gone_is_made_anew(project, state):
    if state == "incomplete":
        project.says("pip-fails")
    project.make("lab")
    (project.pretend / "pip-fails").unlink(missing_ok=True)
    (project.folder / ".venv/bin/python").unlink()
    project.calls()
    assert project.make("lab")[0] == 0
    assert len(project.calls("-m venv .venv")) == 1


def test_a_venv_that_someone_else_made_stays(project):
    mine = project.folder / ".venv/bin/python"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    code, _, err = project.make("lab")
    assert code and one_sentence(err, "did not make", "move it away")
    assert mine.read_text() == "mine"


def test_clean_keeps_the_learners_work(project):
    project.make("lab")
    mine = project.folder / "work/__pycache__/mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert project.make("clean")[0] == 0
    assert mine.read_text() == "mine"
    assert not (project.folder / ".venv").exists()


def bound_by_rights():
    """Root may write anywhere. Take that from the process that is about to start (Linux)."""
    if os.geteuid() == 0:
        for capability in (1, 2):  # DAC_OVERRIDE, DAC_READ_SEARCH
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def no_room():
    """Let every write to a file fail, as on a full disk, in the process that is about to start."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.parametrize(
    "target",
    ["lab", "format", "clean"]
    + [pytest.param(t, marks=pytest.mark.slow) for t in ("fresh", "test", "lint", "refresh")],
)
def test_who_cannot_write_here_is_told_before_anything_is_touched(project, target):
    project.make("lint")
    (project.folder / ".venv/ready").write_text("/another/folder")  # make would start .venv anew
    before = sorted((project.folder / ".venv").rglob("*"))
    folders = [project.folder, *(path for path in project.folder.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    project.before_start = bound_by_rights
    code, _, err = project.make(target)
    for folder in folders:
        folder.chmod(0o755)
    assert code and one_sentence(err, "You cannot write in", str(project.folder), "folder of your")
    assert sorted((project.folder / ".venv").rglob("*")) == before


def test_format_by_who_cannot_write_here_is_told(project):
    project.make("lint")
    project.calls()
    project.folder.chmod(0o555)
    project.before_start = bound_by_rights
    code, _, err = project.make("format")
    project.folder.chmod(0o755)
    assert code and one_sentence(err, "You cannot write in")
    assert project.calls("ruff") == []


@pytest.mark.parametrize("target", ["lab", "clean"])
def test_a_part_of_venv_that_cannot_be_removed_is_told_once(project, target):
    project.make("lab")
    (project.folder / ".venv/ready").write_text("/another/folder")
    theirs = project.folder / ".venv/lib"
    theirs.mkdir()
    for name in "abc":
        (theirs / name).touch()
    theirs.chmod(0o555)
    project.before_start = bound_by_rights
    code, _, err = project.make(target)
    theirs.chmod(0o755)
    assert code and one_sentence(err, "can be removed", "get the right to write there")
    assert project.make("lab")[0] == 0


@pytest.mark.parametrize("target", ["lab", "lint"])
def test_a_full_disk_is_told_and_what_was_ready_stays(project, target):
    project.make("lab")
    (project.folder / "requirements.txt").touch()
    project.before_start = no_room
    code, _, err = project.make(target)
    assert code and one_sentence(err, "Nothing can be written to .venv", "free some disk space")
    project.before_start = None
    project.calls()
    assert project.make(target)[0] == 0
    assert project.calls("-m venv") == []


@pytest.mark.parametrize("target", ["lab", "lint"])
def test_a_disk_that_is_full_at_the_end_does_not_count_as_installed(project, target):
    project.make("lab")
    if target == "lab":
        (project.folder / "requirements.txt").touch()
    blocked = project.folder / ".venv/here"
    blocked.mkdir()  # the last file of an install cannot be written
    code, _, err = project.make(target)
    assert code and one_sentence(err, "disk is full", "run the same make command again")
    blocked.rmdir()
    project.calls()
    assert project.make(target)[0] == 0
    calls = " ".join(project.calls())
    assert "-m pip" in calls and "-m venv" not in calls


def test_clean_leaves_a_venv_that_make_did_not_make(project):
    theirs = project.folder / ".venv/bin/mine"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    code, _, err = project.make("clean")
    assert code and one_sentence(err, "a .venv here that make did not make", "move it away")
    assert theirs.exists()


NPM = """#!/bin/sh
[ -f "$PRETEND/npm-hangs" ] && { : > "$PRETEND/hanging"; exec sleep 30; }
[ -f "$PRETEND/npm-fails" ] && { echo "npm error code E"; echo "npm error getaddrinfo"; exit 1; }
mkdir node_modules && echo "npm $*" >> "$PRETEND/calls"
"""


@pytest.fixture
def with_npm(tmp_path):
    """A PATH on which node and a pretended npm stand first."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, script in [("npm", NPM), ("node", "#!/bin/sh\n")]:
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    return f"{tools}{os.pathsep}{os.environ['PATH']}"


def test_what_comes_from_npm_is_installed_once(project, with_npm):
    path = with_npm
    project.says("npm-fails")
    code, _, err = project.make("lecture", PATH=path)
    assert code and one_sentence(err, "npm could not install (getaddrinfo)", "check the network")
    project.forgets("npm-fails")
    project.calls()
    assert project.make("lecture", PATH=path)[0] == 0
    asked, opened = project.calls()
    assert asked.startswith("npm ci") and opened == "-m tools.lecture"
    assert project.make("lecture", PATH=path)[0] == 0
    assert project.make("site", PATH=path)[0] == 0
    assert project.calls() == ["-m tools.lecture", "-m tools.site"]
    lists = project.folder / "tools/npm/package-lock.json"
    later = time.time() + 10
    os.utime(lists, (later, later))  # as after git pull
    assert project.make("site", PATH=path)[0] == 0
    assert project.calls()[0].startswith("npm ci")


def test_lighthouse_has_packages_of_its_own_that_no_other_target_installs(project, with_npm):
    assert project.make("site", PATH=with_npm)[0] == 0
    assert not (project.folder / ".venv/lighthouse").exists()
    project.calls()
    assert project.make("lighthouse", NB="index", PATH=with_npm)[0] == 0
    installs = (project.folder / ".venv/lighthouse/package.json").read_text()
    assert '"lighthouse": "' in installs and (project.folder / ".venv/lighthouse/ready").exists()
    assert project.calls()[-2:] == ["-m tools.site", "-m tools.lighthouse index"]


def test_site_installs_what_is_missing_and_builds(project, with_npm):
    project.make("site", PATH=with_npm)
    calls = project.calls()
    assert "-e ." in " ".join(calls) and calls[-2].startswith("npm ci")
    assert calls[-1] == "-m tools.site"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_after_an_interrupted_npm_the_next_make_installs_it_anew(project, with_npm, how):
    project.make("lab")
    project.says("npm-hangs")
    interrupted = stopped(project, how, "site", PATH=with_npm)
    if how == signal.SIGINT:
        assert one_sentence(interrupted, "interrupted", "run the same make command again")
    project.forgets("npm-hangs")
    project.calls()
    assert project.make("site", PATH=with_npm)[0] == 0
    asked, built = project.calls()
    assert asked.startswith("npm ci") and built == "-m tools.site"


def links(folder: Path, *but: str) -> Path:
    """Fill a folder with links to the programs that PATH offers, without those named."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for tool in Path(place).glob("*") if Path(place).is_dir() else ():
            # As a shell looks for it: what cannot run hides no program in a later place of PATH.
            runs = tool.is_file() and os.access(tool, os.X_OK)
            if runs and tool.name not in but and not (folder / tool.name).is_symlink():
                (folder / tool.name).symlink_to(tool)
    return folder


@pytest.mark.parametrize("missing", ["npm", "node"])
@pytest.mark.parametrize("first", ["programs", "broken links"])
def test_without_npm_it_says_what_to_install(project, tmp_path, monkeypatch, missing, first):
    if first == "broken links":  # as an uninstalled program leaves them
        broken = tmp_path / "broken"
        broken.mkdir()
        for name in ("awk", "bash", "cat", "grep", "make", "mkdir", "node", "npm", "python3"):
            (broken / name).symlink_to(tmp_path / "uninstalled")
        monkeypatch.setenv("PATH", str(broken), prepend=os.pathsep)
    tools = links(tmp_path / "bin", "npm", "node")
    there = tools / {"npm": "node", "node": "npm"}[missing]
    there.write_text("#!/bin/sh\n")
    there.chmod(0o755)
    code, _, err = project.make("lecture", PATH=str(tools))
    assert code and one_sentence(err, f"{missing} is not installed", "apt install nodejs npm")
    assert not (project.folder / ".venv" / "npm").exists()


def test_slides_opens_the_notebook_that_is_named(project):
    assert project.make("slides", NB="03", LAB_ARGS="--port 8899")[0] == 0
    calls = project.calls()
    assert "-e .[slides]" in " ".join(calls) and calls[-1] == "-m tools.slides.live 03 --port 8899"
