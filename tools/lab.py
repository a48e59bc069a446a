"""Open JupyterLab on the learner's own copies: ``python -m tools.lab [JupyterLab arguments]``."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tools import notebooks

SETTINGS = Path(__file__).parent / "lab_settings"


def copy_missing(source: Path, work: Path) -> list[Path]:
    """Copy every notebook that ``work`` does not have yet; a copy that is there stays untouched."""
    work.mkdir(exist_ok=True)
    made = [work / path.name for path in notebooks.names(source) if not (work / path.name).exists()]
    for copy in made:
        partial = copy.with_suffix(".part")  # an interrupted copy must not pass for the learner's
        partial.write_text(without_outputs(source / copy.name), encoding="utf-8")
        partial.rename(copy)
    return made


def without_outputs(path: Path) -> str:
    """Return a notebook's text as a learner should meet it: the question before the answer."""
    nb = json.loads(path.read_text(encoding="utf-8"))
    for cell in nb["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return json.dumps(nb, ensure_ascii=False, indent=1) + "\n"


def arguments(work: Path, start: str) -> list[str]:
    """JupyterLab's arguments: folder, start page, no news and no request to the network."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # containers and CI
    return [
        f"--ServerApp.root_dir={work}",
        f"--LabApp.default_url=/lab/tree/{start}",
        # Open tabs are remembered beside the copies, not mixed with other projects' ones.
        f"--LabApp.workspaces_dir={work / '.jupyterlab'}",
        # Defaults for the learner's settings: do not ask whether news are wanted.
        f"--LabApp.app_settings_dir={SETTINGS}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",  # its list of extensions comes from the network
        "--ServerApp.answer_yes=True",  # one Ctrl-C ends it
        "--ServerApp.kernel_websocket_connection_class=tools.lab_connection.PromptConnection",
        *(["--allow-root"] if root else []),
    ]


def main() -> None:
    """Copy what is missing and become JupyterLab."""
    made = copy_missing(notebooks.SOURCE, notebooks.WORK)
    start = next((p.name for p in notebooks.names(notebooks.WORK)), None)
    if start is None:
        notebooks.stop("There are no notebooks in notebooks/: clone the repository again.")
    if made:
        print(f"Copied to work/: {', '.join(p.name for p in made)}")
    notebooks.one_thread_unless_told()
    print("Opening JupyterLab. It runs until you press Ctrl-C here.", flush=True)
    command = [sys.executable, "-m", "jupyterlab", *arguments(notebooks.WORK, start), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(sys.executable, command)
    raise SystemExit(subprocess.call(command))


if __name__ == "__main__":
    main()
