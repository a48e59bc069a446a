"""Where the links of a built site lead, for tests without and with a browser."""

import re
from pathlib import Path
from urllib.parse import unquote

from bs4 import BeautifulSoup

THREAD = "https://github.com/"  # the only addresses elsewhere that a page may link to


def parsed(site: Path) -> dict[str, BeautifulSoup]:
    """All pages by the names of their files."""
    return {
        path.name: BeautifulSoup(path.read_text("utf-8"), "html.parser")
        for path in site.glob("*.html")
    }


def dead_links(site: Path) -> list[str]:
    """Everything that a page or a style sheet refers to and that is not there.

    A thread that a source names stands elsewhere, and is not looked up.
    """
    pages = parsed(site)
    dead = []
    for name, page in pages.items():
        for tag in page.select("[href], [src], [action]"):
            to = next(tag[key] for key in ("href", "src", "action") if tag.has_attr(key))
            file, _, mark = unquote(to).partition("#")
            file = file or name
            there = to == "data:," or to.startswith(THREAD) or (site / file).is_file()
            if there and mark:
                there = any(tag.get("id") == mark for tag in pages[file].find_all(id=True))
            if not there:
                dead.append(f"{name}: {to}")
    for sheet in site.rglob("*.css"):
        for to in re.findall(r"url\(([^)]*)\)", sheet.read_text("utf-8")):
            if not (sheet.parent / to).is_file():
                dead.append(f"{sheet.name}: {to}")
    return dead
