"""Every rule of the notebook lint fires on a notebook that breaks it, and only that rule does."""

import ast
import inspect
import re
from collections.abc import Callable

import nbformat
import pytest
from nbformat import v4

from tests.told import Told
from tools import ignored_cells, lint_notebooks, notebooks, refresh

EXERCISES = '''
def causal(scores):
    """Solve it."""
    masked = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(masked, dim=-1)

EXERCISES = (Exercise("03.1", causal, cases=cases),)
'''
PAGE = "# 03.1 Causal\n\n# 03.p1\nWhich?\n"

STUB = '''def causal(scores):
    """Weights from scores."""
    raise NotImplementedError'''


def picture():
    return v4.new_output(
        "display_data",
        {"image/png": "aaaa", "text/plain": "Weights\nrow 0  1.00"},
        metadata={"image/png": {"alt": "A causal heatmap.", "width": 300}},
    )


def good() -> lint_notebooks.Book:
    """Make a small notebook that keeps every rule. Its code cells are 2, 4, 6, 8 and 10."""
    cells = [
        v4.new_markdown_cell("# 03 · How do scores become weights?"),
        v4.new_code_cell("import torch\nfrom lesson import check, predict"),
        v4.new_markdown_cell(
            "## A section\n\nThis says “simply”, and so does `simply`. Row 0 gets 0.50, before it"
            " 0.73. <!-- 0.73 = 1 - 0.27 --> So many."
        ),
        v4.new_code_cell(
            "x = torch.softmax(torch.zeros(2, 2), dim=-1)  # 0.50 each, or 0.27\nx",
            outputs=[picture()],
        ),
        v4.new_markdown_cell("![A diagonal.](a.png)\n### Below\n```python\n# no heading\n```"),
        v4.new_code_cell('predict("03.p1")'),
        v4.new_markdown_cell("## Break it"),
        v4.new_code_cell(
            "torch.softmax(x, dim=1)",
            metadata={"tags": ["break-it"]},
            outputs=[v4.new_output("stream", name="stdout", text="1.00  0.00\n</b></td>\n")],
        ),
        v4.new_markdown_cell("## What we found\n\nAgain 0.50 and 0.73."),
        v4.new_code_cell(STUB + '\n\n\ncausal = check("03.1", causal)\nassert x[0] == "a;b"'),
    ]
    for each in cells:
        each.metadata["slideshow"] = {"slide_type": "subslide"}
    nb = refresh.normalise(v4.new_notebook(cells=cells), "03")
    return lint_notebooks.Book("03_softmax_masking.ipynb", nb, 1000, EXERCISES, PAGE, asserts=1)


def cell(book, number):
    return book.nb.cells[number - 1]


def in_code(text: str) -> Callable:
    """Add a line to cell 8."""
    return lambda book: cell(book, 8).update(source=cell(book, 8).source + "\n" + text)


def in_words(text: str) -> Callable:
    """Add a paragraph to cell 3."""
    return lambda book: cell(book, 3).update(source=cell(book, 3).source + "\n\n" + text)


def in_source(number: int, old: str, new: str) -> Callable:
    def change(book):
        assert old in cell(book, number).source
        cell(book, number).source = cell(book, number).source.replace(old, new)

    return change


def output(kind: str, **what) -> Callable:
    """Add an output to cell 4."""
    return lambda book: cell(book, 4).outputs.append(v4.new_output(kind, **what))


def shown(**data) -> Callable:
    named = {kind.replace("__", "/"): text for kind, text in data.items()}
    return output("display_data", data={"text/plain": "in words", **named})


def tagged(number: int, *names: str) -> Callable:
    return lambda book: cell(book, number).metadata.update(tags=list(names))


def slides(kinds: dict[int, str]) -> Callable:
    """Give cells other slide types."""

    def change(book):
        for number, kind in kinds.items():
            cell(book, number).metadata["slideshow"] = {"slide_type": kind}

    return change


