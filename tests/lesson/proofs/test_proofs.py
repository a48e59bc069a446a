"""Every key is computed, and so is every number and every piece of code in choices and hints."""

import re
from dataclasses import replace

import nbformat
import pytest

from lesson.exercises import EXERCISES, PREDICTIONS
from lesson.question import Choice, Prediction
from tests.lesson.examples import CALLED
from tests.lesson.proofs import PROOFS, Text, load, prove
from tests.lesson.proofs.reading import items, same, together
from tools.notebooks import SOURCE as NOTEBOOKS
from tools.prose_numbers import numbers

load()
# Their proofs train or measure again what a cell of the notebook does, and asserts.
TRAINED = (
    "05.p4",
    "08.p3",
    "08.p4",
    "09.p3",
    "10.p1",
    "12.p1",
    "12.p2",
    "12.p5",
    "12.p7",
    "12.p8",
    "14.p3",
    "14.p6",
    "14.p7",
)
PLAIN = ("00.p2", "01.p1", "02.p1")  # quick predictions about numbers or shapes


@pytest.mark.parametrize(
    "id_",
    [
        pytest.param(id_, marks=[pytest.mark.slow] * (id_ in TRAINED))
        for id_ in (*PREDICTIONS, *CALLED)
    ],
)
def test_the_key_is_the_one_true_choice_and_the_last_hint_leads_to_a_right_answer(id_):
    assert id_ in PROOFS, f"{id_} has no proof: write one in tests/lesson/proofs/nb{id_[:2]}.py"
    prove((PREDICTIONS | EXERCISES)[id_], PROOFS[id_])


# No code prints what these ask for: a number of numbers, an order of magnitude, a ratio, or a
# variance that is derived, a bound or a range.
PRINTED_NOWHERE = {"01.p1", "01.p3", "05.p1", "05.p2", "07.p2", "12.p1", "12.p2", "12.p5"}
PRINTED_NOWHERE |= {"08.p3", "08.p4", "12.p7", "12.p8", "13.p2", "13.p4"}
WITH_NUMBERS = [id_ for id_, p in PREDICTIONS.items() if numbers(p.choices[p.answer].text)]


