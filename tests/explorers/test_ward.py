import itertools

from attention_base.numbers import joined, number
from explorers import explore_ward
from helpers.pictures.table import Cell, Table
from helpers.ward import EIGHT, QUESTIONS, ask, broken, wrong_lines
from tests.explorers.reading import controls, drawing, words
from tests.helpers.test_ward import FOUND_BY

HIDDEN = dict(
    zip(
        [f"attention {i}" for i in "ABCDEFGH"],
        [
            "heads tiled", "mask of -1e4", "softmax over the queries", "mask at the top left",
            "pairs and halves mixed up", "batch norm", "mask dropped when weights are asked for",
            "no mask behind kept keys",
        ],
        strict=True,
    )
)  # fmt: skip
FAILS = {"the right one": [], **FOUND_BY}


def model(attention, *questions):
    asked = [name for name in dict.fromkeys(questions) if name != "none"]
    bug = HIDDEN[attention]
    agrees = {n: [(q in f) == (q in FAILS[bug]) for q in asked] for n, f in FAILS.items()}
    left = [name for name, ok in agrees.items() if all(ok)]
    answers = {
        q: f"fails, wrong by {number(w)}" if w else "passes"
        for q, w in ask(broken(bug), asked).items()
    }
    own = [*answers.values(), f"{len(left)} of 9"]
    rows = [(attention, [Cell(text, "bold") for text in own])]
    for name, same in agrees.items():
        cells = [
            Cell("fails" if q in FAILS[name] else "passes", "plain" if ok else "masked")
            for q, ok in zip(asked, same, strict=True)
        ]
        rows.append((name, [*cells, Cell("yes", "marked") if all(same) else Cell("no", "faint")]))
    table = Table([*asked, "still possible"], rows, corner="attention", framed_row=0)

    told = f"{len(left)} of the 9 still fit. Other questions tell them apart."
    if len(left) == 1:
        told = "1 of the 9 still fits. This is the bug:"
    shown = left if len(left) == 1 else []
    parts = [[n, wrong_lines(n), *EIGHT[n].message.splitlines()] for n in shown]
    say = "; ".join(f"{q}: {answer}" for q, answer in answers.items())
    chosen = [name for name in questions if name != "none"]
    again = [
        f"“{q}” is asked {chosen.count(q)} times: the answer stays the same."
        for q in asked
        if chosen.count(q) > 1
    ]
    say = f"{attention}. {say}. Still possible: {joined(left)}. {told} {' '.join(again)}"
    for name, *more in parts:
        say += f" {name}: {' '.join(more)}"
    hatched = f"Hatched: {attention} answers otherwise, so it is not this one."
    meant = [f"{q}: {QUESTIONS[q].__doc__}" for q in asked]
    return [" ".join(say.split()), *meant, table, *again, hatched, told, *itertools.chain(*parts)]


AGAIN = ("none", *QUESTIONS)
CONTROLS = {
    "attention": ("attention A", tuple(HIDDEN)),
    "first question": ("shape", tuple(QUESTIONS)),
    "second question": ("none", AGAIN),
    "third question": ("none", AGAIN),
}
CASES = [
    (
        {},
        [
            *itertools.product(HIDDEN, ["prefix", "in pieces"], ["none"], ["none", "reference"]),
            *itertools.product(["attention A"], QUESTIONS, ["shifted"], ["in training"]),
            *itertools.product(["attention D"], ["shape"], AGAIN, ["in pieces", "none"]),
            *itertools.product(["attention H"], ["large scores"], ["none"], AGAIN),
        ],
    )
]


def test_each_is_named_by_two_questions_and_one_by_three():
    explorer, fewest = explore_ward(), {}
    first, second, third = list(controls(explorer).values())[1:]
    for name in HIDDEN:
        explorer.controls["attention"].value = name
        for n in (3, 2):
            for asked in itertools.combinations(list(QUESTIONS)[1:], n):
                for control, question in zip(
                    (first, second, third), [*asked, "none"], strict=False
                ):
                    control.value = question
                if drawing(explorer).find("pre") is not None:
                    fewest[name] = n
                    break
    assert fewest == dict.fromkeys(HIDDEN, 2) | {"attention A": 3}


def test_a_question_that_is_asked_twice_counts_once():
    explorer = explore_ward()
    for control in list(controls(explorer).values())[1:]:
        control.value = "prefix"
    assert [words(th) for th in drawing(explorer).iter("th")][1:3] == ["prefix", "still possible"]
