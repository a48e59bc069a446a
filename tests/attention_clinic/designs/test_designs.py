"""The test data itself: right modules give the formula's numbers, and bugs give others."""

import math

import pytest
import torch
import torch.nn.functional as F

from tests.attention_clinic.designs.designs import (
    BUGS,
    DESIGNS,
    N_HEAD,
    SCHEMES,
    C,
    HeadList,
    MultiHeadAttentionWrapper,
    build,
)
from tests.attention_clinic.written import spread

B, T = 3, 7
CHANGED = 4  # the first token that the tests of a leak change
X, LATER = torch.randn(2, B, T, C, generator=torch.Generator().manual_seed(0))
LATER[:, :CHANGED], LATER[-1] = X[:, :CHANGED], X[-1]  # later tokens of the first two sequences
WIDTHS = {"Head, ours": 8, "CausalAttention, raschka": 8}
BLOCK_NAMES = [
    ("norm_1", "attention", "norm_2", "feed_forward"),
    ("ln_1", "attn", "ln_2", "mlp"),
    ("norm1", "att", "norm2", "ff"),
    ("input_layernorm", "self_attn", "post_attention_layernorm", "mlp"),
    ("norm1", "self_attn", "norm2", None),  # nn.TransformerEncoderLayer
]
CASES = [(bug, scheme) for bug in BUGS for scheme in bug.build_by_scheme]


def by_name(case):
    return case.name if hasattr(case, "name") else None


seed = torch.default_generator.manual_seed  # torch.manual_seed writes a traceback each time


@pytest.fixture(autouse=True)
def same_random_numbers():
    state = torch.get_rng_state()
    seed(0)
    yield
    torch.set_rng_state(state)


def drawn(module):
    """Random parameters, so that no norm is a plain one and no bias is 0."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.25 + (parameter.dim() == 1))
    return module


def with_parameters_of(right, module):
    """The module with the parameters of the right one that it has by the same name and shape."""
    mine, theirs = module.state_dict(), dict(right.named_parameters())
    same = {name: z for name, z in theirs.items() if name in mine and mine[name].shape == z.shape}
    module.load_state_dict(same, strict=False)
    return module


def scheme_of(design):
    scheme = design.name.rpartition(", ")[2]
    return scheme if scheme in SCHEMES else None


def part_of(design):
    words = design.name.replace("block_size", "").split()
    return (
        "model"
        if "model" in words
        else "block"
        if "block" in words or "block," in words
        else "attention"
    )


def output(module, x=X):
    seed(1)  # for a dropout that is on
    return module(x.to(next(module.parameters()).dtype)).float()


# ---------------------------------------------------------------- the formula


LAYERS = [  # of queries, keys, values
    ("query", "key", "value"),
    ("W_query", "W_key", "W_value"),
    ("q_proj", "k_proj", "v_proj"),
    ("linears.0", "linears.1", "linears.2"),
]


def linear(layer, x):
    return x @ layer.weight.T + (0 if layer.bias is None else layer.bias)


def qkv_of_heads(module, x, n_head):
    """Queries, keys and values of each head, (n_head, B, T, d), from the module's parameters."""
    names = set(dict(module.named_parameters())) | set(dict(module.named_children()))
    if "c_attn" in names:
        q, k, v = linear(module.c_attn, x).chunk(3, dim=-1)
    elif "qkv" in names:
        q, k, v = linear(module.qkv, x).chunk(3, dim=-1)
    elif "in_proj_weight" in names:
        q, k, v = (x @ module.in_proj_weight.T + module.in_proj_bias).chunk(3, dim=-1)
    elif "query_key_value" in names:
        heads = linear(module.query_key_value, x).chunk(n_head, dim=-1)
        return tuple(torch.stack(z) for z in zip(*(h.chunk(3, -1) for h in heads), strict=True))
    elif "W_Q" in names:
        weights = zip((module.W_Q, module.W_K, module.W_V), "QKV", strict=True)
        return tuple(
            torch.stack([x @ w + b for w, b in zip(W, getattr(module, f"b_{z}"), strict=True)])
            for W, z in weights
        )
    else:
        layers = next(three for three in LAYERS if three[0] in dict(module.named_modules()))
        q, k, v = (linear(module.get_submodule(name), x) for name in layers)
    return tuple(torch.stack(z.chunk(n_head, dim=-1)) for z in (q, k, v))


