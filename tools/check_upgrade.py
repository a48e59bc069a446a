"""Run the notebooks with newer packages: ``python -m tools.check_upgrade [torch==2.15.0 ...]``.

A package without a version stands for its newest release; no package at all, for the newest release
of each that requirements.txt pins. They are installed into an environment under build/, which lies
over the one that runs this program and is removed afterwards. Each cell is compared with its stored
outputs as make test compares them. A notebook with a cell that raises runs once more as learners
run it: there, a number at the edge between two roundings may be printed.

The exit code is 0 where no cell changes, and 1 otherwise.
"""

import difflib
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import nbformat

from tools import notebooks
from tools.notebooks import shown, stop
from tools.refresh import WIDGET_VIEW, CellFailed, cell_name, execute, is_ignored

ASKED = re.compile(r"([A-Za-z0-9_.-]+?)(?:==([A-Za-z0-9_.!+-]+))?")
NOT_COMPARED = ("image/png", "image/jpeg", WIDGET_VIEW)  # as nbval
MOST_LINES = 12  # of one cell: the others are counted
WIDTH = 100  # characters of a line
AGAIN = "then run the same command again"


@dataclass(frozen=True)
class Change:
    """A cell that does not give its stored outputs.

    Parameters
    ----------
    where
        The notebook and the cell, in words.
    fails
        Whether it raises, for learners too.
    lines
        What is stored and what it gives now.
    """

    where: str
    fails: bool
    lines: list[str]


# --- What to install, and where ----------------------------------------------------------------


def pins() -> dict[str, str]:
    """The packages of requirements.txt with their versions."""
    text = (notebooks.ROOT / "requirements.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([\w.+-]+)", text, re.MULTILINE))


def wanted(asked: list[str]) -> list[str]:
    """Return the list of requirements.txt, with what is asked for in its place.

    Raises
    ------
    SystemExit
        In one sentence, where the project pins nothing of that name.
    """
    pinned = pins()
    names = {_plain(name): name for name in pinned}
    chosen = {} if asked else dict.fromkeys(pinned, "")
    for text in asked:
        match = ASKED.fullmatch(text)
        if not match:
            stop(
                f"{text} is not a package with a version: write it as in PKG=torch==2.15.0, or "
                "without a version for the newest release."
            )
        if _plain(match[1]) not in names:
            stop(
                f"requirements.txt does not pin {match[1]}: choose from {', '.join(pinned)}, "
                "as in PKG=torch==2.15.0."
            )
        chosen[names[_plain(match[1])]] = f"=={match[2]}" if match[2] else ""
    return [f"{name}{chosen.get(name, f'=={version}')}" for name, version in pinned.items()]


