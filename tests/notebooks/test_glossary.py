"""Each term is defined once, in bold, where the glossary says, and not used before."""

import ast
import re
from functools import cache

import nbformat
import pytest

from lesson import LessonError, glossary
from lesson.exercises import PREDICTIONS, TERMS
from lesson.terms import Term
from tools import glossary as file
from tools import notebooks

QUOTED = re.compile(
    r"^(```|~~~).*?^\1$"  # code in fences
    r"|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$"  # code and formulas
    r"|^#+ [^\n]*$|\]\([^)]*\)"  # headings, and where a link leads
    r"|(?<!\*)\*(?!\*)[^*\n]+\*(?!\*)",  # titles of papers, in italics
    re.MULTILINE | re.DOTALL,
)


@cache
def texts() -> list[tuple[str, int, str]]:
    """All that a reader reads, in order: (notebook, cell, text) of prose and of predictions."""
    found = []
    for path in notebooks.names():
        for number, cell in enumerate(nbformat.read(path, as_version=4).cells, 1):
            # The first cell is the title page: it says what the notebook is about.
            prose = cell.cell_type == "markdown" and number > 1
            text = QUOTED.sub(" ", cell.source) if prose else ""
            for id in re.findall(r'predict\("([^"]+)"\)', cell.source):
                prediction = PREDICTIONS[id]
                parts = [prediction.question, *(c.text for c in prediction.choices.values())]
                text += QUOTED.sub(" ", "\n".join(parts))
            found.append((path.name[:2], number, text))
    return found


def first_use(name: str) -> tuple[str, int] | None:
    """The first cell that uses this name, as a word of its own (or in the plural)."""
    word = re.compile(rf"(?<![\w-]){re.escape(name)}(s|es)?(?![\w-])", re.IGNORECASE)
    return next(((nb, cell) for nb, cell, text in texts() if word.search(text)), None)


def definition(term: Term) -> tuple[str, int] | None:
    """The cell of its notebook in which the term stands in bold."""
    bold = re.compile(rf"\*\*{re.escape(term.name)}(s|es)?\*\*", re.IGNORECASE)
    return next(
        ((nb, cell) for nb, cell, text in texts() if nb == term.notebook and bold.search(text)),
        None,
    )


term = pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)


@term
def test_a_term_is_bold_where_it_is_defined(term):
    assert definition(term), f"**{term.name}** stands nowhere in notebook {term.notebook}"


@term
def test_a_term_is_not_used_before_it_is_defined(term):
    if term.everyday:
        pytest.skip("an everyday word")
    for name in (term.name, *term.also):
        used = first_use(name)
        assert used is None or used >= definition(term), f"{name!r} is used in {used}"


@term
def test_a_meaning_is_one_sentence(term):
    assert re.fullmatch(r"[^.]*[a-z)\d√]\.", term.meaning.replace("e.g.", ""), re.IGNORECASE)


def test_the_glossary_file_is_up_to_date():
    assert file.PATH.read_text(encoding="utf-8") == file.text(), "run make refresh"


def test_a_term_can_be_asked_for_by_its_synonym(capsys):
    some = next(term for term in TERMS.values() if term.also)
    glossary(some.also[0].upper())
    assert " ".join(capsys.readouterr().out.split()).startswith(some.name)
    for plural, name in {"tokens": "token", "Axes": "axis", "Masks": "mask"}.items():
        glossary(plural)
        assert capsys.readouterr().out.startswith(name)
    glossary()
    assert all(name in " ".join(capsys.readouterr().out.split()) for name in [some.name])
    with pytest.raises(LessonError, match="The nearest"):
        glossary(some.name + "z")
    with pytest.raises(LessonError, match=r"glossary\(\) lists all"):
        glossary("qqqqqq")


def test_every_prediction_is_read_here():
    asked = {
        node.args[0].value
        for path in notebooks.names()
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code"
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "predict"
    }
    assert asked == set(PREDICTIONS)
