"""Notebook 14: how much memory a KV cache takes."""

from __future__ import annotations

from typing import NamedTuple

from attention_base.numbers import number
from explorers.explorer import Explorer, dropdown, sentences
from helpers.cost import cache_bytes
from helpers.pictures.table import Cell, Table


class Model(NamedTuple):
    """The sizes that matter."""

    n_layer: int
    n_head: int
    n_kv_head: int
    head_size: int
    n_parameter: float
    bytes_per_number: int


# Touvron et al. (2023), "Llama 2", table 1 and its config; Grattafiori et al. (2024), "The Llama 3
# Herd of Models", table 3; Radford et al. (2019), "Language Models are Unsupervised Multitask
# Learners", table 2, with the 124 million parameters of the model that was published.
MODELS = {
    "the model of notebook 10": Model(2, 4, 4, 16, 113_000, 4),
    "GPT-2 small": Model(12, 12, 12, 64, 124e6, 2),
    "Llama 2, 7B": Model(32, 32, 32, 128, 6.74e9, 2),
    "Llama 3.1, 8B": Model(32, 32, 8, 128, 8.0e9, 2),
}
HEADS = ("its own", "a quarter", "one")
TOKENS = ("256", "1,024", "4,096", "16,384", "131,072")


def explore_cache() -> Explorer:
    """A model, its heads of keys and values, and a length: see the memory of one text's cache."""
    return CacheExplorer()


class CacheExplorer(Explorer):
    """The bytes of a cache beside those of the parameters."""

    about = (
        "choose a model, its number of key/value heads and a number of tokens; see how much memory "
        "the cache of one text takes, beside the parameters."
    )

    def __init__(self) -> None:
        super().__init__(
            {
                "model": dropdown("model", MODELS, "Llama 2, 7B"),
                "kv heads": dropdown("key/value heads", HEADS, HEADS[0]),
                "tokens": dropdown("tokens", TOKENS, "4,096"),
            }
        )

    def draw(self, model: str, kv_heads: str, tokens: str) -> str:
        """Draw two bars, and say how they are computed."""
        table = _table(*_bytes(model, kv_heads, tokens))
        return table.html(classes=True) + sentences(*_told(model, kv_heads, tokens))

    def describe(self, model: str, kv_heads: str, tokens: str) -> str:
        """Say the same in words."""
        table = _table(*_bytes(model, kv_heads, tokens))
        told = " ".join(_told(model, kv_heads, tokens))
        return f"{model}, {tokens} tokens. {told}\n{table.text()}"


def _kv_heads(model: str, kv_heads: str) -> int:
    of = MODELS[model]
    return dict(zip(HEADS, (of.n_kv_head, of.n_head // 4, 1), strict=True))[kv_heads]


def _bytes(model: str, kv_heads: str, tokens: str) -> tuple[float, float]:
    """The bytes of the cache of one text, and of the parameters."""
    of, T = MODELS[model], int(tokens.replace(",", ""))
    heads = _kv_heads(model, kv_heads)
    cache = cache_bytes(of.n_layer, heads, of.head_size, T, bytes_per_number=of.bytes_per_number)
    return cache, of.n_parameter * of.bytes_per_number


def _table(cache: float, parameters: float) -> Table:
    largest = max(cache, parameters)
    rows = [
        (name, [Cell(_size(bytes_), bar=bytes_ / largest)])
        for name, bytes_ in (("cache of one text", cache), ("parameters", parameters))
    ]
    return Table(["memory"], rows, bar_width=260)


def _size(bytes_: float) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if bytes_ >= unit:
            return f"{number(bytes_ / unit, 1)} {name}"
    return f"{number(bytes_ / 1e3, 0)} kB"


def _told(model: str, kv_heads: str, tokens: str) -> list[str]:
    of, heads = MODELS[model], _kv_heads(model, kv_heads)
    cache, parameters = _bytes(model, kv_heads, tokens)
    product = f"2 × {of.n_layer} layers × {heads} key/value heads × {of.head_size} channels × "
    product += f"{tokens} tokens × {of.bytes_per_number} bytes = {cache:,} bytes."
    texts = parameters / cache
    if texts >= 1:
        said = f"The caches of {number(texts, 1)} such texts take as much as the parameters."
    else:
        said = f"This one cache takes {number(1 / texts, 1)} times as much as the parameters."
    return [f"Keys and values: {product}", said]
