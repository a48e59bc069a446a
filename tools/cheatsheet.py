"""Write the cheat sheet and the checklist as pages for one sheet of paper each.

``python -m tools.cheatsheet``. A page loads nothing else, and its style fits an A4 and a Letter
sheet, which tests/browser counts.
"""

from pathlib import Path

from tools import notebooks

# The name of a page, and its source.
SHEETS = {name: notebooks.ROOT / f"{name.upper()}.md" for name in ("cheatsheet", "checklist")}
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
<body>
{back}<main>
{text}</main>
</body>
</html>
"""


def page(name: str, back: str = "") -> str:
    """One of the sheets as HTML; on the site with a link ``back`` to its first page."""
    from tools.site.pages import Maker  # takes seconds

    source = SHEETS[name].read_text(encoding="utf-8")
    return PAGE.format(
        title=source.partition("\n")[0].removeprefix("# "),
        style=STYLE.read_text(encoding="utf-8"),
        back=f'<nav><a href="{back}">Attention from a for-loop</a></nav>\n' if back else "",
        text=Maker([]).markdown(source),
    )


def main() -> None:
    """Write the pages and say where they are."""
    for name in SHEETS:
        out = notebooks.ROOT / f"{name}.html"
        notebooks.write_whole(out, page(name))
        print(f"Open {notebooks.shown(out)} in a browser and print it: it fits one sheet.")


if __name__ == "__main__":
    main()
