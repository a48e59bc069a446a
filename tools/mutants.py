"""Break the project at random places, one at a time, and see whether a test notices.

    make mutants N=60 SEED=7       60 mutants; the same number and seed give the same ones

The seed may be a word, such as a commit's hash.

A mutant is the project with one small change: another operator, number or constant, an argument
that is None or missing, a condition turned round, a statement removed. The changes are those of
mutmut, and two more below. Every place in the rooms and in tools/ that can be changed is equally
likely, and so is every change of that place. Left alone is what changes nothing that runs:
annotations, names of types, docstrings, ``if TYPE_CHECKING``, ``__repr__``. So are strings with a
blank in them: they are prose, and people judge prose.

First every file of tests and every notebook runs without a mutant, and coverage.py notes which
lines it runs. Then each mutant, a copy of the project in a temporary folder, is judged by those
that run the changed lines: the tests of its package, then others, then notebooks. Last come all
tests of its package, with the slow ones, and with those of which coverage.py sees nothing because
their processes are killed. It ends where something fails or takes far too long. What survives is
printed: a reader decides whether a test is missing, or whether the change makes no difference. The
exit code says only whether the tool could run.
"""

import ast
import contextlib
import difflib
import os
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import coverage
import libcst as cst
from mutmut.mutation.mutators import mutation_operators

from tools.notebooks import ROOMS, ROOT, stop

WORKERS = 2
PATIENCE = 30  # seconds, beside three times what the tests take without a mutant
NO_TESTS = 5  # pytest's exit code where all are deselected
MEMORY = 8 * 2**30  # bytes; an endless loop that fills a list ends there
UNUSED = "--snapshot-warn-unused"  # a stored text that no test reads hides no mutant
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "work", "__pycache__", ".*_cache", "*.egg-info"
)
# Where the tests of a file stand, by the beginning of its path; the first that fits.
OWN_TESTS = {
    "attention_base/": ["tests/attention_base"],
    "attention_clinic/": ["tests/attention_clinic"],
    "explorers/": ["tests/explorers"],
    "feedback/": ["tests/feedback", "tests/lesson/answers"],
    "helpers/attention/": ["tests/helpers/attention"],
    "helpers/pictures/": ["tests/helpers/pictures"],
    "helpers/": ["tests/helpers"],
    "lesson/": ["tests/lesson"],
    "tools/": ["tests/tools"],
}
# Left out: what needs a browser or root, and what breaks lines of its own, and would stumble over
# one that is changed already.
LEFT_OUT = ("tests/browser/", "tests/classroom/", "tests/notebooks/test_mutations.py")
LIMITED = "tests/tools/test_mutants.py"  # its slow tests know no limit inside another
SOUND = "tests/notebooks/test_stored_pictures.py"
READS_SOURCES = "tests/test_defaults.py"  # without running them
# Starts coverage.py in every process, also in kernels and in those that tests start.
SITE = "import coverage\ncoverage.process_startup()\n"
SETTINGS = """[run]
parallel = true
concurrency = thread
sigterm = true
disable_warnings = no-data-collected, module-not-imported, module-not-measured, couldnt-parse
data_file = ${COVERED}/data
source = """


@dataclass(frozen=True)
class Mutant:
    """One file with one change: its new text, the first line that differs, and the lines."""

    file: str
    text: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    def __str__(self) -> str:
        removed = [f"  - {line}" for line in self.old]
        added = [f"  + {line}" for line in self.new]
        return "\n".join([f"{self.file}:{self.line}", *removed, *added])


@dataclass(frozen=True)
class Verdict:
    """Who saw a mutant ("" if nobody did), and after how many seconds."""

    by: str
    seconds: float


def places(source: str) -> list[Callable[[], list[str]]]:
    """All places of a source that can be changed: each gives the texts of its mutants."""
    operators = [
        *mutation_operators,
        ((cst.If, cst.While, cst.CompIf), _turned_round),
        ((cst.Expr, cst.Raise), lambda _: [cst.Pass()]),
    ]
    module = cst.parse_module(source)

    def changes(node: cst.CSTNode) -> list[cst.CSTNode]:
        return [new for kind, change in operators if isinstance(node, kind) for new in change(node)]

    def texts(node: cst.CSTNode) -> list[str]:
        return [module.deep_replace(node, new).code for new in changes(node)]

    found = []
    waiting = [module]
    while waiting:
        node = waiting.pop()
        if not _is_for_readers(node):
            if changes(node):
                found.append(partial(texts, node))
            waiting += reversed(node.children)
    return found