@pytest.mark.parametrize("id_", [id_ for id_ in WITH_NUMBERS if id_ not in PRINTED_NOWHERE])
def test_the_notebook_shows_the_numbers_of_the_right_choice(id_):
    (path,) = NOTEBOOKS.glob(f"{id_[:2]}_*.ipynb")
    cells = [c for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
    asked = next(i for i, cell in enumerate(cells) if f'predict("{id_}")' in cell.source)
    near = [output for i in (asked - 1, asked + 1, asked + 2) for output in cells[i].outputs]
    texts = [one.get("text") or one.get("data", {}).get("text/plain", "") for one in near]
    right = numbers(PREDICTIONS[id_].choices[PREDICTIONS[id_].answer].text)
    assert any(together(right, numbers(text), lambda w, s: w.shows(s.value)) for text in texts)


def test_no_proof_is_left_of_a_text_that_is_gone():
    assert PROOFS.keys() == CALLED.keys() | PREDICTIONS.keys()


# ---------------------------------------------------------------- proofs see what is wrong


def with_text(prediction, letter, text):
    choice = replace(prediction.choices[letter], text=text)
    return replace(prediction, choices=prediction.choices | {letter: choice})


@pytest.mark.parametrize("id_", PLAIN)
def test_any_other_key_and_a_second_true_choice_are_refused(id_):
    prediction = PREDICTIONS[id_]
    right = prediction.choices[prediction.answer]
    for letter in prediction.choices.keys() - {prediction.answer}:
        with pytest.raises(AssertionError, match=f"the key is '{letter}', but"):
            prove(replace(prediction, answer=letter), PROOFS[id_])
        with pytest.raises(AssertionError):
            prove(with_text(prediction, letter, right.text), PROOFS[id_])
    more = replace(prediction, choices=prediction.choices | {"e": Choice("none of these", "No.")})
    with pytest.raises(AssertionError, match="a choice without a proof"):
        prove(more, PROOFS[id_])


@pytest.mark.parametrize(
    ("id_", "letter", "new"),
    [
        ("00.p2", "a", "(3, 5)"),
        ("01.p1", "a", "4, the mean of 6, 2, 1"),
        ("01.p2", "c", "outputs 5, 6 and 7"),
        ("02.p1", "b", "10 10 9"),
        ("05.p1", "c", "in B, about 144 times as far"),
    ],
)
def test_a_wrong_choice_made_true_by_its_numbers_is_refused(id_, letter, new):
    with pytest.raises(AssertionError):
        prove(with_text(PREDICTIONS[id_], letter, new), PROOFS[id_])


@pytest.mark.parametrize(("id_", "letters"), [("01.p4", "ad"), ("04.p3", "ab")])
def test_choices_that_only_words_tell_apart_may_not_change_places(id_, letters):
    choices, (a, b) = PREDICTIONS[id_].choices, letters
    swapped = choices | {a: choices[b], b: choices[a]}
    with pytest.raises(AssertionError):
        prove(replace(PREDICTIONS[id_], choices=swapped), PROOFS[id_])


def test_words_may_be_edited_freely():
    choice = replace(PREDICTIONS["01.p2"].choices["b"], text="5, then 6, and 7 as well")
    question = "Somebody changes token 5 of 8. Which means are no longer the same?"
    choices = PREDICTIONS["01.p2"].choices | {"b": choice}
    prove(replace(PREDICTIONS["01.p2"], question=question, choices=choices), PROOFS["01.p2"])


def test_a_choice_that_no_number_tells_from_the_others_needs_a_word_of_its_own():
    with pytest.raises(AssertionError, match="name it by a word"):
        choices = {"a": Choice("more", "No."), "b": Choice("less", "Yes.")}
        asked = Prediction("99.p1", "More or less?", choices, "b")
        prove(asked, lambda texts: {"a": False, "b": True})


def test_a_number_or_code_that_no_proof_accounts_for_is_told():
    hints = ("Call x.mean(dim=0).", *EXERCISES["00.2"].hints[1:])
    with pytest.raises(AssertionError, match="no proof accounts for"):
        prove(replace(EXERCISES["00.2"], hints=hints), PROOFS["00.2"])


FOUND = {
    "Of two tokens, 531,000 or -0.5, half a one, 10⁻⁸": [2, 531000, -0.5, 0.5, 1e-8],
    "The last axis, twice: an eighth of the third axis": [-1, 2, 1 / 8, 2],
    "The last one, first and second: another one.": [],
    "(3, C) is 3 × 3, (out, in) or (2,)": [(3, "C"), (3, 3), ("out", "in"), (2,)],
    "√16 = 4, 16/9, e⁰, 2 · ⅓ and e to the power of 0": [4, 4, 16 / 9, 1, 2 / 3, 1],
    "x = x + branch in W_O, of the 3C rows": ["x + branch", "W_O", "3C"],
    "W_O is W_O, T is T, and `loop` is `loop`": ["W_O", "T", "loop", "loop"],
    "Call x.mean(dim=0)[:, None] ** 2. Or .float()": ["x.mean(dim=0)[:, None] ** 2", ".float()"],
    "cells [t, t - 1] (see dim=-1, as in 02.2)": ["[t, t - 1]", "dim=-1", "02.2"],
    "The sign @ is a product, and a (small) aside is not": [],
}


@pytest.mark.parametrize("text", FOUND)
def test_numbers_and_code_are_found(text):
    said = [item.value for item in items(text)]
    assert len(said) == len(FOUND[text]) and all(map(same, said, FOUND[text]))


def test_code_is_run_and_numbers_are_compared_as_the_text_rounds():
    text = Text("99.1, 1", "t + 1 is 0.33 of (B, t + 1) or `f(x)`")
    assert text.says(4, 1 / 3, (2, 4), ..., t=3, B=2) == "f(x)"
    for wrong in ((5, 1 / 3, (2, 4)), (4, 0.34, (2, 4)), (4, 1 / 3, (2, 5))):
        with pytest.raises(AssertionError, match="but it is"):
            text.says(*wrong, ..., t=3, B=2)
    with pytest.raises(AssertionError, match="its proof knows 1"):
        text.says(4, t=3)


# "all of them: the order is different" gives a reason; "4 · (8 + 1)" or "3 : 1" do not.
REASON = re.compile(r"[a-z]: [a-z]|\b(?:because|since|so that)\b")


@pytest.mark.parametrize("id_", PREDICTIONS)
def test_a_reason_does_not_tell_right_from_wrong(id_):
    with_reason = [bool(REASON.search(c.text)) for c in PREDICTIONS[id_].choices.values()]
    assert all(with_reason) or not any(with_reason), [*PREDICTIONS[id_].choices.values()]


def test_the_longest_choice_is_not_the_one_to_take():
    longest = [
        max(p.choices, key=lambda letter: len(p.choices[letter].text)) == p.answer
        for p in PREDICTIONS.values()
    ]
    assert sum(longest) <= len(longest) / 2
