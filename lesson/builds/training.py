"""Judges a training loop with a small model that notes how it is trained."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from attention_base.numbers import described, joined
from lesson.builds.calling import Made, Wrong, judges, limit

V, T, STEPS, LR, DEFAULT = 7, 9, 12, 0.013, 5e-3
NEAR = 1e-4


class _TooMany(Exception):
    """There are far more calls than steps."""


class _Model(nn.Module):
    """Logits that depend on the letter alone; notes what it reads."""

    context_length = T

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.to_logits = nn.Embedding(V, 5), nn.Linear(5, V)
        self.read: list[Tensor] = []
        self.trains: list[bool] = []
        self.with_gradients: list[bool] = []

    def forward(self, ids: Tensor) -> Tensor:
        if len(self.read) > 10 * STEPS:
            raise _TooMany
        self.read.append(ids)
        self.trains.append(self.training)
        self.with_gradients.append(torch.is_grad_enabled())
        return self.to_logits(self.embedding(ids))

    def loss(self, read: Tensor, targets: Tensor) -> Tensor:
        logits = self.to_logits(self.embedding(read))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def flat(self) -> Tensor:
        return torch.cat([own.detach().flatten() for own in self.parameters()])


class _Run:
    """One call of train, and what was seen of it: how the parameters were at each step."""

    def __init__(self, train: Any, lr: float | None = LR) -> None:
        torch.manual_seed(0)
        self.model, self.random = _Model(), torch.Generator().manual_seed(1)
        self.first = self.model.flat()
        self.drawn: list[Tensor] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        self.used: list[float] = []  # learning rates
        self.climbs = False  # whether an optimizer makes the loss larger
        self.missing = ""  # parameters that the optimizer does not have
        self.got: list[Tensor | None] = []  # the gradient at each step
        self.right: list[Tensor] = []  # of the batch that was drawn last
        self.right_losses: list[float] = []
        hook = register_optimizer_step_pre_hook(self._before_step)
        self.error: BaseException | None = None
        self.losses: Any = None
        try:
            more = {} if lr is None else {"lr": lr}
            self.losses = train(self.model, lambda: self.draw(), STEPS, **more)
        except BaseException as error:
            self.error = error
        finally:
            hook.remove()

    def draw(self) -> Tensor:
        if len(self.drawn) > 10 * STEPS:
            raise _TooMany
        start, step = (torch.randint(n, (4, 1), generator=self.random) for n in (V, 3))
        self.drawn.append((start + torch.arange(T + 1) * (step + 1)) % V)
        return self.drawn[-1].clone()

    def _before_step(
        self, optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict
    ) -> tuple[tuple, dict] | None:
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self._note_step(optimizer)
            return None

        def seen() -> Any:
            loss = closure()  # it computes the gradient
            self._note_step(optimizer)
            return loss

        return (args[0], seen), {}

    def _note_step(self, optimizer: torch.optim.Optimizer) -> None:
        own = list(self.model.parameters())
        held = {id(one) for group in optimizer.param_groups for one in group["params"]}
        n = sum(id(one) not in held or not one.requires_grad for one in own)
        self.missing = self.missing or ("" if not n else "none" if n == len(own) else "some")
        self.optimizers.append(optimizer)
        self.climbs |= any(group.get("maximize") for group in optimizer.param_groups)
        self.used.append(float(optimizer.param_groups[0]["lr"]))
        grads = [one.grad for one in own]
        none = any(grad is None for grad in grads)
        self.got.append(None if none else torch.cat([grad.flatten() for grad in grads]).clone())
        if self.drawn and not self.missing:
            with torch.enable_grad():
                loss = self.model.loss(self.drawn[-1][:, :-1], self.drawn[-1][:, 1:])
                right = torch.autograd.grad(loss, own)
            self.right.append(torch.cat([grad.flatten() for grad in right]))
            self.right_losses.append(loss.item())


@judges("train")
def judge_train(made: Made) -> list[str]:
    """Judge the learner's train (model, draw_windows, steps, lr)."""
    train = made.cls
    if not callable(train) or isinstance(train, type):
        raise Wrong("", f"train is {described(train)}. It begins with def train(model, …):")
    limit(60)
    torch.optim.AdamW(nn.Linear(1, 1).parameters())  # the first takes a second
    limit()
    run = _Run(train)
    if run.error:
        raise _of_error(made, run)
    _check_what_came_back(made, run)
    _check_calls(made, run)
    _check_gradients(made, run)
    _check_losses(made, run)
    return _check_optimizer(made, run)


def _of_error(made: Made, run: _Run) -> BaseException:
    error, grads = run.error, run.model.with_gradients
    if isinstance(error, _TooMany):
        return made.known("it does not end", doing=f"For steps = {STEPS}, train")
    if "does not require grad" in str(error) and grads and not all(grads):
        return made.known("no gradients at all")
    if "does not require grad" in str(error):
        return made.known("a loss without gradients")
    if "modified by an inplace operation" in str(error) and run.used:
        return made.known("step before backward")
    made.doing = "train, called with a small model,"
    return made.explained(error)


def _check_what_came_back(made: Made, run: _Run) -> None:
    losses = run.losses
    if losses is None:
        raise made.known("nothing returned by train")
    if len(run.drawn) == 1 and (not isinstance(losses, list) or len(losses) == 1):
        raise made.known("return in the loop", steps=STEPS)
    if isinstance(losses, int | float) or (isinstance(losses, Tensor) and losses.dim() == 0):
        raise made.known("one loss returned", steps=STEPS)
    if isinstance(losses, list | tuple) and any(isinstance(one, Tensor) for one in losses):
        raise made.known("losses that are tensors")
    kinds = {type(one).__name__ for one in losses} if isinstance(losses, list | tuple) else set()
    if not kinds or not all(isinstance(one, float) for one in losses):
        what = f"{type(losses).__name__}{f' of {joined(sorted(kinds))}' if kinds else ''}"
        raise made.known("not a list of numbers", what=what, steps=STEPS)


