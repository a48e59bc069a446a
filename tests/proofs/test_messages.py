"""What messages of mistakes, and the words for a pass, say in numbers: compared in general."""

import inspect
import math
import re

import pytest
import torch

from helpers.lesson.exercises import EXERCISES, PREDICTIONS
from tests.proofs import number

MISTAKES = [(one, mistake) for one in EXERCISES.values() for mistake in one.mistakes]


def sentences(text):
    return re.split(r"(?<=[.:;]) ", text)


def cases_for(says):
    """A test case for each mistake and sentence of its message for which `says` gives a value."""
    return [
        pytest.param(exercise, mistake, value, id=f"{exercise.id}-{mistake.name}")
        for exercise, mistake in MISTAKES
        for sentence in sentences(mistake.message)
        if (value := says(exercise, sentence))
    ]


# ---------------------------------------------------------------- nan, and sums of weights


def says_nan(_, sentence):
    return re.search(r"\bnan\b|\b0 ?/ ?0\b", sentence) and "would" not in sentence


@pytest.mark.parametrize(("exercise", "mistake", "_"), cases_for(says_nan))
def test_a_result_is_nan_where_its_message_says_so(exercise, mistake, _):
    results = [one.value for one in exercise.remembered(mistake.code) if one.error is None]
    assert any(result.isnan().any() for result in results)


def near(sums, value):
    return torch.allclose(sums, torch.full_like(sums, value), atol=1e-4)


RETURN_WEIGHTS = ("00.2", "02.2", "02.3", "03.1", "03.2", "03.3", "05.2", "05.3")
RETURN_OUTPUTS = ("04.3", "06.2")  # where all values are 1, an output is the sum of its row
SUM = re.compile(
    r"(row|column)s?( of the weights| but the last| now)* sums? to (less than 1|1/√?\w+|1)", re.I
)
NOT = re.compile(r"not (?:each|every|the) (row|column)|(row|column)s do not")
AXES = {"row": -1, "column": -2}


def says_sums(exercise, sentence):
    """Triples of an axis, whether the last row is excepted, and what the sums are."""
    if re.search("has to|have to|must", sentence):
        return []
    told = [(AXES[one[1].lower()], one[2] or "", one[3]) for one in SUM.finditer(sentence)]
    told += [(AXES[one[1] or one[2]], "", "not 1") for one in NOT.finditer(sentence)]
    if exercise.id in RETURN_OUTPUTS:
        return [one for one in told if one[0] == -1]
    return told if exercise.id in RETURN_WEIGHTS else []


def with_values_of_1(exercise, arguments):
    if exercise.id == "06.2":
        q, k, v, n_head = arguments
        return q, k, torch.ones_like(v), n_head
    x, W_query, W_key, W_value = (one.clone() for one in arguments)
    x[..., -1] = 1
    W_value[:-1], W_value[-1] = 0, 1
    return x, W_query, W_key, W_value


def sums_of(exercise, mistake, arguments, axis):
    if exercise.id in RETURN_WEIGHTS:
        return mistake.code(*arguments).sum(dim=axis)
    return mistake.code(*with_values_of_1(exercise, arguments))[..., 0]


def sizes_of(exercise, arguments):
    names = list(inspect.signature(exercise.reference).parameters)
    sizes = dict(zip(names, arguments, strict=False)) | exercise._sizes(arguments)  # but defaults
    return {"head_size": sizes.get("d")} | sizes


def fitting(exercise, mistake):
    """The check inputs on which a mistake gives numbers."""
    for arguments, outcome in zip(exercise.inputs, exercise.remembered(mistake.code), strict=True):
        if outcome.error is None and outcome.value.isfinite().all():
            yield arguments


def are(sums, said, sizes):
    if said == "less than 1":
        return bool((sums < 1 + 1e-5).all() and (sums < 0.999).any())
    if said == "not 1":
        return not near(sums, 1)
    root, name = re.fullmatch(r"1(?:/(√?)(\w+))?", said).groups()
    return near(sums, 1 / sizes[name] ** (0.5 if root else 1) if name else 1)


@pytest.mark.parametrize(("exercise", "mistake", "told"), cases_for(says_sums))
def test_rows_and_columns_sum_to_what_the_message_says(exercise, mistake, told):
    inputs = list(fitting(exercise, mistake))
    assert inputs
    for arguments in inputs:
        for axis, excepted, said in told:
            sums = sums_of(exercise, mistake, arguments, axis)
            if "last" in excepted:
                assert near(sums[..., -1], 1)
            assert are(sums, said, sizes_of(exercise, arguments)), said


def says_size(_, sentence):
    found = re.search(r"(several|\S+) times too (large|small)", sentence)
    return found and found.groups()


