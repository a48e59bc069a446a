"""Where a learner's folder `work/` lies: in the clone, or where the kernel of a notebook starts."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
# What pip writes beside the packages of a wheel. A clone, also one that `pip install -e` knows, has
# none, nor has the copy of a hub.
INSTALLED = any(PROJECT.glob("attention_from_a_for_loop-*.dist-info"))
HOME = Path.cwd() if INSTALLED else PROJECT
