import pytest
import torch

from helpers import stack
from helpers.attention import FeedForward, MultiHeadAttention
from helpers.stack import INITS, WAYS, signal_by_depth


@pytest.mark.parametrize(
    ("way", "init", "deep", "what", "low", "high"),
    [
        ("plain", "default", 4, "gradient", 2e-5, 1e-4),
        ("plain", "default", 12, "gradient", 1e-15, 1e-12),
        ("plain", "default", 4, "similarity", 0.995, 1),
        ("residual", "default", 24, "gradient", 1, 20),
        ("plain", "unit gain", 4, "similarity", 0.97, 1),
        ("plain", "unit gain", 4, "gradient", 0.1, 1),
        ("residual", "unit gain", 24, "signal", 1e5, 1e8),
        ("+ norm", "unit gain", 24, "signal", 2, 10),
        ("+ zero-init projection", "unit gain", 24, "signal", 1 - 1e-9, 1 + 1e-9),
        ("+ zero-init projection", "default", 24, "gradient", 1 - 1e-9, 1 + 1e-9),
    ],
)
def test_each_part_has_its_job(way, init, deep, what, low, high):
    assert low <= getattr(signal_by_depth(way, deep, init=init), what) <= high


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("init", INITS)
def test_one_pass_for_all_depths_equals_a_pass_of_its_own(way, init):
    torch.manual_seed(0)
    tokens = torch.randn(2, 4, 8, 32, dtype=torch.double)
    x, upstream = (z / z.pow(2).mean().sqrt() for z in tokens)
    x.requires_grad_()
    out = x
    for _ in range(3):
        for branch in stack._block(way, init):
            out = branch(out)
    (gradient,) = torch.autograd.grad(out, x, upstream)
    similar = torch.nn.functional.cosine_similarity(out[:, :, None], out[:, None], dim=-1)
    found = signal_by_depth(way, 3, init=init)
    assert found.signal == pytest.approx(out.pow(2).mean().sqrt().item())
    assert found.gradient == pytest.approx(gradient.pow(2).mean().sqrt().item())
    assert found.similarity == pytest.approx((similar.sum() - 32).item() / (4 * 8 * 7))


def test_a_plain_stack_is_attention_and_feed_forward_by_turns():
    torch.manual_seed(0)
    x, upstream = (
        z / z.square().mean().sqrt() for z in torch.randn(2, 4, 8, 32, dtype=torch.double)
    )
    x.requires_grad_()
    out = x
    torch.set_default_dtype(torch.double)
    try:
        for _ in range(4):
            out = MultiHeadAttention(32, 4)(out)
            out = FeedForward(32)(out)
    finally:
        torch.set_default_dtype(torch.float)
    out.backward(upstream)
    found = signal_by_depth("plain", 4)
    assert found.signal == pytest.approx(out.square().mean().sqrt().item())
    assert found.gradient == pytest.approx(x.grad.square().mean().sqrt().item())


def test_a_deeper_stack_begins_with_a_shallower_one():
    shallow = stack._all_depths("+ norm", "default", 5)
    assert [s.gradient for s in shallow] == pytest.approx(
        [signal_by_depth("+ norm", d).gradient for d in range(1, 6)]
    )


def test_the_world_stays_as_it_was():
    stack._all_depths.cache_clear()
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first = signal_by_depth("plain", 2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(torch.get_rng_state(), state)
    stack._all_depths.cache_clear()
    torch.manual_seed(5)
    assert signal_by_depth("plain", 2) == first


@pytest.mark.parametrize(
    ("way", "deep", "init", "words"),
    [
        ("norm", 1, "default", "way must be one of 'plain', .* got 'norm'"),
        ("plain", 1, "unit", "init must be one of 'default', 'unit gain', got 'unit'"),
        ("plain", 0, "default", "from 1 to 100, got 0"),
        ("plain", 101, "default", "from 1 to 100, got 101"),
    ],
)
def test_bad_input_is_refused_in_words(way, deep, init, words):
    with pytest.raises(ValueError, match=words):
        signal_by_depth(way, deep, init=init)
