"""One explorer of each kind, for the tests that all of them have to pass."""

import torch

from helpers import explorers
from helpers.toy import numbers

X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [4.0, 1.0]])  # (4, 2)
TOKENS = numbers(32)[0]  # (8, 32)
QUERY = torch.tensor([1.0, 2.0])
KEYS = torch.tensor([[0.5, -1.0], [3.0, 0.25], [-1.0, 0.75]])  # (3, 2)
VALUES = torch.tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 4.0, 0.0, 2.0], [0.0, 0.0, 8.0, 2.0]])  # (3, 4)
X_OF_QUERY = torch.tensor([[1.0, 1.0, 0.5], [0.0, 2.0, 0.5], [-1.0, 3.0, 0.5]])  # (3, 3)
WORDS = ["Life", "<is>", "short"]

EXAMPLES = {
    "axis": explorers.explore_axis,
    "prefix": lambda: explorers.explore_prefix(X),
    "weights": lambda: explorers.explore_weights(X),
    "softmax": explorers.explore_softmax,
    "query": lambda: explorers.explore_query(QUERY, KEYS, VALUES, X_OF_QUERY, words=WORDS),
    "scaling": explorers.explore_scaling,
    "heads": lambda: explorers.explore_heads(TOKENS),
    "depth": explorers.explore_depth,
}
