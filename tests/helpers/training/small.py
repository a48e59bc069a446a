"""A small text, a small model and its trainer: a step takes a millisecond."""

import random
import signal

import torch

from helpers.gpt import TinyGPT, next_token_loss
from helpers.training import Corpus, Trainer

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


def trainer(n_step=24, corpus=CORPUS, **options):
    return Trainer(model(corpus), corpus, n_step, B=4, **options)


def interrupted_at(step, calls=1):
    """A loss in whose computation, once, interrupts arrive: ■ in JupyterLab, Ctrl+C elsewhere."""
    steps = []

    def loss_of(model, windows):
        steps.append(None)
        if len(steps) == step + 1:
            for _ in range(calls):
                signal.raise_signal(signal.SIGINT)
        return next_token_loss(model, windows)

    return loss_of


def state(trainer):
    """All numbers that decide how training goes on."""
    optimizer = trainer.optimizer.state_dict()
    moments = [value for one in optimizer["state"].values() for value in one.values()]
    return [*trainer.model.parameters(), *moments, trainer.generator.get_state()]


def same(a, b):
    """Whether two lists of tensors have the same bits."""
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
