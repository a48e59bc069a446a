"""Open your copy of a notebook in JupyterLab, as slides: ``python -m tools.slides.live 03``."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from tools import notebooks
from tools.lab import become_jupyterlab, copy_missing, notices

# Letters that the back row can read, and the button; nothing else differs from make lab.
SETTINGS = Path(__file__).parent / "settings"
STEPS = """JupyterLab opens {copy}.
Click on Present above the notebook: it runs all cells, then shows the slides.
Space leads to the next slide, Shift + Space back, Escape ends the slides.
JupyterLab runs until you press Ctrl-C here."""


def main(nb: str) -> None:
    """Copy the notebook that ``nb`` names where there is no copy yet, and become JupyterLab."""
    if not nb:
        there = ", ".join(p.stem for p in notebooks.names())
        notebooks.stop(f"Say which notebook: make slides NB=03, from {there}.")
    (source,) = notebooks.chosen(nb)
    if not find_spec("jupyterlab_slideshow"):
        notebooks.stop("jupyterlab-slideshow is missing: run make slides, which installs it.")
    copy_missing(notebooks.SOURCE, notebooks.WORK)
    for notice in notices(notebooks.SOURCE, notebooks.WORK):
        if source.stem in notice:
            print(notice)
    print(STEPS.format(copy=notebooks.shown(notebooks.WORK / source.name)))
    os.environ["ATTENTION_PROGRESS"] = "0"  # no answers from when the lesson was prepared
    del sys.argv[1]  # the rest is JupyterLab's
    become_jupyterlab(source.name, SETTINGS)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
