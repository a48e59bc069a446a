"""What attention costs: a tiny GPT that reads each letter once."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from helpers.gpt import TinyGPT, refuse_bad_ids

Cache = tuple[Tensor, Tensor]
Attend = Callable[[Tensor, Tensor, Tensor, Cache], tuple[Tensor, Cache]]


class ReadsOnce(nn.Module):
    """A tiny GPT that is called with all tokens so far, and reads those that it has not read yet.

    Parameters
    ----------
    model
        With rotary positions. Its parameters are used, and nothing in it is changed.
    attend
        ``attend(q, k, v, cache) -> (out, cache)``, the attention of each block. q, k and v are
        those of the new tokens, (B, n_head, T_new, d), not turned by their positions yet. The
        cache is what the call before it returned: a pair of tensors with four axes. The first one
        is a pair of empty ones, (B, n_head, 0, d).

    Raises
    ------
    ValueError
        When the model has no rotary positions.

    Examples
    --------
    >>> def newest(q, k, v, cache):  # each token attends to itself only
    ...     return v, cache
    >>> reader = ReadsOnce(TinyGPT(vocab_size=100, context_length=64), newest)
    >>> ids = torch.zeros(2, 10, dtype=torch.long)
    >>> reader(ids[:, :7]).shape, reader(ids).shape
    (torch.Size([2, 7, 100]), torch.Size([2, 3, 100]))
    """

    def __init__(self, model: TinyGPT, attend: Attend) -> None:
        super().__init__()
        if not model.config["rotary"]:
            raise ValueError(
                "attend turns queries and keys by their positions, so the model needs "
                "rotary=True; this one has rotary=False and adds learned positions to its tokens."
            )
        self.model, self.attend = model, attend
        self.read: Tensor | None = None  # (B, T_old), the tokens that it has read
        self.caches: list[Cache] = []  # one for each block

    @torch.no_grad()
    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) ids of all tokens so far -> (B, T_new, V) logits of those not read before.

        When it raises, it has read nothing of these ids.

        Raises
        ------
        TypeError
            When attend does not return a tensor and a pair of tensors with four axes.
        ValueError
            When ids do not begin with the tokens that it has read, add none to them, or are more
            than context_length; when the output of attend has another shape than v.
        """
        model = self.model
        refuse_bad_ids(ids, model.vocab_size)
        self._refuse_other_text(ids)
        T_old = 0 if self.read is None else self.read.shape[1]
        x, caches = model.embedding(ids[:, T_old:]), []
        for i, block in enumerate(model.blocks):
            layer, normed = block.attention, block.norm_1(x)
            q, k, v = (
                linear(normed).unflatten(-1, (layer.n_head, -1)).transpose(1, 2)
                for linear in (layer.query, layer.key, layer.value)
            )
            cache = self.caches[i] if self.caches else (k[:, :, :0], v[:, :, :0])
            out, cache = attend_once(self.attend, q, k, v, cache)
            caches.append(cache)
            x = x + layer.proj(out.transpose(1, 2).flatten(2))
            x = x + block.feed_forward(block.norm_2(x))
        self.read, self.caches = ids.clone(), caches
        return model.to_logits(model.norm(x))

    def _refuse_other_text(self, ids: Tensor) -> None:
        n, most = ids.shape[1], self.model.context_length
        if n > most:
            raise ValueError(
                f"T must be at most context_length: got T={n}, context_length={most}. A cache "
                "cannot drop its first tokens, since later ones have attended to them."
            )
        if self.read is None:
            return
        T_old = self.read.shape[1]
        new = "For another text make a new ReadsOnce(model, attend)."
        if len(ids) != len(self.read):
            raise ValueError(f"It has read {len(self.read)} texts, and ids are {len(ids)}. {new}")
        if n <= T_old:
            raise ValueError(
                f"It has read {T_old} tokens already, so ids need at least {T_old + 1}: all of "
                f"these and a new one; got {n}. {new}"
            )
        if not torch.equal(ids[:, :T_old], self.read):
            raise ValueError(f"The first {T_old} tokens of ids are not those it has read. {new}")


def attend_once(
    attend: Attend, q: Tensor, k: Tensor, v: Tensor, cache: Cache
) -> tuple[Tensor, Cache]:
    """Call attend, as `ReadsOnce` does, and refuse what it returns if that cannot be used.

    Raises
    ------
    TypeError
        When it is not a tensor and a pair of tensors with four axes.
    ValueError
        When the first of these has another shape than v.
    """
    returned = attend(q, k, v, cache)
    wanted = "attend must return (out, (keys, values)), three tensors with four axes each"
    pair = returned[1] if isinstance(returned, tuple | list) and len(returned) == 2 else None
    tensors = [returned[0], *pair] if isinstance(pair, tuple | list) and len(pair) == 2 else []
    if not tensors or any(not isinstance(z, Tensor) or z.dim() != 4 for z in tensors):
        raise TypeError(f"{wanted}; it returned {_in_words(returned)}.")
    if returned[0].shape != v.shape:
        raise ValueError(
            f"out must be (B, n_head, T_new, d) = {tuple(v.shape)}, an output for each new token; "
            f"attend returned {tuple(returned[0].shape)}."
        )
    return tensors[0], (tensors[1], tensors[2])


def _in_words(value: object) -> str:
    """What somebody returned: tensors by their shapes."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_in_words, value))})"
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "None" if value is None else type(value).__name__
