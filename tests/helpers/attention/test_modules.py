"""Head, multi-head attention, feed-forward and block: PyTorch's numbers, and refusals in words."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers.attention import (
    Block,
    FeedForward,
    Head,
    MultiHeadAttention,
    attention,
    causal_mask,
    prefix_mask,
    window_mask,
)
from helpers.positions import rotary

B, T, C, N_HEAD = 3, 5, 12, 4
TOLERANCE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(autouse=True)
def same_random_numbers():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def tokens(*shape):
    return torch.randn(*(shape or (B, T, C)))


def some_mask(*shape):
    """Random, but every query keeps a key."""
    mask = torch.rand(*shape) > 0.5
    mask[..., 0] = True
    return mask


def pytorchs(ours):
    """`nn.MultiheadAttention` with the weights of ours."""
    theirs = nn.MultiheadAttention(C, N_HEAD, batch_first=True)
    with torch.no_grad():
        rows = [ours.query.weight, ours.key.weight, ours.value.weight]
        theirs.in_proj_weight.copy_(torch.cat(rows))
        theirs.out_proj.load_state_dict(ours.proj.state_dict())
    return theirs


def test_a_head_is_attention_between_linear_layers():
    head, x = Head(C, 4), tokens()
    out, weights = head(x, return_weights=True)
    q, k, v = x @ head.query.weight.T, x @ head.key.weight.T, x @ head.value.weight.T
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(out, expected, **TOLERANCE)
    torch.testing.assert_close(weights @ v, out, **TOLERANCE)
    assert weights.shape == (B, T, T) and (weights[:, ~causal_mask(T)] == 0).all()
    assert [name for name, _ in head.named_parameters()] == [
        f"{role}.weight" for role in ("query", "key", "value")
    ]


def masks(T_q, T_k):
    return {
        "everything": None,
        "one for all": some_mask(T_q, T_k),
        "one a sequence": some_mask(B, T_q, T_k),
        "keys only": some_mask(T_k),
    }


@pytest.mark.parametrize("mask", ["causal", *masks(1, 1)])
@pytest.mark.parametrize("fused", [False, True], ids=["explicit", "fused"])
def test_multi_head_attention_equals_pytorchs_with_weights_and_gradients(mask, fused):
    ours = MultiHeadAttention(C, N_HEAD, fused=fused)
    theirs = pytorchs(ours)
    T_k = T if mask == "causal" else T + 2
    context = None if mask == "causal" else tokens(B, T_k, C)
    mask = mask if mask == "causal" else masks(T, T_k)[mask]
    x, x_too = (tokens().requires_grad_() for _ in range(2))
    x_too.data.copy_(x.data)
    drop = ~causal_mask(T) if mask == "causal" else None  # theirs: True = may not attend
    if isinstance(mask, torch.Tensor):
        drop = ~mask.expand(B, T, T_k).repeat_interleave(N_HEAD, dim=0)
    other = x_too if context is None else context
    expected, their_weights = theirs(
        x_too, other, other, attn_mask=drop, average_attn_weights=False
    )
    out = ours(x, context=context, mask=mask)
    torch.testing.assert_close(out, expected, **TOLERANCE)
    if not fused:
        _, weights = ours(x, context=context, mask=mask, return_weights=True)
        torch.testing.assert_close(weights, their_weights, **TOLERANCE)
    upstream = tokens()
    out.backward(upstream)
    expected.backward(upstream)
    torch.testing.assert_close(x.grad, x_too.grad, **TOLERANCE)
    rows = [getattr(ours, role).weight.grad for role in ("query", "key", "value")]
    torch.testing.assert_close(torch.cat(rows), theirs.in_proj_weight.grad, **TOLERANCE)


def test_each_head_may_have_its_own_mask():
    mask = some_mask(B, N_HEAD, T, T)
    _, weights = MultiHeadAttention(C, N_HEAD)(tokens(), mask=mask, return_weights=True)
    assert torch.equal(weights > 0, mask)


def test_multi_head_attention_equals_a_list_of_heads():
    multi_head, x = MultiHeadAttention(C, N_HEAD), tokens()
    outputs = []
    for h in range(N_HEAD):
        head = Head(C, C // N_HEAD)
        for role in ("query", "key", "value"):
            rows = getattr(multi_head, role).weight.split(C // N_HEAD)[h]
            getattr(head, role).weight.data.copy_(rows)
        outputs.append(head(x))
    torch.testing.assert_close(
        multi_head(x), multi_head.proj(torch.cat(outputs, dim=-1)), **TOLERANCE
    )


@pytest.mark.parametrize("shape", [(1, T, C), (B, 1, C), (1, 1, C)], ids=str)
@pytest.mark.parametrize("fused", [False, True], ids=["explicit", "fused"])
def test_one_sequence_and_one_token_are_right(shape, fused):
    multi_head, x = MultiHeadAttention(C, N_HEAD, fused=fused), tokens(*shape)
    theirs = pytorchs(multi_head)
    expected, _ = theirs(x, x, x, attn_mask=~causal_mask(shape[1]))
    torch.testing.assert_close(multi_head(x), expected, **TOLERANCE)
    assert Block(C, N_HEAD)(x).shape == shape


@pytest.mark.parametrize("fused", [False, True], ids=["explicit", "fused"])
def test_dropout_drops_weights_in_training_only(fused):
    multi_head, x = MultiHeadAttention(C, N_HEAD, dropout=0.5, fused=fused), tokens()
    assert not torch.equal(multi_head(x), multi_head(x))
    assert torch.equal(multi_head.eval()(x), multi_head(x))
    if not fused:
        right = multi_head(x, return_weights=True)[1]
        dropped = multi_head.train()(x, return_weights=True)[1]
        kept = dropped != 0
        assert 0.3 < kept[right > 0].float().mean() < 0.7
        torch.testing.assert_close(dropped[kept], 2 * right[kept])


def stacked(n_layer):
    return nn.ModuleList(MultiHeadAttention(C, N_HEAD) for _ in range(n_layer))


@pytest.mark.parametrize("n_layer", [1, 2])
def test_without_a_mask_shuffled_tokens_give_shuffled_outputs(n_layer):
    x, order, layers = 3 * tokens(), torch.tensor([2, 0, 3, 1, 4]), stacked(n_layer)
    out, shuffled = x, x[:, order]
    for layer in layers:
        out, shuffled = layer(out, mask=None), layer(shuffled, mask=None)
    torch.testing.assert_close(shuffled, out[:, order], **TOLERANCE)
    assert not torch.allclose(shuffled, out, atol=1e-3)


@pytest.mark.parametrize("n_layer", [1, 2])
def test_only_from_two_causal_layers_on_the_last_output_notices_a_shuffle_before_it(n_layer):
    x, layers = tokens(), stacked(n_layer)
    out, shuffled = x, x[:, [2, 0, 3, 1, 4]]
    for layer in layers:
        out, shuffled = layer(out), layer(shuffled)
    difference = (out - shuffled)[:, -1].abs().amax(dim=-1)  # (B,)
    assert (difference < 1e-6).all() if n_layer == 1 else (difference > 1e-3).all()


@pytest.mark.parametrize("mask", ["causal", None, window_mask(T, 2)], ids=["causal", "none", "w"])
def test_rotary_turns_queries_and_keys_of_each_head_but_not_values(mask):
    allowed = causal_mask(T) if mask == "causal" else mask
    head, multi_head, x = Head(C, 6, rotary=True), MultiHeadAttention(C, 2, rotary=True), tokens()
    for module, n in ((head, 1), (multi_head, 2)):
        q, k, v = (
            getattr(module, role)(x).unflatten(-1, (n, 6)).transpose(1, 2)
            for role in ("query", "key", "value")
        )
        out, expected = attention(rotary(q), rotary(k), v, allowed)
        out = out.transpose(1, 2).flatten(2)
        out = module.proj(out) if n == 2 else out
        given, weights = module(x, mask=mask, return_weights=True)
        torch.testing.assert_close(given, out, **TOLERANCE)
        torch.testing.assert_close(weights, expected if n == 2 else expected[:, 0], **TOLERANCE)


@pytest.mark.parametrize("mask", ["causal", None, prefix_mask(T, 2)], ids=["causal", "none", "p"])
def test_with_rotary_fused_equals_unfused_with_gradients(mask):
    x, upstream, found = tokens(), tokens(), []
    plain = MultiHeadAttention(C, 2, rotary=True)
    quick = MultiHeadAttention(C, 2, rotary=True, fused=True)
    quick.load_state_dict(plain.state_dict())
    for module in (plain, quick):
        given = x.clone().requires_grad_()
        out = module(given, mask=mask)
        out.backward(upstream)
        found.append([out, given.grad, *(p.grad for p in module.parameters())])
    for one, other in zip(*found, strict=True):
        assert one.abs().max() > 1e-3
        torch.testing.assert_close(one, other, **TOLERANCE)


@pytest.mark.parametrize(
    "module",
    [Head(C, 6, rotary=True), MultiHeadAttention(C, 2, rotary=True, fused=True),
     Block(C, 2, rotary=True)],
    ids=["head", "multi-head", "block"],
)  # fmt: skip
def test_with_rotary_only_distances_count(module):
    """The tokens before x move it, and nobody may read them."""
    x, before = tokens(), tokens()
    hidden = torch.ones(2 * T, 2 * T).tril().bool()
    hidden[T:, :T] = False
    moved = module(torch.cat([before, x], dim=1), mask=hidden)[:, T:]
    torch.testing.assert_close(moved, module(x), **TOLERANCE)
    reverse = torch.arange(T - 1, -1, -1)
    turned = module(x[:, reverse], mask=None)[:, reverse]
    assert (turned - module(x, mask=None)).abs().max() > 1e-3, "order counts"


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_takes_any_mask(norm):
    block, x = Block(C, N_HEAD, norm), tokens()
    assert torch.equal(block(x, mask=causal_mask(T)), block(x))
    last = block(x, mask=window_mask(T, 1))
    alone = block(x.flatten(0, 1)[:, None]).reshape(x.shape)  # each token a sequence of its own
    torch.testing.assert_close(last, alone, **TOLERANCE)
    with pytest.raises(ValueError, match=r"\(4, 4\) does not fit the scores \(3, 5, 5\)"):
        block(x, mask=causal_mask(4))


def test_feed_forward_is_two_linear_layers_for_each_token_alone():
    feed_forward, x = FeedForward(C), tokens()
    assert (feed_forward.wide.out_features, feed_forward.proj.out_features) == (4 * C, C)
    torch.testing.assert_close(
        feed_forward(x), feed_forward.proj(feed_forward.wide(x).clamp(min=0)), **TOLERANCE
    )
    order = torch.randperm(T)
    torch.testing.assert_close(feed_forward(x[:, order]), feed_forward(x)[:, order], **TOLERANCE)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_block_equals_pytorchs_layer(norm):
    ours = Block(C, N_HEAD, norm)
    theirs = nn.TransformerEncoderLayer(
        C, N_HEAD, 4 * C, dropout=0.0, batch_first=True, norm_first=norm == "pre"
    )
    for mine in (ours.norm_1, ours.norm_2):  # fresh norms are all alike
        nn.init.uniform_(mine.weight, 0.5, 2.0)
        nn.init.normal_(mine.bias)
    theirs.self_attn = pytorchs(ours.attention)
    theirs.linear1, theirs.linear2 = ours.feed_forward.wide, ours.feed_forward.proj
    theirs.norm1, theirs.norm2 = ours.norm_1, ours.norm_2
    x = tokens()
    expected = theirs(x, src_mask=~causal_mask(T))
    torch.testing.assert_close(ours(x), expected, **TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_other_floats_are_kept(dtype):
    assert Block(C, N_HEAD).to(dtype)(tokens().to(dtype)).dtype == dtype


head, multi_head = Head(C, 4), MultiHeadAttention(C, N_HEAD)
fused = MultiHeadAttention(C, N_HEAD, fused=True)
x = torch.ones(B, T, C)
context = torch.ones(B, T + 1, C)
WHOLE = "must be a whole number of at least 1"

BAD_SIZES = [
    (lambda: Head(C, 0), f"head_size {WHOLE}, got 0"),
    (lambda: Head(2.0, 4), f"C {WHOLE}, got 2.0"),
    (lambda: MultiHeadAttention(C, -1), f"n_head {WHOLE}, got -1"),
    (
        lambda: MultiHeadAttention(10, 4),
        r"C = 10 .* n_head = 4 .*2\.5.*C = 8 or 12.* 1, 2, 5, 10 h",
    ),
    (lambda: MultiHeadAttention(3, 4), "Use C = 4, or one of 1, 3 heads"),
    (lambda: Block(10, 4), "C = 10 channels cannot be shared out"),
    (lambda: FeedForward(0), f"C {WHOLE}, got 0"),
    (lambda: MultiHeadAttention(C, 4, dropout=1.0), "at least 0 and below 1; got 1.0"),
    (lambda: Block(C, 4, norm="none"), 'must be "pre" or "post", got \'none\''),
    (
        lambda: Head(C, 3, rotary=True),
        "turned in pairs, so head_size must be even; .*head_size = 3",
    ),
    (lambda: MultiHeadAttention(C, 4, rotary=True), "must be even; got head_size = 3"),
    (lambda: Block(C, 12, rotary=True), "must be even; got head_size = 1"),
]


@pytest.mark.parametrize(("make", "match"), BAD_SIZES)
def test_bad_sizes_are_refused_in_words(make, match):
    with pytest.raises(ValueError, match=match):
        make()


BAD_INPUT = [
    ({"x": x.long()}, TypeError, "x must be a tensor of floats, got torch.int64: use x.float()"),
    ({"x": x.tolist()}, TypeError, r"tensor of floats, got list: use torch\.tensor\(x\)"),
    ({"x": x.numpy()}, TypeError, r"tensor of floats, got ndarray: use torch\.tensor\(x\)"),
    ({"x": None}, TypeError, r"x must be a tensor of floats, got NoneType\.$"),
    ({"x": x.double()}, TypeError, r"x is torch.float64, .*torch.float32: use x\.to\("),
    ({"x": x[0]}, ValueError, r"\(B, T, C\) with at least.*\(5, 12\).*use x\[None\]"),
    ({"x": x[..., :7]}, ValueError, r"C = 12 .*its shape is \(3, 5, 7\)"),
    ({"x": x.mT}, ValueError, r"shape is \(3, 12, 5\): are T and C swapped\? Then use x\.mT\.$"),
    ({"x": x[:, :0]}, ValueError, r"at least one token; its shape is \(3, 0, 12\)\.$"),
    ({"context": context}, ValueError, 'mask is "causal".*Give mask=None'),
    ({"context": context[..., :7], "mask": None}, ValueError, r"context .*C = 12 .*\(3, 6, 7\)"),
    ({"context": context[:, :0], "mask": None}, ValueError, "context must be .*one token"),
    ({"context": context[:2], "mask": None}, ValueError, r"context\[:1\]\.expand\(3, -1, -1\)"),
    ({"context": context[:1], "mask": None}, ValueError, r"x has 3 .*context\.expand\(3, -1, -1\)"),
    ({"context": context.long(), "mask": None}, TypeError, "context must be a tensor of floats"),
    ({"mask": "full"}, ValueError, "\"causal\", None or a bool tensor, got 'full'"),
    ({"mask": torch.ones(T, T)}, TypeError, "must be a bool tensor.*got torch.float32"),
    ({"mask": [[True]]}, TypeError, "must be a bool tensor.*got list"),
    ({"mask": torch.ones(4, T) > 0}, ValueError, r"\(4, 5\) does not fit the scores \(3, 5, 5\)"),
    ({"mask": torch.ones(2, T, T) > 0}, ValueError, r"mask \(2, 5, 5\) does.*One of \(5, 5\) does"),
    ({"mask": torch.ones(1, 1, 2, T, T) > 0}, ValueError, "does not fit the scores"),
    ({"mask": causal_mask(T).tril(-1)}, ValueError, r"row \[0\] of the mask.*1 of 5 rows"),
]


@pytest.mark.parametrize(("given", "error", "match"), BAD_INPUT)
def test_bad_input_is_refused_in_words(given, error, match):
    with pytest.raises(error, match=match):
        multi_head(**{"x": x} | given)


MODULES = {
    "head": head,
    "fused": fused,
    "pre-norm block": Block(C, 4),
    "post-norm block": Block(C, 4, norm="post"),
    "feed-forward": FeedForward(C),
}


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES.keys())
def test_every_module_refuses_bad_input(module):
    with pytest.raises(ValueError, match=r"C = 12 .*are T and C swapped"):
        module(x.mT)


def test_swapped_axes_are_named_without_a_batch_too():
    with pytest.raises(ValueError, match=r"are T and C swapped\? Then use x\.mT\.$"):
        MODULES["feed-forward"](x[0].mT)


@pytest.mark.parametrize("module", [head, multi_head, fused], ids=["head", "multi-head", "fused"])
def test_every_attention_refuses_a_mask_that_does_not_fit(module):
    mask = torch.ones(B, 2, T, T) > 0
    scores = r"\(3, 5, 5\)" if module is head else r"\(3, 4, 5, 5\)"
    with pytest.raises(ValueError, match=rf"\(3, 2, 5, 5\) does not fit the scores {scores}"):
        module(x, mask=mask)


def test_weights_of_a_fused_module_are_refused():
    with pytest.raises(ValueError, match=r"never stored.*fused=False"):
        fused(x, return_weights=True)


@pytest.mark.parametrize("module", [Head(C, 4, rotary=True), MultiHeadAttention(C, 2, rotary=True)])
def test_rotary_between_two_sequences_is_refused(module):
    with pytest.raises(ValueError, match=r"have no distance\. Make the module with rotary=False"):
        module(x, context=context, mask=None)


def test_queries_and_keys_of_different_lengths_are_refused():
    uneven = Head(C, 4)
    uneven.key = nn.Linear(C, 3, bias=False)
    with pytest.raises(ValueError, match=r"q \(3, 5, 4\) has 4, k \(3, 5, 3\) has 3"):
        uneven(x)
