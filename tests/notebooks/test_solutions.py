"""Every notebook as its learners leave it: untouched, solved, and with mistakes made.

One pass through a notebook. At each exercise its cell runs as it stands (not attempted), with
mistakes put in (the notebook stops there, and names that mistake), and with the solution, which
the cells below go on with. At each prediction every answer is given. Last, the learner comes back:
each exercise runs once more, with the cells below it.
"""

import ast
import inspect
import itertools
import re
import textwrap
from pathlib import Path

import nbformat
import pytest
import torch

from lesson import CheckFailed
from lesson.exercises import EXERCISES, PREDICTIONS
from tests.cells import fresh_shell
from tests.notebooks.test_mutations import TRAINS, names_of

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("[0-9][0-9]_*.ipynb"))
notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def calls(source, function):
    """The calls of check or predict in a cell, as pairs of an id and the other arguments."""
    return [
        (node.args[0].value, node.args[1:])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function
    ]


def put_in(source, stub, text):
    """The cell with the definition `stub` replaced by other lines, which define that name."""
    lines = source.splitlines()
    (node,) = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == stub
    ]
    return "\n".join([*lines[: node.lineno - 1], text, *lines[node.end_lineno :]])


def written_out(code, stub):
    """The source of a function, under the stub's name."""
    text = textwrap.dedent(inspect.getsource(code))
    return re.sub(rf"\bdef {code.__name__}\(", f"def {stub}(", text, count=1)


def words(text):
    return " ".join(str(text).split())


def go_through_exercise(shell, source, exercise, stub):
    ran = shell.run(source)
    assert ran.error is None and ran.printed.startswith(f"○ {exercise.id} ")
    for mistake in exercise.mistakes:  # by name: its source may be a closure's
        given = f"from lesson.exercises import EXERCISES\n{stub} = "
        given += f'EXERCISES["{exercise.id}"].mistakes[{exercise.mistakes.index(mistake)}].code'
        ran = shell.run(put_in(source, stub, given))
        assert isinstance(ran.error, CheckFailed), f"{mistake.name}: {ran.error!r}"
        assert f"✗ {exercise.id}: {mistake.name}" in words(ran.error)
        for told in mistake.message.split("…"):  # of a build, with what its judge fills in
            assert words(told) in words(ran.error)
    for form in (*(written_out(one, stub) for one in exercise.accepted), exercise.solution):
        ran = shell.run(put_in(source, stub, form))
        assert ran.error is None and ran.printed.startswith(f"✓ {exercise.id} "), form


def go_through_prediction(shell, source, prediction):
    asked = shell.run(source)
    assert "Answer with a button" in str(asked.value)
    for letter, choice in prediction.choices.items():
        call = f'predict("{prediction.id}")'
        assert call in source
        ran = shell.run(source.replace(call, f'{call[:-1]}, "{letter}")'))
        assert ran.error is None
        sign = "✓" if letter == prediction.answer else "✗"
        assert f"{sign} {words(choice.explanation)}" in words(ran.value)


def go_on(shell, source, gone):
    """Run a cell, unless it takes long or misses what such a cell makes: nbval runs these."""
    ran = None if TRAINS.search(source) else shell.run(source)
    if ran is None or (isinstance(ran.error, NameError) and ran.error.name in gone):
        gone |= names_of(source)
    else:
        assert ran.error is None, f"{source}\n{ran.error!r}"


def come_back(shell, path, gone):
    """Run each exercise again after all else, with the code cells right below it."""
    cells = nbformat.read(path, as_version=4).cells
    for i, cell in enumerate(cells):
        if cell.cell_type == "code" and calls(cell.source, "check"):
            for again in itertools.takewhile(lambda cell: cell.cell_type == "code", cells[i:]):
                go_on(shell, again.source, gone)


@pytest.mark.slow  # all mistakes in all notebooks
@notebook
def test_untouched_solved_and_with_mistakes(path):
    met, gone = [], set()
    with fresh_shell() as shell, torch.random.fork_rng(devices=[]):
        for cell in code_cells(path):
            exercises, predictions = calls(cell.source, "check"), calls(cell.source, "predict")
            for id, (stub,) in exercises:
                go_through_exercise(shell, cell.source, EXERCISES[id], stub.id)
            for id, _ in predictions:
                go_through_prediction(shell, cell.source, PREDICTIONS[id])
            met += [id for id, _ in exercises + predictions]
            if not exercises:
                go_on(shell, cell.source, gone)
        come_back(shell, path, gone)
    number = path.stem[:2]
    all_ids = [id for id in (*EXERCISES, *PREDICTIONS) if id.startswith(number)]
    assert set(met) == set(all_ids), "each exercise and prediction stands in its notebook"


@notebook
def test_hint_solution_and_progress_are_at_hand(path):
    """A check that says hint("00.1") must not lead to a NameError."""
    with fresh_shell() as shell:
        shell.run(code_cells(path)[0].source)
        for call in ("hint", "solution"):
            id = next(id for id in EXERCISES if id.startswith(path.stem[:2]))
            assert shell.run(f'{call}("{id}")').error is None
        assert shell.run("progress()").text.startswith("Your progress\n")


@notebook
def test_no_solution_stands_in_the_notebook(path):
    def bodies(source):
        for node in ast.walk(ast.parse(textwrap.dedent(source))):
            if isinstance(node, ast.FunctionDef):
                docstring = ast.get_docstring(node) is not None
                yield ast.dump(ast.Module(node.body[docstring:], []))

    solutions = {
        body
        for exercise in EXERCISES.values()
        if exercise.id.startswith(path.stem[:2])
        for form in (exercise.reference, *exercise.accepted)
        for body in bodies(inspect.getsource(form))
    }
    for cell in code_cells(path):
        assert not solutions.intersection(bodies(cell.source)), cell.source
