"""An output that nbval does not compare still says what its cell says, in words and in form."""

import math
import re

import nbformat
import pytest
import torch

from tests.cells import fresh_shell
from tools import ignored_cells, notebooks

NUMBER = re.compile(r"(?<![\w.])-?\d[\w.+-]*")
MORE_OR_LESS = {"number": 0.02, "count": 10}  # beside the share, for what is close to 0


def form(text):
    """The text with # for each number, and each run of spaces as one: columns may be wider."""
    return re.sub(r"[ \t]+", " ", NUMBER.sub("#", text)).strip()


def numbers(text):
    return [match for match in NUMBER.findall(text) if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", match)]


def are_near(old, new, share):
    """Whether the two could come from two machines."""
    slack = MORE_OR_LESS["number" if "." in old + new else "count"]
    slack = 0 if "e" in old + new else slack  # 3.2e-08 is no 0.01
    return math.isclose(float(old), float(new), rel_tol=share, abs_tol=slack)


def differences(old, new, share):
    """What one output says otherwise than the other, in words; nothing where both are right."""
    if form(old) != form(new):
        return [f"the words differ:\n{form(old)}\n{form(new)}"]
    if share is None:
        return []
    pairs = zip(numbers(old), numbers(new), strict=True)
    return [f"{a} against {b}" for a, b in pairs if not are_near(a, b, share)]


def text_of(cell):
    """What is stored below a cell, as text."""
    return "".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "")
        for output in cell.outputs
    )


OLD = "scaled: 0.48\nrows 0 1351, at 3.2e-08"


@pytest.mark.parametrize(
    ("new", "what"),
    [
        ("raw: 0.48\nrows 0 1351, at 3.2e-08", "words differ"),
        ("scaled: nan\nrows 0 1351, at 3.2e-08", "words differ"),
        ("scaled: 0.48\nrows 0, at 3.2e-08", "words differ"),
        ("scaled: 0.14\nrows 0 1351, at 3.2e-08", "0.48 against 0.14"),
        ("scaled: 0.48\nrows 40 1351, at 3.2e-08", "0 against 40"),
        ("scaled: 0.48\nrows 0 1351, at 3.2e-05", "3.2e-08 against 3.2e-05"),
    ],
)
def test_a_false_output_is_seen(new, what):
    assert [said for said in differences(OLD, new, 0.5) if what in said]


def test_another_machine_is_none():
    assert differences(OLD, "scaled:  0.52\nrows  3  1290, at 2.2e-08", 0.5) == []
    assert differences("torch 2.13.0+cpu · 1 threads", "torch 2.14 · 8 threads", None) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted({c.notebook for c in ignored_cells.IGNORED_CELLS}))
def test_a_stored_output_says_what_its_cell_says(number):
    (path,) = notebooks.chosen(number)
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
        for cell in cells:
            ran = shell.run(cell.source)
            if entry := ignored_cells.listed(number, cell.source):
                found = differences(text_of(cell), ran.printed + ran.text, entry.share)
                assert not found, f"{entry.first_line}\n{found}\nmake refresh REFRESH_ARGS=--all"
