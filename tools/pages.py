"""Try the pages of prose after an edit: `make pages`, or `make pages NB=03` for one notebook.

First the form of every page is looked at, line by line, so that a slip is told where it stands.
Then each mistake is put into its exercise, which has to refuse it by its own name: one that changes
no result, or gives the same results as another one, is told. The pages that `diagnose` and the
errors of PyTorch stand on are tried as well. The exit code is 1 where anything is to mend.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import notebooks

HELPERS = notebooks.ROOT / "helpers"
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
    r"In (an )?exercise(?!, “.+”: |: )s?": "no message for exercises. It begins with "
    "`In an exercise: ` or `In an exercise, “its name there”: `.",
    r"# (terms|Term|TERMS)\b": "no heading. Glossary terms stand below `# Terms`.",
}
NO_ITEM = re.compile(r"-[^- ]|[*–•+] ")


def main(number: str = "") -> None:
    """Try one page, or all of them."""
    chosen = [path.name[:2] for path in notebooks.chosen(number)]
    slips = [slip for path in sorted(HELPERS.rglob("*.md")) for slip in slips_in(path)]
    if slips:
        notebooks.stop("\n".join(slips))
    try:
        from helpers.lesson.exercises import EXERCISES, PREDICTIONS, TERMS
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
            errors = [outcome.error for outcome in exercise.remembered(mistake.code)]
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
    """Say which known bugs make no program, tell nothing, or leave out what the code asks for."""
    from helpers.clinic import bugs, wiring
    from helpers.known import Known, PageError, read

    for bug in [*bugs.IN_ONE_HEAD, *bugs.WITH_SEVERAL, *bugs.VARIANTS, *bugs.VARIANT_BUGS]:
        try:
            bugs.with_bugs(bug)
        except PageError as error:
            yield str(error)
    names = inspect.signature(wiring.block_output).parameters
    for bug in wiring.WIRING_BUGS:
        where = f"{bug.where}, “{bug.name}”"
        if unknown := bug.settings.keys() - names:
            known = [n for n, one in names.items() if one.kind is one.KEYWORD_ONLY]
            yield f"{where}: there is no setting {min(unknown)}. Choose from {', '.join(known)}."
            continue
        try:
            wiring.block_output(1.0, *[lambda x: x] * 4, **bug.settings)
        except Exception as error:
            yield f"{where}: a block cannot be put together like this ({error!r})."

    def entries(name: str) -> list[Known]:
        return [one for section in read(HELPERS / name) for one in section.entries]

    parts = {one.name for one in entries("clinic/parts.md")}
    for path in sorted((HELPERS / "clinic").glob("*.py")):
        for name in re.findall(
            r"(?:of_parts|_bug)\(\s*\"([^\"]+)\"", path.read_text(encoding="utf-8")
        ):
            if name not in parts:
                yield f"parts.md: {path.name} tells of “{name}”, which has no entry here."
    for one in entries("clinic/parts.md"):
        braces = re.findall(r"\{(\w*)\}", one.message)
        if len(braces) != max(one.message.count("{"), one.message.count("}")) or not {*braces} <= {
            "n",
            "names",
            "kind",
            "instead",
        }:
            yield f"{one.where}, “{one.name}”: in braces stand n, names, kind or instead only."
    right = {form.where for form in bugs.VARIANTS}  # told by their names
    for page in ("clinic/attention.md", "clinic/block.md", "clinic/parts.md", "lesson/remedies.md"):
        for one in entries(page):
            if not one.message and one.where not in right:
                yield f"{one.where}, “{one.name}”: say in a line below it what is told."
    for one in read(HELPERS / "lesson/remedies.md")[0].entries:
        for part in one.name.split("|"):
            if len(part.strip()) < 5:
                yield f"{one.where}: “{part}” stands in too many errors. Quote more of one."


if __name__ == "__main__":
    main(*sys.argv[1:])
