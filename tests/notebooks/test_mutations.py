"""A broken helper turns a notebook red: each line of mutations.py, without kernels.

nbval compares a notebook's outputs with the stored ones. Here its cells run in this process, with
one line of one helper changed, until an output differs or a cell raises.
"""

import contextlib
import importlib
import sys
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


def first_red_cell(taught="00"):
    """The first cell whose outputs differ from the stored ones, or None: that notebook first."""
    for path in sorted(notebooks.names(), key=lambda path: (path.name < taught, path.name)):
        with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
            for cell in nbformat.read(path, as_version=4).cells:
                ignored = "nbval-ignore-output" in cell.metadata.get("tags", [])
                if cell.cell_type != "code":
                    continue
                ran = shell.run(cell.source)
                error = type(ran.error).__name__ if ran.error else ""
                differs = error if ignored else (ran.printed, ran.text, error) != stored(cell)
                if differs:
                    return path.stem, cell.source, ran
    return None


@pytest.mark.slow  # nbval has compared the same outputs
def test_sound_helpers_leave_every_notebook_as_it_is():
    assert first_red_cell() is None


def test_many_lines_of_attention_are_broken():
    assert sum(mutation.file.startswith("helpers/attention/") for mutation in MUTATIONS) >= 15


@contextlib.contextmanager
def broken(mutation):
    """Put a mutated module in the place of the sound one, wherever its names were imported to."""
    module = importlib.import_module(mutation.file.removesuffix(".py").replace("/", "."))
    users = [m for name, m in sys.modules.items() if name.partition(".")[0] == "helpers"]
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


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_broken_helper_is_seen(mutation):
    with broken(mutation):
        assert first_red_cell(mutation.notebook) is not None
