"""The causal mask, which says who is not in the future; and what sizes are refused."""

import torch


def causal_mask(T_q: int, T_k: int | None = None) -> torch.Tensor:
    """The mask with which no query attends to the future.

    The last query may attend to all keys, and query i to key j when ``j <= i + T_k - T_q``. That
    is what a cache of earlier keys needs. PyTorch's ``is_causal=True`` lines up the *first* query
    with the first key instead (``j <= i``), which differs as soon as ``T_q != T_k``.

    Parameters
    ----------
    T_q
        Number of queries (rows).
    T_k
        Number of keys (columns); as many as queries when left out. With fewer keys than
        queries the first ``T_q - T_k`` rows are empty, and `attention` refuses them.

    Returns
    -------
    torch.Tensor
        (T_q, T_k), bool. True = may attend.

    Raises
    ------
    ValueError
        When a size is not a whole number of at least 1.

    Examples
    --------
    >>> causal_mask(3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    >>> causal_mask(2, 4).int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    """
    T_k = T_q if T_k is None else T_k
    refuse_bad_sizes(T_q=T_q, T_k=T_k)
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)


def refuse_bad_sizes(**sizes: int) -> None:
    """Refuse a size that is not a whole number of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            got = repr(size)
            if hasattr(size, "shape"):  # a tensor or an array: not all its numbers
                got = f"{type(size).__name__} of shape {tuple(size.shape)}"
            raise ValueError(f"{name} must be a whole number of at least 1, got {got}.")
