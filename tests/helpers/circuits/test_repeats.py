"""Letters that repeat themselves, and what training finds in two layers of attention."""

import pytest
import torch
import torch.nn.functional as F

from attention_base.same import one_thread
from helpers.circuits import (
    AttentionOnly,
    attention_layers,
    copied_right,
    equal_weights,
    followers,
    held_out,
    induction_score,
    letter_followers,
    on_known_letters,
    patch,
    previous_token_score,
    repeated,
    tokens_back,
    train_on_repeats,
)
from helpers.opened import opened


def texts(B=200, n_letter=26):
    return repeated(B, torch.Generator().manual_seed(1), n_letter)


def test_each_text_repeats_itself_after_its_own_period():
    ids, period = texts()
    assert ids.shape == (200, 49) and period.shape == (200, 1)
    assert set(period.flatten().tolist()) == set(range(12, 25))
    assert ids.min() == 0 and ids.max() == 25 and texts(n_letter=3)[0].max() == 2
    for text, p in zip(ids, period.flatten().tolist(), strict=True):
        assert torch.equal(text[p:], text[:-p])
        assert (text[:12] != text[12:24]).any() or p == 12
    distinct = [len(set(text[:12].tolist())) for text in ids]
    assert min(distinct) < 12, "letters may repeat within a period"


def test_known_letters_are_those_after_the_first_period():
    class Copies(AttentionOnly):
        """Knows each letter one period back; before, it guesses the letter 0."""

        def forward(self, ids):
            texts, period = repeated(200, torch.Generator().manual_seed(1))
            answer = torch.where(torch.arange(48) >= period, texts[:, 1:], 0)
            return 50.0 * F.one_hot(answer, 26)

    loss, right = on_known_letters(Copies(1))
    assert right == 1 and loss < 1e-6
    loss, right = on_known_letters(AttentionOnly(1))
    assert right < 0.15 and loss > 3


def test_the_weights_are_those_of_the_forward_pass():
    torch.manual_seed(0)
    model, (ids, _) = AttentionOnly(2, n_head=2), texts(3)
    logits, weights = model(ids[:, :-1]), model.attention_weights(ids[:, :-1])
    assert weights.shape == (2, 3, 2, 48, 48) and len(attention_layers(model)) == 2
    with patch(model, 0, weights[0]), patch(model, 1, weights[1]):
        assert torch.allclose(model(ids[:, :-1]), logits, atol=1e-5)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([[0, 26]]), ValueError, "from 0 to V - 1 = 25, got 26"),
        (torch.tensor([0, 1]), ValueError, r"\(B, T\) with at least one token, got \(2,\)"),
        (torch.zeros(1, 2), TypeError, "whole numbers"),
    ],
)
def test_what_are_no_ids(ids, error, message):
    for read in (AttentionOnly(1), AttentionOnly(1).attention_weights):
        with pytest.raises(error, match=message):
            read(ids)


def test_training_is_measured_every_tenth_step_and_is_the_same_each_time():
    runs = []
    for _ in range(2):
        torch.manual_seed(0)
        model, watched = AttentionOnly(2, C=16), []
        before = on_known_letters(model)
        runs.append(train_on_repeats(model, n_step=20, watch=watched.append))
        assert watched == [moment.step for moment in runs[-1]] == [0, 10, 20]
        assert runs[-1][0][1:] == before
    assert runs[0] == runs[1] and runs[0][-1].loss < runs[0][0].loss


def test_the_held_out_texts_are_those_that_are_measured():
    ids, period = held_out()
    assert torch.equal(ids, texts()[0]) and torch.equal(period, texts()[1])
    assert held_out(150)[0].max() > 100


def test_a_rule_that_copies_is_right_where_its_letters_are_unambiguous():
    one, two, three = map(copied_right, (1, 2, 3))
    assert 0.82 < one < 0.86 and 0.94 < two < 0.98 and one < two
    assert three < 1, "after a period has begun anew, three letters are not known yet"


def by_hand(n_same):
    """`copied_right`, text by text and letter by letter."""
    right = known = 0
    for text, p in zip(*(one.tolist() for one in held_out()), strict=True):
        for t in range(p[0], 48):
            votes = [0] * 26
            for d in range(12, 25):
                s = t - d
                if (
                    s - n_same + 1 >= 0
                    and text[s - n_same + 1 : s + 1] == text[t - n_same + 1 : t + 1]
                ):
                    votes[text[s + 1]] += 1
            right += votes.index(max(votes)) == text[t + 1]
            known += 1
    return right / known


