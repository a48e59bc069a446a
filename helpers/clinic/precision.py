"""Tells outputs that depend a little on a token from those that only round in another way."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from helpers.clinic.calls import out_and_weights, self_attention_call
from helpers.clinic.probes import Finding, output_changes

OTHER_TOKENS = 512  # among which tokens are replaced, so that each gets weight somewhere
SURELY_ROUNDING = 1e-12  # of the outputs' size: a change in float64 that is no dependence


def only_rounded(function: Callable, x: Tensor, causal: bool, most: int) -> Tensor | None:
    """Find out which outputs do not depend on which tokens but for rounding, in float64.

    The weight of a token may be next to nothing because scores are sharp. So tokens are replaced
    among many others, too, and among smaller ones, whose scores lie nearer together.

    Parameters
    ----------
    function
        What is examined; a module is copied.
    x
        (B, T, C), its input.
    causal
        Whether the attention should be causal.
    most
        How many tokens are replaced, as in `output_changes`.

    Returns
    -------
    Tensor or None
        (T, T), [j, t]: True where output t stays the same when token j is replaced. None where
        that cannot be told, since it does not run in float64.
    """
    try:
        in_double = _in_double(function, causal)
        return _unchanged(in_double, x.double(), most)
    except Exception:  # it cannot be copied, or mixes float64 with what stays float32
        return None


def _in_double(function: Callable, causal: bool) -> Callable[[Tensor], Tensor]:
    if isinstance(function, nn.Module):
        function = copy.deepcopy(function).double()

    def run(x: Tensor) -> Tensor:
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            if isinstance(function, nn.Module):
                out, _ = self_attention_call(function, x, causal).run()
            else:
                out, _ = out_and_weights(function(x))
        finally:
            torch.set_default_dtype(before)
        if out.dtype != torch.float64:
            raise TypeError(f"it computes in {out.dtype}")
        turned = isinstance(function, nn.MultiheadAttention) and not function.batch_first
        return out.transpose(0, 1) if turned else out

    return run


def _unchanged(function: Callable, x: Tensor, most: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    several = max(len(x), OTHER_TOKENS // x.shape[1]), *x.shape[1:]
    others = torch.randn(several, generator=generator).to(x) * x.std()
    unchanged = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    for tokens in (x, others):
        for factor in (1, 0.1, 0.01):
            changes = output_changes(function, tokens * factor, "reach", most=most)
            if not isinstance(changes, Finding):
                size = function(tokens * factor).abs().max().item()
                unchanged &= changes <= SURELY_ROUNDING * size
    return unchanged