def all_of(*changes: Callable) -> Callable:
    return lambda book: [change(book) for change in changes]


# Cell 8 without its mistake and its tag.
NOTHING_BROKEN = (in_source(8, "dim=1", "dim=-1"), tagged(8))


def four_code_cells(book):
    for number in (3, 5):
        metadata = {"slideshow": {"slide_type": "skip"}}
        book.nb.cells[number - 1] = v4.new_code_cell("y = 1", metadata=metadata)
    in_source(9, "0.50 and 0.73", "1.00")(book)  # which cell 3 said before
    refresh.normalise(book.nb, "03")


# rule -> ways to break it, each with a word that the message must hold
BROKEN: dict[str, list[tuple[str, Callable]]] = {
    "file_name": [("NN_snake_title", lambda book: setattr(book, "name", "03-Softmax.ipynb"))],
    "file_size": [("310001 bytes|at most 310000", lambda book: setattr(book, "size", 310_001))],
    "metadata": [
        ("make refresh", lambda book: book.nb.metadata.language_info.update(version="3.11.7")),
        ("cell 4: has metadata editable", lambda book: cell(book, 4).metadata.update(editable=1)),
        ("cell 4: has metadata jupyter", lambda book: cell(book, 4).metadata.update(jupyter={})),
    ],
    "widget_state": [("GitHub", lambda book: book.nb.metadata.update(widgets={}))],
    "cell_ids": [("cell 4: .*n03-c04", lambda book: cell(book, 4).update(id="abc"))],
    "execution_counts": [
        ("cell 4: .* 7, not 2", lambda book: cell(book, 4).update(execution_count=7)),
        ("None, not 2", lambda book: cell(book, 4).update(execution_count=None)),
    ],
    "title": [
        ("ends with", in_source(1, "?", ".")),
        ("cell 1", in_source(5, "### Below", "# Below")),
    ],
    "heading_levels": [("level 4 after level 2", in_source(5, "### Below", "#### Below"))],
    "sections": [
        ("Break it", all_of(in_source(7, "Break it", "Mend it"), *NOTHING_BROKEN)),
        ("What we found", in_source(9, "found", "lost")),
    ],
    "words": [
        (word, in_words(f"This is {word} so."))
        for word in ("simply", "obviously", "trivially", "of course", "previous tokens")
    ],
    "words_between": [("code cell 4 in a row", four_code_cells)],
    "markdown_images": [
        ("alt text", in_words("![](b.png)")),
        ("alt text", in_words('<img src="b.png" alt="">')),
    ],
    "set_up_cell": [
        ("first code cell", in_source(2, "import torch", "import torch\nx = 1")),
        ("cell 2: .* not folded", lambda book: cell(book, 2).metadata.pop("jupyter")),
        ("not folded", lambda book: cell(book, 2).metadata.jupyter.update(source_hidden=False)),
        ("not folded", lambda book: cell(book, 2).metadata.jupyter.update(outputs_hidden=True)),
    ],
    "public_imports": [
        ("helpers.pictures.matrix", in_code("from helpers.pictures.matrix import heatmap")),
        ("attention_base.numbers", in_code("import attention_base.numbers")),
        ("from helpers:", in_code("from helpers import toy")),
    ],
    "cell_length": [("26 lines", in_code("\n" * 24 + "y = 1"))],
    "no_magics": [
        (line[:4], in_code(line))
        for line in ("%pip install x", "!pip install x", "%run x.py", "sys.path.append('x')")
    ]
    + [("import", in_code("from torch import *"))],
    "no_semicolons": [("a ;", in_code("x;"))],
    "softmax_axis": [
        ("dim=1", in_source(4, "dim=-1", "dim=1")),
        ("dim=1", in_source(4, "dim=-1", "1")),
        ("dim=1", in_source(4, "\nx", "\nx.softmax(1)")),
    ],
    "broken_on_purpose": [
        ("cell 8: stands below", all_of(*NOTHING_BROKEN)),
        ("cell 4: is tagged break-it", tagged(4, "break-it")),
    ],
    "prose_numbers": [
        ("cell 3: says 0.51, which no cell nearby", in_source(3, "0.50", "0.51")),
        ("cell 3: says 1.75, .* rest of its sentence", in_source(3, "0.50", "0.50, not 1.75")),
        ("cell 9: says 0.74", in_source(9, "0.73", "0.74")),
        ("cell 3: says -3", in_words("It lies at -3.")),
        ("cell 3: says 10⁻⁶", in_words("They agree within 10⁻⁶.")),
        ("cell 3: says 4 %", in_words("| a table | 4 % |")),
        ("cell 3: says 31", in_words("It has 31 rows.")),
        ("cell 3: says 6", in_words("| a table | 6 |")),
        ("cell 3: has a mark with 0.29", in_source(3, "1 - 0.27", "1 - 0.29 + 0.02")),
    ],
    "numbers_in_a_row": [
        ("cell 3: says 0 1 2, which stands so in no cell", in_words("The row 0 1 2.")),
        ("says 2 3", in_words("Of shape (2, 3).")),
        ("says 0 0 1 1", in_words("Rows 0, 0, 1, 1. <!-- 0 1 0 1: an example -->")),
        (r"says 2 \* 4 = 9, which comes to 8", in_words("It is 2 · 4 = 9.")),
    ],
    "asserts": [
        ("has 0 asserts, not 1", in_source(10, "assert x", "x")),
        ("has 0 asserts, not 1", in_source(10, "assert x", "# assert x")),
        ("has 2 asserts, not 1: .* correct ASSERTS", in_code("assert x is None")),
        *(
            ("cell 10: .* cannot fail", in_source(10, 'x[0] == "a;b"', what))
            for what in (
                "True",
                "1 < 2",
                "x[0] is None or True",
                "x[0] == x[0]",
                "torch.equal(x, x)",
                "torch.allclose(x[0], x[0], atol=1e-6)",
            )
        ),
    ],
    "marked_numbers": [
        ("0.73, which comes to 1.73", in_source(3, "1 - 0.27", "2 - 0.27")),
        ("marks 0.5, which its text does not say", in_words("One. <!-- 0.5 = 1 / 2 -->")),
        ("GitHub would show it", in_source(3, "1 - 0.27", "1 --0.27")),
        ("start of a line", in_source(3, " <!--", "\n<!--")),
    ],
    "tolerances": [
        ("allclose without atol", in_code("print(torch.allclose(x, x))")),
        ("within 0.1: at most 0.001", in_code("print(torch.allclose(x, x, atol=0.1))")),
        ("within 0.1", in_code("print(torch.isclose(x, x, rtol=0.1, atol=0.0))")),
    ],
    "lesson_ids": [
        ("03.p2", in_source(6, "03.p1", "03.p2")),
        ("asks 03.p1 0 times", in_source(6, 'predict("03.p1")', "x")),
        ("asks 03.p1 2 times", in_source(6, 'predict("03.p1")', 'predict("03.p1")\n' * 2)),
        (r"hint\('04.1'\)", in_code('hint("04.1")')),
        ("has no nb03.py", lambda book: setattr(book, "exercises", None)),
        ("has no 03.md", lambda book: setattr(book, "page", None)),
        (
            "no plain string",
            lambda book: setattr(book, "exercises", EXERCISES + "\nExercise(name)"),
        ),
    ],
    "stubs": [
        ("NotImplementedError", in_source(10, "raise NotImplementedError", "return scores")),
        ("no stub", in_source(10, 'check("03.1", causal)', 'check("03.1", torch.softmax)')),
        ("name the stub causal", in_source(10, "causal", "mine")),
    ],
    "no_solutions": [
        (
            "cell 8: holds the solution of 03.1",
            in_code(
                "def f(s: int) -> int:\n    m = s.masked_fill(~mask, float('-inf'))\n"
                "    return torch.softmax(m, dim=-1)"
            ),
        ),
        ("cell 3", in_words(f"```python{EXERCISES.split('EXERCISES')[0]}```")),
    ],
    "cross_references": [
        (
            r"names notebook 01: write \[notebook 01\]\(01_bag_of_words",
            in_words("As in notebook 01."),
        ),
        ("link to 01_gone.ipynb", in_words("As in [notebook 01](01_gone.ipynb).")),
    ],
    "slide_types": [
        ("cell 4: has the slide type none", lambda book: cell(book, 4).metadata.pop("slideshow")),
        ("cell 4: has the slide type -", slides({4: "-"})),
    ],
    "predictions_on_slides": [
        ("cell 6: asks a prediction below", slides({6: "fragment"})),
        ("cell 7: is on the slide of the prediction in cell 6", slides({7: "fragment"})),
        ("cell 8: is on the slide .* cell 6", slides({7: "notes", 8: "fragment"})),
    ],
    "errors": [
        ("ValueError", output("error", ename="ValueError", evalue="no", traceback=["no"])),
    ],
    "ignored_outputs": [
        ("tagged nbval-ignore-output: list it", tagged(4, "nbval-ignore-output")),
        ("marked nbval-skip", tagged(4, "nbval-skip")),
        ("marked NBVAL_IGNORE_OUTPUT", in_code("# NBVAL_IGNORE_OUTPUT")),
    ],
    "stderr": [("stderr", output("stream", name="stderr", text="careful"))],
    "widget_view": [("widget view", shown(**{refresh.WIDGET_VIEW: {}}))],
    "no_svg": [("SVG", shown(**{"image/svg+xml": "<svg>"}))],
    "picture_words": [
        ("alt text", lambda book: cell(book, 4).outputs[0].update(metadata={})),
        ("text version", lambda book: cell(book, 4).outputs[0].data.pop("text/plain")),
        (
            "text version",
            lambda book: cell(book, 4).outputs[0].data.update({"text/plain": "<Figure size 6>"}),
        ),
    ],
    "traces_of_a_machine": [
        ("prints", output("stream", name="stdout", text=text))
        for text in (
            "<object at 0x7f00aa11bb22>",
            "see /home/ada/x.py",
            r"C:\Users\ada",
            "/tmp/ipykernel_123/1.py",
            "tensor(1., grad_fn=<MeanBackward0>)",
            "VBox(children=())",
        )
    ],
    "output_length": [("41 lines", output("stream", name="stdout", text="1\n" * 41))],
}


