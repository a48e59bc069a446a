"""A small text and a small model, and how it is trained: a step takes a millisecond."""

import random
from functools import partial

import torch

from helpers.gpt import TinyGPT
from helpers.training import Corpus, train, watched

WORDS = [
    "the",
    "for",
    "loop",
    "averages",
    "all",
    "tokens,",
    "if",
    "a",
    "head",
    "attends",
    "to",
    "them.",
    "\n",
]


def text(n=2400, seed=0):
    source = random.Random(seed)
    return " ".join(source.choice(WORDS) for _ in range(n))[:n]


CORPUS = Corpus(text())


def model(corpus=CORPUS, context_length=8, **options):
    torch.manual_seed(0)
    sizes = {"C": 8, "n_head": 2, "n_layer": 1} | options
    return TinyGPT(len(corpus.letters), context_length, **sizes)


def windows(seed=0):
    """What draws windows: the same ones each time that it is made."""
    return partial(CORPUS.batch, 4, 8, torch.Generator().manual_seed(seed))


def trained(n_step=24, loop=train, draw=None, **options):
    """A model after a training that was watched, and the losses."""
    made = model(**options)
    return made, watched(loop, made, draw or windows(), n_step)


def same(a, b):
    """Whether two lists of tensors have the same bits."""
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
