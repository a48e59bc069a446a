"""The committed notebooks keep every rule of the notebook lint; no kernel is started."""

import re

import pytest

from tools import lint_notebooks, notebooks


@pytest.mark.parametrize("path", notebooks.names(), ids=lambda path: path.stem)
def test_a_notebook_has_nothing_to_mend(path):
    assert lint_notebooks.lint(lint_notebooks.read(path)) == []


def test_the_lint_reads_all_exercises_and_predictions_that_python_knows():
    from lesson.exercises import EXERCISES, PREDICTIONS

    books = [lint_notebooks.read(path).lessons for path in notebooks.names()]
    assert {i for book in books for i in book.exercises} == set(EXERCISES)
    assert {i for book in books for i in book.predictions} == set(PREDICTIONS)
    assert all(reference for book in books for reference in book.exercises.values())


LINKS = [
    (path, link)
    for path in notebooks.names()
    for cell in lint_notebooks.read(path).nb.cells
    if cell.cell_type == "markdown"
    for link in re.findall(r"\]\(([^)\s]+)\)", cell.source)
    if not link.startswith("http")
]


@pytest.mark.parametrize(("path", "link"), LINKS, ids=lambda part: getattr(part, "stem", part))
def test_a_link_leads_to_a_heading(path, link):
    """JupyterLab's anchor is the heading with dashes for spaces."""
    name, _, anchor = link.partition("#")
    target = path.parent / name if name else path
    assert target.exists()
    text = "\n".join(cell.source for cell in lint_notebooks.read(target).nb.cells)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    assert not anchor or anchor in [heading.replace(" ", "-") for heading in headings]


def test_a_notebook_that_takes_one_thread_does_so_before_it_computes():
    """make test-all does not run it on two threads: what would it compute on two?"""
    line, found = "torch.set_num_threads(1)", 0
    for path in notebooks.names():
        nb = lint_notebooks.read(path).nb
        code = [cell.source for cell in nb.cells if cell.cell_type == "code"]
        if line in path.read_text(encoding="utf-8"):
            assert any(source.startswith(line) for source in code[:4]), path.stem
            found += 1
    assert 0 < found < len(notebooks.names())