@pytest.fixture(autouse=True)
def not_the_real_one(monkeypatch):
    """The notebook of these tests has the number 03, and nothing of the real one."""
    monkeypatch.setattr(ignored_cells, "IGNORED_CELLS", ())
    monkeypatch.setattr(lint_notebooks, "ASSERTS", {"03": 1})


def rules_that_fire(book) -> set[str]:
    return {name for name, check in lint_notebooks.RULES.items() if list(check(book))}


def test_the_good_notebook_has_nothing_to_mend():
    assert lint_notebooks.lint(good()) == []


def test_every_rule_has_a_broken_notebook():
    assert set(BROKEN) == set(lint_notebooks.RULES)


CASES = [(name, *way) for name, ways in BROKEN.items() for way in ways]


@pytest.mark.parametrize(
    ("name", "word", "breaks"),
    CASES,
    ids=[f"{name}-{i}" for i, (name, *_) in enumerate(CASES)],
)
def test_a_rule_fires_on_its_own_broken_notebook(name, word, breaks, snapshot):
    book = good()
    breaks(book)
    told = "\n".join(lint_notebooks.lint(book))
    assert re.search(word, told)
    assert rules_that_fire(book) == {name}
    assert told == snapshot.use_extension(Told)


@pytest.mark.parametrize(
    "text",
    [
        "The rows 0.50 0.50 0.50 and 2 2. <!-- 0.50 0.50 0.50: an example -->",
        "Of shape (2, 2), and again: 4 · 3² + 1 = 37, (1/2)² = 0.25. <!-- 0.25, 37: worked out -->",
        "### Exercise 03.4 · ★☆☆ · 5 min\nFor 1 2 3, the result is 1 3 6.",
    ],
)
def test_what_stands_in_a_cell_or_a_mark_or_is_an_exercise_is_right(text):
    book = good()
    in_words(text)(book)
    assert lint_notebooks.lint(book) == []


