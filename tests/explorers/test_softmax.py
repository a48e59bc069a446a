import torch

from helpers.explorers import explore_softmax


def test_it_agrees_with_torch():
    explorer = explore_softmax()
    controls = explorer.controls
    scores = torch.tensor([0.5, -1.0, 2.0, 1.0, -3.0])
    for j, score in enumerate(scores.tolist()):
        controls[f"token {j}"].value = score
    controls["temperature"].value = 2.0
    weights = torch.softmax(scores / 2, -1)
    told = " ".join(f"{w:.2f}" for w in weights)
    bits = -(weights * weights.log2()).sum()
    assert f"weights {told}. Entropy {bits:.2f} bits of at most 2.32" in str(explorer)
    for weight in weights:
        assert f'<i style="width:{210 * weight:.1f}px"></i>{weight:.2f}<' in explorer.view.value
    controls["mask"].value = True
    weights = torch.softmax(scores[:3] / 2, -1)
    told = " ".join([*(f"{w:.2f}" for w in weights), "0", "0"])
    assert f"weights {told}. Entropy" in str(explorer)
    assert explorer.view.value.count("(masked)") == 2
