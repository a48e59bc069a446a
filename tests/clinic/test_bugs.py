"""The known mistakes are what their names say, and none is another one in disguise."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from helpers.attention import MultiHeadAttention
from helpers.clinic.bugs import (
    HEAD_ILLNESSES,
    ILLNESSES,
    Patient,
    healthy,
    illnesses_of,
    in_heads,
    merge,
    split,
)

GENERATOR = torch.Generator().manual_seed(0)
x, q, k, v = (torch.randn(2, 7, 12, generator=GENERATOR) for _ in range(4))


@pytest.mark.parametrize("causal", [True, False])
def test_healthy_equals_pytorch_in_heads_too(causal):
    out, weights = healthy(q, k, v, causal)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(weights @ v, out)
    heads = [split(z, 3) for z in (q, k, v)]
    expected = merge(F.scaled_dot_product_attention(*heads, is_causal=causal))
    out, weights = in_heads(lambda *qkv: healthy(*qkv, causal), q, k, v, 3)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
    assert weights.shape == (2, 3, 7, 7)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n_head", [1, 3])
def test_no_illness_is_health_or_another_illness(n_head, causal):
    found = {one.name: one.compute(q, k, v) for one in illnesses_of(x, n_head, causal)}
    right = in_heads(lambda *qkv: healthy(*qkv, causal), q, k, v, n_head)
    if n_head == 1:  # then a query has C channels
        assert torch.allclose(found.pop("divided by the root of C")[0], right[0], atol=1e-6)
    for (a, one), (b, other) in itertools.combinations((found | {"healthy": right}).items(), 2):
        assert one[0].shape == right[0].shape
        same = torch.allclose(one[0], other[0], rtol=0, atol=1e-4, equal_nan=True)
        assert not same, f"{a} = {b}"


def test_every_illness_says_what_it_is():
    for name, illness in (ILLNESSES | HEAD_ILLNESSES).items():
        assert illness.name == name and illness.message.endswith(".")


def test_scale_mistakes_divide_by_what_they_say():
    scores = q @ k.mT
    divisors = {
        "no scale": 1,
        "multiplied by the root": 12**-0.5,
        "divided by the size, without a root": 12,
        "divided by the root of T": 7**0.5,
    }
    for name, divisor in divisors.items():
        expected = torch.softmax(scores / divisor, dim=-1)
        weights = ILLNESSES[name].compute(q, k, v, causal=False)[1]
        torch.testing.assert_close(weights, expected, rtol=0, atol=1e-5)


def test_a_healthy_patient_is_many_headed_attention():
    patient, many = Patient("healthy", 12, 3), MultiHeadAttention(12, 3)
    many.load_state_dict(patient.state_dict())
    out, weights = patient(x, return_weights=True)
    expected, right = many(x, return_weights=True)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(weights, right, rtol=0, atol=1e-5)