def test_a_message_names_the_notebook_and_the_cell_and_says_what_to_do():
    book = good()
    cell(book, 4).execution_count = 7
    assert lint_notebooks.lint(book) == [
        "03_softmax_masking.ipynb cell 4: has execution count 7, not 2: run make refresh"
    ]


def test_an_answer_in_code_and_a_wanted_error_are_no_findings():
    book = good()
    cell(book, 6).source += '\npredict("03.p1", "b")'
    cell(book, 4).outputs.append(v4.new_output("error", ename="E", evalue="", traceback=[]))
    cell(book, 4).metadata["tags"] = ["raises-exception"]
    assert lint_notebooks.lint(book) == []


def test_a_stub_may_hold_a_program_to_mend_where_its_exercise_says_so():
    book = good()
    in_source(10, "raise NotImplementedError", "return scores")(book)
    book.exercises = book.exercises.replace("cases=cases", "cases=cases, given=wrong")
    assert lint_notebooks.lint(book) == []


def test_of_two_references_with_one_name_the_last_above_its_exercise_counts():
    another = EXERCISES.replace("03.1", "03.2").replace("masked", "scores").replace("dim=-1", "-1")
    first, second = lint_notebooks.Lessons.read(EXERCISES + another, "").exercises.values()
    assert ast.dump(first) != ast.dump(second)


