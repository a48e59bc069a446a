"""A broken helper turns a notebook red: each line of mutations.py, without kernels.

nbval compares a notebook's outputs with the stored ones. Here its cells run in this process, with
one line of one helper changed, until an output differs or a cell raises. With sound helpers none
does: that is tested here without the cells that train, and in test_stored_pictures.py with all.
"""

import ast
import contextlib
import importlib
import multiprocessing
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nbformat
import pytest
import torch

from tests.cells import fresh_shell
from tests.notebooks.mutations import MUTATIONS
from tools import notebooks


def stored(cell):
    """What a cell printed, its value in text, and the name of what it raised, as committed."""
    printed, value, error = "", "", ""
    for output in cell.outputs:
        if output.output_type == "stream":
            printed += output.text
        elif output.output_type == "error":
            error = output.ename
        elif output.output_type == "execute_result":
            value = output.data["text/plain"]
    return printed, value, error


# Calls that train, measure times, or write a long text.
TRAINS = re.compile(r"\b(?:train\w*|learn_rule|table_loss|share_seen|in_turns|write)\(")


def red_cell(path, trains=True):
    """The first cell of a notebook whose outputs differ from the stored ones, or None.

    With ``trains=False``, without the cells that train and those that need what these define.
    """
    gone = set()
    with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type != "code":
                continue
            if not trains and TRAINS.search(cell.source):
                gone |= names_of(cell.source)
                continue
            ran = shell.run(cell.source)
            if isinstance(ran.error, NameError) and ran.error.name in gone:
                gone |= names_of(cell.source)
                continue
            if is_red(cell, ran):
                return path.stem, cell.source, ran
    return None


def is_red(cell, ran):
    """Whether a cell gave something else than is stored; where nbval does not look, an error."""
    error = type(ran.error).__name__ if ran.error else ""
    ignored = "nbval-ignore-output" in cell.metadata.get("tags", [])
    return bool(error) if ignored else (ran.printed, ran.text, error) != stored(cell)


def names_of(source):
    """The names that a cell defines, in functions too: a few too many do no harm."""
    nodes = [*ast.walk(ast.parse(source))]
    given = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return given | {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}


TRAIN_EARLY = ("06", "08", "09")  # most of what they teach is seen without waiting for that


def first_red_cell(taught="00"):
    """The first red cell of all notebooks: of that one first, and first without what trains."""
    (path,) = notebooks.chosen(taught)
    if taught in TRAIN_EARLY and (found := red_cell(path, trains=False)):
        return found
    for path in sorted(notebooks.names(), key=lambda path: (path.name < taught, path.name)):
        if found := red_cell(path):
            return found
    return None


@pytest.mark.parametrize("taught", TRAIN_EARLY)
def test_sound_helpers_leave_a_notebook_as_it_is_without_what_trains(taught):
    (path,) = notebooks.chosen(taught)
    assert red_cell(path, trains=False) is None


def test_many_lines_of_attention_are_broken():
    assert sum(mutation.file.startswith("helpers/attention/") for mutation in MUTATIONS) >= 15


@contextlib.contextmanager
def broken(mutation):
    """Put a mutated module in the place of the sound one, wherever its names were imported to."""
    module = importlib.import_module(mutation.file.removesuffix(".py").replace("/", "."))
    users = [m for name, m in sys.modules.items() if name.partition(".")[0] in notebooks.ROOMS]
    sound = {user: dict(vars(user)) for user in users}
    source = mutation.applied(Path(module.__file__).read_text(encoding="utf-8"))
    try:
        exec(compile(source, module.__file__, "exec"), vars(module))
        for user in users:
            for name, value in sound[user].items():
                if name in sound[module] and value is sound[module][name]:
                    setattr(user, name, getattr(module, name))
        yield
    finally:
        for user in users:
            vars(user).clear()
            vars(user).update(sound[user])


# Each in a process of its own, without what was computed and kept before: a mutation that leaves
# something broken behind would turn the notebooks red for all that follow it.
ALONE = multiprocessing.get_context("forkserver")
ALONE.set_forkserver_preload([__name__])


def is_seen(mutation):
    with broken(mutation):
        return first_red_cell(mutation.notebook) is not None


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=[one.name for one in MUTATIONS])
def test_a_broken_helper_is_seen(mutation):
    with ProcessPoolExecutor(1, ALONE) as process:
        assert process.submit(is_seen, mutation).result()
