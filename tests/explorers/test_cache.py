import itertools

import pytest

from attention_base.numbers import number
from explorers import explore_cache
from helpers.pictures.table import Cell, Table
from helpers.training import shipped_model
from tests.explorers.reading import now

# layers, query heads, key/value heads, head_size, parameters, bytes of a number
SIZES = {
    "the model of notebook 10": (2, 4, 4, 16, 113_000, 4),
    "GPT-2 small": (12, 12, 12, 64, 124_000_000, 2),
    "Llama 2, 7B": (32, 32, 32, 128, 6_740_000_000, 2),
    "Llama 3.1, 8B": (32, 32, 8, 128, 8_000_000_000, 2),
}
HEADS = ("its own", "a quarter", "one")
TOKENS = ("256", "1,024", "4,096", "16,384", "131,072")


def size(n):
    if n >= 10**9:
        return f"{number(n / 10**9, 1)} GB"
    return f"{number(n / 10**6, 1)} MB" if n >= 10**6 else f"{number(n / 1000, 0)} kB"


def model(name, heads, tokens):
    layers, queries, own, head_size, parameters, width = SIZES[name]
    n = {HEADS[0]: own, HEADS[1]: queries // 4, HEADS[2]: 1}[heads]
    cache, others = 2 * layers * n * head_size * int(tokens.replace(",", "")) * width, 0
    others = parameters * width
    rows = [
        (what, [Cell(size(b), bar=260 * b / max(cache, others))])
        for what, b in (("cache of one text", cache), ("parameters", others))
    ]
    told = [
        f"Keys and values: 2 × {layers} layers × {n} key/value heads × {head_size} channels × "
        f"{tokens} tokens × {width} bytes = {cache:,} bytes.",
        f"The caches of {number(others / cache, 1)} such texts take as much as the parameters."
        if cache <= others
        else f"This one cache takes {number(cache / others, 1)} times as much as the parameters.",
    ]
    text = f"memory cache of one text {size(cache)} parameters {size(others)}"
    return [f"{name}, {tokens} tokens. {' '.join(told)} {text}", Table(["memory"], rows), *told]


CONTROLS = {
    "model": ("Llama 2, 7B", tuple(SIZES)),
    "key/value heads": (HEADS[0], HEADS),
    "tokens": ("4,096", TOKENS),
}
CASES = [({}, list(itertools.product(SIZES, HEADS, TOKENS)))]


def test_the_small_model_is_the_one_that_ships():
    gpt, _ = shipped_model()
    layers, queries, _, head_size, parameters, width = SIZES["the model of notebook 10"]
    attention = gpt.blocks[0].attention
    assert (len(gpt.blocks), attention.n_head, attention.head_size) == (layers, queries, head_size)
    assert sum(p.numel() for p in gpt.parameters()) == pytest.approx(parameters, rel=0.01)
    assert gpt.norm.weight.element_size() == width


def test_the_answers_of_the_notebook():
    explorer = explore_cache()
    explorer.controls["tokens"].value = "16,384"
    assert "The caches of 1.6 such texts" in now(explorer)
    explorer.controls["tokens"].value = "131,072"
    assert "5.1 times as much as the parameters" in now(explorer)
    explorer.controls["kv heads"].value = HEADS[1]
    assert "1.3 times as much as the parameters" in now(explorer)
