"""A notebook's page and its exercise file are joined; what does not go together is refused."""

from types import ModuleType

import pytest
import torch

from attention_base.known import PageError
from feedback.grading import Exercise
from lesson import builds, exercises
from lesson.pages import join
from lesson.terms import Term
from tests.lesson.examples import EXERCISE, running_sum

PAGE = """# 97.1 Running sum
two batches
- Look at the axes.
## over the channels
    dim=1 → dim=-1
You summed over the channels.
## by a loop
    def by_loop
As in 99.1, “a product”.

# 97.2 Again
one batch
- Look at the axes.
## over the channels
    dim=1 → dim=-1
As in 97.1.

# 97.p1
Which axis is time?
## 0
That is the batch.
## ✓ 1
Axes count from 0.

# Terms
- query (also Q, question; everyday word): What a token looks for.
- key: How a token is found.

# 97 sums ⏎ and means
"""


HEAD = builds.build("Head")


def by_loop(x):
    return torch.stack([x[:, : t + 1].sum(1) for t in range(x.shape[1])], 1) * 2


@pytest.fixture
def joined(tmp_path):
    """Join a page with an exercise file, both made up."""

    def join_page(text=PAGE):
        module = ModuleType("exercises.nb97")
        module.__file__ = str(tmp_path / "nb97.py")
        module.by_loop = by_loop
        one, two = (Exercise(f"97.{n}", running_sum, EXERCISE.cases) for n in (1, 2))
        module.EXERCISES = [one, HEAD, two]
        (tmp_path / "97.md").write_text(text, encoding="utf-8")
        return join(module, {EXERCISE.id: EXERCISE})

    return join_page


def test_what_is_told_and_what_is_computed_become_one(joined):
    idea, (one, build, two), (prediction,), terms = joined()
    assert build is HEAD, "it is told elsewhere"
    assert idea == "sums\nand means"
    assert (one.title, one.checked, one.hints) == (
        "Running sum",
        "two batches",
        ("Look at the axes.",),
    )
    assert [mistake.message for mistake in one.mistakes] == [
        "You summed over the channels.",
        "Nothing is multiplied.",
    ]
    assert two.mistakes[0].message == "You summed over the channels."
    assert one.check(by_loop).mistake == "by a loop"
    assert two.check(lambda x: x.cumsum(-1)).mistake == "over the channels"
    assert (prediction.question, prediction.answer) == ("Which axis is time?", "b")
    assert prediction.choices["b"].text == "1"
    assert terms == [
        Term("query", "What a token looks for.", ("Q", "question"), True, "97"),
        Term("key", "How a token is found.", notebook="97"),
    ]


FAULTS = [
    (
        "# 97.2 Again",
        "# 97.3 Again",
        "line 11: “97.3 Again” is no heading here.*of nb97.py, 97.2 is not told above",
    ),
    ("# 97.2 Again", "# 97.1 Again", "line 11: “97.1 Again” is no heading here"),
    ("# 97 sums ⏎ and means\n", "", "97.md: begin it with its idea, as in `# 97 one head`"),
    ("# Terms", "# Words", "line 25: “Words” is no heading here"),
    (PAGE[: PAGE.index("# 97.p1")], PAGE[: PAGE.index("# 97.2")], "97.md: exercise 97.2 is missi"),
    ("# 97.1 Running sum", "# 97.1", "line 1: exercise 97.1 has no title"),
    (
        "two batches\n",
        "",
        "line 1: exercise 97.1 has no single line that says what a pass has checked",
    ),
    ("one batch\n- Look at the axes.", "one batch", "line 11: exercise 97.2 has no hint"),
    ("dim=1 → dim=-1\nYou", "dim=2 → dim=-1\nYou", "line 4, “over the channels”: the change of `d"),
    ("    dim=1 → dim=-1\nYou", "You", "line 4, “over the channels”: below the name belongs what"),
    ("def by_loop", "def with_loop", "line 7, “by a loop”: nb97.py has no function with_loop"),
    ("You summed over the channels.\n", "", "line 4, “over the channels”: say in a line below it"),
    ("As in 97.1.", "As in 98.1.", "line 14, “over the channels”: above it, 98.1 has no mistake"),
    ("“a product”", "“a produce”", "line 7, “by a loop”: above it, 99.1 .*, but “a product”"),
    ("## ✓ 1", "## 1", "line 18: 97.p1 has no right choices. Mark one: `## ✓ its text`"),
    ("## 0", "## ✓ 0", "line 18: 97.p1 has 2 right choices"),
    ("## 0\nThat is the batch.\n", "", "line 18: 97.p1 needs two to ten choices"),
    ("Which axis is time?\n", "", "line 18: below 97.p1 belongs its question"),
    ("That is the batch.\n", "", "line 20: below a choice belongs only why it is right or wrong"),
    ("# Terms", "# 97.p1\nWhich?\n## a\nb\n## ✓ c\nd\n# Terms", "line 25: 97.p1 stands above"),
    ("- key: How", "- key How", "line 27: a term is `- name: what it means`"),
    ("(also Q", "(and Q", "line 26: a term is `- name: what it means`"),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS)
def test_a_faulty_page_is_refused_with_file_line_and_what_to_do(joined, old, new, message):
    assert PAGE.count(old) == 1
    with pytest.raises(PageError, match=rf"^(97\.md, )?{message}"):
        joined(PAGE.replace(old, new))


def test_a_term_is_defined_once():
    terms = {"head": Term("head", "A part.", ("attention head",), notebook="04")}
    with pytest.raises(PageError, match=r"06.md: the term “attention head” stands in 04.md, too"):
        exercises.define(terms, [Term("attention head", "Another.", notebook="06")])
