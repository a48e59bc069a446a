"""What comes from npm, as package.json here names it: `make` installs it into .venv/npm.

reveal.js is for decks, KaTeX for the site, axe-core for the tests in the browser.
"""

from tools import notebooks

PACKAGES = notebooks.ROOT / ".venv" / "npm" / "node_modules"


def need(target: str) -> None:
    """End in one sentence where make has not installed the packages.

    Parameters
    ----------
    target : str
        The make target that installs them first.
    """
    if not (PACKAGES.parent / "ready").exists():
        notebooks.stop(f"Packages of npm are missing: run make {target}, which installs them.")