def _turned_round(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Negate the condition of an ``if`` or a ``while``, also in a comprehension."""
    condition = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return [node.with_changes(test=cst.UnaryOperation(cst.Not(), condition))]


def _is_for_readers(node: cst.CSTNode) -> bool:
    """Whether a node, with all in it, tells something to people only, or to a type checker."""
    match node:
        case cst.SimpleString():
            return bool(re.search(r"\s", node.value))
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            # The name of a type is CamelCase, as in Labels = str | Sequence[Any].
            return name == "__repr__" or bool(re.fullmatch("[A-Z][A-Za-z]*[a-z]", name))
        case (
            cst.Annotation()
            | cst.BaseParenthesizableWhitespace()
            | cst.EmptyLine()
            | cst.TrailingWhitespace()
            | cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString())
            | cst.If(test=cst.Name(value="TYPE_CHECKING"))
            | cst.FunctionDef(name=cst.Name(value="__repr__"))
        ):
            return True
    return False


def choose(number: int, seed: str, root: Path = ROOT) -> tuple[list[Mutant], int]:
    """Pick so many places at random, and one mutant of each; also tell how many places there are.

    A smaller number gives the first mutants of a larger one.
    """
    chance = random.Random(seed)
    everywhere = [
        (path, place)
        for folder in (*ROOMS, "tools")
        for path in sorted((root / folder).rglob("*.py"))
        for place in places(path.read_text(encoding="utf-8"))
    ]
    chance.shuffle(everywhere)
    picked: list[Mutant] = []
    for path, place in everywhere:
        if len(picked) == number:
            break
        source, text = path.read_text(encoding="utf-8"), chance.choice(place())
        if _differs(source, text):
            picked.append(_mutant(path.relative_to(root).as_posix(), source, text))
    return picked, len(everywhere)


def _differs(source: str, text: str) -> bool:
    """Whether Python can read the text, and reads something else in it than in the source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(text, "mutant", "exec")
        except SyntaxError:
            return False
        return ast.dump(ast.parse(text)) != ast.dump(ast.parse(source))


def _mutant(file: str, source: str, text: str) -> Mutant:
    before, after = source.splitlines(), text.splitlines()
    parts = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changed = [part for part in parts if part[0] != "equal"]
    old = tuple(line for _, i, j, _, _ in changed for line in before[i:j])
    new = tuple(line for _, _, _, i, j in changed for line in after[i:j])
    return Mutant(file, text, changed[0][1] + 1, old, new)


def own_tests(file: str) -> list[str]:
    """The tests of the package that a file belongs to."""
    return next(tests for start, tests in OWN_TESTS.items() if file.startswith(start))


def package(file: str) -> str:
    """The part of the project that a file counts to, as "attention_clinic"."""
    start = next(start for start in OWN_TESTS if file.startswith(start))
    return "the rest of helpers" if start == "helpers/" else start.strip("/").replace("/", ".")


class Trials:
    """Runs tests on copies of the project, and gives up at once when it is told to stop.

    A part is a file of tests, or a notebook by its name, whose cells run as one test.
    """

    def __init__(self, folder: Path, root: Path = ROOT):
        self.folder, self.root = folder, root
        self.stopped = threading.Event()
        self.seconds: dict[str, float] = {}  # that each part takes on the sound project
        self.ran: dict[str, dict[str, set[int]]] = {}  # by part and file: the lines that it runs

    def parts(self) -> list[str]:
        """All parts; the notebooks, which take longest, come first."""
        files = [f.relative_to(self.root).as_posix() for f in self.root.rglob("tests/**/test_*.py")]
        notebooks = sorted(path.stem for path in (self.root / "notebooks").glob("[0-9]*.ipynb"))
        return notebooks + sorted(file for file in files if not file.startswith(LEFT_OUT))

    def sound(self, part: str) -> None:
        """Run a part on the project as it is; remember its time and lines; red ends the tool."""
        with self._copy(None) as copy:
            began = time.monotonic()
            code, log = self._run(_arguments([part]), copy, limit=3600, covered=True)
            self.seconds[part] = time.monotonic() - began
            self.ran[part] = _lines(copy)
        if code not in (0, NO_TESTS) and not self.stopped.is_set():
            raise RuntimeError(f"Without any mutant {part} is red: mend that first.\n{log}")

    def judge(self, mutant: Mutant) -> Verdict:
        """Run what runs the mutant's lines, those of its own package first, until one is red."""
        began = time.monotonic()
        lines, own = _statement(self.root / mutant.file, mutant), tuple(own_tests(mutant.file))
        parts = {part for part, ran in self.ran.items() if lines & ran.get(mutant.file, set())}
        files = {part for part in parts if part.endswith(".py")}
        rest = {file for file in files | {READS_SOURCES} if not file.startswith(own)}
        batches = [("own tests", sorted(files - rest)), ("other tests", sorted(rest & {*self.ran}))]
        batches += [("notebooks", [notebook]) for notebook in sorted(parts - files)]
        runs = [(by, _arguments(batch), batch) for by, batch in batches if batch]
        left_out = [f"--ignore={path}" for path in (*LEFT_OUT, LIMITED)]
        runs.append(("all own tests", [*own, *left_out], [*self.ran]))  # also slow ones
        by = ""
        with self._copy(mutant) as copy:
            for name, tests, known in runs:
                limit = PATIENCE + 3 * int(sum(self.seconds[part] for part in known))
                code, _ = self._run(tests, copy, limit)
                if code not in (0, NO_TESTS):
                    late = code in (None, -signal.SIGXCPU, -signal.SIGKILL)
                    by = f"{name}: too long" if late else name
                    break
        return Verdict(by, time.monotonic() - began)

    @contextlib.contextmanager
    def _copy(self, mutant: Mutant | None) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as folder:
            copy = Path(folder) / "project"
            shutil.copytree(self.root, copy, ignore=NOT_COPIED)
            if mutant:
                (copy / mutant.file).write_text(mutant.text, encoding="utf-8")
            yield copy

    def _run(
        self, tests: list[str], copy: Path, limit: int, covered: bool = False
    ) -> tuple[int | None, str]:
        """Run pytest until the first failure: its exit code (None: too long) and its last lines.

        The limit is one of computing: a busy machine makes no test fail.
        """

        def restrict() -> None:
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

        scratch = copy.parent / "scratch"  # what tests leave behind when they are killed
        scratch.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            # The copy stands before an installed (editable) package of the same name.
            "PYTHONPATH": os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(scratch),
        }
        if covered:
            environment |= _coverage(copy)
        log = copy.parent / "log"
        with log.open("w") as out:
            running = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider", UNUSED, *tests],
                cwd=copy,
                env=environment,
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=restrict,
            )
        end = time.monotonic() + 4 * limit  # where it waits instead of computing
        try:
            while running.poll() is None and time.monotonic() < end:
                if self.stopped.wait(0.05):
                    break
        finally:
            code = running.poll()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        return code, "".join(log.read_text(errors="replace").splitlines(keepends=True)[-40:])


