"""Open JupyterLab on the learner's own copies: ``python -m tools.lab [JupyterLab arguments]``.

``make lab`` has them in work/; the wheel's command ``attention-course``, in the folder that one
stands in.
"""

import argparse
import errno
import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from tornado.netutil import bind_sockets

from tools import notebooks

SETTINGS = Path(__file__).parent / "lab_settings"
# What JupyterLab writes into each notebook that it opens. A copy that has it stays as it is until
# the learner changes something.
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
    "version": platform.python_version(),
}
HELP = """attention-course [JupyterLab arguments, such as --no-browser --port 8899]

Copies the notebooks of “Attention from a for-loop” into this folder, and opens JupyterLab at the
first. A file that is here already stays as it is. What you answer is kept in the folder work/."""
MADE_FROM = "made_from"  # in a copy's metadata: the fingerprint of the notebook it was made from


class Unreadable(Exception):
    """A file that is no notebook, or that cannot be opened; the message says which, in words."""


def copy_missing(source: Path, work: Path) -> list[Path]:
    """Copy every notebook that ``work`` does not have yet; a copy that is there stays untouched."""
    notebooks.need_room(work)
    made = [
        work / path.name
        for path in notebooks.names(source)
        if not os.path.lexists(work / path.name)
    ]
    for copy in made:
        notebooks.write_whole(copy, for_learner(source / copy.name))
    return made


def for_learner(path: Path) -> str:
    """Return a notebook's text as a learner should meet it: the question before the answer.

    It notes what it was made from, so that `notices` can tell when that has changed.
    """
    try:
        nb = read(path)
    except Unreadable as error:
        notebooks.stop(f"{error}: clone the repository again, or restore that file with git.")
    nb["metadata"] |= {MADE_FROM: fingerprint(nb), "language_info": LANGUAGE}
    for cell in nb["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return json.dumps(nb, ensure_ascii=False, indent=1) + "\n"


def read(path: Path) -> dict:
    """Return a notebook as JSON has it.

    Raises
    ------
    Unreadable
        Where that is not possible.
    """
    name = notebooks.shown(path)
    try:
        nb = json.loads(path.read_text(encoding="utf-8"))
        nb["metadata"] = dict(nb.get("metadata", {}))
        fingerprint(nb)  # fails where this is other JSON
    except PermissionError:
        raise Unreadable(f"{name} cannot be read, because you have no right to") from None
    except OSError as error:
        raise Unreadable(f"{name} cannot be read ({error.strerror})") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"{name} is damaged (line {error.lineno} is no JSON)") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Unreadable(f"{name} is damaged (it is not a notebook)") from None
    return nb


def fingerprint(nb: dict) -> str:
    """A short text that changes with the cells of a notebook, not with their outputs."""
    cells = [[cell["cell_type"], "".join(cell["source"])] for cell in nb["cells"]]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:16]


def notices(source: Path, work: Path) -> list[str]:
    """One sentence for each copy whose notebook has changed, and for each that cannot be read."""
    said = []
    for original in notebooks.names(source):
        copy = work / original.name
        nb = original.name[:2]
        renew = f"`make fresh NB={nb}` keeps your copy in work/old/ and makes a new one."
        if work != notebooks.WORK:
            renew = "give your copy another name, and the next attention-course makes a new one."
        try:
            if why := _outdated(copy, original):
                said.append(f"{why}: {renew}")
        except Unreadable as error:
            said.append(f"{error}: {renew}")
    return said


def _outdated(copy: Path, original: Path) -> str:
    """Why a copy seems older than its notebook; "" where nothing says so."""
    mine, new = read(copy), read(original)
    yours, theirs = notebooks.shown(copy), notebooks.shown(original)
    if MADE_FROM in mine["metadata"]:
        if mine["metadata"][MADE_FROM] == fingerprint(new):
            return ""
        return f"{theirs} has changed since {yours} was made"
    # A copy without that note was made before copies had one. Learners change code, write beside
    # the text and delete cells, but hardly rewrite the text: only that counts, id by id.
    texts, now = _texts(mine), _texts(new)
    everything = "\n".join(texts.values())
    if all(now[id] in everything for id in now.keys() & texts.keys()):
        return ""
    return f"{yours} may be older than {theirs}, because its text differs"


