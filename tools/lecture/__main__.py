"""Write the decks of the plans in teaching/, and run sheets: ``python -m tools.lecture``."""

from pathlib import Path

import nbformat

from tools import notebooks, npm
from tools.lab import Unreadable, read
from tools.lecture import plan as planned

HERE = Path(__file__).parent
FOLDER = notebooks.ROOT / "lecture"
ASSETS = {
    "reset.css": npm.PACKAGES / "reveal.js/dist/reset.css",
    "reveal.css": npm.PACKAGES / "reveal.js/dist/reveal.css",
    "reveal.js": npm.PACKAGES / "reveal.js/dist/reveal.js",
    "notes.js": npm.PACKAGES / "reveal.js/plugin/notes/notes.js",
    "live.js": HERE.parent / "site/static/live.js",
    "deck.js": HERE / "deck.js",
}


def write(folder: Path) -> list[Path]:
    """Write a page for each plan, and what they load.

    Raises
    ------
    SystemExit
        In one sentence, where a notebook cannot be read or run, or a plan names what is not there.
    """
    # Here, because they take seconds: what stops it is said before.
    from explorers.explorer import RULES
    from tools.lecture.deck import Book, Deck
    from tools.site.live import CannotRun

    books = {path.name[:2]: Book(path.name[:2], _read(path)) for path in notebooks.names()}
    try:
        chapters = planned.chapters()
        decks = [Deck(plan, chapters, books) for plan in planned.plans()]
    except planned.Unplanned as error:
        notebooks.stop(f"teaching/: {error}. Mend that row, then run make lecture again.")
    except CannotRun as error:
        notebooks.stop(f"A live picture cannot be made, because {error}. Mend that cell first.")
    assets = folder / "assets"
    with notebooks.writing(assets):
        assets.mkdir(parents=True, exist_ok=True)
    for name, source in ASSETS.items():
        notebooks.write_whole(assets / name, source.read_bytes())
    css = (HERE / "deck.css").read_text(encoding="utf-8")
    notebooks.write_whole(assets / "deck.css", css + RULES)
    shown = {name: one for deck in decks for name, one in deck.live.items()}
    for name, one in shown.items():
        notebooks.write_whole(assets / f"live-{name}.js", one.script)
    for deck in decks:
        notebooks.write_whole(folder / deck.plan.file, deck.html())
        notebooks.write_whole(folder / f"run_sheet_{deck.plan.file}", deck.run_sheet())
    return [folder / deck.plan.file for deck in decks]


def _read(path: Path) -> nbformat.NotebookNode:
    try:
        read(path)
        return nbformat.read(path, as_version=4)
    except Unreadable as error:
        notebooks.stop(f"{error}: clone the repository again, or restore that file with git.")


def main() -> None:
    """Write all decks, and say where they are."""
    npm.need("lecture")
    notebooks.one_environment()
    notebooks.need_room(FOLDER)
    for page in write(FOLDER):
        print(notebooks.shown(page), flush=True)
    print("Beside each lies its run sheet, one page to print, such as run_sheet_one_lecture.html.")


if __name__ == "__main__":
    main()
