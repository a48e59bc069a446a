"""Random letters that repeat themselves, and a model of attention layers that learns to go on.

Nobody can know the letters of the first period. All later ones stand in the text, one period back.
The task is from Olsson et al. (2022), "In-context Learning and Induction Heads",
https://arxiv.org/abs/2209.11895; the model, without feed-forward networks, from Elhage et al.
(2021), "A Mathematical Framework for Transformer Circuits".
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_base.arguments import typed
from attention_base.masks import refuse_bad_sizes
from attention_base.numbers import as_whole
from attention_base.same import one_thread
from helpers.attention import MultiHeadAttention
from helpers.attention.checks import refuse_bad_ids, refuse_bad_rate, refuse_diverged

N_LETTER = 26
T = 48  # letters that the model reads
SHORTEST, LONGEST = 12, 24  # of a period


@typed
def repeated(
    B: int, generator: torch.Generator, n_letter: int = N_LETTER, *, distinct: bool = False
) -> tuple[Tensor, Tensor]:
    """Texts of 49 random letters that repeat themselves after 12 to 24 letters.

    Parameters
    ----------
    B
        Number of texts.
    generator
        Where the random letters come from.
    n_letter
        Number of different letters.
    distinct
        Whether the letters of a period are all different; else one may occur more than once.

    Returns
    -------
    ids : torch.Tensor
        (B, 49)
    period : torch.Tensor
        (B, 1)

    Raises
    ------
    TypeError, ValueError
        When B or n_letter is not a whole number of at least 1; or of at least 24 for distinct
        letters.
    """
    B, n_letter = as_whole(B, "B", 1), as_whole(n_letter, "n_letter", LONGEST if distinct else 1)
    period = torch.randint(SHORTEST, LONGEST + 1, (B, 1), generator=generator)
    if distinct:
        letters = torch.rand(B, n_letter, generator=generator).argsort(dim=1)[:, :LONGEST]
    else:
        letters = torch.randint(n_letter, (B, LONGEST), generator=generator)
    return letters.gather(1, torch.arange(T + 1) % period), period


class AttentionOnly(nn.Module):
    """A model of attention layers with rotary positions, and nothing else between them.

    Parameters
    ----------
    n_layer
        Layers of attention, each added to the residual stream.
    n_head
        Heads in each.
    n_letter
        Number of different letters.
    C
        Channels of a token; must be divisible by n_head.

    Raises
    ------
    ValueError
        As for `helpers.attention.MultiHeadAttention`.

    Examples
    --------
    >>> AttentionOnly(n_layer=2)(torch.zeros(3, 10, dtype=torch.long)).shape
    torch.Size([3, 10, 26])
    """

    @typed
    def __init__(
        self, n_layer: int, n_head: int = 1, n_letter: int = N_LETTER, C: int = 64
    ) -> None:
        super().__init__()
        refuse_bad_sizes(n_layer=n_layer, n_head=n_head, n_letter=n_letter, C=C)
        self.letters = nn.Embedding(n_letter, C)
        self.norms = nn.ModuleList(nn.LayerNorm(C) for _ in range(n_layer))
        self.layers = nn.ModuleList(
            MultiHeadAttention(C, n_head, rotary=True) for _ in range(n_layer)
        )
        self.norm, self.to_logits = nn.LayerNorm(C), nn.Linear(C, n_letter)

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) ids -> (B, T, n_letter) logits of the letter after each.

        Raises
        ------
        TypeError, ValueError
            When ids are not whole numbers from 0 to n_letter - 1 in a tensor (B, T).
        """
        refuse_bad_ids(ids, self.letters.num_embeddings)
        x = self.letters(ids)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x))
        return self.to_logits(self.norm(x))

    @torch.no_grad()
    def attention_weights(self, ids: Tensor) -> Tensor:
        """(B, T) ids -> (n_layer, B, n_head, T, T), the weights of each head of each layer."""
        refuse_bad_ids(ids, self.letters.num_embeddings)
        x, found = self.letters(ids), []
        for norm, layer in zip(self.norms, self.layers, strict=True):
            out, weights = layer(norm(x), return_weights=True)
            x = x + out
            found.append(weights)
        return torch.stack(found)


