"""Write what a class gets on paper as pages that print on A4 and on Letter.

``python -m tools.cheatsheet``: the cheat sheet and the checklist, the learning goals of all
notebooks, and the exit questions with their key. A page loads nothing else; tests/browser counts
its sheets.
"""

import re
from collections.abc import Callable
from pathlib import Path

import nbformat

from tools import notebooks
from tools.lecture import plan

# The name of a page, and its source. These two stand on the site, too.
SHEETS = {name: plan.TEACHING / f"{name.upper()}.md" for name in ("cheatsheet", "checklist")}
STYLE = Path(__file__).with_suffix(".css")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Attention from a for-loop</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body class="{name}">
{back}{parts}</body>
</html>
"""


def page(name: str, back: str = "") -> str:
    """One of the pages as HTML; on the site with a link ``back`` to its first page."""
    from tools.site.pages import Maker  # takes seconds

    parts = [SHEETS[name].read_text(encoding="utf-8")] if name in SHEETS else HANDOUTS[name]()
    written = [with_pictures(Maker([]).markdown(part)) for part in parts]
    return PAGE.format(
        name=name,
        title=parts[0].partition("\n")[0].removeprefix("# "),
        style=STYLE.read_text(encoding="utf-8"),
        back=f'<nav><a href="{back}">Attention from a for-loop</a></nav>\n' if back else "",
        parts="".join(f"<main>\n{part}</main>\n" for part in written),
    )


def with_pictures(html: str) -> str:
    """Put the pictures of a text into it, so that the page loads nothing."""

    def drawn(found: re.Match) -> str:
        words, path = (re.search(rf'{name}="([^"]*)"', found[0])[1] for name in ("alt", "src"))
        svg = (SHEETS["cheatsheet"].parent / path).read_text(encoding="utf-8")
        return re.sub(r'<svg xmlns="[^"]*"', f'<svg role="img" aria-label="{words}"', svg)

    return re.sub(r"<img [^>]*>", drawn, html)


def goals() -> list[str]:
    """What each notebook says that you will be able to do, under its question."""
    told, minutes = [], 0
    for path in notebooks.names():
        first = nbformat.read(path, as_version=4).cells[0].source
        question = first.partition("\n")[0].removeprefix("# ")
        new = int(re.search(r"^(\d+) minutes if", first, re.M)[1])
        verbs = first.partition("You will be able to\n")[2].partition("\n\n")[0]
        told.append(f"## {path.name[:2]} · {question} ({new} min)\n\n{verbs}\n")
        minutes += new
    head = (
        "# What you will be able to do\n\nAfter each notebook, in its own words. The minutes are "
        f"those that it takes if attention is new to you, {in_hours(minutes)} in all.\n"
    )
    return ["\n".join([head, *told])]


def in_hours(minutes: int) -> str:
    """645 is 10 h 45."""
    return f"{minutes // 60} h {minutes % 60:02d}"


def exit_questions() -> list[str]:
    """The exit questions of teaching/ for the class, and on another sheet the key."""
    asked = ["# Exit questions\n\nTwo minutes for each, on paper, alone.\n"]
    solved = [
        "# Exit questions: the key\n\nFor the teacher: the answer, and what wrong answers say.\n"
    ]
    for number, chapter in plan.chapters().items():
        heading = f"## {number} · {chapter.question}\n"
        asked.append(heading)
        solved.append(heading)
        for id, told in chapter.exits.items():
            asked.append(f"**{id}** {told.question}\n")
            solved.append(f"**{id}** {told.key} *Wrong:* {told.wrong}\n")
    return ["\n".join(asked), "\n".join(solved)]


HANDOUTS: dict[str, Callable[[], list[str]]] = {"goals": goals, "exit_questions": exit_questions}
SAID = {
    "cheatsheet": "it fits one sheet",
    "checklist": "it fits one sheet",
    "goals": "it fits one sheet",
    "exit_questions": "a sheet of questions for the class, and one with the key",
}


def main() -> None:
    """Write the pages and say where they are."""
    for name, said in SAID.items():
        out = notebooks.ROOT / f"{name}.html"
        notebooks.write_whole(out, page(name))
        print(f"Open {notebooks.shown(out)} in a browser and print it: {said}.")


if __name__ == "__main__":
    main()