@pytest.mark.parametrize("n_same", [1, 2])
def test_the_rule_counted_letter_by_letter(n_same):
    assert copied_right(n_same) == pytest.approx(by_hand(n_same), abs=1e-9)


def test_distinct_letters_occur_once_in_a_period():
    ids, period = held_out(60, distinct=True)
    for text, p in zip(ids.tolist(), period.flatten().tolist(), strict=True):
        assert len(set(text[:p])) == p and text[p:] == text[:-p]
    assert ids.max() == 59 and len(ids.unique(dim=0)) == 200


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: held_out(23, distinct=True),
            ValueError,
            "n_letter must .* at least 24, got 23",
        ),
        (lambda: repeated(0, torch.Generator()), ValueError, "B must be .* at least 1, got 0"),
        (lambda: held_out(0), ValueError, "n_letter must be .* at least 1, got 0"),
        (lambda: copied_right(0), ValueError, "n_same must be .* from 1 to 12, got 0"),
        (lambda: on_known_letters(None), TypeError, "must be an AttentionOnly, got None"),
        (
            lambda: train_on_repeats(torch.nn.Linear(1, 1)),
            TypeError,
            "an AttentionOnly, got the Linear",
        ),
        (lambda: train_on_repeats(AttentionOnly(1), -1), ValueError, "n_step must be .* got -1"),
    ],
)
def test_arguments_that_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---------------------------------------------------------------- what notebook 12 says


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_what_two_layers_learn_and_what_patches_do(seed):
    torch.manual_seed(seed)
    one = AttentionOnly(n_layer=1)
    assert train_on_repeats(one)[-1].right < 0.3
    ids, period = texts()
    torch.manual_seed(seed)
    two, by_hand, at_40 = AttentionOnly(n_layer=2), {}, []

    def watch(step):
        by_hand[step] = right_with(0, tokens_back({1: 1.0}))
        if step == 40:
            at_40.append(right_with(1, followers(period)))

    def right_with(layer, pattern):
        with patch(two, layer, pattern):
            return on_known_letters(two)[1]

    moments = train_on_repeats(two, watch=watch)
    assert moments[-1].right >= 0.95
    assert moments[5].right < 0.3 and moments[10].right > 0.75, "the cliff"
    assert at_40[0] > 0.7 > 0.2 > moments[4].right, "what to do is learned before where to look"
    closest = max(by_hand, key=by_hand.get)
    assert 70 <= closest <= 110 and by_hand[closest] > 0.6, "close to the circuit of notebook 11"
    with one_thread():
        weights = two.attention_weights(ids[:, :-1])
    assert 0.35 < previous_token_score(weights[0]).mean() < 0.6
    assert 0.65 < induction_score(weights[1], period).mean() < 0.85
    found = {d: weights[0, :, 0].diagonal(-d, 1, 2)[:, 8:].mean().item() for d in range(4)}
    assert found[1] > 0.35 and 0.15 < found[2] < 0.25 and found[3] < 0.05

    exact = right_with(0, tokens_back({1: 1.0}))
    assert right_with(1, followers(period)) > 0.99
    assert 0.55 < right_with(1, letter_followers(ids[:, :-1])) < 0.75
    query = two.layers[1].query
    with torch.no_grad():
        letters_alone = F.linear(two.norms[1](two.letters(ids[:, :-1])), query.weight)
    handle = query.register_forward_hook(lambda *_: letters_alone)
    assert right_with(0, tokens_back({1: 1.0})) > 0.7, "queries without what layer 0 has read"
    handle.remove()
    assert exact < 0.2 < right_with(0, equal_weights) < 0.35, "exact is worse than no pattern"
    assert right_with(1, equal_weights) < 0.2
    others = weights[0].clone()
    others.diagonal(-2, 2, 3).zero_()
    assert 0.705 < right_with(0, others / others.sum(-1, keepdim=True)) < 0.785
    weaker, known = 0.42 * tokens_back({1: 1.0})(48), torch.arange(48) >= period
    logits, _ = opened(two, ids[:, :-1], {(0, 0): weaker}, n_head=1)
    hit = (logits.argmax(dim=-1) == ids[:, 1:])[known].double().mean()
    assert 0.81 < hit < 0.85, "one back, at the strength of the trained layer"
    assert right_with(0, tokens_back({d: found[d] for d in (0, 1)})) < 0.5
    assert right_with(0, tokens_back({d: found[d] for d in (1, 2)})) > 0.8
    assert right_with(0, tokens_back({d: found[d] for d in (0, 1, 2)})) > 0.93