def test_the_reference_of_a_build_is_found_by_its_name():
    found = lint_notebooks.Lessons.read('EXERCISES = (build("Head"),)', "").exercises
    assert {id_: one.name for id_, one in found.items()} == {"04.Head": "Head"}


@pytest.mark.parametrize(("times", "told"), [(0, True), (1, False), (2, False), (3, True)])
def test_a_part_may_be_built_again_once(times, told):
    book, stub = good(), "class Head:\n    raise NotImplementedError\n\n\n"
    book.exercises = 'EXERCISES = (build("Head"),)'
    in_code((stub + 'check("04.Head", Head)\n') * times)(book)
    said = [one for one in lint_notebooks.lint(book) if "asks 04.Head" in one]
    assert bool(said) == told


def test_a_cell_whose_output_is_not_compared_is_listed_with_its_reason(monkeypatch):
    book = good()
    first_line = cell(book, 4).source.splitlines()[0]
    entry = ignored_cells.IgnoredCell("03", first_line, "no", 0)
    monkeypatch.setattr(ignored_cells, "IGNORED_CELLS", (entry,))
    (message,) = lint_notebooks.lint(book)
    assert "cell 4: stands in tools/ignored_cells.py without" in message
    tagged(4, ignored_cells.TAG)(book)
    assert lint_notebooks.lint(book) == []
    in_source(4, "x = ", "y = ")(book)
    assert len(lint_notebooks.lint(book)) == 2  # a cell without entry, an entry without cell


def test_the_lint_reads_a_file_as_refresh_writes_it(tmp_path):
    path = tmp_path / "03_softmax_masking.ipynb"
    path.write_text(nbformat.writes(good().nb), encoding="utf-8")
    (tmp_path / "nb03.py").write_text(EXERCISES, encoding="utf-8")
    (tmp_path / "03.md").write_text(PAGE, encoding="utf-8")
    assert lint_notebooks.lint(lint_notebooks.read(path, exercises=tmp_path)) == []


def test_every_rule_says_what_it_is_for():
    for check in lint_notebooks.RULES.values():
        assert ast.get_docstring(ast.parse(inspect.getsource(check)).body[0])
    assert notebooks.cell_id("03", 7) == "n03-c07"
