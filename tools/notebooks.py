"""What the tools share: where the notebooks are, how they are named, how they are run."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "notebooks"
WORK = ROOT / "work"

# All that a committed notebook says about itself. JupyterLab adds versions and settings of one
# machine; they would be a diff in every commit.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("slideshow", "tags")


def names(folder: Path | None = None) -> list[Path]:
    """All notebooks of the series, or those of another folder, in order."""
    return sorted((folder or SOURCE).glob("[0-9][0-9]_*.ipynb"))


def chosen(nb: str) -> list[Path]:
    """The notebook that ``nb`` names ("03", "3" or "03_softmax_masking"), all of them for "".

    Raises
    ------
    SystemExit
        In one sentence with the list, where no notebook has that number.
    """
    found = names()
    if nb:
        wanted = nb.removesuffix(".ipynb")
        found = [p for p in found if wanted.zfill(2) in (p.stem, p.stem[:2])]
        if not found:
            there = ", ".join(p.stem for p in names())
            raise SystemExit(f"There is no notebook {nb}: choose one with NB=03 from {there}.")
    return found


def cell_id(number: str, position: int) -> str:
    """The fixed id of a cell; positions count from 1: the third cell of 03 is "n03-c03"."""
    return f"n{number}-c{position:02d}"


def one_environment() -> None:
    """Make the kernels that this process starts the same on every machine."""
    # Numbers that may round differently elsewhere are refused.
    os.environ["ATTENTION_STRICT"] = "1"
    os.environ["ATTENTION_STORED"] = "1"  # pictures as GitHub shows them
    one_thread_unless_told()
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # no debugger warning on stderr
    for name in ("ATTENTION_TABLES", "MPLBACKEND"):
        os.environ.pop(name, None)


def one_thread_unless_told() -> None:
    """Let the kernels that this process starts compute with one thread.

    The tensors are small, so a second thread mostly waits for the first.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def stop(message: str) -> None:
    """End with one sentence on stderr."""
    print(message, file=sys.stderr)
    raise SystemExit(1)
