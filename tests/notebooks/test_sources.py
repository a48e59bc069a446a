"""Numbers that the sources of the notebooks print come out of the same computations here."""

import torch
from torch import nn

from helpers import toy
from helpers.attention import attention, causal_mask
from lesson.exercises import EXERCISES


def close(computed, printed, digits=4):
    torch.testing.assert_close(computed, torch.tensor(printed), rtol=0, atol=0.6 * 10**-digits)


def test_raschka_2024_the_embeddings_of_his_sentence_and_one_head():
    torch.manual_seed(123)
    life = nn.Embedding(50_000, 3)(torch.tensor([0, 4, 5, 2, 1, 3])).detach()
    close(
        life[:3], [[0.3374, -0.1778, -0.3035], [0.1794, 1.8951, 0.4954], [0.2692, -0.0770, -1.0205]]
    )
    close(
        life[3:],
        [[-0.2196, -0.3792, 0.7671], [-0.5880, 0.3486, 0.6603], [-1.1925, 0.6984, -1.4097]],
    )
    torch.manual_seed(123)
    query, key, value = torch.rand(3, 2), torch.rand(3, 2), torch.rand(3, 4)
    close(life[1] @ query, [0.5667, 1.8269])
    close((life[1] @ query) @ (life[4] @ key), 1.2903)
    # His head has no mask. It sums to 0.9999 in print.
    out, weights = attention(life[1:2] @ query, life @ key, life @ value)
    close(weights[0], [0.0386, 0.6870, 0.0204, 0.0840, 0.1470, 0.0229])
    close(out[0], [0.5313, 1.3607, 0.7891, 1.3110])


def test_notes_to_karpathys_lecture_means_and_weights_of_seed_42():
    torch.manual_seed(42)
    means = [[1.9269, 1.4873], [1.4138, -0.3091], [1.1687, -0.6176], [0.8657, -0.8644]]
    means += [[0.5422, -0.3617], [0.3864, -0.5354], [0.2272, -0.5388], [0.1027, -0.3762]]
    close(EXERCISES["01.1"].reference(torch.randn(4, 8, 2))[0], means)
    torch.manual_seed(42)
    x = torch.randn(4, 8, 32)
    key, query = nn.Linear(32, 16, bias=False), nn.Linear(32, 16, bias=False)
    masked = (query(x) @ key(x).mT).masked_fill(~causal_mask(8), float("-inf"))
    close(masked.softmax(dim=-1)[0, 1, :2], [0.1905, 0.8095])


def test_notes_to_karpathys_lecture_means_by_a_triangle():
    torch.manual_seed(42)
    triangle = torch.ones(3, 3).tril() / torch.tensor([[1.0], [2.0], [3.0]])
    means = triangle @ torch.randint(0, 10, (3, 2)).float()
    close(means, [[2.0, 7.0], [4.0, 5.5], [4.6667, 5.3333]])


def test_notes_to_karpathys_lecture_softmax_along_the_queries():
    masked = toy.lecture_scores().masked_fill(~causal_mask(8), float("-inf"))
    wrong = torch.softmax(masked, dim=1)[0]
    close(wrong[3, :4], [0.3171, 0.0214, 0.1642, 0.1188])
    close(wrong[7], [0.0238, 0.0316, 0.1002, 0.5013, 0.0117, 0.1336, 0.7671, 1.0])
