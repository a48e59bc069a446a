"""The worked instance in the text of an exercise is what its solution gives."""

import re

import nbformat
import pytest
import torch

from helpers.toy import readable
from lesson.builds.right_08 import MultiHeadAttention
from lesson.exercises import EXERCISES
from tests.lesson.proofs.reading import agrees, items, together
from tools.notebooks import SOURCE
from tools.prose_numbers import NO_TEXT

COUNT = torch.arange(5.0)[:, None].expand(1, 5, 2)  # tokens 0 1 2 3 4, in two channels
FOUR = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
PAIR = torch.stack([torch.zeros(4), torch.ones(4)])[None]  # a key of zeros, and one of ones


def _mean_of_all(x):
    return x.mean(dim=1, keepdim=True).expand(x.shape)


def _rows_of_a_head(fill):
    attention, weight = MultiHeadAttention(4, 1), torch.arange(4.0)[:, None].expand(4, 4)
    fill(attention, weight, weight, weight, weight)
    return attention.query.weight[:, 0].detach()


ROW = torch.tensor([0.5, 0.3, 0.2])
BLOCKS = torch.tensor([[0.5, 0.1], [0.3, 0.2]])  # weights of the last token on one token
# What the text gives the solution and what comes back, in the order of the text.
INSTANCES = {
    "00.2": lambda f: (1, 3, f(torch.tensor([[[1.0, 3.0]]]))),
    "01.1": lambda f: (3, 1, f(readable())[1, 3, 0]),
    "01.3": lambda f: (COUNT[0, :, 0], COUNT[0, :, 0].cumsum(0), f(COUNT)[0, :, 0]),
    "02.1": lambda f: (COUNT[0, :, 0], f(COUNT)[0, :, 0]),
    "02.2": lambda f: (4, 2, f(4, 2)),
    "02.3": lambda f: (0.5, 2, f(3, 0.5)[2] / f(3, 0.5)[2, 2], f(3, 0.5)[2]),
    "03.1": lambda f: (0, 3, f(torch.zeros(1, 3, 3))),
    "03.2": lambda f: (0, 1, f(torch.tensor([[[0.0], [1.0]]]))),
    "03.3": lambda f: (1000, 1001, f(torch.tensor([[1000.0, 1001.0]])), 0, 1),
    "09.1": lambda f: f(torch.tensor([[False, True, True, False]]))[0, 1:3],
    "09.3": lambda f: (1, 3, 2, 2, 1, 1, f(_mean_of_all, torch.tensor([[[1.0], [3.0]]]))),
    "09.4": lambda f: (4, 2, *(mask[-1] for mask in f(4, 2)), *(mask[0] for mask in f(4, 2)), 1),
    "05.3": lambda f: (0, 0.1, 0, 0.5, f(torch.zeros(2), 0.1) / 10 + 0.5, f(torch.zeros(2), 0.1)),
    "05.2": lambda f: (1, f(torch.ones(1, 2, 4), PAIR.flip(1))[0, 1]),
    "10.6": lambda f: (4, f(torch.zeros(2, 2))),
    "15.fill": lambda f: (4, _rows_of_a_head(f)),
    "15.4": lambda f: (0, 1, ROW, 0, f(ROW.expand(3, 3), 0)[-1]),
    "15.6": lambda f: (BLOCKS, 0, 0, *f(BLOCKS[..., None, None], 0, [(0, 0)])[0][::-1]),
    "08.turn": lambda f: (90, 2, f(FOUR, torch.full((1, 2), torch.pi / 2))[0].round(), FOUR),
}
# Their numbers are printed by cells beside them, or are shapes and sizes.
NO_INSTANCE = {"07.2", "08.3", "08.MultiHeadAttention", "10.4"}


def text_of(id_):
    """The words of an exercise's cell, below its heading."""
    (path,) = SOURCE.glob(f"{id_[:2]}_*.ipynb")
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]
    (text,) = (cell for cell in cells if f"### Exercise {id_} " in cell)
    text = text[text.index(f"### Exercise {id_}") :].split("\n", 1)[1]
    return " ".join(re.sub("<!--.*?-->", "", text, flags=re.S).split())


@pytest.mark.parametrize("id_", INSTANCES)
def test_the_worked_instance_is_what_the_solution_gives(id_):
    parts = INSTANCES[id_](EXERCISES[id_].reference)
    wanted = torch.cat([torch.as_tensor(part).double().flatten() for part in parts]).tolist()
    said = [item for item in items(text_of(id_)) if isinstance(item.value, int | float)]
    assert together(wanted, said, lambda value, item: agrees(item, value)), (said, wanted)


def test_every_text_that_gives_a_row_of_numbers_is_listed():
    row = re.compile(r"(?:[\d.½⅓¼]+ ){1,}[\d.½⅓¼]+|\d\.\d")
    core = [id_ for id_, exercise in EXERCISES.items() if not exercise.optional]
    with_rows = {id_ for id_ in core if row.search(NO_TEXT.sub(" ", text_of(id_)))}
    assert with_rows - NO_INSTANCE <= INSTANCES.keys()
