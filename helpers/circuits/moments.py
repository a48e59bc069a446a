"""Two layers of attention while they learn letters that repeat, as `make circuits` stored them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

PATH = Path(__file__).with_name("moments.npz")
STEPS = range(0, 201, 10)  # of training, after which it was measured
PATTERNS = ("learned", "exact", "equal")  # what a layer attends to, in the order of all axes
WORD = "watermelonpie"  # a period
TEXT = 2 * WORD


class TrainingMoments(NamedTuple):
    """What `AttentionOnly(n_layer=2)` was after 0, 10, … 200 steps, as it is and with patches.

    Where an axis has three places, they are the patterns of layer 0; a second such axis has those
    of layer 1. A pattern is 0, the weights that the model has learned; 1, the exact ones; or 2,
    equal weights for a letter itself and all before it. Exact is in layer 0 the letter before; in
    layer 1 the letter after the same letter, one period back, or itself in the first period.
    """

    loss: Tensor  # (21, 3, 3), of the known letters of 200 texts
    right: Tensor  # (21, 3, 3), the share of them that have the largest logit
    previous_token_score: Tensor  # (21, 3), of layer 0 on these texts
    induction_score: Tensor  # (21, 3, 3), of layer 1
    layer_0: Tensor  # (21, 3, 26, 26), its weights on `TEXT`, rounded to float16
    layer_1: Tensor  # (21, 3, 3, 26, 26)


def training_moments() -> TrainingMoments:
    """Load the moments of a training that is stored with the project.

    Returns
    -------
    TrainingMoments
        All in float32.

    Examples
    --------
    >>> moments = training_moments()
    >>> moments.right[-1, 0, 0] > 0.9 and moments.right[-1, 1, 0] < 0.3  # layer 0 exact: it breaks
    tensor(True)
    """
    with np.load(PATH) as stored:
        return TrainingMoments(
            *(torch.from_numpy(stored[name]).float() for name in TrainingMoments._fields)
        )
