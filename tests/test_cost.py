"""A tiny GPT that reads each letter once."""

import pytest
import torch

from helpers.cost import ReadsOnce
from helpers.gpt import TinyGPT
from helpers.lesson.exercises import EXERCISES
from helpers.same import seed_all

ATTEND = EXERCISES["14.1"].reference
IDS = torch.randint(9, (2, 12), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def gpt():
    seed_all(0)
    return TinyGPT(vocab_size=9, context_length=12, C=16, n_head=2)


@pytest.mark.parametrize("ends", [(12,), range(1, 13), (4, 5, 12)])
def test_pieces_give_the_logits_of_one_pass(gpt, ends):
    reader = ReadsOnce(gpt, ATTEND)
    pieces = [reader(IDS[:, :end]) for end in ends]
    torch.testing.assert_close(torch.cat(pieces, dim=1), gpt(IDS))


def test_the_model_stays_as_it_is_and_each_reader_begins_anew(gpt):
    before = {name: value.clone() for name, value in gpt.state_dict().items()}
    first, second = (ReadsOnce(gpt, ATTEND)(IDS) for _ in range(2))
    assert torch.equal(first, second)
    assert all(torch.equal(value, before[name]) for name, value in gpt.state_dict().items())


def test_what_raises_has_read_nothing(gpt):
    def fails_once(q, k, v, cache):
        failures.append(len(failures))
        if len(failures) == 4:  # in the second block, with the second piece
            raise RuntimeError
        return ATTEND(q, k, v, cache)

    failures = []
    reader = ReadsOnce(gpt, fails_once)
    reader(IDS[:, :5])
    with pytest.raises(RuntimeError):
        reader(IDS)
    torch.testing.assert_close(reader(IDS), gpt(IDS)[:, 5:])


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        (IDS[:, :5], r"It has read 5 tokens already, so ids need at least 6: .*; got 5\."),
        (IDS[:1], r"It has read 2 texts, and ids are 1\. For another text make a new ReadsOnce"),
        (8 - IDS, r"The first 5 tokens of ids are not those it has read\."),
        (IDS.repeat(1, 2), r"got T=24, context_length=12\."),
        (IDS.float(), "ids must be whole numbers in a tensor"),
    ],
)
def test_another_text_is_refused(gpt, ids, told):
    reader = ReadsOnce(gpt, ATTEND)
    reader(IDS[:, :5])
    with pytest.raises((TypeError, ValueError), match=told):
        reader(ids)


@pytest.mark.parametrize(
    ("attend", "told"),
    [
        (lambda q, k, v, cache: None, r"four axes each; it returned None\."),
        (lambda q, k, v, cache: v, r"it returned a tensor of shape \(2, 2, 12, 8\)\."),
        (lambda q, k, v, cache: (v, k, v), r"it returned \(a tensor of shape .*, a tensor"),
        (lambda q, k, v, cache: (v, (k, None)), r"it returned \(a tensor .*, \(a .*, None\)\)\."),
        (lambda q, k, v, cache: (v, (k, v[0])), r"a tensor of shape \(2, 12, 8\)\)\)\."),
        (lambda q, k, v, cache: (v[:, :, -1:], (k, v)), r"= \(2, 2, 12, 8\), .*\(2, 2, 1, 8\)\."),
    ],
)
def test_what_is_no_output_and_a_cache_is_refused(gpt, attend, told):
    with pytest.raises((TypeError, ValueError), match=told):
        ReadsOnce(gpt, attend)(IDS)


def test_a_model_with_learned_positions_is_refused():
    with pytest.raises(ValueError, match="needs rotary=True; this one has rotary=False"):
        ReadsOnce(TinyGPT(9, 12, C=16, rotary=False), ATTEND)
