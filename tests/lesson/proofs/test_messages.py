"""What messages of mistakes, and the words for a pass, say in numbers: compared in general."""

import inspect
import itertools
import re

import pytest
import torch

from lesson.exercises import EXERCISES, PREDICTIONS
from tests.lesson.examples import CALLED
from tests.lesson.proofs import Text, texts_of
from tests.lesson.proofs.reading import agrees, run

MISTAKES = [(one, mistake) for one in EXERCISES.values() for mistake in one.mistakes]


def cases_for(says):
    """A test case for each mistake and sentence of its message for which `says` gives a value."""
    return [
        pytest.param(exercise, mistake, value, id=f"{exercise.id}-{mistake.name}")
        for exercise, mistake in MISTAKES
        for sentence in re.split(r"(?<=[.:;]) ", mistake.message)
        if (value := says(exercise, sentence))
    ]


def says_nan(_, sentence):
    return re.search(r"\bnan\b|\b0 ?/ ?0\b", sentence) and "would" not in sentence


@pytest.mark.parametrize(("exercise", "mistake", "_"), cases_for(says_nan))
def test_a_result_is_nan_where_its_message_says_so(exercise, mistake, _):
    results = [one.value for one in mistake.outcomes if one.error is None]
    assert any(result.isnan().any() for result in results)


RETURN_WEIGHTS = ("00.2", "02.2", "02.3", "03.1", "03.3", "05.2")
SUM = re.compile(
    r"(row|column)s?( of the weights| but the last| now)* sums? to (less than 1|1/√?\w+|1)", re.I
)
NOT = re.compile(r"not (?:each|every|the) (row|column)|(row|column)s do not")
TOGETHER = re.compile(r"together(?: now)? sum to 1")
AXES = {"row": -1, "column": -2}


def says_sums(exercise, sentence):
    """Triples of an axis (None: all), whether the last row is excepted, and what the sums are."""
    if re.search("has to|have to|must", sentence):
        return []
    told = [(AXES[one[1].lower()], one[2] or "", one[3]) for one in SUM.finditer(sentence)]
    told += [(AXES[one[1] or one[2]], "", "not 1") for one in NOT.finditer(sentence)]
    told += [(None, "", "1") for _ in TOGETHER.findall(sentence)]
    return told if exercise.id in RETURN_WEIGHTS else []


def sizes_of(exercise, arguments):
    names = list(inspect.signature(exercise.reference).parameters)
    sizes = dict(zip(names, arguments, strict=False)) | exercise.sizes_of(arguments)  # but defaults
    return {"head_size": sizes.get("d")} | sizes


def near(sums, value):
    return torch.allclose(sums, torch.full_like(sums, value), atol=1e-4)


def are(sums, said, sizes):
    if said == "less than 1":
        return bool((sums < 1 + 1e-5).all() and (sums < 0.999).any())
    if said == "not 1":
        return not near(sums, 1)
    return near(sums, run(said, **sizes))


@pytest.mark.parametrize(("exercise", "mistake", "told"), cases_for(says_sums))
def test_rows_and_columns_sum_to_what_the_message_says(exercise, mistake, told):
    results = zip(exercise.inputs, mistake.outcomes, strict=True)
    inputs = [given for given, one in results if one.error is None and one.value.isfinite().all()]
    assert inputs
    for arguments in inputs:
        for axis, excepted, said in told:
            sums = mistake.code(*arguments).sum(dim=axis)
            if "last" in excepted:
                assert near(sums[..., -1], 1)
            assert are(sums, said, sizes_of(exercise, arguments)), said


SIZE = re.compile(r"(several|\S+) times too (large|small)")


@pytest.mark.parametrize(("exercise", "mistake", "told"), cases_for(lambda _, s: SIZE.search(s)))
def test_a_result_is_as_many_times_too_large_as_its_message_says(exercise, mistake, told):
    many, ratios = told[1], []
    for arguments in exercise.inputs:
        wrong, right = mistake.code(*arguments), exercise.reference(*arguments)
        ratio = wrong.norm(dim=-1) / right.norm(dim=-1)
        ratios.append(ratio if told[2] == "large" else 1 / ratio)
        if many != "several":
            factor = run(many, **sizes_of(exercise, arguments))
            assert ratios[-1].median().item() == pytest.approx(factor, rel=0.01)
    assert max(one.max() for one in ratios) > 2 and min(one.min() for one in ratios) > 0.99


TEXTS = [Text(exercise.id, mistake.message) for exercise, mistake in MISTAKES]
TEXTS += [text for one in (PREDICTIONS | EXERCISES).values() for text in texts_of(one).values()]
EQUATIONS = {
    (text.name, f"{left.text} = {right.text}"): (left, right)
    for text in TEXTS
    for left, right in itertools.pairwise(text.items)
    if f"{left.text} = {right.text}" in text.text
    if isinstance(left.value, int | float) and isinstance(right.value, int | float)
}


@pytest.mark.parametrize("where", EQUATIONS, ids=" ".join)
def test_a_small_calculation_is_right(where):
    left, right = EQUATIONS[where]
    to_three_digits = pytest.approx(left.value, rel=0.003)  # e⁵ = 148
    assert agrees(right, left.value) or (right.value > 99 and right.value == to_three_digits)


COUNTS = {"two": 2, "three": 3}


def first_arguments(exercise):
    """The first argument of each input, each shape once: 13.2 has some with the same ones."""
    return {getattr(case[0], "shape", case[0]) for case in exercise.inputs}


def named_sizes(exercise):
    names = inspect.signature(exercise.reference).parameters
    return [pair for case in exercise.inputs for pair in zip(names, case, strict=True)]


def all_differ(exercise, said):
    names = re.findall(r"\w+", said.replace(" and ", " "))
    sizes = [[sizes_of(exercise, case)[name] for name in names] for case in exercise.inputs]
    return all(len(set(one)) == len(names) > 2 for one in sizes)


# What the words for a pass say of the check inputs, by how they say it.
PASSES = {
    r"^(?:.* on )?(two|three) ": lambda e, found: COUNTS[found[0][1]] == len(first_arguments(e)),
    r"\b(T|width|decay)[ =](\d+(?:\.\d+)?)": lambda e, found: (
        [(one[1], float(one[2])) for one in found] == named_sizes(e)
    ),
    r"(?:in which|with) (.*) (?:all differ|all different)": lambda e, found: all_differ(
        e, found[0][1]
    ),
    r"within ([\d.]*\d)": lambda e, found: float(found[0][1]) == e.atol,
    r"at least ([\d.]+) of its weight": lambda e, found: round(1 - float(found[0][1]), 6) == e.atol,
}
CHECKED = [
    pytest.param(exercise, is_so, found, id=f"{exercise.id} {found[0][0]}")
    for exercise in CALLED.values()
    for pattern, is_so in PASSES.items()
    if (found := list(re.finditer(pattern, exercise.checked)))
]


@pytest.mark.parametrize(("exercise", "is_so", "found"), CHECKED)
def test_a_pass_has_checked_what_it_says(exercise, is_so, found):
    assert is_so(exercise, found)
