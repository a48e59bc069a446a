"""Gradient descent in the place of a hand: queries and keys that learn to follow a rule."""

from typing import NamedTuple

import torch
from torch import Tensor

from attention_base.numbers import as_whole
from attention_base.same import one_thread
from helpers.circuits.by_hand import written_weights
from helpers.circuits.rules import LONGEST, Rule, examples

N_TRAIN = 800  # words to learn from; the other 200 are for the test
NEAR = 0.1  # how far a weight or an output may lie from the rule's, after training


class Learned(NamedTuple):
    """What gradient descent has found for a rule."""

    M: Tensor  # (V + T, V + T), W_query W_keyᵀ
    outputs: float  # share of the tokens of 200 new words whose output is right
    weights: float  # share of those whose attention weights are right


def learn_rule(rule: Rule, head_size: int, seed: int = 0, n_step: int = 300) -> Learned:
    """Train W_query and W_key with Adam, so that a head has the outputs of a rule.

    The head's values are the letters of the tokens, so an output is a share for each letter. The
    loss asks for the outputs alone, not for the weights.

    Parameters
    ----------
    rule
        A rule of one layer.
    head_size
        Channels of queries and keys.
    seed
        Of the initial parameters and of the order of the words.
    n_step
        Number of steps, with 64 words each.

    Returns
    -------
    Learned

    Raises
    ------
    TypeError, ValueError
        When this is no rule of one layer, or a number is not a whole one.
    """
    if not isinstance(rule, Rule) or rule.first:
        got = f"“{rule.name}”, which takes two" if isinstance(rule, Rule) else repr(rule)
        raise TypeError(f"rule must be one of RULES for one layer, got {got}.")
    head_size, n_step = as_whole(head_size, "head_size", 1), as_whole(n_step, "n_step", 0)
    x, inside, wanted = examples(rule, rule.letters, LONGEST)
    values = x[..., : len(rule.letters)]  # (1000, T, V)
    generator = torch.Generator().manual_seed(as_whole(seed, "seed", 0, 2**63 - 1))
    C = x.shape[-1]
    W_query, W_key = (
        (torch.randn(C, head_size, generator=generator) / C**0.5).requires_grad_() for _ in "qk"
    )
    adam = torch.optim.Adam([W_query, W_key], lr=0.05)
    with one_thread():  # these tensors are small: several threads only wait for each other
        for _ in range(n_step):
            batch = torch.randint(N_TRAIN, (64,), generator=generator)
            weights = written_weights(x[batch], W_query @ W_key.mT, sharpness=1)
            error = (weights - wanted[batch]) @ values[batch] * inside[batch]
            loss = error.square().sum() / inside[batch].sum()
            adam.zero_grad()
            loss.backward()
            adam.step()
        M = (W_query @ W_key.mT).detach()
        error = written_weights(x, M, sharpness=1) - wanted
    tested = inside[N_TRAIN:, :, 0] > 0
    shares = [
        (wrong[N_TRAIN:].abs().amax(dim=-1) < NEAR)[tested].double().mean().item()
        for wrong in (error @ values, error)
    ]
    return Learned(M, *shares)
