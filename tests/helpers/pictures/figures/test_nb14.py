"""The ladder: what each way carries, counted; drawn and told alike."""

import torch

from helpers.attention import KVCache
from helpers.pictures import ladder
from tests.helpers.pictures import reading

d = 16
WAYS = ["running mean", "the formula", "KV cache", "in blocks"]


def carried(T):
    """How many numbers each way holds for one query of a head after T tokens."""
    k, v = torch.zeros(2, 1, 1, T, d)
    cache = KVCache(T)
    keys, values = cache.append(k, v)
    sums = v[0, 0].sum(0)
    maximum, total = torch.zeros(2, 1)
    return [
        sums.numel() + 1,  # and a count
        T,
        keys.numel() + values.numel(),
        maximum.numel() + total.numel() + sums.numel(),
    ]


def test_the_numbers_are_counted_and_stand_in_words_and_drawing():
    rows = str(ladder()).splitlines()[2:6]
    small, large = carried(256), [17, 100_000, 2 * d * 100_000, 18]
    drawn = [text.get_text() for text in ladder().figure().axes[0].texts]
    for row, way, few, many in zip(rows, WAYS, small, large, strict=True):
        assert way in row and row.split()[-2:] == [f"{few:,}", f"{many:,}"]
        told = f"{few:,} at any length" if few == many else f"{few:,} / {many:,}"
        assert told in drawn


def test_words_html_and_alt_say_the_same():
    shown = ladder()
    words = reading.words(reading.parse(f"<div>{shown.html()}</div>"))
    for part in (*WAYS, "all keys and values", "With equal scores"):
        assert part in str(shown) and part in words and part in shown.alt
