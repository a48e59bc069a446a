"""The running examples of the series, the same in every notebook.

Every function makes its numbers from its own random generator: calling it never
moves PyTorch's global one, so cells can be run again in any order.
"""

from collections.abc import Mapping, Sequence

import torch

from attention_base.arguments import typed
from attention_base.numbers import as_whole

LARGEST = 1000  # sequences, tokens, channels: toys are small
# Two texts that differ in one word, and their embeddings by hand: channels animal, food.
TEXTS = ["the cat was warm so it", "the soup was warm so it"]
CAT_AND_SOUP = {"cat": [1.0, 0.0], "soup": [0.0, 1.0], "warm": [1.0, 1.0]}


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


@typed
def embed(text: str | Sequence[str], channels: Mapping[str, Sequence[float]]) -> torch.Tensor:
    """Look up the embedding of each word; a word that is not in `channels` gets zeros.

    Parameters
    ----------
    text
        One text, or several with equally many words.
    channels
        word -> its embedding, C numbers.

    Returns
    -------
    torch.Tensor
        (T, C) for one text, (B, T, C) for several.

    Raises
    ------
    ValueError
        If the texts differ in their number of words, or the embeddings in theirs of channels.

    Examples
    --------
    >>> embed("the cat", CAT_AND_SOUP)
    tensor([[0., 0.],
            [1., 0.]])
    """
    if isinstance(text, str):
        return embed([text], channels)[0]
    words = [one.split() for one in text]
    if len({len(one) for one in words}) != 1 or not words[0]:
        raise ValueError(
            f"embed needs texts with equally many words, at least one, got {[*map(len, words)]}"
        )
    if len({len(channels[word]) for word in channels}) != 1:
        raise ValueError(
            f"all embeddings need as many channels, got {[*map(len, channels.values())]}"
        )
    zeros = [0.0] * len(next(iter(channels.values())))
    table = [[[*channels.get(word, zeros)] for word in one] for one in words]
    return torch.tensor(table, dtype=torch.float32)


def lecture_scores() -> torch.Tensor:
    """Scores of random queries and keys, as a lecture computes them; its notes print their weights.

    The dot products of queries and keys that two ``torch.nn.Linear(32, 16, bias=False)``, first the
    key's and then the query's, make of ``torch.randn(4, 8, 32)``, all under seed 1337. They are not
    divided by √16. Source: A. Karpathy, "Let's build GPT" (2023).

    Returns
    -------
    torch.Tensor
        (4, 8, 8): row = query, column = key; without gradient.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1337)
        tokens = torch.randn(4, 8, 32)
        key, query = (torch.nn.Linear(32, 16, bias=False)(tokens) for _ in range(2))
    return query @ key.mT