def _plain(name: str) -> str:
    """A package's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def packages_of(prefix: Path) -> Path:
    """The folder of an environment that pip installs into."""
    where = {"base": str(prefix), "platbase": str(prefix)}
    return Path(sysconfig.get_path("purelib", "venv", where))


def make_environment(folder: Path) -> None:
    """Make an environment that also sees the packages of the one that runs this program.

    What is installed into it comes before them, so only what is newer has to be installed.
    """
    with notebooks.writing(folder):
        venv.EnvBuilder(symlinks=True).create(folder)
        below = packages_of(Path(sys.prefix))
        (packages_of(folder) / "below.pth").write_text(f"{below}\n", encoding="utf-8")


def run(folder: Path, arguments: list[str], tell: Callable[[str], object]) -> int:
    """Run an environment's Python in the project; hand each line to ``tell``, return the exit code.

    However this ends, nothing that it started runs on.
    """
    running = subprocess.Popen(
        [folder / "bin/python", *arguments],
        cwd=notebooks.ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(notebooks.ROOT),
            "PYTHONUNBUFFERED": "1",
            # The kernel's description, before one that the user has elsewhere.
            "JUPYTER_PATH": str(Path(sys.prefix, "share/jupyter")),
            "PIP_USER": "0",  # a user's own pip setting that does not go with an environment
            "TMPDIR": str(folder),  # what is half downloaded is removed with the rest
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # Ctrl-C ends this program, which then ends that one
    )
    try:
        for line in running.stdout:
            tell(line.rstrip("\n"))
        return running.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def install(folder: Path, requirements: list[str], log: Path) -> None:
    """Let pip install what is missing; a failure ends in one sentence."""
    options = ["--disable-pip-version-check", "--no-input", "--progress-bar=off", "--retries=1"]
    if not all("==" in line for line in requirements):
        options.append("--upgrade")  # asks the index even where some release is there
    if index := os.environ.get("TORCH_INDEX"):
        options.append(f"--extra-index-url={index}")  # 2.15.0+cpu counts as newer than 2.15.0
    said: list[str] = []

    def tell(line: str) -> None:
        said.append(line)
        if re.search(r"Downloading .* [MG]B\)", line):
            print(f"  {line.strip()}", flush=True)

    code = run(folder, ["-m", "pip", "install", *options, *requirements], tell)
    if code:
        notebooks.write_whole(log, "\n".join(said) + "\n")
        stop(f"{why_pip_failed(said)}; all that pip said is in {shown(log)}.")


def why_pip_failed(said: list[str]) -> str:
    """Say in words why pip could not install, and what to do."""
    text = "\n".join(said)
    if re.search("No space left on device|Disk quota exceeded|File too large", text):
        return (
            f"The disk is full: free some disk space, {AGAIN} (on Linux PyPI's PyTorch takes "
            "about 6 GB, and TORCH_INDEX=https://download.pytorch.org/whl/cpu much less)"
        )
    if "Retrying (" in text:
        return f"The package index cannot be reached: check the network, {AGAIN}"
    if "ResolutionImpossible" in text:
        depends = re.findall(r"^ {4}(\S+ \S+ depends on .+)$", text, re.MULTILINE)
        because = f" ({'; '.join(depends)})" if depends else ""
        return (
            f"These versions do not go together{because}: choose others, or name the packages "
            'in question too, as in PKG="torch numpy"'
        )
    if missing := re.search(r"No matching distribution found for (\S+)", text):
        there = re.search(r"\(from versions: (.*)\)", text)
        newest = there[1].split(", ")[-3:] if there else []
        known = f"the newest are {', '.join(newest)}" if newest != ["none"] else "it has none"
        return (
            f"The package index has no {missing[1]} for Python "
            f"{sys.version_info.major}.{sys.version_info.minor} on this kind of machine: "
            f"choose another release ({known})"
        )
    errors = [line for line in said if line.startswith("ERROR")] or said[-1:]
    return f"pip could not install it ({errors[-1] if errors else 'it said nothing'}): mend that"


def news(folder: Path) -> str:
    """Say what an environment has instead of what is below it; "" where it has nothing."""
    instead, more = [], []
    for new in importlib.metadata.distributions(path=[str(packages_of(folder))]):
        name = new.metadata["Name"]
        try:
            before = importlib.metadata.version(name)
            instead.append(f"{name} {new.version} instead of {before}")
        except importlib.metadata.PackageNotFoundError:
            more.append(name)
    needed = [f"{len(more)} more that this needs"] if more else []
    return ", ".join(sorted(instead) + needed)


# --- In the new environment: run and compare ---------------------------------------------------


def try_all(results: Path) -> None:
    """Run all notebooks; write how many cells were compared, and those that changed, as JSON."""
    notebooks.one_environment()
    cells, changes = 0, []
    for path in notebooks.names():
        count, found = examine(path)
        cells, changes = cells + count, changes + found
        print(f"{path.name}: {_number(count)} compared, {len(found)} changed", flush=True)
    results.write_text(json.dumps([cells, [asdict(change) for change in changes]]))


def examine(path: Path) -> tuple[int, list[Change]]:
    """Run one notebook: how many cells were compared, and which of them changed."""
    old = nbformat.read(path, as_version=4)
    try:
        new = execute(old, path.parent, tolerant=True)
        raising = failing = unexpected(old, new)
        if raising:
            os.environ.pop("ATTENTION_STRICT", None)
            failing = unexpected(old, execute(old, path.parent, tolerant=True))
            notebooks.one_environment()
    except CellFailed as failed:
        return 0, [Change(f"{path.name}, {failed}", True, ["No cell of it is compared."])]
    changes = []
    code = [index for index, cell in enumerate(old.cells) if cell.cell_type == "code"]
    for index in code:
        ignored = is_ignored(old.cells[index]) and index not in raising
        before, now = (said(nb.cells[index].outputs) for nb in (old, new))
        if before != now and not ignored:
            where = f"{path.name}, {cell_name(old, index)}"
            changes.append(Change(where, index in failing, differences(before, now)))
    return len(code), changes


def unexpected(old: nbformat.NotebookNode, new: nbformat.NotebookNode) -> set[int]:
    """The places of the cells that raise now and did not before."""
    return {
        index
        for index, (before, now) in enumerate(zip(old.cells, new.cells, strict=True))
        if "error" in said(now.get("outputs", [])).keys() - said(before.get("outputs", [])).keys()
    }


def said(outputs: list) -> dict[str, str]:
    """All that is compared of a cell's outputs: the text of each kind."""
    texts: dict[str, str] = {}
    for output in outputs:
        if output.output_type == "stream":
            found = {output.name: output.text}
        elif output.output_type == "error":
            found = {"error": f"{output.ename}: {output.evalue}"}
        else:
            found = {kind: f"{text}\n" for kind, text in output.data.items()}
        for kind, text in found.items():
            if kind not in NOT_COMPARED:
                texts[kind] = texts.get(kind, "") + text
    return texts


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Say line by line what was stored and what comes now; HTML only where no text differs."""
    kinds = [kind for kind in before | now if before.get(kind) != now.get(kind)]
    texts = [kind for kind in kinds if kind != "text/html"]
    lines: list[str] = []
    for kind in texts or kinds:
        one, two = (said.get(kind, "").splitlines() for said in (before, now))
        lines.append(f"{kind}:")
        for what, i, j, k, m in difflib.SequenceMatcher(None, one, two, False).get_opcodes():
            if what != "equal":
                start = _parting(one[i], two[k]) if i < j and k < m else 0
                lines += [f"  before: {_cut(line, start)}" for line in one[i:j]]
                lines += [f"  now:    {_cut(line, start)}" for line in two[k:m]]
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"  and {len(lines) - MOST_LINES} more lines"]
    return lines


def _parting(one: str, two: str) -> int:
    """The place where two lines begin to differ."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(two)))