def _arguments(parts: list[str]) -> list[str]:
    """What pytest is told to run: one notebook, or files of tests."""
    if parts[0].endswith(".py"):
        return [*parts, "-m", "not slow"]
    return [SOUND, "-k", f"sound_helpers and {parts[0]}"]


def _coverage(copy: Path) -> dict[str, str]:
    """Prepare that each process notes its lines: what stands in the environment for it."""
    covered = copy.parent / "covered"
    covered.mkdir()
    (covered / "sitecustomize.py").write_text(SITE)
    settings = covered / "settings"
    settings.write_text(SETTINGS + "\n    ".join(str(copy / room) for room in (*ROOMS, "tools")))
    return {
        "COVERED": str(covered),
        "COVERAGE_PROCESS_START": str(settings),
        "COVERAGE_CORE": "ctrace",
        "PYTHONPATH": os.pathsep.join([str(covered), str(copy), os.environ.get("PYTHONPATH", "")]),
    }


def _lines(copy: Path) -> dict[str, set[int]]:
    """The lines of each file that ran in a copy."""
    ran: dict[str, set[int]] = {}
    for path in (copy.parent / "covered").glob("data.*"):
        data = coverage.CoverageData(str(path))
        data.read()
        for file in data.measured_files():
            name = Path(file).relative_to(copy).as_posix()
            ran.setdefault(name, set()).update(data.lines(file) or ())
    return ran


