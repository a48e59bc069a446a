"""Cut a text into the pieces of a published vocabulary: byte-pair encoding.

Sennrich et al. (2016), https://arxiv.org/abs/1508.07909, on bytes as in GPT-2.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby, pairwise

import torch
from torch import Tensor

WORD = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W_]+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


class Pieces:
    """A vocabulary, and the order in which neighbouring pieces are joined.

    Parameters
    ----------
    names
        The pieces, by id. Each sign in them stands for one byte; Ġ for a blank.
    merges
        Pairs such as "Ġ t", the first to be joined first.

    Examples
    --------
    >>> pieces = Pieces(["a", "b", "Ġ", "ab", "Ġab"], ["a b", "Ġ ab"])
    >>> pieces.encode("ab ab")
    tensor([[3, 4]])
    >>> pieces.decode([3, 4])
    'ab ab'
    """

    def __init__(self, names: list[str], merges: list[str]) -> None:
        self.names, self.ids = names, {name: i for i, name in enumerate(names)}
        self._rank = {tuple(pair.split(" ")): i for i, pair in enumerate(merges)}
        shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
        hidden = [i for i in range(256) if i not in shown]
        self._sign = {i: chr(i) for i in shown} | {i: chr(256 + n) for n, i in enumerate(hidden)}
        self._byte = {sign: i for i, sign in self._sign.items()}
        self._joined = cache(self._join)

    def encode(self, text: str) -> Tensor:
        """Give the ids of a text, (1, T).

        Raises
        ------
        ValueError
            When the text is empty.
        """
        if not text:
            raise ValueError("The text is empty, and a model reads at least one token.")
        found = [piece for word in _words(text) for piece in self._joined(word)]
        return torch.tensor([[self.ids[piece] for piece in found]])

    def decode(self, ids: Iterable[int]) -> str:
        """Give the text of ids; bytes that are no letter yet become �."""
        signs = "".join(self.names[i] for i in ids)
        return bytes(self._byte.get(sign, 63) for sign in signs).decode("utf8", "replace")

    def _join(self, word: str) -> list[str]:
        pieces = [self._sign[i] for i in word.encode("utf8", "replace")]
        while len(pieces) > 1:
            ranks = [self._rank.get(pair, len(self._rank)) for pair in pairwise(pieces)]
            i = ranks.index(min(ranks))
            if ranks[i] == len(self._rank):
                break
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        return pieces


def _words(text: str) -> Iterator[str]:
    """Each digit is a word of its own; the rest is cut where letters, signs and blanks meet."""
    for is_digit, run in groupby(text, lambda sign: unicodedata.category(sign)[0] == "N"):
        run = "".join(run)
        yield from run if is_digit else WORD.findall(run)
