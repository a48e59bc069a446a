"""The steps of Adam that notebook 07 writes out are those of PyTorch."""

import nbformat
import torch

from tools import notebooks


def adam_step():
    """The function, from the cell that defines it."""
    (path,) = (path for path in notebooks.names() if path.name.startswith("07"))
    cells = nbformat.read(path, as_version=4).cells
    (source,) = (cell.source for cell in cells if cell.source.startswith("def adam_step("))
    defined = {}
    exec(source, defined)
    return defined["adam_step"]


def test_the_notebook_steps_as_pytorch_does():
    ours, theirs = (torch.linspace(-2, 2, 9, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.Adam([theirs], lr=0.03, betas=(0.9, 0.99))
    step_by_hand, means, squares = adam_step(), [torch.zeros(9)], [torch.zeros(9)]
    for step in range(1, 21):
        for x in (ours, theirs):
            (x.pow(4) / step + x).sum().backward()
        with torch.no_grad():
            step_by_hand([ours], means, squares, step, 0.03)
        optimizer.step()
        optimizer.zero_grad()
        assert ours.grad is None
        torch.testing.assert_close(ours, theirs)
    assert not torch.allclose(ours, torch.linspace(-2, 2, 9), atol=0.1)
