"""Try the pages of prose after an edit: `make pages`, or `make pages NB=03` for one notebook.

First the form of every page is looked at, line by line, so that a slip is told where it stands.
Then each mistake is put into its exercise, which has to refuse it by its own name: one that changes
no result, or gives the same results as another one, is told. The pages that `diagnose` and the
errors of PyTorch stand on are tried as well. The exit code is 1 where anything is to mend.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import notebooks

ROOT = notebooks.ROOT
HEADING = re.compile(r"#{1,2} \S")
FOUR = "Begin it with four spaces, and nothing but them."
# What a line may not look like -> what to do.
SLIPS: dict[str, str] = {
    r"#{3,}|#{1,2}[^# ]": "no heading. A section begins with `# `, an entry in it with `## `: "
    "one or two signs, then a space.",
    r"\s{1,3}#|\s+## ": "no heading, since it is indented. Begin it with `# ` or `## `.",
    r"#{1,2} *$": "a heading without words. Write its name behind it.",
    r"( {1,3}|\t| *[\t\xa0]\s*)\S": f"not indented as a change is. {FOUR}",
    r" {4}.*(->|=>|⟶|➔|➜)": "a change with another arrow. The arrow is `→`: copy it from here.",
    r" {4}#": "indented, and no change. A change is `old → new`.",
    r"- *$": "an item without words.",
    r"<!--|```|~~~": "no prose. A note to those who edit the page begins with `> `.",
    r">\S": "no note. A note to those who edit the page begins with `> `, a sign and a space.",
    r"## (✔|✓\S|.*\S.*✓ *$)": "no right choice. Its text begins with `✓ `, this sign and a space.",
    r"[Aa]s in (\d\d\.\d+)(?!(, “[^”]+”)?\.$)": "no reference that can be followed. Write "
    "`As in 01.1.` or `As in 01.1, “its name”.`, with these quotation marks and the full stop.",
    r"# (terms|Term|TERMS)\b": "no heading. Glossary terms stand below `# Terms`.",
}
NO_ITEM = re.compile(r"-[^- ]|[*–•+] ")


def main(number: str = "") -> None:
    """Try one page, or all of them."""
    chosen = [path.name[:2] for path in notebooks.chosen(number)]
    slips = [slip for path in all_pages() for slip in slips_in(path)]
    if slips:
        notebooks.stop("\n".join(slips))
    try:
        from lesson.exercises import EXERCISES, PREDICTIONS, TERMS
    except ValueError as error:  # a page that cannot be read: the text names file and line
        notebooks.stop(str(error))
    except (KeyError, OSError) as error:
        notebooks.stop(f"{error} is missing: was a page, a section or an entry renamed or deleted?")
    failed = False
    for name in chosen:
        exercises = [one for id, one in EXERCISES.items() if id.startswith(name)]
        faults = [fault for exercise in exercises for fault in faults_of(exercise)]
        n_mistakes = sum(len(exercise.mistakes) for exercise in exercises)
        n_predictions = sum(id.startswith(name) for id in PREDICTIONS)
        n_terms = sum(term.notebook == name for term in TERMS.values())
        failed |= told(
            f"{name}.md: {len(exercises)} exercises, {n_mistakes} mistakes, "
            f"{n_predictions} predictions, {n_terms} terms",
            faults,
        )
    if not number:
        failed |= told("The pages of diagnose and of errors", [*faults_of_diagnose()])
    raise SystemExit(failed)


def all_pages() -> list[Path]:
    """All pages of prose that code reads."""
    return sorted(
        path
        for room in notebooks.ROOMS
        for path in (ROOT / room).rglob("*.md")
        if path.name != "README.md"
    )


def told(title: str, faults: list[str]) -> bool:
    """Print what was tried, and what is to mend, each once."""
    print(title)
    print("\n".join(f"  {fault}" for fault in dict.fromkeys(faults)) or "  nothing to mend")
    return bool(faults)


# ---------------------------------------------------------------- the form


def slips_in(path: Path) -> Iterator[str]:
    """Say of each line of a page that has no meaning where it stands how to write it."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        yield f"{path.name}: this is no text in UTF-8. Save it in your editor as UTF-8."
        return
    if not any(map(HEADING.match, lines)):
        yield f"{path.name}: the page has no heading, such as `# 02.1 A title`. Is it empty?"
    part = ""  # what the line stands in: a section, such as "Terms", or an entry
    for n, line in enumerate(lines, start=1):
        where = f"{path.name}, line {n}: `{line[:60].strip()}`"
        if HEADING.match(line):
            part = line if line.startswith("# ") else "entry"
        for form, what in SLIPS.items():
            if re.match(form, line):
                yield f"{where} is {what}"
                break
        else:
            if not line.strip() or line.startswith("> ") or HEADING.match(line):
                continue
            if re.match(r" {4}", line) and not re.search(r"→|^ {4}def \w|^ {4}\w+ ?=", line):
                yield f"{where} is indented, and no change. Is it what is told? Then do not indent."
            elif part != "entry" and NO_ITEM.match(line):
                yield f"{where} is no item. An item, such as a hint or a term, begins with `- `."
            elif part.startswith("# Terms") and not line.startswith("- "):
                yield f"{where} is no term. A term is one line, `- name: what it means`."
            elif re.fullmatch(r"# \d\d\.p\d+", part.strip()) and line.startswith("- "):
                yield f"{where} is an item. A prediction has a question and choices, `## …`."


