"""Notebook 06: heads side by side, split right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from helpers.attention import attention, causal_mask
from helpers.explorers.explorer import (
    GLOW,
    Explorer,
    abreast,
    checkbox,
    controls_in_a_row,
    say,
    slider,
)
from helpers.numbers import listed, number
from helpers.pictures.checks import as_matrix
from helpers.pictures.colours import css, paint
from helpers.pictures.table import HATCH

if TYPE_CHECKING:
    pass


def explore_heads(x: Any, n_head: int = 4) -> Explorer:
    """Choose the row that reads; compare what the heads give it, split right or by `view` alone.

    Queries, keys and values come from random matrices with a fixed seed. The heads are merged
    right in both cases.

    Parameters
    ----------
    x : tensor, array or nested lists, (T, C)
        One sequence, at most 10 tokens.
    n_head : int
        1 to 8 heads.

    Raises
    ------
    ValueError
        If `x` is not (T, C), is too long, or C is not divisible by n_head.
    """
    tokens = torch.as_tensor(as_matrix(x, "x").astype(float))
    T, C = tokens.shape
    if T > 10:
        raise ValueError(f"explore_heads has room for 10 tokens, got {T}; pass a slice: x[:10]")
    if isinstance(n_head, bool) or not isinstance(n_head, int) or not 1 <= n_head <= 8:
        raise ValueError(f"n_head must be a whole number from 1 to 8, got {n_head!r}")
    if C % n_head:
        raise ValueError(f"C must be divisible by n_head, got C={C} channels and {n_head} heads")
    source = torch.Generator().manual_seed(0)
    matrices = torch.randn(3, C, C, generator=source).double() / C**0.5
    q, k, v = tokens @ matrices
    mask = causal_mask(T)

    def split(z: torch.Tensor, skip: bool) -> torch.Tensor:
        return z.reshape(n_head, T, -1) if skip else z.reshape(T, n_head, -1).transpose(0, 1)

    whose = torch.arange(T)[:, None].expand(T, C)  # the token that a channel belongs to
    states = {}
    for skip in (False, True):
        _, weights = attention(split(q, skip), split(k, skip), split(v, skip), mask)
        states[skip] = weights.numpy(), split(whose, skip)[..., 0].numpy()  # (n_head, T)

    controls = {
        "row": slider("row that reads", min(5, T - 1), 0, T - 1),
        "skip": checkbox("skip the transpose (split by view alone)"),
    }
    colours = {skip: paint(weights, 0, 1, None) for skip, (weights, _) in states.items()}

    def heard(row: int, skip: bool) -> list[int]:
        """List the tokens that output `row` hears: in each head, those of its rows 0 … row."""
        owner = states[skip][1]
        return sorted({int(t) for t in owner[:, : row + 1].ravel()})

    def verdict(row: int, skip: bool) -> list[str]:
        tokens_ = heard(row, skip)
        future = [t for t in tokens_ if t > row]
        missing = [t for t in range(row + 1) if t not in tokens_]
        told = [f"Output {row} hears {_tokens(tokens_)}."]
        if future:
            told.append(f"⚠ It sees the future: {_tokens(future)}. The mask is in place, but row "
                        f"{row} of most heads is not token {row}.")  # fmt: skip
        else:
            told.append("✓ It does not see the future.")
        if missing:
            told.append(f"⚠ It does not hear {_tokens(missing)}.")
        return told

    def draw(row: int, skip: bool) -> str:
        weights, owner = states[skip]
        paints = colours[skip]
        panels = []
        for h in range(n_head):
            best = int(weights[h, row].argmax())
            most = f"most: {owner[h, best]} ({number(weights[h, row, best])})"
            panels.append(_head(f"head {h}", weights[h], paints[h], owner[h], row, most))
        says = "whose channels these are" if skip else "tokens"
        note = f"Beside a head: {says}, as queries (left) and as keys (above). Row {row} is framed."
        return abreast(panels) + say(note, *verdict(row, skip))

    def tell(row: int, skip: bool) -> str:
        weights, owner = states[skip]
        how = "split by view alone" if skip else "split right"
        most = [
            f"head {h} most to token {owner[h, w.argmax()]} ({number(w.max())})"
            for h, w in enumerate(weights[:, row])
        ]
        return f"row {row}, {how}: {', '.join(most)}. {' '.join(verdict(row, skip))}"

    return Explorer(
        "choose the row that reads; compare what the heads give it, split right and wrong.",
        controls,
        draw,
        tell,
        controls_in_a_row,
    )


def _tokens(tokens: Sequence[int]) -> str:
    return f"token{'s' * (len(tokens) > 1)} {listed(tokens)}"


def _head(
    name: str, weights: np.ndarray, colours: np.ndarray, owner: np.ndarray, row: int, most: str
) -> str:
    """Draw one head as a small HTML heatmap: numbers in the chosen row, colours in all."""
    T = len(weights)
    cell = "width:21px;min-width:21px;height:20px;padding:0;text-align:center;font-size:10px;"
    body = []
    for t in range(T):
        frame = f"border:2px solid {GLOW};border-width:2px 0;" if t == row else ""
        cells = []
        for weight, colour in zip(weights[t, : t + 1], colours[t], strict=False):
            note = number(weight)
            word = (note.removeprefix("0") or "0") if t == row else ""
            cells.append(f'<td style="{cell}{css(colour)}{frame}" title="{note}">{word}</td>')
        if t + 1 < T:  # one long cell for all that is masked
            look = f"padding:0;{HATCH}{frame}"
            cells.append(f'<td colspan="{T - 1 - t}" title="masked" style="{look}"></td>')
        look = "font-weight:bold" if t == row else "font-weight:normal;opacity:.75"
        head = f'<th scope="row" style="padding:0 5px 0 0;font-size:11px;{look}">{owner[t]}</th>'
        body.append(f'<tr style="background:none">{head}{"".join(cells)}</tr>')
    top = "".join(
        f'<th scope="col" style="padding:0;font-size:11px;font-weight:normal;text-align:center;'
        f'opacity:.75">{owner[j]}</th>'
        for j in range(T)
    )
    return (
        '<table style="border-collapse:separate;border-spacing:1px;border:none;color:inherit;'
        'margin:2px 0;line-height:1.3;font-variant-numeric:tabular-nums">'
        '<caption style="caption-side:top;'
        f'text-align:left;color:inherit;font-size:12px;padding:0 0 2px"><b>{name}</b> · {most}'
        f'</caption><thead><tr style="background:none"><td></td>{top}</tr></thead><tbody>'
        f"{''.join(body)}</tbody></table>"
    )
