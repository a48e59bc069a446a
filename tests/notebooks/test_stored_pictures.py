"""The pictures that a notebook stores are those that its code draws, and so are all its outputs.

nbval compares the text version of a picture only. Here the cells run in this process, and each
picture's dots, size, alt text and text version are compared with the stored ones. The same run
shows that test_mutations.py finds nothing red where nothing is broken, and that an output which
nbval does not compare still says what its cell says, in words and in form.
"""

import base64
import copy
import io

import nbformat
import numpy as np
import pytest
from PIL import Image

from helpers.pictures import base, heatmap
from tests.cells import fresh_shell
from tests.notebooks.once import once_through
from tests.notebooks.test_mutations import is_red
from tools import ignored_cells
from tools.ignored_cells import differences, text_of
from tools.refresh import code_cells, is_ignored

TILE = 16  # dots: a picture is compared tile by tile, since one cell of many is a small part
# How far a tile may lie off on average, of 255. Drawn twice, or on two threads, a picture has the
# same dots; numbers that are all off by 0.0001 make 0.8; 0.05 in one of 64 x 64 cells makes 7.7.
MOST = 4.0
# Here 200 steps turn the last bits of another processor into other losses, so the dots differ; the
# words are the same everywhere, and are compared.
OTHER_DOTS = {"n05-c11"}


def drawn_by(book):
    """What each cell of a notebook draws, without looking at anything else."""
    with fresh_shell() as shell:
        return once_through(book, shell)[1]


def stored(book):
    return {
        cell.id: (dict(output.data), dict(output.metadata))
        for cell in code_cells(book)
        for output in cell.outputs
        if set(output.get("data", {})) & {"image/png", "text/html"}
    }


def distance(png, other):
    """How far two pictures lie apart where they differ most: the mean over one tile, 0 to 255."""
    one, two = (
        np.asarray(Image.open(io.BytesIO(base64.b64decode(p))).convert("RGB"), float)
        for p in (png, other)
    )
    if one.shape != two.shape:
        return 255.0
    apart = np.abs(one - two).mean(2)
    high, wide = (-(-n // TILE) * TILE for n in apart.shape)
    apart = np.pad(apart, [(0, high - apart.shape[0]), (0, wide - apart.shape[1])])
    return apart.reshape(high // TILE, TILE, wide // TILE, TILE).mean((1, 3)).max()


def stale(book, drawn):
    """What is stored and is no longer drawn so, in words."""
    kept = stored(book)
    for name in [*kept, *(name for name in drawn if name not in kept)]:
        if name not in drawn or name not in kept:
            yield f"{name}: a picture is {'not drawn any more' if name in kept else 'not stored'}"
            continue
        (old, old_about), (new, new_about) = kept[name], drawn[name]
        if set(old) != set(new):
            yield f"{name}: stored are {sorted(old)}, made are {sorted(new)}"
            continue
        for kind in new:
            if kind == "image/png":
                if (apart := distance(old[kind], new[kind])) > MOST:
                    yield f"{name}: another picture, {apart:.0f} of 255 away"
            elif old[kind] != new[kind]:
                yield f"{name}: another {kind}:\n{old[kind]}\n--- now:\n{new[kind]}"
        if old_about != new_about:
            yield f"{name}: stored is {old_about}, now it is {new_about}"


def test_stored_pictures_are_what_the_code_draws(once):
    drawn = dict(once.drawn)
    for cell in code_cells(once.book):
        if cell.id in drawn and is_ignored(cell):  # compared below, in words
            drawn[cell.id] = stored(once.book)[cell.id]
        elif cell.id in OTHER_DOTS:
            data, about = drawn[cell.id]
            dots = stored(once.book)[cell.id][0]["image/png"]
            drawn[cell.id] = ({**data, "image/png": dots}, about)
    found = "\n".join(stale(once.book, drawn))
    assert not found, f"{found}\nIf the new ones are right: make refresh NB={once.number}"
    assert len(drawn) >= 4


def test_sound_helpers_leave_a_notebook_as_it_is(once):
    assert [(cell.source, ran) for cell, ran in once.made if is_red(cell, ran)] == []


def test_a_stored_output_says_what_its_cell_says(once):
    for cell, ran in once.made:
        entry = ignored_cells.listed(once.number, cell.source)
        if entry and not entry.words:
            assert bool(text_of(cell.outputs)) == bool(ran.printed + ran.text), entry.first_line
        elif entry:
            found = differences(text_of(cell.outputs), ran.printed + ran.text, entry.share)
            assert not found, f"{entry.first_line}\n{found}\nmake refresh REFRESH_ARGS=--all"


# --- The comparison itself ---------------------------------------------------------------------

CODE = (
    "from helpers.pictures import heatmap",
    "heatmap([[0.1, 0.9], [0.4, 0.6]], title='One')",
    "heatmap([[0.1, 0.9], [0.6, 0.4]], title='Two')",
)


@pytest.fixture(scope="module")
def small():
    """A notebook of two pictures, and what its code draws."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CODE])
    drawn = drawn_by(book)
    for cell in code_cells(book):
        if cell.id in drawn:
            data, metadata = copy.deepcopy(drawn[cell.id])
            cell.outputs = [nbformat.v4.new_output("execute_result", data, metadata=metadata)]
    return book, drawn


def test_a_sound_notebook_is_found_sound(small):
    book, drawn = small
    assert len(drawn) == 2
    assert list(stale(book, drawn)) == []


def swap_pngs(one, two):
    one.data["image/png"], two.data["image/png"] = two.data["image/png"], one.data["image/png"]


def edit_alt(one, two):
    described = two.metadata["image/png"]
    described["alt"] = described["alt"].replace("2 by 2", "2 by 3")


def edit_width(one, two):
    one.metadata["image/png"]["width"] += 1


def edit_table(one, two):
    two.data["text/plain"] = two.data["text/plain"].replace("0.60", "0.61")


def store_a_table_for_a_picture(one, two):
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
        (store_a_table_for_a_picture, "text/html"),
        (store_another_size, "another picture, 255"),
        (drop, "not stored"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_an_edited_output_is_found(small, edit, words):
    book, drawn = copy.deepcopy(small)
    edit(*(cell.outputs[0] for cell in code_cells(book) if cell.outputs))
    assert words in "\n".join(stale(book, drawn))


@pytest.mark.parametrize("cells", [1, 30])
def test_one_changed_cell_of_many_is_found(cells):
    before = np.random.default_rng(0).uniform(0, 0.9, (cells, cells))
    after = before.copy()
    after[-1, 0] += 0.05
    pngs = [base64.b64encode(base.png_of(heatmap(m).figure())) for m in (before, before, after)]
    assert distance(*pngs[:2]) == 0
    assert distance(*pngs[1:]) > MOST