def _check_calls(made: Made, run: _Run) -> None:
    n = len(run.losses)
    if not run.model.read:
        raise made.known("the model is never called")
    if not all(run.model.with_gradients[:n]):
        raise made.known("no gradients at all")
    if len(run.drawn) == 1 and n > 1:
        raise made.known("one batch for all steps", steps=STEPS)
    if len(run.drawn) >= 2 * STEPS - 2 and n == STEPS:
        raise made.known("two batches in a step", n=len(run.drawn), steps=STEPS)
    if not run.optimizers:
        changed = not run.model.flat().equal(run.first)
        raise made.known("not AdamW", what="its own rule") if changed else made.known("no step")
    if run.missing:
        raise made.known(f"{run.missing} of its parameters")
    if len(run.optimizers) != n or n != STEPS or len(run.drawn) != STEPS:
        seen = {"losses": n, "batches": len(run.drawn), "steps of the optimizer": len(run.used)}
        wrong = ", ".join(f"{count} {what}" for what, count in seen.items())
        raise made.known("not as many steps", steps=STEPS, wrong=wrong)


def _check_gradients(made: Made, run: _Run) -> None:
    if len({id(one) for one in run.optimizers}) > 1:
        raise made.known("optimizer made in each step")
    losses = _named_losses(run)
    odd = next((name for name, one in losses.items() if abs(one - run.losses[0]) < NEAR), "")
    reads_all = any(ids.shape[-1] > T for ids in run.model.read)
    told = {"got": f"{run.losses[0]:.3f}", "right": f"{run.right_losses[0]:.3f}"}
    for i, (got, right) in enumerate(zip(run.got, run.right, strict=True)):
        if got is None or not got.any():
            later = i == 0 and any(one is not None and one.any() for one in run.got[1:])
            raise made.known("step before backward" if later else "no gradient at the step")
        cosine = F.cosine_similarity(got, right, dim=0)
        if cosine > 0.999:
            continue
        if cosine < -0.999:
            raise made.known("loss made larger")
        if odd:
            raise made.known(odd, **told)
        if i and torch.allclose(got, run.got[i - 1] + right, atol=NEAR):
            raise made.known("zero_grad forgotten", step=i)
        if i and torch.allclose(got, run.right[i - 1], atol=NEAR):
            raise made.known("step before backward")
        if reads_all:
            raise made.known("the last letter read, too", T=T)
        raise made.known("another gradient", step=i, **told)
    if reads_all:
        raise made.known("the last letter read, too", T=T)
    if not all(run.model.trains):
        raise made.known("evaluation mode")


def _named_losses(run: _Run) -> dict[str, float]:
    """The first loss with each of some mistakes, by their names."""
    torch.manual_seed(0)
    model, window = _Model(), run.drawn[0]
    with torch.no_grad():
        of_all = model(window)
        logits, read, targets = of_all[:, :-1], window[:, :-1], window[:, 1:]
        asked = {
            "targets not shifted": (logits, read),
            "targets not cut": (of_all, window),
            "targets before the letters": (of_all[:, 1:], read),
            "the targets read": (of_all[:, 1:], targets),
            "targets of another text": (of_all[:-1], window[1:]),
            "targets two letters on": (logits[:, :-1], window[:, 2:]),
            "only the first position": (logits[:, :1], targets[:, :1]),
            "only the last position": (logits[:, -1:], targets[:, -1:]),
            "softmax before cross_entropy": (logits.softmax(dim=-1), targets),
            "logits mixed up by a reshape": (logits.reshape(V, -1).T, targets),
            "logits mixed up by a view": (logits.reshape(len(window), V, T).mT, targets),
        }
        return {
            name: F.cross_entropy(some.reshape(-1, V), wanted.flatten()).item()
            for name, (some, wanted) in asked.items()
        }


def _check_losses(made: Made, run: _Run) -> None:
    pairs = zip(run.losses, run.right_losses, strict=True)
    for i, (got, right) in enumerate(pairs):
        if abs(got - right) <= NEAR:
            continue
        if i == 0 and abs(got / right - 4 * T) < 0.01:
            raise made.known("losses added up", n=4 * T)
        raise made.known("another loss returned", step=i, got=f"{got:.3f}", right=f"{right:.3f}")
    times = max(got.norm() / right.norm() for got, right in zip(run.got, run.right, strict=True))
    if times > 1.01:
        raise made.known("too large a gradient", times=f"{times:.2f}")


def _check_optimizer(made: Made, run: _Run) -> list[str]:
    if run.model.flat().equal(run.first):
        raise made.known("no step")
    if run.climbs:
        raise made.known("loss made larger")
    kind = type(run.optimizers[0]).__name__
    if "Adam" not in kind:
        raise made.known("not AdamW", what=f"torch.optim.{kind}")
    if abs(max(run.used) - LR) < 1e-9:
        without = _Run(made.cls, None)
        if abs(max(without.used, default=0) - DEFAULT) > 1e-9:
            raise made.known("another default of lr", default=DEFAULT)
        return []
    other = _Run(made.cls, 2 * LR)
    if other.used == run.used:
        raise made.known("lr not used", lr=LR, used=f"{run.used[0]:g}")
    if max(run.used) > LR or len(set(run.used)) == 1:
        raise made.known("another learning rate", lr=LR, used=f"{max(run.used):g}")
    return []
