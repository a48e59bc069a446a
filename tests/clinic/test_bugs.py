"""The known bugs are what their names say, and no two of them give the same numbers."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from helpers.attention import MultiHeadAttention
from helpers.clinic.bugs import (
    ATTENTION_BUGS,
    HEAD_AXIS_BUGS,
    SPLIT_BUGS,
    correct_attention,
    in_heads,
    merge_heads,
    split_heads,
)
from helpers.clinic.module_bugs import (
    MODULE_BUGS,
    MODULE_SPLIT_BUGS,
    BrokenAttention,
    bug_pairs_for,
    bugs_for,
)
from tests.clinic.written import BROKEN, N_HEAD

GENERATOR = torch.Generator().manual_seed(0)
x, q, k, v = (torch.randn(2, 7, 12, generator=GENERATOR) for _ in range(4))


@pytest.mark.parametrize("causal", [True, False])
def test_correct_attention_equals_pytorchs_in_heads_too(causal):
    out, weights = correct_attention(q, k, v, causal)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(weights @ v, out)
    heads = [split_heads(z, 3) for z in (q, k, v)]
    expected = merge_heads(F.scaled_dot_product_attention(*heads, is_causal=causal))
    out, weights = in_heads(lambda *qkv: correct_attention(*qkv, causal), q, k, v, 3)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
    assert weights.shape == (2, 3, 7, 7)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n_head", [1, 3])
def test_no_bug_is_right_or_another_bug(n_head, causal):
    found = {one.name: one.compute(q, k, v) for one in bugs_for(x, n_head, causal)}
    found.pop("heads averaged", None), found.pop("heads added", None)  # fewer channels
    right = in_heads(lambda *qkv: correct_attention(*qkv, causal), q, k, v, n_head)
    if n_head == 1:  # then a query has C channels
        assert torch.allclose(found.pop("divided by √C")[0], right[0], atol=1e-6)
    for (a, one), (b, other) in itertools.combinations((found | {"healthy": right}).items(), 2):
        assert one[0].shape == right[0].shape
        same = torch.allclose(one[0], other[0], rtol=0, atol=1e-4, equal_nan=True)
        assert not same, f"{a} = {b}"


def test_every_bug_says_what_it_is():
    for name, bug in (ATTENTION_BUGS | SPLIT_BUGS | MODULE_BUGS | MODULE_SPLIT_BUGS).items():
        assert bug.name == name and bug.message.endswith(".")


def test_scale_bugs_divide_by_what_they_say():
    scores = q @ k.mT
    divisors = {
        "no scale": 1,
        "multiplied by √head_size": 12**-0.5,
        "divided by head_size, not √head_size": 12,
        "divided by √T": 7**0.5,
    }
    for name, divisor in divisors.items():
        expected = torch.softmax(scores / divisor, dim=-1)
        weights = ATTENTION_BUGS[name].compute(q, k, v, causal=False)[1]
        torch.testing.assert_close(weights, expected, rtol=0, atol=1e-5)


def test_without_a_bug_it_is_multi_head_attention():
    broken, ours = BrokenAttention(None, 12, 3), MultiHeadAttention(12, 3)
    ours.load_state_dict(broken.state_dict())
    out, weights = broken(x, return_weights=True)
    expected, right = ours(x, return_weights=True)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(weights, right, rtol=0, atol=1e-5)


def test_all_pairs_that_are_not_one_bug_differ():
    """Each pair's numbers differ from those of every other pair and of every single bug."""
    common = {*ATTENTION_BUGS, *HEAD_AXIS_BUGS, *SPLIT_BUGS, "divided by √C", "x used as values"}
    singles = [one for one in bugs_for(x, N_HEAD) if one.name in common]
    seen = [(one.name, one.compute(q, k, v)[0]) for one in singles]
    hiding = {"scores thrown away", "0 times infinity"}  # what else is wrong does not show
    scales = {name for name in BROKEN if "√" in name or "scale" in name}
    for one, other, both in bug_pairs_for(x, N_HEAD):
        names = {one.name, other.name}
        values = {"keys used as values", "x used as values"}
        if not names <= common or names & hiding or len(names & scales) > 1 or names == values:
            continue
        if names == {"divided by √C", "one large head"}:
            continue
        seen.append((" + ".join(sorted(names)), both(q, k, v)[0]))
    names, outs = zip(*seen, strict=True)
    flat = torch.stack(outs).flatten(1).nan_to_num(nan=1e3)
    same = torch.cdist(flat, flat, p=torch.inf) < 1e-5
    for i, j in same.triu(1).nonzero().tolist():
        assert names[i] == names[j], f"{names[i]} = {names[j]}"
