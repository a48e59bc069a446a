"""Write CHEATSHEET.md as a page that prints on one sheet of paper: ``python -m tools.cheatsheet``.

It loads nothing else, and its style fits an A4 and a Letter sheet, which tests/browser counts.
"""

from pathlib import Path

from tools import notebooks

SOURCE = notebooks.ROOT / "CHEATSHEET.md"
OUT = notebooks.ROOT / "cheatsheet.html"
STYLE = Path(__file__).with_suffix(".css")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Attention on one page · Attention from a for-loop</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
{back}<main>
{text}</main>
</body>
</html>
"""


def page(back: str = "") -> str:
    """The cheat sheet as HTML; on the site with a link ``back`` to its first page."""
    from tools.site.pages import Maker  # takes seconds

    text = Maker([]).markdown(SOURCE.read_text(encoding="utf-8"))
    link = f'<nav><a href="{back}">Attention from a for-loop</a></nav>\n' if back else ""
    return PAGE.format(style=STYLE.read_text(encoding="utf-8"), back=link, text=text)


def main() -> None:
    """Write the page and say where it is."""
    notebooks.write_whole(OUT, page())
    print(f"Open {notebooks.shown(OUT)} in a browser and print it: it fits one sheet.")


if __name__ == "__main__":
    main()
