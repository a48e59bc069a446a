"""What the helpers refuse: each states the rule, the numbers and the remedy."""

import math

# NumPy's broadcast_shapes, since PyTorch's imports sympy, which takes a quarter of a second.
import numpy as np
import torch
from torch import nn

from attention_base.numbers import as_real, described


def refuse_uneven_heads(C: int, n_head: int) -> None:
    """Refuse channels that cannot be shared out evenly among the heads."""
    if C % n_head:
        sizes = " or ".join(str(n * n_head) for n in (C // n_head, C // n_head + 1) if n)
        fitting = ", ".join(str(n) for n in range(1, C + 1) if C % n == 0)
        raise ValueError(
            f"C = {C} channels cannot be shared out evenly among n_head = {n_head} heads: "
            f"{C} / {n_head} = {C / n_head:.4g}. Use C = {sizes}, or one of {fitting} heads."
        )


def refuse_uneven_groups(n_head: int, n_kv_head: int) -> None:
    """Refuse query heads that cannot be shared out evenly among the key/value heads."""
    if n_head % n_kv_head:
        fitting = ", ".join(str(n) for n in range(1, n_head + 1) if n_head % n == 0)
        raise ValueError(
            f"Each key/value head serves the same number of query heads, so n_head must be "
            f"divisible by n_kv_head; got n_head = {n_head}, n_kv_head = {n_kv_head}. "
            f"Use one of {fitting} key/value heads."
        )


def refuse_bad_dropout(dropout: float) -> None:
    """Refuse a dropout that is no probability below 1."""
    if not 0 <= as_real(dropout, "dropout") < 1:
        raise ValueError(f"dropout is a probability, at least 0 and below 1; got {dropout}.")


def refuse_unknown_norm(norm: str) -> None:
    """Refuse a place of the layer norm that a block does not know."""
    if norm not in ("pre", "post"):
        raise ValueError(f'norm must be "pre" or "post", got {norm!r}.')


def refuse_bad_ids(ids: torch.Tensor, vocab_size: float, name: str = "ids") -> None:
    """Refuse what are no ids of tokens of the vocabulary, (B, T)."""
    if not isinstance(ids, torch.Tensor) or ids.dtype not in (torch.int64, torch.int32):
        kind = ids.dtype if isinstance(ids, torch.Tensor) else type(ids).__name__
        raise TypeError(f"{name} must be whole numbers in a tensor, torch.int64, got {kind}.")
    if ids.dim() != 2 or 0 in ids.shape:
        raise ValueError(
            f"{name} must have the shape (B, T) with at least one token, "
            f"got {tuple(ids.shape)}. For a single text use {name}[None]."
        )
    low, high = ids.min().item(), ids.max().item()
    if low < 0 or high >= vocab_size:
        wrong = low if low < 0 else high
        most = "on" if vocab_size == math.inf else f"to V - 1 = {vocab_size - 1}"
        raise ValueError(f"{name} must be from 0 {most}, got {wrong}.")


def refuse_bad_text(ids: torch.Tensor, vocab_size: int) -> None:
    """Refuse what are no ids of one text, (T,), which may be empty."""
    if ids.dim() != 1:
        raise ValueError(
            f"decode takes the ids of one text, (T,), got the shape {tuple(ids.shape)}. "
            "For the first of several use ids[0]."
        )
    if len(ids):
        refuse_bad_ids(ids[None], vocab_size)


def refuse_bad_rate(name: str, learning_rate: float) -> None:
    """Refuse a learning rate with which no training gets better."""
    if not 0 <= learning_rate <= 100:
        raise ValueError(
            f"{name} is about the largest change of a weight in a step, from 0 to 100; got "
            f"{learning_rate:g}. Use a small one, such as 0.005."
        )


def refuse_diverged(loss: float, step: int) -> None:
    """Refuse to go on with a training whose loss is nan or inf."""
    if not math.isfinite(loss):
        raise ValueError(
            f"The loss of step {step} is {loss}: parameters of the model are nan, or too large. "
            "Make a new model, and train it with a smaller learning rate."
        )


def refuse_bad_padding(real: torch.Tensor) -> None:
    """Refuse what does not say, for each token, whether it belongs to a text or is padding."""
    if not isinstance(real, torch.Tensor) or real.dtype != torch.bool:
        got = real.dtype if isinstance(real, torch.Tensor) else _given_type("real", real)
        raise TypeError(
            f"real must be a bool tensor, True at tokens of the text and False at padding; got "
            f"{got}. From the ids of tokens: ids != pad."
        )
    if real.dim() != 2:
        raise ValueError(f"real must be (B, T), got {_shape(real)}.")
    if not real.any(dim=1).all():
        b = int((~real.any(dim=1)).nonzero()[0])
        raise ValueError(
            f"A sequence needs at least one token that is not padding; sequence {b} of "
            f"{len(real)} has none. Leave it out of the batch."
        )


def refuse_rotary_of_context(rotary: bool, context: torch.Tensor | None) -> None:
    """Refuse rotary embeddings between two sequences."""
    if rotary and context is not None:
        raise ValueError(
            "With rotary=True scores depend on how far apart two tokens stand, but a token of x "
            "and one of the context stand in different sequences: they have no distance. Make the "
            "module with rotary=False."
        )


def refuse_cache_of_context(cache: object, context: torch.Tensor | None) -> None:
    """Refuse a cache in cross-attention."""
    if cache is not None and context is not None:
        raise ValueError(
            "A cache keeps the keys and values of the tokens of x, but with a context they are "
            "computed from the context, which is there as a whole. Leave out the cache."
        )


def refuse_odd_rotary(rotary: bool, head_size: int) -> None:
    """Refuse what is no choice, and rotary embeddings for channels that make no pairs."""
    if not isinstance(rotary, bool):
        raise TypeError(f"rotary must be True or False, got {described(rotary)}.")
    if rotary and head_size % 2:
        raise ValueError(
            f"With rotary=True the channels of a head are turned in pairs, so head_size must be "
            f"even; got head_size = {head_size}."
        )


def refuse_weights_of_fused(fused: bool, return_weights: bool) -> None:
    """Refuse to return the weights of a fused module."""
    if fused and return_weights:
        raise ValueError(
            "With fused=True the weights are never stored, so they cannot be returned. "
            "Make the module with fused=False (the same numbers), or leave out return_weights."
        )


def refuse_bad_input(
    x: torch.Tensor,
    context: torch.Tensor | None,
    mask: torch.Tensor | str | None,
    layer: nn.Linear,
    n_head: int | None = None,
    n_kept: int = 0,
) -> None:
    """Refuse x, context or mask that do not fit each other or this Linear layer.

    With `n_head` a mask may have four axes, the second of them for the heads. `n_kept` tokens stand
    in a cache, and are keys, too.
    """
    if isinstance(mask, str) and mask != "causal":
        raise ValueError(f'mask must be "causal", None or a bool tensor, got {mask!r}.')
    if isinstance(mask, str) and context is not None:
        raise ValueError(
            'mask is "causal" (the default), but the context is another sequence: none of its '
            "tokens is earlier or later than one of x. Give mask=None, or a bool tensor (T_q, T_k)."
        )
    for name, tensor in (("x", x), ("context", x if context is None else context)):
        refuse_bad_channels(name, tensor, layer)
        if tensor.dim() != 3 or tensor.shape[1] == 0:
            single = f" For a single sequence use {name}[None]." if tensor.dim() == 2 else ""
            raise ValueError(
                f"{name} must be (B, T, C) with at least one token; "
                f"its shape is {_shape(tensor)}.{single}"
            )
    if context is not None and len(context) != len(x):
        one = "context" if len(context) == 1 else "context[:1]"
        raise ValueError(
            f"Each sequence attends to its own context: x has {len(x)} sequences, context "
            f"{len(context)}. To give all of them one context use {one}.expand({len(x)}, -1, -1)."
        )
    if mask is not None and not isinstance(mask, str):
        with_heads = n_head is not None and isinstance(mask, torch.Tensor) and mask.dim() > 3
        lead = (len(x), n_head) if with_heads else (len(x),)
        T_k = n_kept + x.shape[1] if context is None else context.shape[1]
        refuse_bad_mask(mask, torch.Size((*lead, x.shape[1], T_k)), n_kept)


def refuse_bad_channels(name: str, tensor: torch.Tensor, layer: nn.Linear) -> None:
    """Refuse a tensor that does not fit the input of this Linear layer."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a tensor of floats, got {_given_type(name, tensor)}.")
    if not tensor.is_floating_point():
        raise TypeError(
            f"{name} must be a tensor of floats, got {tensor.dtype}: use {name}.float()."
        )
    C = layer.in_features
    if tensor.dim() == 0 or tensor.shape[-1] != C:
        swapped = tensor.dim() > 1 and tensor.shape[-2] == C
        raise ValueError(
            f"The last axis of {name} must hold the C = {C} channels that this "
            f"module was made for; its shape is {_shape(tensor)}"
            + (f": are T and C swapped? Then use {name}.mT." if swapped else ".")
        )
    _refuse_elsewhere({name: tensor, "the weights of this module": layer.weight})
    dtype = layer.weight.dtype
    if tensor.dtype != dtype and not torch.is_autocast_enabled(tensor.device.type):
        raise TypeError(
            f"{name} is {tensor.dtype}, the weights of this module are {dtype}: "
            f"use {name}.to({dtype}) or module.to({tensor.dtype})."
        )


def refuse_bad_qkv(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Refuse q, k and v that do not fit together."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, got {_given_type(name, tensor)}.")
        if not tensor.is_floating_point():
            raise TypeError(
                f"{name} must hold floats, got {tensor.dtype}: use {name}.float(), "
                "since attention weights are fractions."
            )
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} needs at least two dimensions, tokens and channels; "
                f"its shape is {_shape(tensor)}. For one token use {name}[None, :]."
            )
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(
            f"q, k and v must have one dtype, got {q.dtype}, {k.dtype} and {v.dtype}: "
            "convert with .to(q.dtype)."
        )
    _refuse_elsewhere({"q": q, "k": k, "v": v})
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            "q and k are multiplied channel by channel, so their last sizes must be equal: "
            f"q {_shape(q)} has {q.shape[-1]}, k {_shape(k)} has {k.shape[-1]}."
        )
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            "Each key has one value, so k and v must have the same number of tokens: "
            f"k {_shape(k)} has {k.shape[-2]}, v {_shape(v)} has {v.shape[-2]}."
        )
    if k.shape[-2] == 0 or k.shape[-1] == 0:
        raise ValueError(
            f"There is nothing to attend to: k has shape {_shape(k)}. "
            "Give at least one token and one channel."
        )
    try:
        np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    except ValueError:
        raise ValueError(
            "All sizes before the last two (sequences, heads) must be equal or 1: "
            f"q {_shape(q)}, k {_shape(k)}, v {_shape(v)}."
        ) from None


def refuse_bad_mask(mask: torch.Tensor, scores: torch.Size, n_kept: int = 0) -> None:
    """Refuse a mask that is not bool, does not fit the scores or has an empty row.

    Of the keys, `n_kept` stand in a cache.
    """
    if not isinstance(mask, torch.Tensor):
        raise TypeError(
            f"mask must be a bool tensor, True = may attend; got {_given_type('mask', mask)}."
        )
    if mask.dtype != torch.bool:
        raise TypeError(
            f"mask must be a bool tensor, True = may attend; got {mask.dtype}. "
            "From zeros and ones: mask != 0; from scores with -inf: mask == 0."
        )
    try:
        fits = np.broadcast_shapes(mask.shape, scores) == scores
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask {_shape(mask)} does not fit the scores {tuple(scores)}: read from the right, "
            f"each of its sizes must be equal to the scores' or 1. One of {tuple(scores[-2:])} "
            "does for all of them."
            + f" Of the {scores[-1]} keys, {n_kept} stand in the cache."
            * (n_kept > 0)
        )
    empty = ~mask.any(dim=-1)  # one entry a query
    if empty.any():
        index = tuple(empty.nonzero()[0].tolist())
        where = f"row {list(index)} of the mask" if index else "the mask"
        square = mask.dim() > 1 and mask.shape[-2] == mask.shape[-1] > 1
        itself = ", for example to itself: mask | torch.eye(T, dtype=torch.bool)" * square
        raise ValueError(
            f"A query may attend to no key: {where} is False throughout "
            f"({int(empty.sum())} of {empty.numel()} rows). The softmax of such a row is 0 / 0 "
            f"= nan. Let each query attend to at least one key{itself}."
        )


def _refuse_elsewhere(tensors: dict[str, torch.Tensor]) -> None:
    """Refuse tensors that do not lie on one device, or are sparse."""
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided:
            raise TypeError(
                f"{name} must be a plain tensor, got {described(tensor)}: use .to_dense()."
            )
    if len({tensor.device for tensor in tensors.values()}) > 1:
        places = ", ".join(f"{name} on {tensor.device}" for name, tensor in tensors.items())
        raise ValueError(f"All must lie on one device, got {places}: move them with .to(device).")


def _given_type(name: str, value: object) -> str:
    """The type that was given instead of a tensor, and how to make one of it where that works."""
    numbers = isinstance(value, list | tuple) or hasattr(value, "__array__")
    return type(value).__name__ + (f": use torch.tensor({name})" if numbers else "")


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
