"""Count the minutes, words and cells of each notebook: ``python -m tools.pace``, as in `make lint`.

A fast reader takes a minute for 150 words, four seconds for a line of code, twenty for a
prediction, a minute for a **Live**, a **Try** or a **Type it**, and for an exercise the minutes of
its heading; somebody to whom attention is new takes twice as long. What is folded does not count,
nor do the sources, the checks below them, a section "Optional: …", and the minutes of an optional
exercise.
"""

import ast
import math
import re
from dataclasses import replace

from nbformat import v4

from attention_base.numbers import joined
from tools import notebooks
from tools.lint_notebooks import Book, read

LIMITS = {"minutes": 48, "words": 2300, "cells": 62}
BEYOND = {"minutes": 48, "words": 2700, "cells": 66}  # of 08 to 14
BREAK = "This is a good place for a break"
UNSEEN = re.compile(r"<!--.*?-->|<details>.*?</details>|^\*\*Sources\.\*\*.*", re.M | re.S)
NO_WORDS = re.compile(r"\$\$.*?\$\$|\$[^$\n]*\$|</?[a-z][^>]*>|\]\([^)]*\)", re.S)


def pace(book: Book) -> dict[str, float]:
    """The minutes, words and cells of a notebook."""
    optional = _optional(book)
    texts = [UNSEEN.sub(" ", text) for n, text in book.prose if n not in optional]
    words = sum(len(re.findall(r"[A-Za-z][\w'’-]*", NO_WORDS.sub(" ", text))) for text in texts)
    tasks = sum(len(re.findall(r"\*\*(?:Live|Try|Type it)[.:]", text)) for text in texts)
    sources = [n for n, text in book.prose if re.search(r"\*\*Sources|<summary>Sources", text)]
    checks = [n for n, tree in book.trees if n > min(sources, default=n) and _only_checks(tree)]
    # The first code cell is the set-up, which is folded.
    core = [cell.source for n, cell in book.code[1:] if n not in {*checks, *optional}]
    code = "\n".join(core)
    seconds = 4 * len(re.findall(r"^.*\S", code, re.M)) + 20 * code.count("predict(")
    headings = [text for n, _, text in book.headings if n not in optional]
    exercises = (re.search(r"^Exercise .* (\d+) min$", text) for text in headings)
    minutes = (
        words / 150 + seconds / 60 + tasks + sum(int(found[1]) for found in exercises if found)
    )
    return {"minutes": minutes, "words": words, "cells": len(book.cells) - len(optional)}


def _optional(book: Book) -> set[int]:
    """The cells of sections whose heading begins with Optional."""
    sections = {n: text for n, level, text in book.headings if level == 2}
    found, section = set(), ""
    for n, _ in book.cells:
        section = sections.get(n, section)
        if section.startswith("Optional"):
            found.add(n)
    return found


def _only_checks(tree: ast.Module) -> bool:
    return isinstance(tree.body[-1], ast.Assert) and "print(" not in ast.unparse(tree)


def limits_of(book: Book) -> dict[str, int]:
    """How much a notebook may take."""
    return LIMITS if book.number < "08" else BEYOND


def faults(book: Book) -> list[str]:
    """What a notebook has too much of, and whether its first cell says other minutes.

    The cell says those of somebody who is new, to the end and to each "good place for a break",
    which has to be there from 80 on.
    """
    counted, limits = pace(book), limits_of(book)
    over = [kind for kind, most in limits.items() if counted[kind] > most]
    found = [f"has {counted[kind]:.1f} {kind}: at most {limits[kind]}" for kind in over]
    minutes = 10 * math.ceil(counted["minutes"] / 5)
    told = f"{minutes} minutes if attention is new to you (half as long for a fast reader)"
    breaks = [n for n, text in book.prose if BREAK in text]
    if breaks:
        rests = (replace(book, nb=v4.new_notebook(cells=book.nb.cells[:n])) for n in breaks)
        after = joined([f"{5 * round(2 * pace(rest)['minutes'] / 5)}" for rest in rests])
        told += f", with {'breaks' if breaks[1:] else 'a break'} after {after} minutes"
    if minutes >= 80 and not breaks:
        found.append(f"takes {minutes} minutes: say in its middle, {BREAK}.")
    if not re.search(rf"^{re.escape(told)}\.", book.nb.cells[0].source, re.M):
        found.append(f"takes {2 * counted['minutes']:.1f} minutes: say {told} in the first cell")
    return [f"{book.name} {fault}" for fault in found]


def main() -> None:
    """Print a line for each notebook; the exit code is 1 where one has a fault."""
    print("What a notebook takes of its reader (*: too much):")
    print(f"{'':8}" + "".join(f"{kind:>9}" for kind in LIMITS))
    books = [read(path) for path in notebooks.names()]
    for book in books:
        counted = pace(book).items()
        limits = limits_of(book)
        cells = (f"{n:8,.0f}{'*' if n > limits[kind] else ' '}" for kind, n in counted)
        print(f"{book.number:8}{''.join(cells)}".rstrip(), flush=True)
    if wrong := [fault for book in books for fault in faults(book)]:
        notebooks.stop("\n".join(wrong))


if __name__ == "__main__":
    main()
