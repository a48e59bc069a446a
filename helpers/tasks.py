"""What the heads of notebooks 05 and 06 learn."""

from collections.abc import Iterable

import torch
from torch import nn

from attention_base.arguments import typed
from attention_base.masks import refuse_bad_sizes
from attention_base.numbers import as_whole
from helpers.attention.checks import refuse_bad_ids

# Nouns, words that go with animals or with food, and others.
ANIMALS = "cat dog elk cow goat ewe pig duck hen bat rat fox wolf bear lion seal frog bee ant owl"
FOODS = "soup bread rice oil milk stew pie ham jam egg corn pea nut pear plum fig bun tea leek lime"
WITH_ANIMALS = (
    "tired happy old young wild shy ran sat lay woke barked jumped swam flew hid furry brave tame "
    "lazy fast warm"
)
WITH_FOOD = (
    "hungry ate hot sweet salty fresh baked cooked fried boiled bowl plate spoon kitchen lunch "
    "dinner tasty drank served crisp"
)
OTHERS = "the a was is and so then because very but at in on by with there here now once again"
VOCABULARY = f"{ANIMALS} {FOODS} {WITH_ANIMALS} {WITH_FOOD} {OTHERS} it".split()
NOUNS = len(f"{ANIMALS} {FOODS}".split())

# (102, 2), the channels animal and food of each word: what it passes on to “it”.
_ANIMAL, _FOOD = f"{ANIMALS} {WITH_ANIMALS}".split(), f"{FOODS} {WITH_FOOD} warm".split()
CHANNELS = torch.tensor([[word in _ANIMAL, word in _FOOD] for word in VOCABULARY]).float()

# The 16 words of notebook 06; the first five, in their order, are its sentence.
_SENTENCE = "dogs are chasing cats so"
SIXTEEN = f"{_SENTENCE} the a and old big red saw ran two some then".split()


@typed
def word_numbers(texts: Iterable[str], vocabulary: list[str] = VOCABULARY) -> torch.Tensor:
    """Texts of equally many words -> (B, T), the number of each word in a vocabulary."""
    words = [text.split() for text in texts]
    if len({len(one) for one in words}) != 1 or not words[0]:
        raise ValueError(
            f"texts need equally many words, at least one, got {[len(one) for one in words]}."
        )
    if unknown := [word for one in words for word in one if word not in vocabulary]:
        raise ValueError(
            f"The vocabulary has no {unknown[0]!r}. Its {len(vocabulary)} words begin with "
            f"{' '.join(vocabulary[:5])}."
        )
    return torch.tensor([[vocabulary.index(word) for word in one] for one in words])


@typed
def noun_windows(n: int, seed: int) -> torch.Tensor:
    """Make n random texts of six words and the one that follows, from a seed: (n, 7) numbers.

    In each text stands one noun, and “it” at the end. What follows is “slept” after an animal and
    “cooled” after a food: 102 and 103, behind `VOCABULARY`.
    """
    refuse_bad_sizes(n=n)
    generator = torch.Generator().manual_seed(as_whole(seed, "seed", 0, 2**63 - 1))
    texts = torch.randint(NOUNS, len(VOCABULARY) - 1, (n, 6), generator=generator)
    nouns = torch.randint(NOUNS, (n,), generator=generator)
    texts[torch.arange(n), torch.randint(5, (n,), generator=generator)] = nouns
    texts[:, 5] = VOCABULARY.index("it")
    return torch.cat([texts, len(VOCABULARY) + CHANNELS[nouns, 1:].long()], dim=1)


class NounHeads(nn.Module):
    """Twenty heads in which “it” finds the noun of a text, and guesses “slept” or “cooled”.

    As only “it” reads here, a head is one query and a key for each word, of d random numbers each.
    The value of a word is fixed, its channels animal and food (`CHANNELS`), and the larger channel
    of the output is the guess. Head i reads the i-th of twenty equal parts of a batch.

    Parameters
    ----------
    d
        The head_size.
    divisor
        The scores q · k are divided by it.
    size
        The standard deviation of all numbers of queries and keys at initialisation.
    """

    @typed
    def __init__(self, d: int, divisor: float = 1, size: float = 1) -> None:
        super().__init__()
        refuse_bad_sizes(d=d)
        self.divisor = divisor
        self.queries = nn.Parameter(size * torch.randn(20, 1, d))
        self.keys = nn.Parameter(size * torch.randn(20, len(VOCABULARY), d))
        scores = self.queries @ self.keys.mT  # divided by 0 they are inf, and the softmax nan
        if not (divisor and (scores / divisor).isfinite().all()):
            raise ValueError(
                f"Scores must be finite; they are not with size = {size:g} and divisor = "
                f"{divisor:g}. Take numbers of about 1."
            )

    def weights(self, ids: torch.Tensor) -> torch.Tensor:
        """(B, T) numbers of words -> (20, B / 20, T): what “it”, the last of them, attends to."""
        scores = (self.queries @ self.keys.mT / self.divisor)[:, 0]  # (20, 102)
        parts = zip(scores, ids.view(20, -1, ids.shape[1]), strict=True)
        return torch.stack([own[texts] for own, texts in parts]).softmax(dim=-1)

    def outputs(self, ids: torch.Tensor) -> torch.Tensor:
        """(B, T) numbers of words -> (20, B / 20, 2): animal and food, at “it”."""
        values = CHANNELS[ids.view(20, -1, ids.shape[1])]  # (20, B / 20, T, 2)
        return (self.weights(ids).unsqueeze(-2) @ values).squeeze(-2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(B, T) numbers of words -> (B, T, 104) logits; those before “it” guess nothing, all 0."""
        logits = torch.zeros(*ids.shape, len(VOCABULARY) + 2)
        logits[:, -1, -2:] = 8 * self.outputs(ids).flatten(0, 1)
        return logits

    @torch.no_grad()
    def wrong(self, windows: torch.Tensor) -> torch.Tensor:
        """Which of the windows (n, 7) each head guesses wrong: (20, n) of True and False."""
        outputs = self.outputs(windows[:, :-1].repeat(20, 1))  # (20, n, 2)
        guesses = len(VOCABULARY) + (outputs[..., 1] > outputs[..., 0]).long()
        return guesses != windows[:, -1]


@typed
def words_and_places(words: torch.Tensor) -> torch.Tensor:
    """(B, 5) numbers of words up to 15 -> (B, 5, 32) tokens: 16 channels for word and place each.

    One channel of each half is 3, the others are 0. With 1 in place of 3, learning takes longer.
    """
    _refuse_other_words(words)
    places = torch.eye(16)[:5].expand(len(words), 5, 16)
    return 3 * torch.cat([torch.eye(16)[words], places], dim=-1)


@typed
def first_word_and_word_before(words: torch.Tensor) -> torch.Tensor:
    """(B, 5) numbers of words up to 15 -> (B, 32): 16 channels for word 0, 16 for word 3."""
    _refuse_other_words(words)
    return torch.cat([torch.eye(16)[words[:, 0]], torch.eye(16)[words[:, 3]]], dim=-1)


def _refuse_other_words(words: torch.Tensor) -> None:
    refuse_bad_ids(words, 16, "words")
    if words.shape[1] != 5:
        raise ValueError(f"words must be (B, 5), five in each text, got {tuple(words.shape)}.")
