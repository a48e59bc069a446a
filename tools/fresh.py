"""Set the learner's copy of one notebook aside and take a new one: ``python -m tools.fresh 03``."""

import os
import sys
import time
from pathlib import Path

from tools import notebooks
from tools.lab import for_learner


def set_aside(path: Path) -> Path:
    """Move a notebook to old/ beside it, under a name with the time that no other file has."""
    old = path.parent / "old"
    stem = f"{path.stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    target, count = old / f"{stem}{path.suffix}", 1
    while os.path.lexists(target):
        count += 1
        target = old / f"{stem}-{count}{path.suffix}"
    with notebooks.writing(old):
        old.mkdir(exist_ok=True)
        return path.rename(target)


def main(nb: str) -> None:
    """Renew the copy of the notebook that ``nb`` names."""
    if not nb:
        there = ", ".join(p.stem for p in notebooks.names())
        notebooks.stop(f"Say which notebook: make fresh NB=03, from {there}.")
    (source,) = notebooks.chosen(nb)
    copy = notebooks.WORK / source.name
    notebooks.need_room(notebooks.WORK)

    def make_room() -> None:
        if os.path.lexists(copy):
            print(f"Your copy is now {notebooks.shown(set_aside(copy))}")

    notebooks.write_whole(copy, for_learner(source), make_room)
    print(f"New: {notebooks.shown(copy)}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
