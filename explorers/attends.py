"""Notebook 09: which query may attend to which key, in one sequence and between two."""

from __future__ import annotations

import torch

from explorers.explorer import Explorer, dropdown, sentences
from helpers.attention import causal_mask, padding_mask, prefix_mask, window_mask
from helpers.pictures.colours import BLUE, Fill
from helpers.pictures.table import Cell, Table, text_html

PAD = "[pad]"
TEXTS = {
    "A": ["the", "cat", "did", "not", "sleep", PAD],
    "B": ["die", "Katze", "schlief", "nicht"],
}
ROLES = {"A": "A, read by an encoder", "B": "B, its translation, written by a decoder"}
WINDOW, PREFIX = 2, 2
MASKS = ("full", "causal", "window", "padding", "prefix")
ORDERED = ("causal", "window", "prefix")  # they say who is earlier and who is later


def explore_attends() -> Explorer:
    """Choose where queries come from, where keys and values, and a mask; see who attends to whom.

    Text A is what an encoder reads, with one token of padding, and text B its translation, which a
    decoder writes.
    """
    return AttendsExplorer()


class AttendsExplorer(Explorer):
    """A table of queries and keys with a mark where a query may attend to a key."""

    about = "choose the texts of queries and of keys, and a mask; see who may attend to whom."

    def __init__(self) -> None:
        super().__init__(
            {
                "queries": dropdown("queries from", list(TEXTS), "B"),
                "keys": dropdown("keys and values from", list(TEXTS), "B"),
                "mask": dropdown("mask", MASKS, "causal"),
            }
        )

    def draw(self, queries: str, keys: str, mask: str) -> str:
        """Draw the two texts, and the table or why there is none."""
        texts = sentences(*(f"{ROLES[name]}: {' '.join(text)}" for name, text in TEXTS.items()))
        who = _who_in_words(queries, keys)
        if refusal := _refusal(queries, keys, mask):
            return f'{texts}{sentences(who)}<p class="error">{text_html(refusal)}</p>'
        table = _table(queries, keys, mask).html(classes=True)
        return texts + table + sentences(who, _mask_in_words(queries, keys, mask))

    def describe(self, queries: str, keys: str, mask: str) -> str:
        """Say who attends to whom, with the table, or why there is none."""
        who = _who_in_words(queries, keys)
        if refusal := _refusal(queries, keys, mask):
            return f"{who} {refusal}"
        table = _table(queries, keys, mask)
        return (
            f"{who} {_mask_in_words(queries, keys, mask)} Rows: {table.corner}; columns: "
            f"{table.over}.\n{table.text()}"
        )


def _who_in_words(queries: str, keys: str) -> str:
    T_q, T_k = len(TEXTS[queries]), len(TEXTS[keys])
    if queries == keys:
        return f"Self-attention of {queries}: T_q = T_k = {T_q}."
    return f"Cross-attention from {queries} to {keys}: T_q = {T_q}, T_k = {T_k}."


def _refusal(queries: str, keys: str, mask: str) -> str:
    if queries == keys or mask not in ORDERED:
        return ""
    return (
        f"A {mask} mask compares positions, but no token of {queries} is earlier or later than a "
        f"token of {keys}. Choose the mask full or padding, or take queries and keys from the same "
        "text."
    )


def _mask_in_words(queries: str, keys: str, mask: str) -> str:
    tokens, padded = len(TEXTS[keys]), TEXTS[keys].count(PAD)
    everything = f"all {tokens} tokens of {keys}"
    whom = {
        "full": everything + ", even to padding" * bool(padded),
        "causal": "itself and everything before it",
        "window": f"the last {WINDOW} tokens only, itself and the one before it",
        "padding": f"the {tokens - padded} tokens of {keys} that are not padding"
        if padded
        else f"{everything}, since {keys} has no padding",
        "prefix": f"itself, everything before it, and all of the first {PREFIX} tokens",
    }[mask]
    told = f"Each token of {queries} attends to {whom}."
    if mask == "padding" and PAD in TEXTS[queries]:
        told += f" So does {PAD}, but its output is never read."
    return told


def _may_attend(queries: str, keys: str, mask: str) -> torch.Tensor:
    """Make the mask, (T_q, T_k)."""
    T_q, T_k = len(TEXTS[queries]), len(TEXTS[keys])
    if mask == "causal":
        return causal_mask(T_q)
    if mask == "window":
        return window_mask(T_q, WINDOW)
    if mask == "prefix":
        return prefix_mask(T_q, PREFIX)
    if mask == "full":
        return torch.ones(T_q, T_k, dtype=torch.bool)
    real = torch.tensor([[token != PAD for token in TEXTS[keys]]])  # (1, T_k)
    return padding_mask(real)[0].expand(T_q, T_k)


def _table(queries: str, keys: str, mask: str) -> Table:
    yes, no = Cell("✓", fill=Fill(BLUE, "white")), Cell("–", "masked", note="masked")
    may = _may_attend(queries, keys, mask).tolist()
    rows = [
        (token, [yes if allowed else no for allowed in row])
        for token, row in zip(TEXTS[queries], may, strict=True)
    ]
    return Table(
        TEXTS[keys], rows,
        caption=f"mask {mask}: T_q × T_k = {len(rows)} × {len(may[0])}",
        corner=f"query (who reads), from {queries}",
        over=f"key (who is read), from {keys}",
    )  # fmt: skip
