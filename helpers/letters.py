"""Tasks on random letters: words backwards, the letter three back; and the training of 08."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from attention_base.arguments import typed
from attention_base.masks import refuse_bad_sizes
from attention_base.numbers import as_whole
from attention_base.same import one_thread
from helpers.attention.checks import refuse_bad_rate, refuse_bad_text, refuse_diverged

ALPHABET = "abcdefghijklmnopqrstuvwxyz^"  # “^” marks the start of a word in 08
N_LETTER = 26
IGNORE = -100  # as a target: F.cross_entropy leaves this place out


@typed
def encode(word: str) -> torch.Tensor:
    """A word of lowercase letters -> (1, T) ids.

    Raises
    ------
    ValueError
        When there is another sign in the word.
    """
    if unknown := set(word) - set(ALPHABET):
        raise ValueError(f"Words have only the letters a to z; got {min(unknown)!r} in {word!r}.")
    return torch.tensor([[ALPHABET.index(letter) for letter in word]], dtype=torch.long)


@typed
def decode(ids: torch.Tensor) -> str:
    """(T,) ids -> a word."""
    refuse_bad_text(ids, len(ALPHABET))
    return "".join(ALPHABET[i] for i in ids)


@typed
def backwards(
    B: int, generator: torch.Generator, *, start: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ten random letters, and the same ten backwards: what to read, and what comes next.

    Parameters
    ----------
    B
        Number of texts.
    generator
        Where the random letters come from.
    start
        Whether each text begins with “^”, and so has one token more.

    Returns
    -------
    ids : torch.Tensor
        (B, 19), all letters but the last.
    targets : torch.Tensor
        (B, 19), the letter after each of them; `IGNORE` where it is random.
    """
    refuse_bad_sizes(B=B)
    word = torch.randint(N_LETTER, (B, 10), generator=generator)
    sign = encode("^" * start).expand(B, -1)
    ids = torch.cat([sign, word, word.flip(1)], dim=1)
    targets = ids[:, 1:].clone()
    targets[:, :-10] = IGNORE
    return ids[:, :-1], targets


@typed
def three_back(
    B: int, generator: torch.Generator, T: int = 20
) -> tuple[torch.Tensor, torch.Tensor]:
    """T random letters, (B, T), and for each the one three back; `IGNORE` for the first three."""
    refuse_bad_sizes(B=B)
    as_whole(T, "T", 4)  # or there would be no target
    ids = torch.randint(N_LETTER, (B, T), generator=generator)
    targets = ids.roll(3, dims=1)
    targets[:, :3] = IGNORE
    return ids, targets


@typed
def train(
    model: nn.Module,
    task: Callable,
    n_step: int,
    learning_rate: float = 0.005,
    *,
    falling: bool = False,
) -> float:
    """Train with Adam on 32 new sequences a step, as notebook 08 does.

    Parameters
    ----------
    model
        Takes what the task gives before the targets, returns logits (B, T, n_letter).
    task
        Takes B and a generator, returns tensors of ids and, last, targets (B, T).
    n_step
        Number of steps.
    learning_rate
        About the largest change of a weight in a step.
    falling
        Whether the learning rate falls, step by step, towards 0.

    Returns
    -------
    float
        The loss of the last step.
    """
    refuse_bad_sizes(n_step=n_step)
    refuse_bad_rate("learning_rate", learning_rate)
    generator = torch.Generator().manual_seed(0)
    adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
    with one_thread():  # these tensors are small: several threads only wait for each other
        for step in range(n_step):
            if falling:
                adam.param_groups[0]["lr"] = learning_rate * (1 - step / n_step)
            *inputs, targets = task(32, generator)
            loss = F.cross_entropy(model(*inputs).flatten(0, 1), targets.flatten())
            adam.zero_grad()
            loss.backward()
            adam.step()
            refuse_diverged(loss.item(), step)
    return loss.item()


@typed
def right_at(
    model: Callable, task: Callable, mask: torch.Tensor | str | None = "causal"
) -> torch.Tensor:
    """The share of right predictions at each position, (T,), in 200 new texts of a task."""
    ids, targets = task(200, torch.Generator().manual_seed(1))
    with one_thread(), torch.no_grad():
        return (model(ids, mask=mask).argmax(dim=-1) == targets).float().mean(dim=0)
