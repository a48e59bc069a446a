"""The worked instance in the text of an exercise is what its solution gives."""

import re
from fractions import Fraction
from unicodedata import numeric

import nbformat
import pytest
import torch

from helpers.lesson.exercises import EXERCISES
from helpers.toy import readable
from tools.notebooks import SOURCE
from tools.prose_numbers import NO_TEXT

NUMBER = re.compile(r"\d+/\d+|\d+(?:\.\d+)?|[½⅓¼]")
COUNT = torch.arange(5.0)[:, None].expand(1, 5, 2)  # tokens 0 1 2 3 4, in two channels
PAIR = torch.stack([torch.zeros(4), torch.ones(4)])[None]  # a key of zeros, and one of ones

# Each: the sentence, with a group for each row of numbers, and what gives these rows.
INSTANCES = {
    "00.1": (r"the mean token of sequence 1 is (.*?)\.", lambda f: [f(readable())[1]]),
    "00.2": (r"the row 1 3 becomes (.*?)\.(?!\d)", lambda f: f(torch.tensor([[[1.0, 3.0]]]))[0]),
    "00.3": (
        r"the rows 1 2 3 and 4 5 6, the result has the rows (.*?), (.*?) and (.*?)\.",
        lambda f: f(torch.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]))[0],
    ),
    "01.1": (
        r"output 3 of sequence 1 is (.*?) in both channels, the mean of (.*?)\.(?!\d)",
        lambda f: [f(readable())[1, 3, :1], readable()[1, :4, 0]],
    ),
    "01.3": (
        r"For 0 1 2 3 4, the sums (.*?) become (.*?)\.(?!\d)",
        lambda f: [COUNT[0, :, 0].cumsum(0), f(COUNT)[0, :, 0]],
    ),
    "02.1": (r"For tokens 0 1 2 3 4, the result is (.*?)\.(?!\d)", lambda f: [f(COUNT)[0, :, 0]]),
    "02.2": (
        r"For T = 4 and width = 2, the rows are (.*?), (.*?), (.*?) and (.*?)\.",
        lambda f: f(4, 2),
    ),
    "02.3": (
        r"decay = ½, the weights in row 2 are in the ratio (.*?)\. Divided .*? they are (.*?)\.",
        lambda f: [f(3, 0.5)[2] / f(3, 0.5)[2, 2], f(3, 0.5)[2]],
    ),
    "03.1": (
        r"For scores of 0 and T = 3, the rows are (.*?), (.*?) and (.*?)\.",
        lambda f: f(torch.zeros(1, 3, 3))[0],
    ),
    "03.2": (
        r"For T = 3, the rows are close to (.*?), (.*?) and (.*?)\.",
        lambda f: f(3),
    ),
    "03.3": (
        r"For 1000 and 1001, the weights are (.*?), as for 0 and 1",
        lambda f: [f(torch.tensor([[1000.0, 1001.0]]))[0]],
    ),
    "05.2": (
        r"row 1 of the weights is `(.*?)`",
        lambda f: [f(torch.ones(1, 2, 4), PAIR.flip(1))[0, 1]],
    ),
}
# Their numbers are printed by cells beside them, or are shapes and sizes.
NO_INSTANCE = {"04.1", "05.1", "07.2"}


def text_of(id_):
    """The words of an exercise's cell, below its heading."""
    (path,) = SOURCE.glob(f"{id_[:2]}_*.ipynb")
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]
    (text,) = (cell for cell in cells if f"### Exercise {id_}" in cell)
    return " ".join(text[text.index(f"### Exercise {id_}") :].split("\n", 1)[1].split())


def value(text):
    return numeric(text) if text in "½⅓¼" else float(Fraction(text))


@pytest.mark.parametrize("id_", INSTANCES)
def test_the_worked_instance_is_what_the_solution_gives(id_):
    pattern, rows_of = INSTANCES[id_]
    found = re.search(pattern, text_of(id_))
    assert found, f"the text of {id_} has no {pattern!r} any more: correct the pattern"
    rows = [[value(number) for number in NUMBER.findall(group)] for group in found.groups()]
    for said, row in zip(rows, rows_of(EXERCISES[id_].reference), strict=True):
        assert said == pytest.approx(row.tolist(), abs=0.006)


def test_every_text_that_gives_a_row_of_numbers_is_listed():
    row = re.compile(r"(?:[\d.½⅓¼]+ ){1,}[\d.½⅓¼]+|\d\.\d")
    with_rows = {id_ for id_ in EXERCISES if row.search(NO_TEXT.sub(" ", text_of(id_)))}
    assert with_rows - NO_INSTANCE <= INSTANCES.keys()
