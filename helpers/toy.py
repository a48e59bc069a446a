"""The running examples of the series, the same in every notebook.

Every function makes its numbers from its own random generator: calling it never
moves PyTorch's global one, so cells can be run again in any order.
"""

import torch

from helpers.numbers import as_whole

LARGEST = 1000  # sequences, tokens, channels: toys are small
SENTENCE = "Life is short, eat dessert first"
WORDS = SENTENCE.replace(",", "").split()
# A word's id is its place in sorted order; "Life" comes first because capitals sort first.
IDS = [sorted(WORDS).index(word) for word in WORDS]


def numbers(C: int = 2, seed: int = 1337) -> torch.Tensor:
    """Random tokens: 4 sequences of 8 tokens with C channels each.

    The same numbers as ``torch.manual_seed(seed); torch.randn(4, 8, C)``.

    Parameters
    ----------
    C
        Channels, the numbers that describe one token.
    seed
        Start of the random stream.

    Returns
    -------
    torch.Tensor
        (4, 8, C), mean about 0 and variance about 1.

    Examples
    --------
    >>> numbers().shape
    torch.Size([4, 8, 2])
    """
    C = as_whole(C, "C", 1, LARGEST)
    seed = as_whole(seed, "seed", 0, 2**63 - 1)
    return torch.randn(4, 8, C, generator=torch.Generator().manual_seed(seed))


def readable(B: int = 3, T: int = 5, C: int = 2) -> torch.Tensor:
    """Tokens whose numbers say where they stand: ``x[b, t, :] = 10 * b + t``.

    Good for averaging only: all channels are equal, so a mistake that mixes up channels
    does not show.

    Parameters
    ----------
    B, T, C
        Sequences, tokens a sequence, channels a token.

    Returns
    -------
    torch.Tensor
        (B, T, C), float.

    Examples
    --------
    >>> readable()[2, 3]
    tensor([23., 23.])
    """
    B, T, C = (as_whole(size, name, 1, LARGEST) for name, size in {"B": B, "T": T, "C": C}.items())
    b = torch.arange(B)[:, None, None]
    t = torch.arange(T)[None, :, None]
    return (10.0 * b + t).repeat(1, 1, C)


def sentence() -> torch.Tensor:
    """Embeddings of the six words of ``SENTENCE``.

    The rows ``IDS`` of ``torch.nn.Embedding(50_000, 3)`` made under seed 123. The size of the
    table matters: a smaller one draws its numbers in another order and gives other embeddings.

    Returns
    -------
    torch.Tensor
        (6, 3), without gradient.
    """
    table = torch.randn(50_000, 3, generator=torch.Generator().manual_seed(123))
    return table[IDS]