@pytest.mark.parametrize(("exercise", "mistake", "told"), cases_for(says_size))
def test_a_result_is_as_many_times_too_large_or_too_small_as_the_message_says(
    exercise, mistake, told
):
    many, way = told
    ratios = []
    for arguments in exercise.inputs:
        wrong, right = mistake.code(*arguments), exercise.reference(*arguments)
        sizes = wrong.norm(dim=-1) / right.norm(dim=-1)
        ratio = sizes if way == "large" else 1 / sizes
        if many != "several":
            size = sizes_of(exercise, arguments)[many.removeprefix("√")]
            factor = math.sqrt(size) if many.startswith("√") else size
            assert ratio.median().item() == pytest.approx(factor, rel=0.01)
        ratios.append(ratio)
    assert max(one.max() for one in ratios) > 2 and min(one.min() for one in ratios) > 0.99


def says_together(exercise, sentence):
    return exercise.id in RETURN_WEIGHTS and re.search(r"together( now)? sum to 1", sentence)


@pytest.mark.parametrize(("exercise", "mistake", "_"), cases_for(says_together))
def test_all_weights_together_sum_to_1_where_the_message_says_so(exercise, mistake, _):
    inputs = list(fitting(exercise, mistake))
    assert inputs and all(near(mistake.code(*one).sum(), 1) for one in inputs)


# ---------------------------------------------------------------- small calculations

VALUES = {
    r"e([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)": lambda power: math.exp(math.log10(number(f"10{power}"))),
    r"\be": lambda: math.e,
    r"√(\d+)": lambda n: math.sqrt(int(n)),
    r"(\d+) / (\d+)": lambda a, b: int(a) / int(b),
    r"e to the power of ([\d.]+)": lambda power: math.exp(float(power)),
}


def all_texts():
    for exercise, mistake in MISTAKES:
        yield exercise.id, mistake.message
    for one in PREDICTIONS.values():
        for choice in one.choices.values():
            yield one.id, f"{choice.text} {choice.explanation}"


CALCULATIONS = {
    (id_, found[0]): (value(*found.groups()[:-1]), found.groups()[-1])
    for id_, text in all_texts()
    for left, value in VALUES.items()
    for found in re.finditer(left + r" = (\d+(?:\.\d+)?)", text)
}


@pytest.mark.parametrize("where", CALCULATIONS, ids=" ".join)
def test_a_small_calculation_is_right(where):
    value, said = CALCULATIONS[where]
    assert round(value, len(said.partition(".")[2])) == float(said)


# ---------------------------------------------------------------- what a pass has checked

COUNTS = {"two": 2, "three": 3}


def passes_that_say(pattern):
    """A test case for each exercise whose words for a pass have the pattern, and what it found."""
    return [
        pytest.param(exercise, found, id=exercise.id)
        for exercise in EXERCISES.values()
        if (found := list(re.finditer(pattern, exercise.checked)))
    ]


@pytest.mark.parametrize(
    ("exercise", "found"), passes_that_say(r"^(?:.* on )?(two|three) (?!heads)")
)
def test_a_pass_counts_its_inputs(exercise, found):
    """Inputs of one shape count once: 05.1 has raw and scaled scores of each."""
    tensors = [
        next(getattr(one, "weight", one) for one in case if hasattr(one, "to"))
        for case in exercise.inputs
    ]
    assert len({one.shape for one in tensors}) == COUNTS[found[0][1]]


@pytest.mark.parametrize(("exercise", "found"), passes_that_say(r"(two|three) heads of (\d)"))
def test_a_pass_counts_its_heads(exercise, found):
    said = [(COUNTS[one[1]], int(one[2])) for one in found]
    assert said == [(len(heads), heads[0].value.out_features) for heads, _ in exercise.inputs]


@pytest.mark.parametrize(
    ("exercise", "found"), passes_that_say(r"\b(T|width|decay)[ =](\d+(?:\.\d+)?)")
)
def test_a_pass_names_the_sizes_that_it_checked(exercise, found):
    names = inspect.signature(exercise.reference).parameters
    said = [(one[1], float(one[2])) for one in found]
    assert said == [pair for case in exercise.inputs for pair in zip(names, case, strict=True)]


@pytest.mark.parametrize(
    ("exercise", "found"), passes_that_say(r"(?:in which|with) (.*) (?:all differ|all different)")
)
def test_a_pass_says_truly_that_sizes_differ(exercise, found):
    names = re.findall(r"\w+", found[0][1].replace(" and ", " "))
    for case in exercise.inputs:
        sizes = [sizes_of(exercise, case)[name] for name in names]
        assert len(set(sizes)) == len(names) > 2


@pytest.mark.parametrize(("exercise", "found"), passes_that_say(r"within ([\d.]*\d)"))
def test_a_pass_names_its_tolerance(exercise, found):
    assert float(found[0][1]) == exercise.atol


@pytest.mark.parametrize(("exercise", "found"), passes_that_say(r"at least ([\d.]+) of its weight"))
def test_a_pass_names_the_least_weight(exercise, found):
    assert 1 - float(found[0][1]) == pytest.approx(exercise.atol)