def _cut(line: str, start: int) -> str:
    """The part of a long line that holds a place."""
    if len(line) <= WIDTH:
        return line
    first = max(0, start - WIDTH // 2)
    end = "…" if first + WIDTH < len(line) else ""
    return f"{'…' if first else ''}{line[first : first + WIDTH]}{end}"


# --- The verdict -------------------------------------------------------------------------------


def verdict(cells: int, changes: list[Change]) -> str:
    """Say in words what the change of versions means."""
    if not changes:
        return (
            f"Nothing changed: {_number(cells)} ran, and each gives its stored outputs. Write "
            "the new version into requirements.txt to go over, then make test-all."
        )
    failing = [change for change in changes if change.fails]
    if not failing:
        return (
            f"{len(changes)} of {_number(cells)} changed, none fails. If the new outputs are "
            "right, write the new version into requirements.txt, then make refresh, and read what "
            "the text says about these numbers."
        )
    fail = "fails" if len(failing) == 1 else "fail"
    return (
        f"{len(changes)} of {_number(cells)} changed, and {len(failing)} of them {fail}: "
        "stay with the versions in requirements.txt until the notebooks or the helpers are mended."
    )


def _number(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"


def check(asked: list[str]) -> int:
    """Install, run, compare and report; returns the exit code."""
    requirements = wanted(asked)
    build = notebooks.ROOT / "build"
    notebooks.need_room(build)
    with tempfile.TemporaryDirectory(
        dir=build, prefix="upgrade-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        new = [line for line in requirements if line not in map("==".join, pins().items())]
        print(f"Installing {', '.join(new) or 'what requirements.txt pins'}", flush=True)
        make_environment(folder)
        install(folder, requirements, build / "upgrade.log")
        if not (installed := news(folder)):
            print("Nothing to try: these versions are installed already, and none is newer.")
            return 0
        print(f"Trying {installed}", flush=True)
        results, lines = folder / "results.json", []

        def tell(line: str) -> None:
            lines.append(line)
            if re.match(r"\d\d_\S+: ", line):
                print(f"  {line}", flush=True)

        code = "import sys; from tools.check_upgrade import *; try_all(Path(sys.argv[1]))"
        run(folder, ["-c", code, str(results)], tell)
        if not results.exists():
            last = lines[-1] if lines else "it said nothing"
            stop(f"No notebook could be run with these versions ({last}): stay with the old ones.")
        cells, found = json.loads(results.read_text())
    changes = [Change(**change) for change in found]
    for change in changes:
        print(f"\n{change.where} {'fails' if change.fails else 'changed'}")
        print(*(f"  {line}" for line in change.lines), sep="\n")
    print(f"\n{verdict(cells, changes)}")
    return int(bool(changes))


def main() -> None:
    """Check what the command line names."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        raise SystemExit(check(sys.argv[1:]))
    except KeyboardInterrupt:
        stop("\nInterrupted: what was installed for it is removed, and nothing else was changed.")


if __name__ == "__main__":
    main()