class Moment(NamedTuple):
    """How far a model has come after some steps of training."""

    step: int
    loss: float  # of the known letters, those after the first period
    right: float  # the share of them that have the largest logit


@typed
def train_on_repeats(
    model: AttentionOnly,
    n_step: int = 200,
    learning_rate: float = 0.005,
    watch: Callable[[int], None] | None = None,
    *,
    distinct: bool = False,
) -> list[Moment]:
    """Train with Adam on 32 new texts a step.

    Parameters
    ----------
    model
        Its parameters are changed in place.
    n_step
        Number of steps.
    learning_rate
        About the largest change of a parameter in a step.
    watch
        Called with the number of steps at each moment that is measured.
    distinct
        As for `repeated`.

    Returns
    -------
    list of Moment
        Measured on 200 other texts, after every tenth step and before the first.

    Raises
    ------
    TypeError, ValueError
        When the model is no `AttentionOnly`, or n_step no whole number.
    """
    n_step = as_whole(n_step, "n_step", 0)
    refuse_bad_rate("learning_rate", learning_rate)
    generator, moments = torch.Generator().manual_seed(0), []
    adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
    n_letter = model.letters.num_embeddings
    with one_thread():  # these tensors are small: several threads only wait for each other
        for step in range(n_step + 1):
            if step % 10 == 0:
                moments.append(Moment(step, *on_known_letters(model, distinct=distinct)))
                if watch:
                    watch(step)
            ids, _ = repeated(32, generator, n_letter, distinct=distinct)
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            refuse_diverged(loss.item(), step)
            adam.zero_grad()
            loss.backward()
            adam.step()
    return moments


@typed
def held_out(n_letter: int = N_LETTER, *, distinct: bool = False) -> tuple[Tensor, Tensor]:
    """200 texts (200, 49) that no training has seen, and their periods (200, 1)."""
    return repeated(200, torch.Generator().manual_seed(1), n_letter, distinct=distinct)


@typed
@torch.no_grad()
def on_known_letters(model: AttentionOnly, *, distinct: bool = False) -> tuple[float, float]:
    """Loss and share of right predictions, for the letters after the first period of `held_out`.

    Raises
    ------
    TypeError
        When the model is no `AttentionOnly`.
    """
    ids, period = held_out(model.letters.num_embeddings, distinct=distinct)
    with one_thread():
        logits = model(ids[:, :-1])
    known = torch.arange(T) >= period  # the letter after position t is known if t >= period
    right = (logits.argmax(dim=-1) == ids[:, 1:])[known].double().mean().item()
    return F.cross_entropy(logits[known], ids[:, 1:][known]).item(), right


@typed
def copied_right(n_same: int) -> float:
    """The share of known letters of `held_out` that a rule without any model gets right.

    The rule looks 12 to 24 letters back for places where the last `n_same` letters stood before,
    and copies what followed there; if different letters did, the most frequent one.

    Raises
    ------
    TypeError, ValueError
        When n_same is not a whole number from 1 to 12.
    """
    n_same = as_whole(n_same, "n_same", 1, SHORTEST)
    ids, period = held_out()
    votes = torch.zeros(len(ids), T, N_LETTER)
    for distance in range(SHORTEST, LONGEST + 1):
        same = ids[:, distance:T] == ids[:, : T - distance]  # (B, T - distance)
        for _ in range(n_same - 1):
            same = same & F.pad(same, (1, 0))[:, :-1]  # and the letter before it
        followed = F.one_hot(ids[:, 1 : T - distance + 1], N_LETTER)
        votes[:, distance:] += same[..., None] * followed
    right = votes.argmax(dim=-1) == ids[:, 1:]
    return right[torch.arange(T) >= period].double().mean().item()
