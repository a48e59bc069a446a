"""Judges the model: what it makes of letters, and how its blocks stand in it."""

import contextlib
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_base.same import same
from attention_clinic.lists import registered
from lesson.builds.calling import Made, Wrong, judges

V, CONTEXT, C, N_HEAD = 11, 10, 12, 3
TOLERANCE = 1e-4


@judges("TinyGPT")
def judge_gpt(made: Made) -> list[str]:
    """Judge the learner's TinyGPT (vocab_size, context_length, C, n_head, n_layer)."""
    return gpt_notes(made)


def gpt_notes(made: Made) -> list[str]:
    """Notes about a right model."""

    def make(n_layer: int = 2, V: int = V, C: int = C) -> nn.Module:
        return made.make(V, CONTEXT, C=C, n_head=N_HEAD, n_layer=n_layer)

    for vocab_size in (7, V):
        model = make(V=vocab_size)
        if problem := made.problem(model, _ids(vocab_size), vocab_size, longest=CONTEXT):
            raise problem if problem.name else _named(made, model, vocab_size, problem)
    if getattr(model, "context_length", None) != CONTEXT:
        raise made.known("context_length not kept")
    _check_layers(made, make)
    ids = _ids(V)(2, 9)
    _check_logits(made, model, ids)
    model = randomised(make(3))
    _check_tokens(made, model, ids)
    _check_gradients(made, model.train(), ids)
    n = len(made.calls(made.make(V, CONTEXT), "Block", ids[:1]))
    if n not in (0, 2):
        raise made.known("another n_layer by default", n=n, made=made.made)
    _check_last_norm(made, model.eval(), ids)
    return []


def _ids(V: int) -> Callable[[int, int], Tensor]:
    return lambda B, T: torch.randint(V, (B, T))


def randomised(model: nn.Module) -> nn.Module:
    """The model with other parameters, so that nothing is 0 or equal as it is in the beginning."""
    for own in model.parameters():
        nn.init.normal_(own, std=0.3)
    return model


def _named(made: Made, model: nn.Module, V: int, problem: Wrong) -> Wrong:
    """What may be behind an error, or a shape that is not wanted."""
    shapes = [one.weight.shape for one in model.modules() if isinstance(one, nn.Embedding)]
    if (C, V) in shapes:
        return made.known("sizes of the embedding swapped", vocab_size=V, C=C)
    if width := next((shape[1] for shape in shapes if shape[0] == V and shape[1] != C), 0):
        return made.known("C not used", what=f"For C = {C} its embedding gives {width} channels")
    with contextlib.suppress(Exception):
        words = {"shape": tuple(model(_ids(V)(2, 6)).shape), "wanted": (2, 6, V)}
        if words["shape"] in ((2, V), (2, 1, V)):
            return made.known("logits of one position", **words)
        if words["shape"] == (2, V, 6):
            return made.known("logits transposed", **words)
    return problem


def _check_layers(made: Made, make: Callable) -> None:
    """As many blocks as layers, each with parameters of its own and the sizes that were given."""
    models = [make(n) for n in (1, 2, 3)]
    counts = [sum(own.numel() for own in model.parameters()) for model in models]
    for B in (2, 1):  # it may go through the texts one by one
        calls = made.calls(models[2], "Block", _ids(V)(B, 5))
        if len(calls) == 3:
            break
    parts = {id(one.part) for one in calls}
    with registered(models[2]) as in_lists:
        if in_lists:
            where = f"{in_lists[0].name} is a Python {in_lists[0].kind}"
            raise made.known("blocks in a Python list", where=where, instead=in_lists[0].instead)
    given = made.sizes_given("Block", lambda: make(3))
    if len(parts) == 1 and len(calls) > 1:
        raise made.known("one block several times", n=len(calls))
    if not counts[2] - counts[1] == counts[1] - counts[0] > 0:
        told = f"{counts[0]:,}, {counts[1]:,} and {counts[2]:,} parameters"
        raise made.known("n_layer not used", counts=told)
    if given and len(given) != 3:
        n = [len(made.sizes_given("Block", lambda n=n: make(n))) for n in (1, 2, 3)]
        raise made.known("n_layer not used", counts=f"{n[0]}, {n[1]} and {n[2]} blocks")
    if wrong := [sizes for sizes in given if sizes[:2] != (C, N_HEAD)]:
        raise made.known("sizes not handed on", got=wrong[0], wanted=(C, N_HEAD))
    wider = sum(own.numel() for own in make(3, C=2 * C).parameters())
    if wider == counts[2]:
        raise made.known("C not used", what=f"For C = {C} and {2 * C} it has {wider:,} parameters")
    if counts[1] - counts[0] < 12 * C * C:
        words = {"n": f"{counts[1] - counts[0]:,}", "wanted": f"{12 * C * C:,}", "C": C}
        raise made.known("layers that are no blocks", **words)
    if calls and len(calls) != 3:
        raise made.known("not each block once", n=len(calls))
    if len(calls) > 1 and same(calls[1].read, calls[0].read, TOLERANCE):
        raise made.known("each block reads the embedding")
    if len(calls) > 1 and same(calls[1].read, calls[0].read + calls[0].gave, TOLERANCE):
        raise made.known("a block added to what it read")
    if len(calls) > 1 and not same(calls[1].read, calls[0].gave, TOLERANCE):
        raise made.known("a norm between the blocks")


