"""The tiny GPT against plain code that is written in another way, and what it refuses."""

import math

import pytest
import torch
import torch.nn.functional as F

from attention_clinic import same_for_prefix
from helpers.attention import KVCache
from helpers.gpt import TinyGPT, decode, next_token_loss, next_token_probabilities

V, L = 11, 9
SIZES = [
    {},
    {"rotary": False},
    {"C": 12, "n_head": 3, "n_layer": 3},
    {"C": 4, "n_head": 1, "n_layer": 1, "rotary": False},
]


def made(**options):
    torch.manual_seed(0)
    model = TinyGPT(V, L, **({"C": 8, "n_head": 2} | options))
    with torch.no_grad():  # from far enough that a missing norm or bias shows
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return model


def some_ids(B=3, T=L, seed=0):
    return torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))


def turned(z):
    """Rotary positions of (T, d) as products of complex numbers."""
    T, d = z.shape
    numbers = torch.view_as_complex(z.double().unflatten(1, (d // 2, 2)).contiguous())
    angles = torch.arange(T)[:, None] * 10_000.0 ** (-2 * torch.arange(d // 2) / d)
    return torch.view_as_real(numbers * torch.exp(1j * angles.double())).flatten(1).float()


def plain(model, ids):
    """The logits (T, V) and the weights of each head, for one text (T,), head by head."""
    w, T = model.state_dict(), len(ids)
    C, heads = w["norm.weight"].numel(), model.config["n_head"]
    x, weights = w["embedding.weight"][ids], []
    if not model.config["rotary"]:
        x = x + torch.stack([w["positions.weight"][t] for t in range(T)])

    def norm(x, name):
        return F.layer_norm(x, (C,), w[f"{name}.weight"], w[f"{name}.bias"])

    def linear(x, name):
        bias = w.get(f"{name}.bias")
        return x @ w[f"{name}.weight"].T + (0 if bias is None else bias)

    for i in range(model.config["n_layer"]):
        block, outs = f"blocks.{i}", []
        h = norm(x, f"{block}.norm_1")
        q, k, v = (linear(h, f"{block}.attention.{n}") for n in ("query", "key", "value"))
        for own in torch.arange(C).chunk(heads):
            a, b = q[:, own], k[:, own]
            if model.config["rotary"]:
                a, b = turned(a), turned(b)
            scores = a @ b.T / math.sqrt(C // heads)
            future = torch.ones(T, T).triu(1).bool()
            weights.append(scores.masked_fill(future, -math.inf).softmax(1))
            outs.append(weights[-1] @ v[:, own])
        x = x + linear(torch.cat(outs, dim=1), f"{block}.attention.proj")
        h = linear(norm(x, f"{block}.norm_2"), f"{block}.feed_forward.wide").clamp(min=0)
        x = x + linear(h, f"{block}.feed_forward.proj")
    return linear(norm(x, "norm"), "to_logits"), torch.stack(weights)


@pytest.mark.parametrize("options", SIZES, ids=str)
@pytest.mark.parametrize("T", [1, 5, L])
def test_logits_and_weights_are_those_of_plain_code(options, T):
    model, ids = made(**options), some_ids(T=T)
    with torch.no_grad():
        logits = model(ids)
    weights = model.attention_weights(ids)
    layers, heads = model.config["n_layer"], model.config["n_head"]
    assert logits.shape == (3, T, V) and weights.shape == (layers, 3, heads, T, T)
    for b in range(3):
        expected, of_heads = plain(model, ids[b])
        torch.testing.assert_close(logits[b], expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(weights[:, b].flatten(0, 1), of_heads, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("options", SIZES, ids=str)
def test_attention_weights_sum_to_1_and_leave_the_future_out(options):
    model, ids = made(**options), some_ids()
    weights = model.attention_weights(ids)
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert (weights.triu(1) == 0).all() and not weights.requires_grad
    assert (model.attention_weights(ids, mask=None) > 0).all()


@pytest.mark.parametrize("rotary", [True, False])
def test_a_mask_reaches_every_block(rotary):
    model, ids = made(rotary=rotary), some_ids()
    only_itself = torch.eye(L, dtype=torch.bool)
    with torch.no_grad():
        alone, changed = (model(x, mask=only_itself)[:, -1] for x in (ids, ids.clone().fill_(3)))
        changed_last = ids.clone().fill_(3)
        changed_last[:, -1] = ids[:, -1]
        assert torch.equal(alone, model(changed_last, mask=only_itself)[:, -1])
        assert not torch.allclose(alone, changed, atol=1e-3)
        assert not torch.allclose(model(ids, mask=None), model(ids), atol=1e-3)


@pytest.mark.parametrize("rotary", [True, False])
def test_the_order_of_earlier_tokens_matters(rotary):
    model, ids = made(rotary=rotary, n_layer=1), some_ids(B=1)
    ids[0, :2] = torch.tensor([1, 2])
    swapped = ids.clone()
    swapped[0, :2] = torch.tensor([2, 1])
    with torch.no_grad():
        assert not torch.allclose(model(ids)[:, -1], model(swapped)[:, -1], atol=1e-4)


@pytest.mark.parametrize("options", SIZES, ids=str)
def test_an_output_is_the_same_before_later_tokens_exist(options):
    model, ids = made(**options), some_ids(B=2)
    rows = torch.eye(V)[ids]  # same_for_prefix takes floats: a row of zeros with a 1 for each token

    def logits(rows):
        return model(rows.argmax(dim=-1))

    assert same_for_prefix(logits, rows).ok
    assert same_for_prefix(lambda rows: model(rows.argmax(-1), mask=None), rows).ok is False


def by_hand(model, ids, n, temperature, top_k, generator):
    """Write n tokens after one text, with the probabilities computed in another way."""
    ids = ids.tolist()
    for _ in range(n):
        with torch.no_grad():
            logits = model(torch.tensor([ids[-L:]]))[0, -1]
        kept = logits.topk(top_k).indices if top_k else torch.arange(V)
        powers = torch.zeros(V)
        powers[kept] = torch.exp((logits[kept] - logits.max()) / temperature)
        ids.append(torch.multinomial(powers / powers.sum(), 1, generator=generator).item())
    return ids


@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, None), (0.5, 4), (3, 2), (1.0, V)])
def test_it_writes_what_a_loop_by_hand_writes(rotary, temperature, top_k):
    model, ids = made(rotary=rotary), some_ids(B=1, T=4)
    sources = [torch.Generator().manual_seed(5) for _ in range(3)]
    written = [model.generate(ids, 20, temperature, top_k, source) for source in sources[:2]]
    expected = by_hand(model, ids[0], 20, temperature, top_k, sources[2])
    assert written[0].tolist() == written[1].tolist() == [expected]
    assert not written[0].requires_grad


def test_the_likeliest_token_every_time():
    model, ids = made(), some_ids(T=3)
    written = model.generate(ids, 6, top_k=1)
    with torch.no_grad():
        for t in range(3, 9):
            assert torch.equal(written[:, t], model(written[:, :t])[:, -1].argmax(dim=-1))
    assert torch.equal(model.generate(ids, 6, temperature=1e-30), written)


def test_of_a_prompt_longer_than_the_context_the_last_tokens_are_read():
    model, prompt = made(), some_ids(B=2, T=3 * L)
    written = model.generate(prompt, 4, generator=torch.Generator().manual_seed(1))
    short = model.generate(prompt[:, -L:], 4, generator=torch.Generator().manual_seed(1))
    assert torch.equal(written[:, : 3 * L], prompt) and written.shape == (2, 3 * L + 4)
    assert torch.equal(written[:, 2 * L :], short)


def test_probabilities():
    logits = torch.tensor([[2.0, 1.0, 2.0, -math.inf], [0.0, 0.0, 0.0, 0.0]])
    expected = torch.tensor([[4.0, 2.0, 4.0, 0.0], [2.5, 2.5, 2.5, 2.5]]) / 10
    halved = next_token_probabilities(logits, temperature=1 / math.log(2))  # 2 to the power of …
    torch.testing.assert_close(halved, expected)
    assert next_token_probabilities(logits, top_k=1).tolist() == [[1, 0, 0, 0], [1, 0, 0, 0]]
    two = next_token_probabilities(logits, top_k=2)
    torch.testing.assert_close(two, torch.tensor([[0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0]]))
    torch.testing.assert_close(next_token_probabilities(logits, top_k=4), logits.softmax(-1))
    first = next_token_probabilities(torch.zeros(5000).index_fill(0, torch.arange(3), -1), top_k=4)
    assert first.nonzero().flatten().tolist() == [3, 4, 5, 6]  # of equal ones, the first
    for large, tiny in ((1e4, 1e-3), (1e4, 1e-30), (10, 2e-38)):  # the last quotient overflows
        assert next_token_probabilities(large * logits, tiny)[0].tolist() == [0.5, 0, 0.5, 0]


def test_the_loss_is_the_mean_over_all_guesses():
    model, windows = made(), some_ids(B=2, T=5)
    with torch.no_grad():
        loss, logits = next_token_loss(model, windows), model(windows[:, :-1])
    chances = [
        logits[b, t].softmax(0)[windows[b, t + 1]].item() for b in range(2) for t in range(4)
    ]
    assert loss.item() == pytest.approx(-sum(map(math.log, chances)) / 8, rel=1e-5)


@pytest.mark.parametrize("options", SIZES, ids=str)
def test_its_config_makes_another_of_its_sizes(options):
    model = made(**options)
    TinyGPT(**model.config).load_state_dict(model.state_dict())


@pytest.mark.parametrize(
    ("ids", "error", "said"),
    [
        (torch.zeros(2, 3), TypeError, "whole numbers in a tensor, torch.int64, got torch.float32"),
        (torch.zeros(2, 3).bool(), TypeError, "got torch.bool"),
        ([[1, 2]], TypeError, "got (the )?list"),
        (torch.tensor([1, 2]), ValueError, r"got \(2,\). For a single text use ids\[None\]"),
        (torch.zeros(2, 0).long(), ValueError, r"at least one token, got \(2, 0\)"),
        (torch.tensor([[0, V]]), ValueError, f"from 0 to V - 1 = {V - 1}, got {V}"),
        (torch.tensor([[-1, 0]]), ValueError, "got -1"),
    ],
)
def test_what_are_no_ids_is_refused(ids, error, said):
    model = made()
    for call in (model, model.attention_weights, lambda ids: model.generate(ids, 1)):
        with pytest.raises(error, match=said):
            call(ids)


def test_more_tokens_than_the_context_are_refused():
    for rotary in (True, False):
        with pytest.raises(ValueError, match=rf"T={L + 1}, context_length={L}.*ids\[:, -{L}:\]"):
            made(rotary=rotary)(some_ids(T=L + 1))


@pytest.mark.parametrize("name", ["vocab_size", "context_length", "C", "n_head", "n_layer"])
@pytest.mark.parametrize("size", [0, -1, 2.0, "2", None, True])
def test_sizes_that_are_none_are_refused(name, size):
    sizes = {"vocab_size": V, "context_length": L} | {name: size}
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1"):
        TinyGPT(**sizes)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"temperature": 0}, ValueError, "temperature must be above 0, got 0.0.*use top_k=1"),
        ({"temperature": 1e-300}, ValueError, "temperature must be above 0, got 1e-300"),
        ({"temperature": -1.0}, ValueError, "temperature must be above 0, got -1.0"),
        (
            {"temperature": math.nan},
            ValueError,
            "must be a finite number, got the float nan",
        ),
        (
            {"temperature": math.inf},
            ValueError,
            "must be a finite number, got the float inf",
        ),
        ({"temperature": "hot"}, TypeError, "temperature must be a finite number"),
        ({"top_k": 0}, ValueError, f"top_k must be a whole number from 1 to {V}, got 0"),
        ({"top_k": V + 1}, ValueError, f"from 1 to {V}, got {V + 1}"),
        ({"top_k": 2.0}, TypeError, "top_k must be a whole number or None, got the float 2.0"),
        ({"n": 0}, ValueError, "n must be a whole number of at least 1, got 0"),
    ],
)
def test_how_it_cannot_write(options, error, said):
    with pytest.raises(error, match=said):
        made().generate(some_ids(), **({"n": 1} | options))


@pytest.mark.parametrize(
    "cache", [[], (), {}, KVCache(L), [KVCache(L)], [None, None], 3 * [KVCache(L)]]
)
def test_what_is_no_cache_of_the_model_is_refused(cache):
    with pytest.raises(TypeError, match=r"a KVCache for each of 2 blocks, as new_cache\(\) makes"):
        made()(some_ids(), cache=cache)


@pytest.mark.parametrize("rotary", ["no", None, 0, 1.0])
def test_rotary_is_yes_or_no(rotary):
    with pytest.raises(TypeError, match="rotary must be True or False, got "):
        TinyGPT(V, L, rotary=rotary)


@pytest.mark.parametrize("logits", [torch.tensor([1, 2]), torch.tensor([True]), [0.5, 0.5], None])
def test_logits_are_floats(logits):
    with pytest.raises(TypeError, match="logits must be "):
        next_token_probabilities(logits)


@pytest.mark.parametrize("ids", [[-1], [0, 9], [2], [[0]], [0.5], []])
def test_a_text_is_made_of_ids_of_its_letters(ids):
    if not ids:
        assert decode(torch.tensor([], dtype=torch.long), "ab") == ""
        return
    with pytest.raises((TypeError, ValueError), match=r"from 0 to V - 1 = 1|one text|whole number"):
        decode(torch.tensor(ids), "ab")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_model_that_computes_no_numbers_says_so(value):
    model = made()
    with torch.no_grad():
        model.to_logits.bias[3] = value
    with pytest.raises(ValueError, match="logits hold nan or inf, so no token can be drawn"):
        model.generate(some_ids(), 2, top_k=2)