def _statement(path: Path, mutant: Mutant) -> set[int]:
    """The lines of the smallest statement around a mutant's first line, without its body."""
    spans = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            if first <= mutant.line <= last:
                spans.append(range(first, last + 1))
    return {mutant.line, *min(spans, key=len, default=())}


def report(judged: dict[Mutant, Verdict]) -> str:
    """Say which mutants survived, what share was seen of each package, and how long it took."""
    lines = []
    if survivors := [mutant for mutant, verdict in judged.items() if not verdict.by]:
        lines = [
            "",
            "Survived:",
            *(f"{m}" for m in sorted(survivors, key=lambda m: (m.file, m.line))),
        ]
    lines += ["", f"{'':22}seen"]
    packages = [package(f"{start}x") for start in OWN_TESTS]
    for name in packages:
        verdicts = [verdict for mutant, verdict in judged.items() if package(mutant.file) == name]
        lines.append(f"{name:22}{_share(verdicts)}")
    lines.append(f"{'all':22}{_share(judged.values())}")
    for what, seconds in (
        ("seen", [verdict.seconds for verdict in judged.values() if verdict.by]),
        ("surviving", [verdict.seconds for verdict in judged.values() if not verdict.by]),
    ):
        if seconds:
            lines.append(f"A {what} mutant took {statistics.median(seconds):.0f} s (median).")
    return "\n".join(lines)


def _share(verdicts) -> str:
    seen = [bool(verdict.by) for verdict in verdicts]
    return f"{sum(seen):3} of {len(seen):3}  {sum(seen) / len(seen):4.0%}" if seen else "  –"


def main() -> None:
    """Make and judge as many mutants as the command line says, by the seed that it names."""
    number, seed = _asked(*sys.argv[1:])
    began = time.monotonic()
    mutants, count = choose(number, seed)
    print(
        f"{len(mutants)} mutants of {count} places: make mutants N={number} SEED={seed}", flush=True
    )
    judged: dict[Mutant, Verdict] = {}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        trials = Trials(Path(folder))
        pool = ThreadPoolExecutor(WORKERS)
        try:
            list(pool.map(trials.sound, trials.parts()))
            print(f"Without a mutant all is green ({time.monotonic() - began:.0f} s).", flush=True)
            running = {pool.submit(trials.judge, mutant): mutant for mutant in mutants}
            for done in as_completed(running):
                mutant, verdict = running[done], done.result()
                judged[mutant] = verdict
                by = f"seen by {verdict.by}" if verdict.by else "SURVIVED"
                where = f"{mutant.file}:{mutant.line}"
                print(f"{len(judged):3}  {where:44} {verdict.seconds:4.0f} s  {by}", flush=True)
        except KeyboardInterrupt:
            print(f"\nInterrupted: {len(judged)} of {len(mutants)} mutants are judged.")
        except RuntimeError as problem:
            stop(str(problem))
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # what follows takes a moment
            trials.stopped.set()
            pool.shutdown(cancel_futures=True)
    print(report(judged))
    print(f"All in all: {(time.monotonic() - began) / 60:.0f} min.")


def _asked(number: str = "", seed: str = "") -> tuple[int, str]:
    """The number of mutants and the seed (a new one unless it is named)."""
    if not number.isdecimal() or int(number) < 1:
        stop(f"N={number}: give a whole number from 1 on, as in make mutants N=60 SEED=7.")
    return int(number), seed or str(random.randrange(10_000))


if __name__ == "__main__":
    main()
