"""Every key is computed, and so is every number and every piece of code in choices and hints."""

from dataclasses import replace

import nbformat
import pytest

from helpers.lesson.exercises import EXERCISES, PREDICTIONS
from helpers.lesson.question import Choice
from tests.proofs import LOOKED_AT, PROOFS, Text, fingerprint, load, nb07, prove
from tools.notebooks import SOURCE as NOTEBOOKS
from tools.prose_numbers import numbers

load()
PLAIN = ("00.p2", "01.p1", "02.p1", "05.p2")  # quick predictions about numbers or shapes


def proof_of(id_):
    assert id_ in PROOFS, f"{id_} has no proof: write one in tests/proofs/nb{id_[:2]}.py"
    return PROOFS[id_]


@pytest.mark.parametrize("id_", PREDICTIONS)
def test_the_key_is_the_one_true_choice(id_):
    prove(PREDICTIONS[id_], proof_of(id_))


@pytest.mark.parametrize("id_", EXERCISES)
def test_hints_say_what_is_so_and_the_last_one_leads_to_a_right_answer(id_):
    prove(EXERCISES[id_], proof_of(id_))


@pytest.mark.parametrize("id_", [*PREDICTIONS, *EXERCISES])
def test_somebody_looked_at_the_proof_after_the_last_edit(id_):
    now = fingerprint((PREDICTIONS | EXERCISES)[id_])
    assert now == LOOKED_AT[id_], (
        f"A text of {id_} was edited. Read its proof in tests/proofs/nb{id_[:2]}.py: is it still "
        f'one of the new text, word by word? Then write @proves("{id_}", "{now}").'
    )


# No code prints what these ask for: an order of magnitude, or a variance that the text derives.
PRINTED_NOWHERE = {"01.p3", "02.p2", "05.p1", "07.p2"}
WITH_NUMBERS = [id_ for id_, p in PREDICTIONS.items() if numbers(p.choices[p.answer].text)]


@pytest.mark.parametrize("id_", [id_ for id_ in WITH_NUMBERS if id_ not in PRINTED_NOWHERE])
def test_the_notebook_shows_the_numbers_of_the_right_choice(id_):
    prediction = PREDICTIONS[id_]
    (path,) = NOTEBOOKS.glob(f"{id_[:2]}_*.ipynb")
    cells = [c for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
    asked = next(i for i, cell in enumerate(cells) if f'predict("{id_}")' in cell.source)
    near = [output for i in (asked - 1, asked + 1, asked + 2) for output in cells[i].outputs]
    right = numbers(prediction.choices[prediction.answer].text)
    assert any(stand_together(right, numbers(words_of(output))) for output in near)


def words_of(output):
    return output.get("text") or output.get("data", {}).get("text/plain", "")


def stand_together(wanted, shown):
    runs = [shown[i : i + len(wanted)] for i in range(len(shown))]
    return any(
        len(run) == len(wanted) and all(w.shows(s.value) for w, s in zip(wanted, run, strict=True))
        for run in runs
    )


def test_no_proof_is_left_of_a_text_that_is_gone():
    assert PROOFS.keys() == EXERCISES.keys() | PREDICTIONS.keys()


@pytest.mark.slow
def test_with_two_blocks_the_loss_falls_without_residual_connections():
    losses = nb07.train_reverser(2, residual=False, n_step=100)  # why choice a of 07.p5 is wrong
    assert losses[-1] < nb07.GUESSING - 0.3
    losses = nb07.train_reverser(4, residual=False, n_step=100)
    assert losses[-1] > nb07.GUESSING - 0.3


# ---------------------------------------------------------------- proofs see what is wrong


def with_text(prediction, letter, text):
    choice = replace(prediction.choices[letter], text=text)
    return replace(prediction, choices=prediction.choices | {letter: choice})


@pytest.mark.parametrize("id_", PLAIN)
def test_any_other_key_is_refused(id_):
    prediction = PREDICTIONS[id_]
    for letter in prediction.choices.keys() - {prediction.answer}:
        with pytest.raises(AssertionError, match=f"the key is '{letter}', but"):
            prove(replace(prediction, answer=letter), PROOFS[id_])


@pytest.mark.parametrize("id_", PLAIN)
def test_a_second_true_choice_is_refused(id_):
    prediction = PREDICTIONS[id_]
    right = prediction.choices[prediction.answer]
    for letter in prediction.choices.keys() - {prediction.answer}:
        with pytest.raises(AssertionError):
            prove(with_text(prediction, letter, right.text), PROOFS[id_])
    more = replace(prediction, choices=prediction.choices | {"e": Choice("none of these", "No.")})
    with pytest.raises(AssertionError, match="e: its proof must read the whole choice"):
        prove(more, PROOFS[id_])


@pytest.mark.parametrize(
    ("id_", "letter", "new"),
    [
        ("00.p2", "a", "(3, 5)"),
        ("01.p1", "a", "4, the mean of 6, 2, 1"),
        ("01.p2", "c", "outputs 5, 6 and 7"),
        ("02.p1", "b", "10 10 9"),
        ("05.p2", "a", "it stays 0.84, because softmax normalises the row"),
        ("06.p1", "d", "swap its first two groups of eight rows"),
    ],
)
def test_a_wrong_choice_made_true_by_its_numbers_is_refused(id_, letter, new):
    with pytest.raises(AssertionError):
        prove(with_text(PREDICTIONS[id_], letter, new), PROOFS[id_])


def test_other_words_are_refused_until_somebody_looks_at_the_proof():
    edited = with_text(PREDICTIONS["01.p4"], "d", "none of the eight")
    with pytest.raises(AssertionError, match="Is what it says still true"):
        prove(edited, PROOFS["01.p4"])


@pytest.mark.parametrize("text", ["Call x.mean(dim=0).", "axis 2", "a `loop`", "of length T"])
def test_a_number_or_code_that_nobody_read_is_told(text):
    assert Text("99.1, 1", text).unproved() == [text]
    assert not Text("99.1, 1", "Look at the axes, and name one.").unproved()
    read = Text("99.1, 1", text)
    read.read(text)
    assert not read.unproved()


def test_holes_give_what_stands_in_the_text():
    text = Text("99.1, 1", "Two of (3, C) and -0.5, 10⁻⁸ or 531,000 by `f(x)`: 1, 2 and 3.")
    assert text.read("{code} of {shape} and {}, {} or {} by `{code}`: {numbers}.") == (
        ("Two", (3, "C"), -0.5, 10**-8, 531000, "f(x)", [1, 2, 3])
    )
