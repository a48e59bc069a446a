"""Notebook 06: attention weights of several heads, with the channels split right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from attention_base.numbers import listed, narrow, number
from explorers.explorer import Explorer, checkbox, sentences, slider
from helpers.attention import attention, causal_mask
from helpers.attention.checks import refuse_uneven_heads
from helpers.pictures.checks import as_matrix
from helpers.pictures.colours import fills, paint
from helpers.pictures.table import Cell, Table, side_by_side


def explore_heads(x: Any, n_head: int = 4) -> Explorer:
    """Choose a row; compare its weights in all heads, split right or by `view` alone.

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
    refuse_uneven_heads(C, n_head)
    source = torch.Generator().manual_seed(0)
    matrices = torch.randn(3, C, C, generator=source).double() / C**0.5
    return HeadsExplorer(*(tokens @ matrices), n_head)


class HeadsExplorer(Explorer):
    """One heatmap a head, the chosen row framed and with its numbers.

    Parameters
    ----------
    q, k, v : (T, C)
        Queries, keys and values before they are split into heads.
    n_head : int
    """

    about = "choose a query; compare its weights in each head, with both ways to split."

    def __init__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, n_head: int) -> None:
        T = len(q)
        self._heads = {skip: _attend(q, k, v, n_head, skip) for skip in (False, True)}
        super().__init__(
            {
                "row": slider("row of the query", T - 1, 0, T - 1),
                "skip": checkbox("skip the transpose (split by view alone)", value=False),
            }
        )

    def draw(self, row: int, skip: bool) -> str:
        """Draw the heads, and say which tokens reach the output of this row."""
        tables = [head.draw(f"head {h}", row) for h, head in enumerate(self._heads[skip])]
        names = "the token whose channels stand there" if skip else "the token"
        note = (
            f"Rows are queries (who reads), columns are keys (who is read). The number at a row or "
            f"column is {names}. Row {row} is framed."
        )
        return side_by_side(tables) + sentences(note, *self._reach_in_words(row, skip))

    def describe(self, row: int, skip: bool) -> str:
        """Say the largest weight of this row in each head, and which tokens reach its output."""
        how = "split by view alone" if skip else "split right"
        most = [
            f"head {h} gives most to token {token} ({weight})"
            for h, (token, weight) in enumerate(head.most(row) for head in self._heads[skip])
        ]
        return f"row {row}, {how}: {', '.join(most)}. {' '.join(self._reach_in_words(row, skip))}"

    def _reach_in_words(self, row: int, skip: bool) -> list[str]:
        # In each head, the output of a row depends on the owners of the rows 0 … row.
        reached = sorted({int(t) for head in self._heads[skip] for t in head.owner[: row + 1]})
        future = [t for t in reached if t > row]
        missing = [t for t in range(row + 1) if t not in reached]
        told = [f"Output {row} depends on {_tokens(reached)}."]
        if future:
            right = [h for h, head in enumerate(self._heads[skip]) if head.owner[row] == row]
            where = f"only in head {listed(right)}" if right else "in no head"
            told.append(
                f"⚠ It depends on the future ({_tokens(future)}): the mask hides later rows, but "
                f"row {row} is token {row} {where}."
            )
        else:
            told.append("✓ It does not depend on the future.")
        if missing:
            told.append(f"⚠ It does not depend on {_tokens(missing)}.")
        return told


def _tokens(tokens: Sequence[int]) -> str:
    return f"token{'s' * (len(tokens) > 1)} {listed(tokens)}"


class _Head(NamedTuple):
    """The attention weights of one head, as numbers and as cells of a heatmap."""

    weights: np.ndarray  # (T, T)
    owner: np.ndarray  # (T,): the token whose channels stand in each row
    cells: list[list[Cell]]  # (T, T) colours
    cells_with_numbers: list[list[Cell]]  # (T, T)

    def most(self, row: int) -> tuple[int, str]:
        """Find the token with the largest weight in a row, and that weight."""
        key = self.weights[row].argmax()
        return self.owner[key], number(self.weights[row, key])

    def draw(self, name: str, row: int) -> str:
        """Draw a small heatmap: numbers in the chosen row, colours in all."""
        cells = [*self.cells[:row], self.cells_with_numbers[row], *self.cells[row + 1 :]]
        names = [str(token) for token in self.owner]
        token, weight = self.most(row)
        return Table(
            columns=names,
            rows=list(zip(names, cells, strict=True)),
            caption=f"{name} · most: {token} ({weight})",
            size="small",
            framed_row=row,
        ).html(classes=True)


def _attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, n_head: int, skip: bool
) -> list[_Head]:
    """Split queries, keys and values (T, C) into heads, and let each head attend."""
    T, C = q.shape

    def split(z: torch.Tensor) -> torch.Tensor:  # (T, C) -> (n_head, T, head_size)
        return z.reshape(n_head, T, -1) if skip else z.reshape(T, n_head, -1).transpose(0, 1)

    _, weights = attention(split(q), split(k), split(v), causal_mask(T))
    token_of_channel = torch.arange(T)[:, None].expand(T, C)
    owners = split(token_of_channel)[..., 0]  # (n_head, T): all channels of a row have one owner
    return [
        _Head(w, owner, _cells(w, numbers=False), _cells(w, numbers=True))
        for w, owner in zip(weights.numpy(), owners.numpy(), strict=True)
    ]


def _cells(weights: np.ndarray, *, numbers: bool) -> list[list[Cell]]:
    """Make the cells of a causal heatmap (T, T)."""
    colours = fills(paint(weights, 0, 1, None))
    return [
        [
            Cell(narrow(w) if numbers else "", fill=fill, note=number(w))
            if j <= t
            else Cell("", "masked", note="masked")
            for j, (w, fill) in enumerate(zip(weights[t], colours[t], strict=True))
        ]
        for t in range(len(weights))
    ]
