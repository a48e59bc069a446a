"""A small encoder and decoder that writes the letters of a word in alphabetical order.

Both are as in section 3.1 of Vaswani et al. (2017), "Attention Is All You Need",
https://arxiv.org/abs/1706.03762, without positions: the order of what is read does not matter.
"""

import torch
from torch import Tensor, nn

from attention_base.arguments import typed
from attention_base.masks import refuse_bad_sizes
from helpers.attention import Block, FeedForward, Head, MultiHeadAttention
from helpers.attention.checks import refuse_bad_ids
from helpers.letters import ALPHABET, N_LETTER

START, PAD = N_LETTER, N_LETTER + 1  # tokens beside the letters: before a word, and after it
SIGNS = ALPHABET[:N_LETTER] + "^_"


@typed
def fill(words: list[str]) -> Tensor:
    """Words of lowercase letters -> (B, T) ids; shorter words are filled up with `PAD`.

    Raises
    ------
    TypeError
        When words is a single word and no list.
    ValueError
        When there is no word, or another sign in one.
    """
    if not any(words):
        raise ValueError(f"There is nothing to fill up: got {words!r}.")
    if unknown := set("".join(words)) - set(SIGNS):
        raise ValueError(f"Words have only the letters a to z; got {min(unknown)!r}.")
    T = max(map(len, words))
    return torch.tensor([[SIGNS.index(sign) for sign in word.ljust(T, "_")] for word in words])


@typed
def as_words(ids: Tensor) -> list[str]:
    """Ids, (B, T) -> words; padding is “_”."""
    refuse_bad_ids(ids, len(SIGNS))
    return ["".join(SIGNS[i] for i in row) for row in ids]


@typed
def alphabetical(B: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """B words of one random length, 1 to 10, without doubled letters: a task to train on.

    Returns
    -------
    ids : torch.Tensor
        (B, T), the letters of each word in random order.
    written : torch.Tensor
        (B, T), `START` and the letters in alphabetical order but for the last.
    targets : torch.Tensor
        (B, T), the letters in alphabetical order: what comes next.
    """
    refuse_bad_sizes(B=B)
    T = int(torch.randint(1, 11, (), generator=generator))
    ids = torch.rand(B, N_LETTER, generator=generator).argsort(dim=1)[:, :T]
    targets = ids.sort(dim=1).values
    return ids, nn.functional.pad(targets[:, :-1], (1, 0), value=START), targets


class Sorter(nn.Module):
    """An encoder of one block reads a word, a decoder of one block writes its letters.

    Parameters
    ----------
    C
        Channels of a token; must be divisible by 4, the heads of both self-attentions. The
        cross-attention has one head, so that there is one row of weights for each letter.
    """

    def __init__(self, C: int = 32) -> None:
        super().__init__()
        refuse_bad_sizes(C=C)
        self.letters = nn.Embedding(len(SIGNS), C)
        self.encoder, self.norm_memory = Block(C, n_head=4), nn.LayerNorm(C)
        self.attention, self.norm_1 = MultiHeadAttention(C, n_head=4), nn.LayerNorm(C)
        self.cross, self.norm_2 = Head(C, C), nn.LayerNorm(C)
        self.feed_forward, self.norm_3 = FeedForward(C), nn.LayerNorm(C)
        self.to_logits = nn.Sequential(nn.LayerNorm(C), nn.Linear(C, N_LETTER))

    def read(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """The encoder: (B, T_k) ids -> memory (B, T_k, C); the mask broadcasts to (B, T_k, T_k)."""
        refuse_bad_ids(ids, len(SIGNS))
        return self.norm_memory(self.encoder(self.letters(ids), mask=mask))

    def write(
        self,
        memory: Tensor,
        written: Tensor,
        mask: Tensor | None = None,
        *,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The decoder: memory, and (B, T_q) ids written so far -> (B, T_q, 26) logits.

        The logits at each place say which letter comes next. The mask broadcasts to (B, T_q, T_k);
        the weights of the cross-attention have this shape.
        """
        refuse_bad_ids(written, len(SIGNS), "written")
        y = self.letters(written)
        y = y + self.attention(self.norm_1(y))
        read, weights = self.cross(self.norm_2(y), context=memory, mask=mask, return_weights=True)
        y = y + read
        logits = self.to_logits(y + self.feed_forward(self.norm_3(y)))
        return (logits, weights) if return_weights else logits

    def forward(self, ids: Tensor, written: Tensor, mask: Tensor | None = None) -> Tensor:
        """Read and write: (B, T_k) and (B, T_q) ids -> (B, T_q, 26) logits."""
        return self.write(self.read(ids, mask), written, mask)


@typed
@torch.no_grad()
def sort(
    model: Sorter, ids: Tensor, mask: Tensor | None = None, *, return_weights: bool = False
) -> list[str] | tuple[list[str], Tensor]:
    """Let a model write letter by letter, each time the one with the largest logit.

    Parameters
    ----------
    model
    ids
        (B, T), words with padding as `fill` makes them.
    mask
        (B, 1, T), bool: which of their tokens may be attended to, in encoder and cross-attention.
    return_weights
        Whether to return the weights of the cross-attention as well.

    Returns
    -------
    words : list of str
        As many letters for each word as it has.
    weights : torch.Tensor
        (B, T, T): a row for each letter that is written, a column for each that is read.
    """
    memory, written = model.read(ids, mask), torch.full((len(ids), 1), START)
    for _ in range(ids.shape[1]):
        logits, weights = model.write(memory, written, mask, return_weights=True)
        written = torch.cat([written, logits[:, -1:].argmax(dim=-1)], dim=1)
    lengths = (ids != PAD).sum(dim=1)
    words = [word[:n] for word, n in zip(as_words(written[:, 1:]), lengths, strict=True)]
    return (words, weights) if return_weights else words
