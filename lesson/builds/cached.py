"""Judges what has a cache: the same numbers, however the tokens are cut into pieces."""

import contextlib
import copy
import inspect
from collections.abc import Callable

import torch
from torch import Tensor, nn

from attention_base.same import same
from lesson.builds.calling import RIGHT, TOLD, Made, Wrong, changed, judges
from lesson.builds.classes import block_notes
from lesson.builds.gpt import V, gpt_notes, randomised
from lesson.builds.right_08 import turn
from lesson.builds.steps import fitted, head_steps
from lesson.builds.turned import MEANT, turned_notes

C, N_HEAD, T, CONTEXT = 36, 3, 9, 10
PIECES = (2, 3, 1, 3)
T_OLD = 5  # that a cache holds which is handed over
TOLERANCE = 1e-3
OWN_FORM = (
    'One more thing: its cache has other names than "k" and "v", so only caches that it has filled '
    "itself could be tried."
)


@judges("14.MultiHeadAttention")
def judge_cached_attention(made: Made) -> list[str]:
    """Judge the learner's MultiHeadAttention (C, n_head, base), called with a cache."""
    _refuse_kept_default(made)
    notes = turned_notes(made)
    attention, x = made.make(C, N_HEAD), torch.randn(2, T, C)
    _check_pieces(made, attention, x, (2, T, C))
    with torch.no_grad():
        whole, cache = attention(x), {}
        attention(x, cache=cache)
    size = (2, N_HEAD, T, C // N_HEAD)
    if cache.keys() != {"k", "v"}:
        return [*notes, OWN_FORM]
    for name, z in cache.items():
        if _shape(z) != size:
            raise made.known("another shape in the cache", name=name, got=_shape(z), wanted=size)
    if ready := _ready_cache(attention, x[:, :T_OLD]):
        _check_ready(made, attention, x, ready, whole[:, T_OLD:])
    return notes


def _shape(z: object) -> tuple[int, ...]:
    return tuple(z.shape) if isinstance(z, Tensor) else ()


def _check_ready(
    made: Made, attention: nn.Module, x: Tensor, ready: dict[str, Tensor], right: Tensor
) -> None:
    """Raise what is wrong behind a cache that others have filled."""

    def behind(one: nn.Module) -> Tensor:
        return one(x[:, T_OLD:], cache=dict(ready))

    named = None
    with torch.no_grad(), contextlib.suppress(Exception):
        if same(behind(attention), right, TOLERANCE):
            return
        named = _named(made, attention, behind)
    if named and named.name == "keys turned when they are read":
        raise named
    raise made.known("another form of cache", T_old=T_OLD)


@judges("14.Block")
def judge_cached_block(made: Made) -> list[str]:
    """Judge the learner's Block (C, n_head), called with a cache."""
    _refuse_kept_default(made)
    notes = block_notes(made, MEANT)
    block, x = made.make(C, N_HEAD), torch.randn(2, T, C)
    with torch.no_grad():
        if same(_in_pieces(block, x)[0], _in_pieces(block, x, alone=True)[0]):
            raise made.known("cache not handed on")
    _check_pieces(made, block, x, (2, T, C))
    return notes


@judges("14.TinyGPT")
def judge_cached_gpt(made: Made) -> list[str]:
    """Judge the learner's TinyGPT (vocab_size, context_length, …), called with a cache."""
    _refuse_kept_default(made)
    notes = gpt_notes(made)
    model = randomised(made.make(V, CONTEXT, C=C, n_head=N_HEAD, n_layer=3))
    ids = torch.randint(V, (2, T))
    cls, given = made.names.get("Block"), []
    hooks = [
        block.register_forward_pre_hook(
            lambda block, args, more: given.append((*args, *more.values())), with_kwargs=True
        )
        for block in model.modules()
        if isinstance(cls, type) and type(block) is cls
    ]
    with torch.no_grad():
        whole, cache = model(ids), {}
        given.clear()
        first = model(ids[:, :4], cache=cache)
        caches = [one[1] if one[1:] else None for one in given]
        given.clear()
        second = model(ids[:, 4:], cache=cache)
    for hook in hooks:
        hook.remove()
    is_right = same(torch.cat([first, second], dim=1), whole, TOLERANCE)
    if is_right and given and given[0][0].shape[1] > T - 4:
        raise made.known("everything read again", n=T - 4, got=given[0][0].shape[1])
    if caches and all(one is None for one in caches):
        raise made.known("cache not handed on")
    if caches and len({*map(id, caches)}) < len(caches):
        raise made.known("one cache for all blocks")
    if not is_right and any(
        one[1:] and one[1] is not own for one, own in zip(given, caches, strict=False)
    ):
        raise made.known("a new cache in each call")
    _check_pieces(made, model, ids, (2, T, V))
    return notes


def _refuse_kept_default(made: Made) -> None:
    """Refuse `cache={}` in the signature: it is made once, and every call shares it."""
    forward = getattr(made.cls, "forward", None)
    if inspect.isfunction(forward):
        default = inspect.signature(forward).parameters.get("cache")
        if default is not None and isinstance(default.default, dict | list):
            raise made.known("a shared default")


# ---------------------------------------------------------------- in pieces


def _in_pieces(module: nn.Module, x: Tensor, alone: bool = False) -> list[Tensor]:
    """What a module gives for tokens that come in pieces, (B, T, …); `alone`: without a cache.

    In turns with them it is called as by another text, which has a cache of its own; its
    outputs are the second.
    """
    cache, other, out = {}, {}, ([], [])
    for piece in x.split(PIECES, dim=1):
        for ids, own, into in ((piece, cache, out[0]), (piece.flip(0), other, out[1])):
            into.append(module(ids) if alone else module(ids, cache=own))
    return [torch.cat(one, dim=1) for one in out]


def _check_pieces(made: Made, module: nn.Module, x: Tensor, shape: tuple[int, ...]) -> None:
    """Raise what is wrong where tokens that come in pieces give other numbers than in one pass."""
    cache, fresh = {}, copy.deepcopy(module)

    def pieces(one: nn.Module) -> list[Tensor]:
        one(x, cache={})
        return _in_pieces(one, x)

    with torch.no_grad():
        whole = module(x)
        try:
            made.doing = f"{made.made}, called with a cache that is empty,"
            first = module(x, cache=cache)
            if wrong := made.wrong_output(first, shape):
                raise wrong
            made.doing = f"{made.made}, called with a cache that holds {PIECES[0]} tokens,"
            out, other = _in_pieces(module, x)
            if out.shape[1] > T:
                n = module(x[:, T_OLD:], cache=cache).shape[1]
                raise made.known("outputs of old tokens, too", new=T - T_OLD, got=n)
        except Exception as error:
            raise made.explained(error, module) from error
        if all(
            same(one, right, TOLERANCE)
            for one, right in ((first, whole), (out, whole), (other, whole.flip(0)))
        ):
            return
        if not cache:
            raise made.known("nothing stored")
        named = _named(made, fresh, lambda one: pieces(one)[0])
    if not named and same(out, whole, TOLERANCE):
        raise made.known("one cache for all calls")
    if not named and not same(first, whole, TOLERANCE):
        raise made.known("another result with an empty cache")
    wrong = [t for t in range(T) if not same(out[:, t], whole[:, t], TOLERANCE)]
    raise named or made.known("not the same in pieces", pieces=PIECES, t=(wrong or [0])[0])


def _named(made: Made, module: nn.Module, run: Callable) -> Wrong | None:
    """The mistake of the page with which a right attention of the same weights does the same."""
    if made.build != "MultiHeadAttention" or not (like := _like(made, module)):
        return None
    got = run(module)
    for known in TOLD[made.id].entries:
        one = changed(made.id, known)(C, N_HEAD)
        for layer in ("query", "key", "value", "proj"):
            setattr(one, layer, getattr(like, layer))
        try:
            if same(run(one), got, TOLERANCE):
                return made.known(known.name)
        except Exception:  # many mistakes end in an error
            continue
    return None


def _like(made: Made, attention: nn.Module) -> nn.Module | None:
    """A right attention with the weights of this one, fitted to what it computes; or None."""
    x = torch.randn(2, 3 * C, C)
    heads, out = head_steps(attention, x, C // N_HEAD)
    if len(heads) != N_HEAD:
        return None
    right = RIGHT[made.id](C, N_HEAD).eval()
    back = -torch.arange(3 * C)[:, None] * right.speeds
    q, k = (torch.cat([turn(z, back) for z in (one[i] for one in heads)], dim=-1) for i in (0, 1))
    v, gave = (torch.cat([one[i] for one in heads], dim=-1) for i in (2, 3))
    for name, z, to in (("query", x, q), ("key", x, k), ("value", x, v), ("proj", gave, out)):
        layer, matrix = getattr(right, name), fitted(z, to)[1].float()
        layer.weight.data, layer.bias = matrix[:-1].T.contiguous(), nn.Parameter(matrix[-1])
    return right


def _ready_cache(attention: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """The keys and values that an attention computes without a cache; empty if none are found."""
    heads, _ = head_steps(attention, x, C // N_HEAD)
    if len(heads) != N_HEAD:
        return {}
    return {"k": torch.stack([one.k for one in heads], dim=1)} | {
        "v": torch.stack([one.v for one in heads], dim=1)
    }