def averages(q, k, v):
    """softmax(q @ k.T / sqrt(d)) @ v over earlier tokens, one head and one query at a time."""
    outs = []
    for one_q, one_k, one_v in zip(q, k, v, strict=True):
        rows = []
        for t in range(T):
            scores = (one_k[:, : t + 1] * one_q[:, t, None]).sum(dim=-1) / math.sqrt(q.shape[-1])
            weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)  # (B, t + 1)
            rows.append((weights[..., None] * one_v[:, : t + 1]).sum(dim=1))
        outs.append(torch.stack(rows, dim=1))
    return torch.cat(outs, dim=-1)


def attention(module, x, n_head):
    if isinstance(module, (HeadList, MultiHeadAttentionWrapper)):
        out = torch.cat([attention(head, x, 1) for head in module.heads], dim=-1)
    else:
        module = module.attn if "in_proj_weight" in dir(getattr(module, "attn", None)) else module
        out = averages(*qkv_of_heads(module, x, n_head))
    if hasattr(module, "W_O"):
        return out @ module.W_O.flatten(0, 1) + module.b_O
    for name in ("proj", "c_proj", "out_proj", "o_proj", "dense"):
        if hasattr(module, name):
            return linear(getattr(module, name), out)
    return linear(module.linears[3], out) if hasattr(module, "linears") else out


def norm(layer, x):
    kind = type(layer).__name__
    eps = {"LlamaRMSNorm": 1e-6, "RMSNorm": torch.finfo(x.dtype).eps}.get(kind, 1e-5)
    x = x if "RMS" in kind else x - x.mean(dim=-1, keepdim=True)
    x = x / torch.sqrt((x**2).mean(dim=-1, keepdim=True) + eps)
    if hasattr(layer, "shift"):
        return x * layer.scale + layer.shift
    return x * layer.weight + (layer.bias if hasattr(layer, "bias") else 0)


def feed_forward(layer, x, gelu):
    if hasattr(layer, "wide"):
        wide = linear(layer.wide, x)
        return linear(layer.proj, F.gelu(wide) if gelu else wide.clamp(min=0))
    if hasattr(layer, "c_fc"):
        return linear(layer.c_proj, F.gelu(linear(layer.c_fc, x)))
    if hasattr(layer, "layers"):
        first, _, last = layer.layers
        return linear(last, F.gelu(linear(first, x), approximate="tanh"))
    if hasattr(layer, "linear1"):
        return linear(layer.linear2, F.gelu(linear(layer.linear1, x)))
    names = (
        ("fc1", "fc2", "fc3") if hasattr(layer, "fc1") else ("gate_proj", "up_proj", "down_proj")
    )
    gate, up, down = (getattr(layer, name) for name in names)
    hidden = linear(gate, x)
    return linear(down, hidden / (1 + torch.exp(-hidden)) * linear(up, x))


def block(module, x, design):
    module = getattr(module, "layer", module)
    names = next(names for names in BLOCK_NAMES if all(hasattr(module, n) for n in names if n))
    norm_1, attn, norm_2, ff = (getattr(module, name) if name else module for name in names)
    gelu = "GELU" in design.name
    if "post" in design.name:
        x = norm(norm_1, x + attention(attn, x, design.n_head))
        return norm(norm_2, x + feed_forward(ff, x, gelu))
    x = x + attention(attn, norm(norm_1, x), design.n_head)
    return x + feed_forward(ff, norm(norm_2, x), gelu)


def textbook(module, x, design):
    """What the module should give, from its parameters alone."""
    part = "block" if "EncoderLayer" in design.name else part_of(design)
    if part == "attention":
        return attention(module, x, design.n_head)
    if part == "block":
        return block(module, x, design)
    blocks = [m for m in module.modules() if any(hasattr(m, names[0]) for names in BLOCK_NAMES)]
    assert len(blocks) == 3
    for one in blocks:
        x = block(one, x, design)
    return x


# ---------------------------------------------------------------- right modules


def test_names_are_unique_and_there_are_enough():
    assert len({design.name for design in DESIGNS}) == len(DESIGNS) >= 40
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 40
    assert {design.kind for design in DESIGNS} == {"textbook", "different"}


@pytest.mark.parametrize(("design",), spread([(one,) for one in DESIGNS], 5), ids=by_name)
def test_a_design_is_causal_and_a_textbook_one_is_the_formula(design):
    module = drawn(design.build())
    assert not module.training
    rounded = "float16" in design.name
    with torch.no_grad():
        y = output(module)
        assert y.isfinite().all() and y.shape == (B, T, WIDTHS.get(design.name, C))
        exact = {"rtol": 0, "atol": 0.1 if rounded else 1e-4}
        changed = output(module, LATER)
        torch.testing.assert_close(changed[:-1, :CHANGED], y[:-1, :CHANGED], **exact)
        torch.testing.assert_close(changed[-1], y[-1], **exact)  # another sequence
        assert (changed[:-1, CHANGED:] - y[:-1, CHANGED:]).abs().max() > 0.1
        if design.kind == "textbook":
            torch.testing.assert_close(y, textbook(module, X, design), **exact)
        elif scheme := scheme_of(design):
            plain = with_parameters_of(module, drawn(build(scheme, part_of(design))))
            assert (output(plain) - y).abs().max() > 1e-3