def _check_logits(made: Made, model: nn.Module, ids: Tensor) -> None:
    with torch.no_grad():
        out, again = model(ids), model(ids)
    if not out.isfinite().all():
        n = int((~out.isfinite()).sum())
        raise Wrong("", f"{n} of the {out.numel():,} logits are nan or inf.")
    if not same(out, again, TOLERANCE):
        raise made.known("not the same twice")
    if (out >= 0).all() and same(out.sum(-1), torch.ones(ids.shape), TOLERANCE):
        raise made.known("softmax at the end")
    if (out >= 0).all():
        raise made.known("no logit below 0")


def _check_tokens(made: Made, model: nn.Module, ids: Tensor) -> None:
    """Which logits depend on which letters."""
    T = ids.shape[1]
    with torch.no_grad():
        whole = model(ids)
        for t in range(1, T):
            if not same(model(ids[:, :t]), whole[:, :t], TOLERANCE):
                raise made.known("reads ahead", t=t, T=T)
        if not same(model(ids[1:]), whole[1:], TOLERANCE):
            raise made.known("texts mixed up")
        for t in (0, T // 2):
            other = ids.clone()
            other[:, t] = (ids[:, t] + 1) % V
            changed = model(other)
            if same(changed[:, t], whole[:, t], 1e-6):
                raise made.known("does not read the letter itself", t=t)
            if same(changed[:, -1], whole[:, -1], 1e-6):
                raise made.known("does not read its past", t=t, T=T)


def _check_gradients(made: Made, model: nn.Module, ids: Tensor) -> None:
    for name, own in {**vars(model), **dict(model.named_buffers())}.items():
        if isinstance(own, Tensor) and {V, C} <= {*own.shape}:
            raise made.known("a table that is no parameter", name=name)
    model.zero_grad()
    out = model(ids)
    if not out.requires_grad:
        raise made.known("no gradient", names="any parameter")
    F.cross_entropy(out.flatten(0, 1), _ids(V)(*ids.shape).flatten()).backward()
    dead = [
        name.rpartition(".")[0] or name for name, own in model.named_parameters() if _is_dead(own)
    ]
    if dead:
        names = [f"`{name}`" for name in dict.fromkeys(dead)]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise made.known("no gradient", names=", ".join(names[:3]) + more)


def _is_dead(own: nn.Parameter) -> bool:
    if not own.requires_grad:  # positions may be frozen on purpose
        return V in own.shape
    return own.grad is None or (own.dim() > 1 and not own.grad.any())


def _check_last_norm(made: Made, model: nn.Module, ids: Tensor) -> None:
    if not (calls := made.calls(model, "Block", ids)):
        return
    with torch.no_grad():
        plain = model(ids)
        with calls[-1].part.register_forward_hook(lambda part, given, out: 100 * out):
            large = model(ids)
    if not same(large, plain, 0.05):
        raise made.known("no norm behind the last block")
