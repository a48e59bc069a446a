"""Write teaching/GLOSSARY.md from the terms of the exercises: ``python -m tools.glossary``."""

from lesson.exercises import TERMS
from tools import notebooks

PATH = notebooks.ROOT / "teaching" / "GLOSSARY.md"
HEAD = """# Glossary

Every term that the notebooks define, with the synonyms that you will meet elsewhere and the
notebook that introduces it. In a notebook, `glossary("attention head")` prints one of them.
(Written by `make refresh` from `lesson/exercises/`.)

| term | also | meaning | notebook |
| --- | --- | --- | --- |
"""


def text() -> str:
    """The whole file, terms in alphabetical order."""
    files = {path.name[:2]: path.name for path in notebooks.names()}
    rows = [
        f"| **{term.name}** | {', '.join(term.also)} | {term.meaning} "
        f"| [{term.notebook}](../notebooks/{files[term.notebook]}) |\n"
        for term in sorted(TERMS.values(), key=lambda term: term.name.lower())
    ]
    return HEAD + "".join(rows)


def main() -> None:
    """Write the file."""
    notebooks.write_whole(PATH, text())


if __name__ == "__main__":
    main()