# ---------------------------------------------------------------- bugs


def leaks(module, y):
    changed = output(module, LATER)[:-1, :CHANGED]
    return not torch.allclose(changed, y[:-1, :CHANGED], rtol=0, atol=1e-4, equal_nan=True)


def gradients(module):
    """Of the parameters that get any."""
    output(module).square().sum().backward()
    return {
        name: parameter.grad
        for name, parameter in module.named_parameters()
        if parameter.grad is not None
    }


@pytest.mark.parametrize(("bug", "scheme"), spread(CASES, 5), ids=by_name)
def test_a_bug_is_not_the_right_module_and_leaks_where_it_says(bug, scheme):
    right = drawn(bug.right_by_scheme[scheme]())
    wrong = with_parameters_of(right, drawn(bug.build_by_scheme[scheme]()))
    assert not wrong.training
    if bug.crashes:
        with pytest.raises((RuntimeError, AssertionError)):
            wrong(X)
        return
    with torch.no_grad():
        y, expected = output(wrong), output(right)
        assert y.shape == expected.shape == X.shape
        assert not leaks(right, expected)
        assert leaks(wrong, y) == (scheme in bug.leaks)
    if torch.allclose(y, expected, atol=1e-3):
        assert bug.name in ("weights detached", "queries without gradient")
        there, here = gradients(right), gradients(wrong)
        assert any(
            name not in here or not torch.allclose(here[name], there[name], rtol=1e-3)
            for name in there
        )


def rows(of, order):
    """Other rows in these layers: of every one that stands for queries, keys or values."""
    return lambda state: {name: z[order] if name in of else z for name, z in state.items()}


OURS = ("query.weight", "key.weight", "value.weight")
FUSED = ("c_attn.weight", "c_attn.bias")
CHANNELS = torch.arange(C).view(N_HEAD, -1)  # [head, channel of it]
THIRDS = torch.arange(3 * C).view(3, N_HEAD, -1)  # [q, k or v, head, channel of it]


def columns(order):
    return lambda state: {**state, "proj.weight": state["proj.weight"][:, order]}


def renamed(one, two):
    swap = {one: two, two: one}
    return lambda state: {
        ".".join(swap.get(word, word) for word in name.split(".")): z for name, z in state.items()
    }


def tiled(state):
    """Query heads in the order 0 2 1 3, and back behind the attention."""
    order = CHANNELS[[0, 2, 1, 3]].flatten()
    return {
        **state,
        "q_proj.weight": state["q_proj.weight"][order],
        "o_proj.weight": state["o_proj.weight"][:, order],
    }


RELABELLED = {
    "q and k swapped": ("ours", renamed("query", "key")),
    "fused layer split as k, q, v": ("nano", rows(FUSED, THIRDS[[1, 0, 2]].flatten())),
    "fused layer split as v, k, q": ("nano", rows(FUSED, THIRDS[[2, 1, 0]].flatten())),
    "fused layer split per head": (
        "nano",
        rows(FUSED, torch.arange(3 * C).view(N_HEAD, 3, -1).transpose(0, 1).flatten()),
    ),
    "interleaved split": ("ours", rows(OURS, torch.arange(C).view(-1, N_HEAD).T.flatten())),
    "interleaved merge": ("ours", columns(torch.arange(C).view(-1, N_HEAD).T.flatten())),
    "heads reversed in the merge": ("ours", columns(CHANNELS.flip(0).flatten())),
    "groups tiled": ("llama", tiled),
    "norms swapped": ("ours", renamed("norm_1", "norm_2")),
}


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.relabels], ids=lambda bug: bug.name)
def test_what_only_relabels_is_right_with_its_parameters_in_another_order(bug):
    scheme, relabel = RELABELLED[bug.name]
    right, wrong = bug.right_by_scheme[scheme](), drawn(bug.build_by_scheme[scheme]())
    right.load_state_dict(relabel(wrong.state_dict()))
    with torch.no_grad():
        torch.testing.assert_close(output(wrong), output(right), rtol=0, atol=1e-4)