def _texts(nb: dict) -> dict[str, str]:
    """The markdown cells of a notebook by their ids."""
    return {
        cell.get("id", ""): "".join(cell["source"])
        for cell in nb["cells"]
        if cell["cell_type"] == "markdown"
    }


def arguments(work: Path, start: str, settings: Path = SETTINGS) -> list[str]:
    """JupyterLab's arguments: folder, start page, no news and no request to the network.

    ``settings`` is a folder with an overrides.json: what the learner's settings begin with.
    """
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # containers and CI
    return [
        f"--ServerApp.root_dir={work}",
        f"--LabApp.default_url=/lab/tree/{start}",
        # Open tabs are remembered beside the copies, not mixed with other projects' ones.
        f"--LabApp.workspaces_dir={work / '.jupyterlab'}",
        *everywhere(settings),
        *(["--allow-root"] if root else []),
    ]


def everywhere(settings: Path = SETTINGS) -> list[str]:
    """Those of JupyterLab's arguments that also hold on a hub."""
    return [
        f"--LabApp.app_settings_dir={settings}",
        "--ServerApp.answer_yes=True",  # one Ctrl-C ends it
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",  # its list of extensions comes from the network
        "--LanguageServerManager.autodetect=False",  # it would ask npm for programs nobody needs
        "--ServerApp.kernel_websocket_connection_class=tools.lab_connection.PromptConnection",
    ]


def with_free_port(given: list[str]) -> list[str]:
    """JupyterLab's arguments, with another port where the one that it is to take is taken.

    JupyterLab would look for one as well, but says so on one line of many, without the new number.
    """
    told, _ = _options(port_retries="50", ip="localhost").parse_known_args(given)
    named, others = _options(port="8888").parse_known_args(given)
    if not named.port.isdecimal() or named.port == "0" or told.port_retries == "0":
        return given  # no number: JupyterLab says so; 0: any port will do, or no other one
    asked = int(named.port)
    near = range(asked, min(asked + 5, 65_536))
    free = next((port for port in near if not _is_taken(port, told.ip)), asked)
    if free == asked:
        return given
    print(f"Port {asked} is taken by another program, so JupyterLab takes port {free}.")
    return [*others, f"--ServerApp.port={free}"]  # it refuses two


def _options(**usual: str) -> argparse.ArgumentParser:
    """Read some of JupyterLab's options, named as JupyterLab allows, with their usual values."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name, value in usual.items():
        value = os.environ.get(f"JUPYTER_{name.upper()}", value)
        flags = (f"--{name.replace('_', '-')}", f"--ServerApp.{name}")
        parser.add_argument(*flags, dest=name, default=value, nargs="?", const="")
    return parser


def _is_taken(port: int, ip: str) -> bool:
    """Whether another program listens there; asked as JupyterLab asks."""
    try:
        for opened in bind_sockets(port, "" if ip == "*" else ip):
            opened.close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


def become_jupyterlab(start: str, settings: Path = SETTINGS, work: Path | None = None) -> NoReturn:
    """Go on as JupyterLab, with the arguments of this command after our own."""
    notebooks.one_thread_unless_told()
    # A python3 kernel that was installed elsewhere must not stand before the one of this Python.
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")
    ours = arguments(work or notebooks.WORK, start, settings)
    command = [sys.executable, "-m", "jupyterlab", *ours, *with_free_port(sys.argv[1:])]
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(sys.executable, command)
    raise SystemExit(subprocess.call(command))


def course() -> None:
    """Do where one stands what `main` does in work/: the command ``attention-course``."""
    if {"-h", "--help"} & {*sys.argv[1:]}:
        print(HELP)
        return
    main(Path.cwd())


def main(work: Path | None = None) -> None:
    """Copy what is missing and become JupyterLab."""
    work = work or notebooks.WORK
    made = copy_missing(notebooks.SOURCE, work)
    start = next((p.name for p in notebooks.names(work)), None)
    if start is None:
        notebooks.stop("There are no notebooks in notebooks/: clone the repository again.")
    if made:
        print(f"Copied to {notebooks.shown(work)}/: {', '.join(p.name for p in made)}")
    for notice in notices(notebooks.SOURCE, work):
        print(notice)
    print("Opening JupyterLab. It runs until you press Ctrl-C here.")
    become_jupyterlab(start, work=work)


if __name__ == "__main__":
    main()
