"""What the published model has said, as it is stored, and what is told where it is asked more."""

import re

import pytest
import torch

from helpers.real import study
from lesson.builds import right_08
from lesson.exercises.nb15 import fill

CAT, SOUP = "the cat was warm so it", "the soup was warm so it"


@pytest.fixture(autouse=True)
def no_model(monkeypatch):
    monkeypatch.setenv("ATTENTION_REAL", "0")


def test_the_two_texts_are_answered_as_stored():
    assert [f"{study.log_odds(text):.2f}" for text in (CAT, SOUP)] == ["4.90", "-0.93"]
    (word, p), *others = study.next_words(CAT, 4)
    assert word == " was" and p > 4 * max(p for _, p in others)


def test_stored_answers_are_tensors_of_the_right_shape():
    assert study.maps_of(CAT).shape == (30, 9, 6, 6)
    assert torch.allclose(study.maps_of(CAT).sum(dim=-1), torch.tensor(1.0), atol=0.01)
    moved = study.log_odds_with_vector_of(CAT, SOUP, 0)
    assert moved.shape == (6,)
    assert moved[1] == pytest.approx(study.log_odds(SOUP), abs=0.01)  # "cat" became "soup"


def test_a_question_that_is_not_stored_says_what_to_do():
    with pytest.raises(study.NotInstalled, match="`make real`, typed into a terminal"):
        study.log_odds("no question of the notebook")


def test_the_whole_model_has_said_what_is_stored_and_that_it_is():
    attention = right_08.MultiHeadAttention(576, 9)
    said = study.whole_model_in(attention, fill, "The cat was warm, so it")
    how, _, told = said.partition("\n\n")
    assert re.match(r"largest difference of a logit: 0\.00\d\d\nThe cat was warm, so it \w", told)
    assert how.startswith("This is stored, of the solution's class.") and "`make real`" in how
    assert max(map(len, how.splitlines())) <= 80
    with pytest.raises(study.NotInstalled):
        study.whole_model_in(attention, fill, "another text")


def test_jupyter_shows_the_words_alone():
    with pytest.raises(study.NotInstalled) as asked:
        study.log_odds("no question of the notebook")
    assert " ".join(asked.value._render_traceback_()) == str(asked.value)


def test_three_heads_have_the_shapes_of_a_layer_and_six_of_nine_are_weaker():
    x, theirs, query, key, value, proj = study.three_heads()
    assert x.shape == (6, 576)
    assert torch.equal(theirs, study.maps_of(CAT)[13, 8])
    assert [tuple(z.shape) for z in (query, key, value, proj)] == [
        (576, 576),
        (192, 576),
        (192, 576),
        (576, 576),
    ]
    for z in (query, key, value):
        weakest, weaker, own = z.chunk(3)
        assert torch.equal(weakest * 4, own) and torch.equal(weaker * 2, own)
    assert (proj[:, :384] == 0).all() and (proj[:, 384:] != 0).any()


@pytest.mark.parametrize(
    ("new", "said", "same"),
    [
        (1.0001, 1.0, True),
        (1.01, 1.0, False),
        ([1, [2.0]], [1, [2.001]], True),
        ([1], [1, 2], False),
    ],
)
def test_answers_agree_up_to_rounding(new, said, same):
    assert study._agree(new, said) is same


def test_a_question_names_tensors_by_their_numbers_and_places():
    a, b = torch.zeros(2, 3), torch.zeros(3, 2)
    assert study._key(a) == study._key(a.clone() + 1e-5) != study._key(b)
    assert study._key({(0, 1): a}) != study._key({(1, 0): a})
    assert study._key("a text") == "'a text'"