# ---------------------------------------------------------------- the mistakes of exercises


def faults_of(exercise: "Exercise") -> Iterator[str]:  # noqa: F821 - a faulty page stops its import
    """Say which mistakes of an exercise it does not refuse by their own names."""
    for mistake in exercise.mistakes:
        where = f"{mistake.known.where}, “{mistake.name}”"
        try:
            verdict = exercise.check(mistake.code)
            errors = [outcome.error for outcome in mistake.outcomes]
        except ValueError as error:  # its change makes no program
            yield str(error)
            continue
        if any(isinstance(error, NameError | AttributeError) for error in errors):
            yield f"{where}: this program stops with “{errors[0]}”. Is there a slip in the change?"
        elif verdict.status != "failed":
            yield f"{where}: with this change the answer passes {exercise.id}. Change what matters."
        elif verdict.mistake != mistake.name:
            other = f"as “{verdict.mistake}”" if verdict.mistake else "another result"
            yield f"{where}: this gives the same results {other}. One of the two is enough."


# ---------------------------------------------------------------- what diagnose tells


def faults_of_diagnose() -> Iterator[str]:
    """Say which entries of the pages of diagnose and of errors leave out what the code needs."""
    pages = {
        path.name: path.read_text(encoding="utf-8-sig")
        for path in (*(ROOT / "attention_clinic").glob("*.md"), ROOT / "feedback/remedies.md")
    }
    for name in ("attention.md", "block.md", "parts.md", "remedies.md"):
        for section in re.split(r"^# ", pages[name], flags=re.M)[1:]:
            formulas = section.startswith("By another formula, right")  # told by their names
            for entry in re.split(r"^## ", section, flags=re.M)[1:]:
                head, *lines = entry.splitlines()
                if not formulas and not any(re.match(r"\S(?!  )", line) for line in lines):
                    yield f"{name}, “{head}”: say in a line below it what is told."
    known = set(re.findall(r"^## (.+)$", pages["parts.md"], re.M))
    for path in sorted((ROOT / "attention_clinic").glob("*.py")):
        for bug in re.findall(r"(?:of_parts|_bug)\(\s*\"([^\"]+)\"", path.read_text("utf-8")):
            if bug not in known:
                yield f"parts.md: {path.name} tells of “{bug}”, which has no entry here."
    for n, line in enumerate(pages["parts.md"].splitlines(), start=1):
        rest = re.sub(r"\{(n|names|kind|instead)\}", "", line)
        if "{" in rest or "}" in rest:
            yield f"parts.md, line {n}: in braces stand n, names, kind or instead only."
    for n, line in enumerate(pages["remedies.md"].splitlines(), start=1):
        parts = line[3:].split("|") if line.startswith("## ") else []
        if any(len(part.strip()) < 5 for part in parts):
            yield f"remedies.md, line {n}: “{line[3:]}” stands in too many errors. Quote more."


if __name__ == "__main__":
    main(*sys.argv[1:])
