import itertools
import math

import torch

from attention_base.numbers import brief, number
from helpers.pictures.colours import GLOW
from helpers.pictures.table import Table
from tests.explorers.reading import Chart, heat

SIZES = tuple(2**power for power in range(11))
DIVISORS = ("none", "√T", "√C", "√d", "d")
q, k = torch.randn(2, 128, 8, 1024, generator=torch.Generator().manual_seed(0))


def model(d, divisor):
    by = {"none": 1, "√T": math.sqrt(8), "√C": math.sqrt(32), "√d": math.sqrt(d), "d": d}[divisor]
    scores = (q[..., :d] @ k[..., :d].mT).double() / by
    weights = torch.softmax(scores, -1)
    variance = scores.var(unbiased=False).item()
    bits = torch.distributions.Categorical(weights).entropy().mean().item() / math.log(2)
    derivative = (weights * (1 - weights)).mean().item()
    told = number(by, 0 if by == int(by) else 3)
    divided = "not divided" if divisor == "none" else f"divided by {divisor} = {told}"
    head, effect = f"d = {d}, scores {divided}", effect_on(weights, variance)
    a, b, c = brief(variance), number(bits), number(derivative, 3)
    of_largest = derivative / (1 / 8 * (1 - 1 / 8))  # when all 8 keys have the same weight
    power = max(-3, min(3, math.log10(variance)))
    gauges = [
        (power, f"variance of the scores: {a}", "0.001", "1", "1000"),
        (bits, f"entropy of a row, in bits: {b}", "0: one key has all", "3: all keys alike"),
        (of_largest * 0.109, f"mean derivative of a weight: {c}", "0: none", "0.109: largest"),
    ]
    charts = [Chart(texts[0], texts, [(GLOW, None, dot, 30)], []) for dot, *texts in gauges]
    rows = list(zip("012", heat(weights[0, :3]), strict=True))
    table = Table(list("01234567"), rows, "three rows of weights", "query", "key")
    now = f"{head}: variance {a}, entropy {b} of at most 3 bits, "
    now += f"mean derivative of a weight {c} of at most 0.109. {effect}"
    return [now, head, *charts, table, effect]


def effect_on(weights, variance):
    less = "and the weights change less when a score changes."
    hardly = "and a small change of a score changes hardly any weight."
    in_most_rows = weights.amax(-1).median()
    if in_most_rows > 0.9:
        return f"Most rows are saturated: one key has more than 0.9 of the weight, {hardly}"
    if in_most_rows > 0.5:
        return f"In most rows one key has more than half of the weight, {less}"
    if variance > 1.5:
        return f"The rows are more one-sided than at variance 1, {less}"
    if variance > 0.7:
        return "Each row prefers some keys, and its weights still change when a score changes."
    if variance > 0.03:
        return "The rows are more even than at variance 1: the scores change the weights less."
    return "All keys get nearly the same weight, whatever the scores are."


CONTROLS = {"d": (256, SIZES), "divisor (T = 8, C = 32)": ("none", DIVISORS)}
SETTINGS = list(itertools.product(SIZES, DIVISORS))
CASES = [({}, SETTINGS)]


def test_only_the_root_of_d_is_right_for_every_d():
    right = {(1, "none"), (8, "√T"), (32, "√C"), (1, "d"), *[(d, "√d") for d in SIZES]}
    for setting in SETTINGS:
        assert ("Each row prefers some keys" in model(*setting)[0]) == (setting in right), setting
