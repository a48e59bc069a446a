"""Print how many lines each notebook takes, and all that they share: at the end of `make lint`.

A file belongs to a notebook that has its number in its name, as ``exercises/nb03.py`` and
``03.md``; an explorer, with its tests, to the first notebook that shows it. Nothing fails: what
takes more lines than the budget has a star, and needs a reason in the commit that brings it.
"""

import re
from collections import Counter
from pathlib import Path

from tools import notebooks

# Lines of Python and of Markdown pages in helpers, and of tests, for one notebook.
BUDGET = {"Python": 600, "pages": 320, "tests": 1250}
ENGINE = "engine"


def lines(root: Path) -> dict[str, Counter[str]]:
    """The lines of each notebook, by number, and of the engine; by kind."""
    shown_by = {
        name: path.name[:2]
        for path in reversed(notebooks.names(root / "notebooks"))
        for name in re.findall(r"\bexplore_([a-z_]+)", path.read_text(encoding="utf-8"))
    }
    found: dict[str, Counter[str]] = {number: Counter() for number in sorted(shown_by.values())}
    for folder, suffix, kind in (
        ("helpers", ".py", "Python"),
        ("helpers", ".md", "pages"),
        ("tests", ".py", "tests"),
    ):
        for path in (root / folder).rglob(f"*{suffix}"):
            name = path.stem.removeprefix("test_")
            number = re.fullmatch(r"(?:nb)?(\d\d)", name)
            of_explorer = path.parent.name == "explorers" and shown_by.get(name)
            owner = number[1] if number else of_explorer or ENGINE
            text = path.read_text(encoding="utf-8")
            found.setdefault(owner, Counter())[kind] += text.count("\n")
    return found


def main() -> None:
    """Print the table, with a star where a notebook takes more than its budget."""
    told = ", ".join(f"{most} of {kind}" for kind, most in BUDGET.items())
    print(f"Lines of helpers and tests that a notebook takes (*: more than {told}), and all share:")
    print(f"{'':8}" + "".join(f"{kind:>9}" for kind in BUDGET))
    for owner, counts in sorted(lines(notebooks.ROOT).items()):
        cells = (
            f"{counts[kind]:8}{'*' if owner != ENGINE and counts[kind] > most else ' '}"
            for kind, most in BUDGET.items()
        )
        print(f"{owner:8}{''.join(cells)}".rstrip())


if __name__ == "__main__":
    main()
