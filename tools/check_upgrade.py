"""Run the notebooks with newer packages: ``python -m tools.check_upgrade [torch==2.15.0 ...]``.

A package without a version stands for its newest release; no package at all, for the newest release
of each in requirements.txt. The word ``oldest`` alone stands for the oldest releases that
pyproject.toml allows. They are installed into an environment under build/, which lies over the one
that runs this program and is removed afterwards. In it nbval compares each cell with its stored
outputs, as under make test. The exit code is 0 where no cell changes, and 1 otherwise.
"""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import tomllib
import venv
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.notebooks import ROOT, need_room, stop

LIST = (ROOT / "requirements.txt").read_text(encoding="utf-8")
PINS = {name: pin for pin, name in re.findall(r"^(([\w.-]+)==\S+)", LIST, re.MULTILINE)}
LOG = ROOT / "build/upgrade.log"
OLDEST = "oldest"
PIP = "-m pip install --no-input --disable-pip-version-check --progress-bar=off --retries=1"
NBVAL = (  # as make test, but one notebook after the other
    "-m pytest --nbval --nbval-current-env --nbval-cell-timeout=60 -p no:cacheprovider "
    "--quiet -rN --disable-warnings --color=no notebooks"
)


def wanted(asked: list[str]) -> dict[str, str]:
    """What pip has to install of each package that is asked for, by its name in the list."""
    if asked == [OLDEST]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        ranges = dict(text.split(">=") for text in project["dependencies"])
        return {name: f"{name}=={oldest}" for name, oldest in ranges.items()}
    chosen = {} if asked else {name: name for name in PINS}
    for text in asked:
        name = text.partition("==")[0].lower().replace("_", "-")
        if name not in PINS or text.endswith("="):
            stop(
                f"{text} is not a package of requirements.txt with a version: choose from "
                f"{', '.join(PINS)}, as in PKG=torch==2.15.0, without ==2.15.0 for the newest, or "
                f"PKG={OLDEST} alone."
            )
        chosen[name] = text
    return chosen


def run(folder: Path, *arguments: str, **settings) -> int:
    """Run an environment's Python in the project; however this ends, nothing of it runs on."""
    own = {
        "TMPDIR": str(folder),  # what is left there is removed with the rest
        "JUPYTER_RUNTIME_DIR": str(folder),
        "PIP_USER": "0",  # a user's own pip setting that does not go with an environment
        "ATTENTION_STRICT": "0",  # as for learners: a number at an edge is rounded, not refused
    }
    process = subprocess.Popen(
        [folder / "bin/python", *arguments],
        cwd=ROOT,
        env=os.environ | own,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C ends this program, which then ends that one
        **settings,
    )
    try:
        return process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def install(folder: Path, requirements: list[str]) -> list[str]:
    """Make an environment over the present one; returns what it has of its own."""
    venv.create(folder, symlinks=True)
    site = sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)})
    Path(site, "below.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    options = PIP.split()
    if not all("==" in text for text in requirements):
        options.append("--upgrade")  # asks the index even where some release is there
    if index := os.environ.get("TORCH_INDEX"):
        options.append(f"--extra-index-url={index}")  # 2.15.0+cpu counts as newer than 2.15.0
    with LOG.open("w") as log:
        code = run(folder, *options, *requirements, stdout=log, stderr=log)
    if code:
        errors = re.findall(r"^ERROR: (?!Resolution)(.+)", LOG.read_text(), re.M) or ["see the log"]
        stop(
            f"pip could not install this ({errors[-1]}): check the release, the network and the "
            "disk space, then try again; all that pip said is in build/upgrade.log."
        )
    return [f"{new.name} {new.version}" for new in distributions(path=[site])]


def verdict(results: str, oldest: bool = False) -> str:
    """Say in words what pytest's junitxml counts, and what to do."""
    cells, late = results.count("<testcase"), results.count("<skipped")
    changed = results.count('<failure message="Cell outputs differ')
    failed = results.count("<failure") + results.count("<error") - changed
    todo = "write the new version into requirements.txt to go over, then make test-all"
    if changed:
        todo = "if that is right, write the version into requirements.txt, then make refresh"
    if failed:
        todo = "stay with requirements.txt until the notebooks or the helpers are mended"
    if oldest:
        todo = "pyproject.toml says so"
        if changed or failed:
            todo = "mend the notebooks or the helpers, or raise the version in pyproject.toml"
    after = f" (not judged, after one that took too long: {late})" if late else ""
    return f"Of {cells} cells {changed} changed, {failed} failed{after}: {todo}."


def main(asked: list[str]) -> int:
    """Install, run, compare and report; returns the exit code."""
    chosen = wanted(asked)
    if asked == [OLDEST]:
        os.environ["ATTENTION_PICTURES"] = "0"  # an older matplotlib draws other dots
    need_room(LOG.parent)
    with TemporaryDirectory(dir=LOG.parent, prefix="upgrade-", ignore_cleanup_errors=True) as name:
        folder, results = Path(name), Path(name, "results.xml")
        print(f"Installing {', '.join(chosen.values())}: see build/upgrade.log", flush=True)
        if not (new := install(folder, list((PINS | chosen).values()))):
            print("Nothing to try: these, or the newest that go together, are installed already.")
            return 0
        print(f"Trying {', '.join(new)}", flush=True)
        code = run(folder, *NBVAL.split(), f"--junitxml={results}")
        if code > 1 or not results.exists():
            stop("No notebook could be run, for the reason above: stay with the old versions.")
        print(verdict(results.read_text(encoding="utf-8"), asked == [OLDEST]))
        return code


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        stop("\nInterrupted: what was installed for it is removed, and nothing else was changed.")
