"""The training loop."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attention_base.numbers import as_real, as_whole, described
from attention_base.same import one_thread
from helpers.gpt import TinyGPT, decode, encode, next_token_loss
from helpers.training.checkpoint import read, rebuilt, save_model, understood
from helpers.training.live import interrupts, shown
from helpers.training.text import Corpus

LETTERS = 60  # of a sample
TEMPERATURE = 0.8  # it is written with


class _State(NamedTuple):
    """All that a step changes, in copies."""

    parameters: list[Tensor]
    moments: dict[Tensor, dict[str, Tensor]]  # of AdamW
    generator: Tensor
    step: int


class Trainer:
    """Train a model on a corpus with AdamW, on B random windows a step.

    Parameters
    ----------
    model
        Its context_length is the length of the windows, its parameters are changed in place.
    corpus
        Its letters are the vocabulary of the model.
    n_step
        Number of steps; the learning rate falls towards 0 until then.
    B
        Windows a step.
    learning_rate
        The learning rate of the first step.
    loss_of
        Takes the model and windows (B, T + 1), returns the loss.
    seed
        Of the random windows.

    Attributes
    ----------
    losses : list of float
        The loss of each step that is done, before its update.
    samples : dict of step -> str
        What the model has written on the way.

    Raises
    ------
    TypeError, ValueError
        When a number is not what it must be, the model has another vocabulary than the corpus, or
        the training text is shorter than a window.
    """

    def __init__(
        self,
        model: TinyGPT,
        corpus: Corpus,
        n_step: int,
        *,
        B: int = 16,
        learning_rate: float = 0.005,
        loss_of: Callable[[nn.Module, Tensor], Tensor] = next_token_loss,
        seed: int = 0,
    ) -> None:
        self.n_step, self.B = as_whole(n_step, "n_step", 1), as_whole(B, "B", 1)
        self.learning_rate = as_real(learning_rate, "learning_rate")
        if self.learning_rate <= 0:
            raise ValueError(f"learning_rate must be above 0, got {learning_rate}.")
        _refuse_other_vocabulary(model, corpus)
        corpus.refuse_long_windows("training", model.context_length)
        self.model, self.corpus, self.loss_of = model, corpus, loss_of
        self.generator = torch.Generator().manual_seed(as_whole(seed, "seed", 0, 2**63 - 1))
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=self.learning_rate)
        self.losses: list[float] = []
        self.samples: dict[int, str] = {}
        self._previous: _State | None = None  # before the last step

    @property
    def step(self) -> int:
        """How many steps are done."""
        return len(self.losses)

    def run(self, prompt: str | None = None) -> None:
        """Train until n_step steps are done, or until somebody stops it; show how it goes.

        In a notebook, the Stop button below the curve ends it after the present step, and so does
        an interrupt (■, or Ctrl+C in a terminal). Nothing is lost: `run` again goes on, and all
        losses are those of a run that was not stopped.

        Parameters
        ----------
        prompt
            What the model goes on from at the start, after an eighth, a quarter and half of all
            steps and at the end. Without it, it writes nothing. Losses are the same either way.

        Raises
        ------
        FloatingPointError
            When the loss or its gradient is nan or inf. The model and its optimizer are again as
            they were at the last step with a finite loss.
        TypeError, ValueError
            When `loss_of` returns something else than a loss to train with, or the prompt is empty
            or has letters that the corpus lacks.
        """
        ids = None if prompt is None else encode(prompt, self.corpus.letters)[None]
        if ids is not None and not ids.numel():
            raise ValueError("The prompt must have at least one letter.")
        write_at = {0, self.n_step // 8, self.n_step // 4, self.n_step // 2, self.n_step}
        stop = threading.Event()
        view = shown(self, stop)
        try:
            with interrupts(stop), one_thread():  # several threads only wait for each other here
                while True:
                    ends = stop.is_set() or self.step >= self.n_step
                    if ends or self.step in write_at:
                        self._refuse_bad_outputs()
                    if ids is not None and self.step in write_at:
                        self._write(ids)
                    if ends:
                        break
                    self._take_step()
                    view.step()
        finally:
            view.end()

    def save(self, path: str | Path) -> None:
        """Write all that is needed to go on later, whole or not at all (see `save_model`).

        Raises
        ------
        ValueError, OSError
            As for `save_model`.
        """
        training = {
            "text": _fingerprint(self.corpus),
            "n_step": self.n_step,
            "B": self.B,
            "learning_rate": self.learning_rate,
            "losses": self.losses,
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
        }
        save_model(path, self.model, self.corpus.letters, training=training)

    @classmethod
    def load(
        cls,
        path: str | Path,
        corpus: Corpus,
        loss_of: Callable[[nn.Module, Tensor], Tensor] = next_token_loss,
    ) -> Trainer:
        """Read what `save` has written; `run` goes on as if there had been no break.

        Parameters
        ----------
        path
        corpus
            That of the trainer which has been saved.
        loss_of
            Its loss, which no file holds.

        Raises
        ------
        FileNotFoundError
            When there is no such file.
        ValueError
            When it is damaged, no checkpoint of this project, one of another version, or one of
            another text.
        """
        content = read(path)
        saved = content.get("training")
        if saved is None:
            raise ValueError(
                f"{path} holds a model without its training. Read it with load_model(path)."
            )

        def resumed() -> Trainer:
            numbers = {name: saved[name] for name in ("n_step", "B", "learning_rate")}
            model = rebuilt(content["config"], content["state"])
            trainer = cls(model, corpus, loss_of=loss_of, **numbers)
            trainer.optimizer.load_state_dict(saved["optimizer"])
            trainer.generator.set_state(saved["generator"])
            trainer.losses = [float(loss) for loss in saved["losses"]]
            return trainer

        if understood(path, lambda: saved["text"]) != _fingerprint(corpus):
            raise ValueError(
                f"{path} was trained on another text. Give the corpus that it was trained on, or "
                "take the model alone: load_model(path). (Python's help differs between versions.)"
            )
        return understood(path, resumed)

    def _write(self, ids: Tensor) -> None:
        """Let the model write a sample, with random numbers of its own."""
        generator = torch.Generator().manual_seed(0)
        written = self.model.generate(ids, LETTERS, TEMPERATURE, generator=generator)
        self.samples[self.step] = decode(written[0], self.corpus.letters)

    def _take_step(self) -> None:
        """Take one step; an error or an interrupt in it leaves all as it was before it."""
        good = self._state()
        try:
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate * (1 - self.step / self.n_step)
            windows = self.corpus.batch(self.B, self.model.context_length, self.generator)
            loss = self.loss_of(self.model, windows)
            _refuse_bad_loss(loss)
            if not loss.isfinite():  # the step before has led here: it is taken back, too
                error = self._diverged(f"The loss is {loss.item()}", self._previous)
                good = self._previous or good
                raise error
            self.optimizer.zero_grad()
            loss.backward()
            gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
            if not all(math.isfinite(gradient.sum()) for gradient in gradients):
                raise self._diverged("The gradient holds nan or inf", good)
            self.optimizer.step()
            self.losses.append(loss.item())
        except BaseException:
            self._restore(good)
            raise
        self._previous = good

    @torch.no_grad()
    def _refuse_bad_outputs(self) -> None:
        """Take the last step back if the model does not even compute numbers after it."""
        window = self.corpus.training_ids[: self.model.context_length]
        if not self.model(window[None]).isfinite().all():
            error = self._diverged("The output of the model is nan or inf", self._previous)
            if self._previous:
                self._restore(self._previous)
            raise error

    def _diverged(self, what: str, good: _State | None) -> FloatingPointError:
        """The error for what has happened now; `good` is the state to go back to, if there is."""
        head = f"{what} at step {self.step} with the learning rate {self.learning_rate:g}. "
        if good is None:
            return FloatingPointError(
                f"{head}No step of this trainer came before: look for nan or inf in the "
                "parameters of the model, and in loss_of."
            )
        return FloatingPointError(
            f"{head}The model has the parameters of step {good.step}, the last with a finite loss; "
            f"use a smaller learning rate, such as {self.learning_rate / 10:g}."
        )

    def _state(self) -> _State:
        moments = {
            parameter: {name: value.clone() for name, value in state.items()}
            for parameter, state in self.optimizer.state.items()
        }
        parameters = [parameter.detach().clone() for parameter in self.model.parameters()]
        return _State(parameters, moments, self.generator.get_state(), self.step)

    @torch.no_grad()
    def _restore(self, state: _State) -> None:
        for parameter, earlier in zip(self.model.parameters(), state.parameters, strict=True):
            parameter.copy_(earlier)
        self.optimizer.state = defaultdict(dict, state.moments)
        self.generator.set_state(state.generator)
        del self.losses[state.step :]
        self._previous = None  # its tensors may be in use now


def _fingerprint(corpus: Corpus) -> str:
    """A short text that differs for other training texts, and for other vocabularies."""
    text = f"{corpus.letters}\n{corpus.training}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _refuse_bad_loss(loss: Tensor) -> None:
    """Refuse what is no loss that a model can be trained with."""
    if not isinstance(loss, Tensor):
        raise TypeError(
            f"loss_of must return a tensor with one number, got {described(loss)}. "
            "Return the loss itself, without .item() or float()."
        )
    if loss.numel() != 1:
        raise ValueError(
            f"loss_of must return a tensor with one number, got the shape {tuple(loss.shape)}. "
            "Return its mean, loss.mean()."
        )
    if not loss.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            "The loss of loss_of has no gradient, so nothing can be learned from it. Compute it "
            "from the output of the model, without .detach(), .item(), .argmax() and no_grad()."
        )


def _refuse_other_vocabulary(model: TinyGPT, corpus: Corpus) -> None:
    """Refuse a model that was made for another number of letters."""
    V = len(corpus.letters)
    if model.vocab_size != V:
        raise ValueError(
            f"The corpus has V = {V} letters, but the model was made for {model.vocab_size}: "
            f"make it with vocab_size=len(corpus.letters)."
        )


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
            return to_logits(mix(torch.eye(V)[ids]) @ table)  # a row of eye for each letter

        for _ in range(400):
            optimizer.zero_grad()
            next_token_loss(model, corpus.batch(16, 64, generator)).backward()
            optimizer.step()
        with torch.no_grad():
            return math.exp(next_token_loss(model, corpus.windows(64)))


@torch.no_grad()
def validation_loss(
    model: TinyGPT,
    corpus: Corpus,
    loss_of: Callable[[nn.Module, Tensor], Tensor] = next_token_loss,
) -> float:
    """The mean loss over all windows of the validation text.

    Raises
    ------
    TypeError, ValueError
        When `loss_of` returns something else than one number, the model has another vocabulary
        than the corpus, or the validation text is shorter than a window.
    """
    _refuse_other_vocabulary(model, corpus)
    windows = corpus.windows(model.context_length)
    total = 0.0
    with one_thread():
        for some in windows.split(64):
            loss = loss_of(model, some)
            _refuse_bad_loss(loss)
            total += loss.item() * len(some)
    return total / len(windows)
