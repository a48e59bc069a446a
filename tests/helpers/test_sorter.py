"""The model of notebook 09: its words, its task, what its masks do, and that it learns to sort."""

from functools import lru_cache

import pytest
import torch

from helpers.attention import padding_mask
from helpers.letters import train
from helpers.sorter import PAD, START, Sorter, alphabetical, as_words, fill, sort

WORDS = ["a", "cat", "lemon", "background"]


@lru_cache
def trained():
    torch.manual_seed(0)
    model = Sorter()
    train(model, alphabetical, 500, 0.004, falling=True)
    return model


def test_words_are_filled_up_behind():
    ids = fill(WORDS)
    assert ids.shape == (4, 10) and ids[1].tolist() == [2, 0, 19] + [PAD] * 7
    assert as_words(ids) == ["a_________", "cat_______", "lemon_____", "background"]


def test_the_task_asks_for_the_letters_in_alphabetical_order():
    generator, lengths = torch.Generator().manual_seed(0), set()
    for _ in range(200):
        ids, written, targets = alphabetical(5, generator)
        lengths.add(ids.shape[1])
        assert torch.equal(ids.sort(dim=1).values, targets)
        assert (targets.diff(dim=1) > 0).all()  # no doubled letters
        assert (written[:, 0] == START).all() and torch.equal(written[:, 1:], targets[:, :-1])
    assert lengths == {*range(1, 11)}


def test_all_letters_are_drawn_and_words_differ():
    ids = torch.cat(
        [alphabetical(32, torch.Generator().manual_seed(s))[0].flatten() for s in (0, 1)]
    )
    assert ids.unique().tolist() == [*range(26)]


@pytest.mark.slow
def test_it_learns_to_sort_words_of_all_lengths():
    model, ids = trained(), fill(WORDS)
    assert sort(model, ids, padding_mask(ids != PAD)) == ["".join(sorted(word)) for word in WORDS]
    assert [sort(model, fill([word]))[0] for word in WORDS] == ["".join(sorted(w)) for w in WORDS]


@pytest.mark.slow
def test_with_its_mask_padding_changes_nothing_and_without_it_does():
    model, ids = trained(), fill(WORDS)
    mask = padding_mask(ids != PAD)
    with torch.no_grad():
        alone = model(ids[1:2, :3], fill(["^a"]))
        closed, read = (model(ids, fill(["^a"]).expand(4, -1), m)[1:2] for m in (mask, None))
    torch.testing.assert_close(alone, closed, atol=1e-4, rtol=1e-4)
    assert (alone - read).abs().max() > 0.1


def test_the_weights_are_those_of_the_cross_attention():
    model, ids = trained(), fill(WORDS)
    words, weights = sort(model, ids, padding_mask(ids != PAD), return_weights=True)
    assert weights.shape == (4, 10, 10)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(4, 10))
    assert (weights[1, :, 3:] == 0).all() and (weights[1, :3, :3] > 0).all()
    places = [WORDS[3].index(letter) for letter in words[3]]
    assert weights[3].argmax(dim=1).tolist() == places


def test_the_decoder_does_not_see_what_it_has_not_written():
    model = trained()
    with torch.no_grad():
        memory = model.read(fill(["cat"]))
        short, long = (model.write(memory, fill([text])) for text in ("^a", "^ac"))
    torch.testing.assert_close(short, long[:, :2], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("falling", [False, True])
def test_the_learning_rate_falls_if_asked(falling, monkeypatch):
    rates = []
    step = torch.optim.Adam.step

    def noted(self):
        rates.append(self.param_groups[0]["lr"])
        step(self)

    monkeypatch.setattr(torch.optim.Adam, "step", noted)
    train(Sorter(), alphabetical, 4, 0.008, falling=falling)
    assert rates == pytest.approx([0.008, 0.006, 0.004, 0.002] if falling else [0.008] * 4)


@pytest.mark.parametrize(
    ("words", "error", "told"),
    [
        ("cat", TypeError, r"must be a list, .*: words=\['cat'\]"),
        ([], ValueError, "nothing to fill up"),
        (["cat", "Dog"], ValueError, "a to z; got 'D'"),
    ],
)
def test_what_is_no_list_of_words_is_refused(words, error, told):
    with pytest.raises(error, match=told):
        fill(words)
