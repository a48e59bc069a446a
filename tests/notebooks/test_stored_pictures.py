"""The pictures that a notebook stores are those that its code draws, and so are all its outputs.

nbval compares the text version of a picture only. ``make test`` compares the rest of what it has
run (tests/plugin.py). Here the cells run in this process, also the last third of notebook 10. The
same run shows that test_mutations.py finds nothing red where nothing is broken.
"""

import base64
import copy
import io
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_output
from PIL import Image

from helpers.pictures import base, heatmap
from tests import plugin
from tests.cells import fresh_shell
from tests.notebooks.once import once_through
from tests.notebooks.test_mutations import is_red
from tests.stored import MOST, OTHER_DOTS, distance, stale
from tools import ignored_cells, notebooks
from tools.refresh import code_cells


def outputs_of(ran, drawn):
    """What a kernel would send of a cell: what it printed, and its value."""
    data, metadata = drawn or ({"text/plain": ran.text}, {})
    value = [new_output("execute_result", data, metadata=metadata)] if data["text/plain"] else []
    return [new_output("stream", text=ran.printed), *value]


def test_a_notebook_stores_what_its_cells_give(once):
    found = [
        f"{cell.id}: {said}"
        for cell, ran in once.made
        for said in stale(once.number, cell, outputs_of(ran, once.drawn.get(cell.id)))
    ]
    assert found == [], f"If the new ones are right: make refresh NB={once.number}"
    assert len(once.drawn) >= 4


def test_sound_helpers_leave_a_notebook_as_it_is(once):
    assert [(cell.source, ran) for cell, ran in once.made if is_red(cell, ran)] == []


# --- The comparison itself ---------------------------------------------------------------------

CODE = (
    "from helpers.pictures import heatmap",
    "heatmap([[0.1, 0.9], [0.4, 0.6]], title='One')",
    "heatmap([[0.1, 0.9], [0.6, 0.4]], title='Two')",
)


@pytest.fixture(scope="module")
def small():
    """The cells of a notebook of two pictures, each with what is stored and what it gives."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CODE])
    with fresh_shell() as shell:
        made, drawn = once_through(book, shell)
    for cell, ran in made:
        cell.outputs = outputs_of(ran, drawn.get(cell.id))
    return [(cell, copy.deepcopy(cell.outputs)) for cell, _ in made]


def found(cells):
    return "\n".join(said for cell, outputs in cells for said in stale("03", cell, outputs))


def test_a_sound_notebook_is_found_sound(small):
    assert sum("data" in output for _, outputs in small for output in outputs) == 2
    assert found(small) == ""


def swap_pngs(one, two):
    one.data["image/png"], two.data["image/png"] = two.data["image/png"], one.data["image/png"]


def edit_alt(one, two):
    described = two.metadata["image/png"]
    described["alt"] = described["alt"].replace("2 by 2", "2 by 3")


def edit_width(one, two):
    one.metadata["image/png"]["width"] += 1


def edit_table(one, two):
    two.data["text/plain"] = two.data["text/plain"].replace("0.60", "0.61")


def add_a_table(one, two):
    one.data["text/html"] = "<table></table>"


def store_another_size(one, two):
    dots = Image.open(io.BytesIO(base64.b64decode(one.data["image/png"])))
    file = io.BytesIO()
    dots.crop((0, 0, dots.width - 1, dots.height)).save(file, "PNG")
    one.data["image/png"] = base64.b64encode(file.getvalue()).decode()


def drop(one, two):
    del two.data["image/png"]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (swap_pngs, "another picture"),
        (edit_alt, "2 by 3"),
        (edit_width, "width"),
        (edit_table, "another text/plain"),
        (add_a_table, "text/html"),
        (store_another_size, "of another size"),
        (drop, "pictures: 0 are stored, 1 are made"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_an_edited_output_is_found(small, edit, words):
    edited = copy.deepcopy(small)
    edit(*(output for cell, _ in edited for output in cell.outputs if "data" in output))
    assert words in found(edited)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (swap_pngs, ""),  # its numbers may differ, and so its dots
        (edit_table, ""),
        (edit_alt, ""),
        (lambda one, two: one.metadata["image/png"].update(alt="Another."), "Another."),
        (lambda one, two: one.data.update({"text/plain": "Another"}), "Another"),
        (store_another_size, "of another size"),
        (drop, "pictures: 0 are stored, 1 are made"),
    ],
)
def test_of_a_cell_with_other_numbers_elsewhere_the_words_are_compared(
    small, monkeypatch, edit, words
):
    listed = [ignored_cells.IgnoredCell("03", code, "why", 0.6) for code in CODE]
    monkeypatch.setattr(ignored_cells, "IGNORED_CELLS", listed)
    edited = copy.deepcopy(small)
    edit(*(output for cell, _ in edited for output in cell.outputs if "data" in output))
    assert words in found(edited) and bool(words) == bool(found(edited))


def test_each_cell_with_other_dots_elsewhere_is_there():
    text = [code.source for p in notebooks.names() for code in code_cells(nbformat.read(p, 4))]
    for line in OTHER_DOTS:
        assert sum(ignored_cells.first_line(source) == line for source in text) == 1, line


@pytest.mark.parametrize("old", [True, False])
def test_make_test_ends_a_cell_whose_picture_is_another_one(small, old):
    """nbval, which has just run the cell, calls it sound."""
    (cell, outputs), (other, _) = small[1:]
    item = SimpleNamespace(output_timeout=1, path=Path("03_x.ipynb"), cell=cell)
    item.test_outputs, item.raise_cell_error = other.outputs if old else outputs, pytest.fail
    ending = plugin.pytest_runtest_call(item)
    next(ending)
    with pytest.raises(pytest.fail.Exception if old else StopIteration):
        next(ending)


@pytest.mark.parametrize("cells", [1, 30])
def test_one_changed_cell_of_many_is_found(cells):
    before = np.random.default_rng(0).uniform(0, 0.9, (cells, cells))
    after = before.copy()
    after[-1, 0] += 0.05
    pngs = [base64.b64encode(base.png_of(heatmap(m).figure())) for m in (before, before, after)]
    assert distance(*pngs[:2]) == 0
    assert distance(*pngs[1:]) > MOST
