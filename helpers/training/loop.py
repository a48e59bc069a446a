"""Training: any loop watched while it runs, one of our own, and how well a model guesses."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_base.arguments import typed
from attention_base.numbers import as_whole, described
from attention_base.same import one_thread
from helpers.attention.checks import refuse_bad_rate, refuse_diverged
from helpers.gpt import evaluating, logits_of, next_token_loss, refuse_other_model
from helpers.training.live import Run, interrupts, shown
from helpers.training.text import Corpus


class _Stopped(BaseException):
    """Somebody has stopped a training; no `except Exception` of a loop keeps it."""


@typed
def watched(
    train: Callable[..., list[float]],
    model: nn.Module,
    draw_windows: Callable[[], Tensor],
    steps: int,
) -> list[float]:
    """Run a training loop as it is, and draw each loss as it comes.

    In a notebook, the Stop button below the curve ends it after the present step, and so does an
    interrupt (■, or Ctrl+C in a terminal). The model keeps what it has learned. Pause lets it wait
    after the step until you choose Go on.

    Parameters
    ----------
    train
        The loop: ``train(model, draw_windows, steps)`` draws windows once a step, and returns the
        loss of each step.
    model
        Ids (B, T) -> logits (B, T, V). Its parameters are changed in place.
    draw_windows
        Returns ids (B, T + 1), other ones at each call.
    steps
        How many.

    Returns
    -------
    list of float
        What the loop returns; if it was stopped, the losses so far.

    Raises
    ------
    TypeError
        When the model is none.
    KeyboardInterrupt
        At a second interrupt, in the middle of a step.
    """
    run, stop = Run(as_whole(steps, "steps", 0)), threading.Event()
    windows: list[Tensor] = []  # of the present step
    read: list[Tensor] = []  # its logits; a loop may take the windows one by one

    def note_logits(module: nn.Module, given: tuple, logits: Tensor) -> None:
        if torch.is_grad_enabled():
            read.append(logits.detach())

    def end_step() -> None:
        """The loss of a step is that of the logits that the loop has had from the model."""
        if windows and read:
            targets = windows[0][:, 1:]
            logits = torch.cat(read)[-len(targets) :, : targets.shape[1]]
            if logits.shape[:2] == targets.shape:
                loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
                refuse_diverged(loss.item(), len(run.losses))
                run.losses.append(loss.item())
                view.step()
        windows.clear()
        read.clear()

    def draw() -> Tensor:
        end_step()
        if stop.is_set():
            raise _Stopped
        windows.append(draw_windows())
        return windows[0]

    view, hook = shown(run, stop), model.register_forward_hook(note_logits)
    try:
        with interrupts(stop):
            losses = train(model, draw, steps)
            end_step()
        return losses
    except _Stopped:
        return run.losses
    finally:
        hook.remove()
        view.end()


@typed
def train(
    model: nn.Module, draw_windows: Callable[[], Tensor], steps: int, lr: float = 0.005
) -> list[float]:
    """Train a model in place with AdamW, with a learning rate that falls from lr to 0.

    Returns
    -------
    list of float
        The loss of each step, before its update.
    """
    as_whole(steps, "steps", 0)
    refuse_bad_rate("lr", lr)
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=lr), []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * (1 - step / steps)
        loss = next_token_loss(model, draw_windows())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        refuse_diverged(losses[-1], step)
    return losses


@typed
def trained_perplexity(corpus: Corpus, mix: Callable[[Tensor], Tensor]) -> float:
    """Train a model that guesses letters from what `mix` makes of the letters so far, (B, T, V).

    It is an embedding, whose rows `mix` combines, and a Linear layer. Returns exp(validation loss).
    """
    V, generator = len(corpus.letters), torch.Generator().manual_seed(0)
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        table, to_logits = nn.Embedding(V, 64).weight, nn.Linear(64, V)
        optimizer = torch.optim.AdamW([table, *to_logits.parameters()], lr=0.005)

        def model(ids: Tensor) -> Tensor:
            mixed, wanted = mix(torch.eye(V)[ids]), (*ids.shape, V)  # a row of eye for each letter
            if not isinstance(mixed, Tensor) or mixed.shape != wanted:
                raise ValueError(
                    f"mix must give a tensor of the shape of its input, {wanted}, got "
                    f"{described(mixed)}."
                )
            return to_logits(mixed @ table)

        for step in range(400):
            optimizer.zero_grad()
            loss = next_token_loss(model, corpus.batch(16, 64, generator))
            refuse_diverged(loss.item(), step)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            return math.exp(next_token_loss(model, corpus.windows(64)))


@typed
def validation_loss(model: nn.Module, corpus: Corpus) -> float:
    """The mean loss of a model, in evaluation mode, over all windows of the validation text.

    Raises
    ------
    TypeError, ValueError
        As for `helpers.gpt.refuse_other_model`, and when the validation text is shorter than a
        window.
    """
    V, total = len(corpus.letters), 0.0
    refuse_other_model(model, V)
    windows = corpus.windows(model.context_length)
    with evaluating(model), one_thread():
        for some in windows.split(64):
            logits, targets = logits_of(model, some[:, :-1], V), some[:, 1:]
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            total += loss.item() * len(some)
    return total / len(windows)
