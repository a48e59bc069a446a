"""Count lines, by room and by notebook, and fail where a room has more than its budget.

`make lint` ends with it. A room's limit is raised where a reason stands beside it. A file belongs
to a notebook that has its number in its name, as ``exercises/nb03.py``, ``03.md`` and
``figures/nb03.py``; an explorer, with its tests, to the first notebook that shows it.
"""

import re
from collections import Counter
from pathlib import Path

from tools import notebooks

# Lines of Python that a room may have.
LIMITS = {
    # Decorators of a right program; what reads the annotations of all that pages call (135). Where
    # a learner's folder lies if pip has installed the rooms (10).
    "attention_base": 1060,
    # Code that nobody here wrote, the process in which the command runs it (320), names for latent
    # attention, gates and biases of positions (180), and what strangers' classes showed (140).
    # Parts that have no effect (15). Rotary positions behind a fused layer split per head (10).
    "attention_clinic": 8095,
    "explorers": 2930,  # 15: your own text
    "feedback": 4650,  # sparse results; a mistake runs only until it differs (10)
    # A published model: its file, its pieces, its blocks, its questions and answers (750). Sizes,
    # rates and ids that no function can use, refused where notebooks call (230). Pictures on slides
    # are laid out again in less room, so that letters are large (95). A pause in a training, labels
    # of a row, chances of words without what “it” reads (50). A published order of rows (10). A GPT
    # from ids to logits, which readers missed before they wrote it (20).
    "helpers": 10_930,
    # The learner's own file (590) and judges of the classes that they write (1,900): a head, many,
    # a block and a model, then with rotary positions and with a cache, and their right programs.
    # What draws letters at random is judged by many draws (400); what finds a bug, by bugs (300).
    # What is asked again on later days (295). The map shows three parts (25). Letters that are
    # floats, and layers that begin as zeros (15). A derivative that learners measure, and
    # positions that they add (55). A step of gradient descent, and a token that is hidden, in the
    # place of a window with sinks, Witten and Bell's mixture and moved weights (5). A line that is
    # wrong on purpose, and the row that 00 asked for (5). A control that
    # the learner chooses (35). A head that takes token after token, and what is said of one that
    # is wrong (15). Texts cut along the batch, and tokens left out (10).
    # A head in a list that takes token after token, and an average projected in the same step:
    # right ways on which a page stopped (55).
    "lesson": 7_780,
    # The counter of minutes; the lint finds builds; a model fetched, and asked; own files (35). Its
    # lint reads rows and sums in the text, and counts asserts (120).
    # A report: five things first, a roster, grades for Canvas and Moodle (355).
    # Decks: notebooks are run for their pictures, a formula beside its boxes, a deck and a run
    # sheet for each session (235). The wheel's command, and the oldest packages (40). The first
    # screen of the site, and a picture for links (115).
    # Lines of one student that no program has written, or millions of them (15).
    # A phone folds what is optional (12). Which tests run the lines of a mutant (85).
    # Places for a break (8). Two cells of 00 and 05 that were one (5).
    "tools": 6730,
    # What is a student's is read, run and removed as the student, and keeps up nobody else (135).
    # Their own files are run where a teacher asks, with limits (130).
    # What a stranger's attack on a hub showed (105).
    "classroom": 2120,
    # Relatives of each kind of code that nobody here wrote; the learner's file, with its classes. A
    # published model: its file, its pieces, its answers, and what its exercises refuse (1,000). Bad
    # arguments of the model that writes, and of its files (100), and of all that pages call (250).
    # Judges of attentions (70). What nbval leaves out of a notebook's outputs, under make test (70)
    # and the lint of rows, sums and asserts (50); own files on a hub (100).
    # What students put in root's way (200); what ends its process (180); today's variants (200);
    # what strangers' classes showed of the clinic (185).
    # A class of thirty, and what Canvas and Moodle import of it (455).
    # What is asked on which day, by a clock that is set (350). The letters on every slide, votes,
    # words before questions, run sheets (140). The wheel in an empty folder, and each notebook
    # without PyTorch (160). The first screen of the site, a pause, labels of a row (100).
    # What a stranger's attack on a hub showed (250), and strangers' classes once more (70). What is
    # told where a part reads or returns something else: it showed four faults (70).
    # What tools print and decide, in quick tests: only slow ones saw a random change there (120).
    # What learners with empty files tried (20).
    # What random changes showed: what is told of answers and builds, drawings, defaults,
    # whatever right results are made into on their way back (670). Proofs of four predictions
    # that stand before a result that was only told, and answers to two exercises (145). A head that
    # takes token after token, as its page proposes (15). The same two exercises (20).
    # The control of 15.6 (50), the diagram of a GPT (10). What two learners' designs showed (70).
    "tests": 43_810,
}
# Lines of Python and of Markdown pages, and of tests, for one notebook: a star where it has more.
BUDGET = {"Python": 600, "pages": 320, "tests": 1250}
ENGINE = "engine"


def lines_by_room(root: Path) -> dict[str, int]:
    """The lines of Python in each room that has a limit."""
    return {room: sum(map(_lines, (root / room).rglob("*.py"))) for room in LIMITS}


def lines_by_notebook(root: Path) -> dict[str, Counter[str]]:
    """The lines of each notebook, by number, and of the engine; by kind."""
    shown_by = {
        name: path.name[:2]
        for path in reversed(notebooks.names(root / "notebooks"))
        for name in re.findall(r"\bexplore_([a-z_]+)", path.read_text(encoding="utf-8"))
    }
    found: dict[str, Counter[str]] = {number: Counter() for number in sorted(shown_by.values())}
    for folder in (*notebooks.ROOMS, "tests"):
        kinds = {".py": "tests"} if folder == "tests" else {".py": "Python", ".md": "pages"}
        for path in sorted((root / folder).rglob("*.*")):
            kind = kinds.get(path.suffix)
            if not kind or path.name == "README.md":
                continue
            name = path.stem.removeprefix("test_")
            number = re.fullmatch(r"(?:nb)?(\d\d)", name)
            of_explorer = path.parent.name == "explorers" and shown_by.get(name)
            owner = number[1] if number else of_explorer or ENGINE
            found.setdefault(owner, Counter())[kind] += _lines(path)
    return found


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def main() -> None:
    """Print both tables."""
    told = ", ".join(f"{most} of {kind}" for kind, most in BUDGET.items())
    print(f"Lines that a notebook takes (*: more than {told}), and all share:")
    print(f"{'':8}" + "".join(f"{kind:>9}" for kind in BUDGET))
    for owner, counts in sorted(lines_by_notebook(notebooks.ROOT).items()):
        cells = (
            f"{counts[kind]:8}{'*' if owner != ENGINE and counts[kind] > most else ' '}"
            for kind, most in BUDGET.items()
        )
        print(f"{owner:8}{''.join(cells)}".rstrip())
    counted = lines_by_room(notebooks.ROOT)
    print("Lines of Python in each room, and how many it may have:")
    for room, lines in counted.items():
        print(f"{room:18}{lines:7,}  of {LIMITS[room]:7,}")
    if over := [room for room, lines in counted.items() if lines > LIMITS[room]]:
        notebooks.stop(
            f"Too many lines in {' and '.join(over)}: make it smaller, or raise LIMITS in "
            "tools/budget.py and say there why."
        )


if __name__ == "__main__":
    main()
