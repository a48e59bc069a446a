import torch

from benchmarks import ward
from helpers.gpt import TinyGPT
from helpers.ward import broken, with_attention


def test_in_pieces_a_right_model_gives_the_logits_of_one_pass():
    ids = torch.randint(9, (2, ward.T), generator=torch.Generator().manual_seed(0))
    small = TinyGPT(9, ward.T, 16)
    right, wrong = (with_attention(small, broken(bug)) for bug in (None, "mask at the top left"))
    torch.testing.assert_close(ward.in_pieces(right, ids), right(ids))
    assert not torch.allclose(ward.in_pieces(wrong, ids), wrong(ids), atol=1e-2)
