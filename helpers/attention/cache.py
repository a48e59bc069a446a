"""A KV cache: the keys and values that attention has computed for tokens it has read before.

Shazeer (2019), "Fast Transformer Decoding", https://arxiv.org/abs/1911.02150, section 2.2.1.
"""

import torch

from attention_base.masks import refuse_bad_sizes


class KVCache:
    """The keys and values of one attention module, kept between its calls.

    Parameters
    ----------
    max_length
        The most tokens that it takes.

    Attributes
    ----------
    keys, values : torch.Tensor or None
        (B, n_kv_head, T, head_size), T tokens so far; None while it is empty.

    Raises
    ------
    ValueError
        When max_length is not a whole number of at least 1.

    Examples
    --------
    >>> cache = KVCache(max_length=8)
    >>> k, v = cache.append(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4))
    >>> k, v = cache.append(torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 4))
    >>> k.shape, len(cache)
    (torch.Size([1, 2, 4, 4]), 4)
    """

    def __init__(self, max_length: int) -> None:
        refuse_bad_sizes(max_length=max_length)
        self.max_length = max_length
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    def __len__(self) -> int:
        """How many tokens are kept."""
        return 0 if self.keys is None else self.keys.shape[2]

    def append(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keep the keys and values of new tokens, and return all that are kept.

        Parameters
        ----------
        k, v
            (B, n_kv_head, T_new, head_size). Keys that are turned by their positions are turned
            already.

        Returns
        -------
        keys, values : torch.Tensor
            (B, n_kv_head, T_old + T_new, head_size)

        Raises
        ------
        TypeError, ValueError
            When k and v do not fit each other or what is kept, or when there is no room. Then
            nothing is kept of them.
        """
        if k.dim() != 4 or v.dim() != 4 or k.shape[:3] != v.shape[:3]:
            raise ValueError(
                "k and v must be (B, n_kv_head, T_new, head_size), a key and a value for each new "
                f"token and head; got {tuple(k.shape)} and {tuple(v.shape)}."
            )
        if len(self) + k.shape[2] > self.max_length:
            raise ValueError(
                f"The cache takes {self.max_length} tokens and holds {len(self)}; {k.shape[2]} "
                "more do not fit. Begin a new cache with the last tokens, or make it with a larger "
                "max_length."
            )
        if self.keys is None:
            self.keys, self.values = k, v
            return k, v
        for name, old, new in (("k", self.keys, k), ("v", self.values, v)):
            if old.shape[:2] != new.shape[:2] or old.shape[3] != new.shape[3]:
                raise ValueError(
                    f"The cache holds {name} of shape {tuple(old.shape)}; new ones may differ in "
                    f"the number of tokens only, got {tuple(new.shape)}. For another batch, or "
                    "another module, begin a new cache."
                )
            if old.dtype != new.dtype:
                raise TypeError(
                    f"The cache holds {name} of type {old.dtype}, got {new.dtype}: convert one of "
                    "them, or begin a new cache."
                )
        self.keys = torch.cat([self.keys, k], dim=2)
        self.values = torch.cat([self.values, v], dim=2)
        return self.keys, self.values
