"""The committed notebooks keep every rule of the notebook lint; no kernel is started."""

import pytest

from tools import lint_notebooks, notebooks


@pytest.mark.parametrize("path", notebooks.names(), ids=lambda path: path.stem)
def test_a_notebook_has_nothing_to_mend(path):
    assert lint_notebooks.lint(lint_notebooks.read(path)) == []


def test_the_lint_reads_all_exercises_and_predictions_that_python_knows():
    from helpers.exercises import EXERCISES, PREDICTIONS

    books = [lint_notebooks.read(path).lessons for path in notebooks.names()]
    assert {i for book in books for i in book.exercises} == set(EXERCISES)
    assert {i for book in books for i in book.predictions} == set(PREDICTIONS)
    assert all(reference for book in books for reference in book.exercises.values())
