"""The known bugs are what their names say, and no two of them give the same numbers."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from attention_base.known import source
from attention_clinic.bugs import (
    BY_NAME,
    bugs_for,
    merge_heads,
    split_heads,
    with_bugs,
)
from tests.attention_clinic.written import BROKEN, N_HEAD

GENERATOR = torch.Generator().manual_seed(0)
x, q, k, v = (torch.randn(2, 7, 12, generator=GENERATOR) for _ in range(4))


def computed(*names, n_head=N_HEAD, causal=True):
    """What attention with these bugs makes of q, k, v and x."""
    return with_bugs(*(BY_NAME[name] for name in names), causal=causal)(q, k, v, x, n_head)


@pytest.mark.parametrize("n_head", [1, N_HEAD])
@pytest.mark.parametrize("causal", [True, False])
def test_without_a_bug_it_is_pytorchs_attention(causal, n_head):
    heads = [split_heads(z, n_head) for z in (q, k, v)]
    expected = merge_heads(F.scaled_dot_product_attention(*heads, is_causal=causal))
    out, weights = computed(n_head=n_head, causal=causal)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(merge_heads(weights @ heads[2]), out)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n_head", [1, N_HEAD])
def test_no_bug_is_right_or_another_bug(n_head, causal):
    found = {
        bug.name: with_bugs(bug, causal=causal)(q, k, v, x, n_head)[0]
        for bug in bugs_for(n_head, causal)
    }
    found.pop("heads averaged", None), found.pop("heads added", None)  # fewer channels
    right, _ = computed(n_head=n_head, causal=causal)
    if n_head == 1:  # then a query has C channels
        assert torch.allclose(found.pop("divided by √C"), right, atol=1e-6)
    for (a, one), (b, other) in itertools.combinations((found | {"healthy": right}).items(), 2):
        assert one.shape == right.shape
        assert not torch.allclose(one, other, rtol=0, atol=1e-4, equal_nan=True), f"{a} = {b}"


def test_bugs_of_a_mask_are_none_where_there_should_be_no_mask():
    of_mask = {bug.name for bug in bugs_for(1)} - {bug.name for bug in bugs_for(1, causal=False)}
    assert {"no mask", "future filled with 0", "masked after the softmax"} <= of_mask
    assert not of_mask & {"no scale", "softmax over the queries", "no softmax"}
    unwanted = bugs_for(1, causal=False)[-1]
    assert unwanted.name == "unwanted causal mask"
    out, _ = with_bugs(unwanted, causal=False)(q, k, v, x, 1)
    assert torch.equal(out, computed(n_head=1)[0])


def test_every_bug_says_what_it_is_and_can_be_shown():
    for bug in BY_NAME.values():
        assert bug.message.endswith((".", ".)"))
        assert bug.changes and source(with_bugs(bug)) != source(with_bugs())
    assert "softmax(scores, dim=-2)" in source(with_bugs(BY_NAME["softmax over the queries"]))


def test_scale_bugs_divide_by_what_they_say():
    divisors = {
        "no scale": 1,
        "multiplied by √head_size": 12**-0.5,
        "divided by head_size, not √head_size": 12,
        "divided by √T": 7**0.5,
    }
    for name, divisor in divisors.items():
        expected = torch.softmax(q @ k.mT / divisor, dim=-1)
        weights = computed(name, n_head=1, causal=False)[1][:, 0]
        torch.testing.assert_close(weights, expected, rtol=0, atol=1e-5)


# Two ways to the same numbers, each a list of bugs.
EQUAL = [
    ("upper triangle kept", "diagonal masked too + mask not inverted"),
    ("upper triangle kept", "diagonal masked with -1e9 + mask not inverted"),
    (
        "diagonal masked too + mask not inverted",
        "diagonal masked with -1e9 + mask not inverted",
    ),
    ("diagonal masked too", "mask not inverted + upper triangle kept"),
    (
        "split and merged by view",
        "merged by view, without transpose + split by view, without transpose",
    ),
    ("softmax over the heads, masked with -1e9", "future filled with 0 + softmax over the heads"),
    (
        "diagonal masked too + softmax over the heads, masked with -1e9",
        "diagonal masked with -1e9 + softmax over the heads",
    ),
    (
        "queries and keys swapped + softmax over the queries",
        "upper triangle kept + weights transposed",
    ),
    (
        "queries and keys swapped + upper triangle kept",
        "softmax over the queries + weights transposed",
    ),
    (
        "queries and keys swapped + weights transposed",
        "softmax over the queries + upper triangle kept",
    ),
]


def test_pairs_are_programs_with_both_changes_and_differ_from_all_others():
    hiding = {"scores thrown away", "0 times infinity"}  # the other one of a pair
    common = BY_NAME.keys() & BROKEN.keys() - hiding - {"x used as keys", "x used as values"}
    seen = {name: computed(name)[0] for name in sorted(common)}
    for one, other in itertools.combinations(sorted(common), 2):
        both = with_bugs(BY_NAME[one], BY_NAME[other])
        if both is not None and not (out := both(q, k, v, x, N_HEAD)[0]).isnan().all():
            singles = (seen[one], seen[other])
            if not any(torch.allclose(out, z, atol=1e-5, equal_nan=True) for z in singles):
                seen[f"{one} + {other}"] = out
    assert len(seen) > 400
    names, outs = zip(*seen.items(), strict=True)
    flat = torch.stack(outs).flatten(1).nan_to_num(nan=1e3)
    same = (torch.cdist(flat, flat, p=torch.inf) < 1e-5).triu(1).nonzero().tolist()
    assert {(names[i], names[j]) for i, j in same} == set(EQUAL)


def test_bugs_that_exclude_each_other_make_no_program():
    assert with_bugs(BY_NAME["no scale"], BY_NAME["divided by √T"]) is None
    assert with_bugs(BY_NAME["no mask"], BY_NAME["future filled with 0"]) is None
