"""Every exercise and prediction of every notebook keeps what the grader promises."""

import ast
import functools
import inspect
import itertools

import pytest
import torch
from torch import nn

from attention_base.known import execute, source
from feedback.judge import Judge
from feedback.observations.steps import what_it_is
from lesson.builds import right_08
from lesson.exercises import EXERCISES, PREDICTIONS
from tests.lesson.answers import nb12
from tests.lesson.examples import CALLED, OF_TENSORS, OTHER_FORMS
from tests.told import Told

exercise = pytest.mark.parametrize("exercise", CALLED.values(), ids=CALLED.keys())
prediction = pytest.mark.parametrize("prediction", PREDICTIONS.values(), ids=PREDICTIONS.keys())
RAISE = "max without .values", "no weights", "weights on both paths", "the two paths exchanged"
RAISE += ("a list in the place of a letter", "the dict in the place of its counts")
RAISE += "one step too far", "the last answer but one", "added, not appended"
RAISE += "one token too few", "one letter too few", "the whole table", "h // n_kv_head", "h % times"

# Compiles every mistake: one whose change does not fit its reference stops the tests right here.
CODES = {
    (exercise.id, mistake.name): mistake.code
    for exercise in EXERCISES.values()
    for mistake in exercise.mistakes
}


@exercise
def test_reference_passes(exercise):
    verdict = exercise.check(exercise.reference)
    assert (verdict.status, verdict.mistake) == ("passed", None), verdict.message
    assert verdict.message, "a pass says what was checked"


@pytest.mark.parametrize("exercise", [one for one in EXERCISES.values() if one.parts])
def test_of_several_results_that_are_right_it_is_told_what_else_is_wrong(exercise):
    def overwrites(q, *arguments):
        returned = exercise.reference(q.clone(), *arguments)
        q /= 2
        return returned

    def in_double(*arguments):
        return [z if z is None else z.double() for z in exercise.reference(*arguments)]

    for candidate, told in ((overwrites, "`q`"), (in_double, "float64")):
        verdict = exercise.check(candidate)
        assert verdict.status == "failed" and told in verdict.message, verdict.message


@exercise
def test_stub_counts_as_not_attempted(exercise):
    def stub(*args):
        raise NotImplementedError

    assert exercise.check(stub).status == "not attempted"


@pytest.mark.parametrize("exercise", [one for one in EXERCISES.values() if one.given])
def test_a_program_to_mend_is_wrong_and_told_from_other_code_with_its_numbers(exercise):
    assert exercise.check(exercise.given).status == "not attempted"
    assert inspect.signature(exercise.given) == inspect.signature(exercise.reference)
    in_other_code = exercise.check(lambda *arguments: exercise.given(*arguments))
    assert in_other_code.mistake == "as it was given"


@exercise
def test_accepted_forms_pass(exercise):
    for form in exercise.accepted:
        assert exercise.check(form).status == "passed", form.__name__


def renamed(function):
    """The same program, with other names for its variables; its arguments keep theirs."""
    if function.__closure__:  # made by another function, without variables of its own
        return function
    tree = ast.parse(source(function))
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {name.id for name in names if isinstance(name.ctx, ast.Store)} - arguments
    for name in names:
        if name.id in own:
            name.id = f"my_{name.id}"
    defined = {}
    execute(ast.unparse(tree), f"{function.__name__} renamed", function.__globals__, defined)
    return defined[tree.body[0].name]


@exercise
def test_each_mistake_is_named_with_its_own_message_whatever_its_variables_are_called(exercise):
    for mistake in exercise.mistakes:
        verdict = exercise.check(renamed(mistake.code))
        assert verdict.status == "failed", f"{mistake.name} passes"
        assert (verdict.mistake, verdict.message) == (mistake.name, mistake.message)
        assert "Input: " in verdict.details
        slips = AttributeError, IndexError, NameError, TypeError
        kinds = {type(one.error) for one in mistake.outcomes} & {*slips}
        assert not kinds or mistake.name in RAISE, f"{mistake.name} stops by a slip of ours"


STEPS = [
    pytest.param(one, *step, id=f"{id}, {step[0]}")
    for id, one in CALLED.items()
    for step in one.intermediates
]


@pytest.mark.parametrize(("exercise", "name", "compute"), STEPS)
def test_a_step_on_the_way_is_told_by_its_name(exercise, name, compute, snapshot):
    answer = lambda *arguments: compute(*arguments)  # noqa: E731
    answer.__signature__ = inspect.signature(exercise.reference)
    trial = Judge(exercise, answer).trial()
    assert f"Your result is {name}." in [one.text for one in what_it_is(trial)]
    assert "; ".join(map(summed, trial.values)) == snapshot.use_extension(Told)


def summed(z):
    """The shape of a tensor, and its sum, in which each number counts by its place."""
    z = torch.as_tensor(z).double()
    places = torch.arange(1, z.numel() + 1).view(z.shape)
    return f"{tuple(z.shape)}, {(places * z)[z.isfinite()].sum():.4g}"


@exercise
def test_right_forms_mistakes_and_what_is_to_be_mended_give_what_is_stored(exercise, snapshot):
    forms = {"reference": exercise.reference, "given": exercise.given}
    forms |= {form.__name__: form for form in exercise.accepted}
    forms |= {mistake.name: mistake.code for mistake in exercise.mistakes}
    told = [
        f"{name}: " + "; ".join(summed_up(one) for one in exercise.run(form))
        for name, form in forms.items()
        if form
    ]
    assert "\n".join(told) == snapshot.use_extension(Told)


@exercise
@pytest.mark.filterwarnings("ignore")
def test_what_comes_back_in_another_form_is_told_as_it_is_stored(exercise, snapshot):
    """Never an error of ours, whatever comes back, and always the same words."""
    seen = []

    def of_tensors(form, returned):
        if isinstance(returned, tuple):
            return tuple(of_tensors(form, z) for z in returned)
        seen.append(isinstance(returned, torch.Tensor) and returned.dim() > 1)
        return form(returned) if seen[-1] else returned

    told = []
    for name, form in (OTHER_FORMS | OF_TENSORS).items():
        change = functools.partial(of_tensors, form) if name in OF_TENSORS else form
        seen.clear()
        verdict = exercise.check(lambda *a, change=change, **b: change(exercise.reference(*a, **b)))
        if name in OTHER_FORMS or any(seen):
            told.append(f"{name}: {verdict.status}, {verdict.mistake}: {verdict.told()}")
    assert "\n\n".join(told) == snapshot.use_extension(Told)


def summed_up(outcome):
    value = outcome.effect if outcome.effect is not None else outcome.value
    try:
        return summed(value)
    except (TypeError, ValueError, RuntimeError):
        return str(value or type(outcome.error).__name__)


@exercise
def test_any_two_mistakes_differ(exercise):
    outcomes = {mistake.name: [*mistake.outcomes] for mistake in exercise.mistakes}
    assert len(outcomes) == len(exercise.mistakes), "two mistakes of one name"
    for one, other in itertools.combinations(outcomes, 2):
        assert not exercise.same(outcomes[one], outcomes[other]), f"{one} = {other}"


@exercise
def test_a_change_keeps_the_name_and_arguments_of_the_reference(exercise):
    for mistake in exercise.mistakes:
        code = CODES[exercise.id, mistake.name]
        assert inspect.signature(code) == inspect.signature(exercise.reference)
        if mistake.known.changes and not mistake.function:
            assert code.__name__ == exercise.reference.__name__
            assert source(code) != source(exercise.reference)


def spoiling(*arguments):
    """Change everything that can be changed in the arguments."""
    for argument in arguments:
        if isinstance(argument, nn.Module):
            spoiling(*(parameter.data for parameter in argument.parameters()))
        elif isinstance(argument, torch.Tensor):
            argument.detach().fill_(7.0)
        elif isinstance(argument, list):
            spoiling(*argument)
            argument.clear()
    return torch.zeros(2, 3)


@exercise
def test_an_answer_cannot_spoil_what_is_remembered(exercise):
    assert exercise.check(spoiling).status == "failed"
    assert exercise.check(exercise.reference).status == "passed"
    last = exercise.mistakes[-1]
    assert exercise.check(last.code).mistake == last.name


def with_this_head(layer, x, head, change):
    """What a layer gives while a hook changes the channels of a head."""

    def hook(_, args):
        parts = [part.clone() for part in args[0].split(x.shape[-1] // layer.n_head, dim=-1)]
        parts[head] = change(parts[head])
        return (torch.cat(parts, dim=-1),)

    handle = layer.proj.register_forward_pre_hook(hook)
    return layer(x), handle


def stops_at_other_heads(layer, x, head):
    heads = {3: 1, 4: 2, 2: 0}  # of the check inputs, by the number of heads

    def change(part):
        assert heads[layer.n_head] == head
        return 2 * part

    out, handle = with_this_head(layer, x, head, change)
    handle.remove()
    return out


def takes_its_time(layer, x, head):
    def change(part):
        for _ in range(10**9 if x.shape[1] > 100 else 1):
            pass
        return 0 * part

    out, handle = with_this_head(layer, x, head, change)
    handle.remove()
    return out


@pytest.mark.parametrize(
    "spoiler", [nb12.hook_left, nb12.forward_replaced, nb12.hook_left_on_proj, nb12.one_head_less]
)
def test_a_layer_that_is_left_changed_is_told_and_spoils_no_later_answer(spoiler):
    exercise = EXERCISES["12.2" if "pattern" in inspect.signature(spoiler).parameters else "12.3"]
    verdict = exercise.check(spoiler)
    assert verdict.status == "failed"
    assert verdict.message.startswith("Your function leaves `layer` changed: a hook that was not ")
    assert exercise.check(exercise.reference).status == "passed"


@pytest.mark.parametrize("spoiler", [stops_at_other_heads, takes_its_time])
def test_an_answer_that_is_stopped_on_the_way_spoils_no_later_answer(spoiler):
    exercise = EXERCISES["12.3"]
    exercise.check(spoiler)
    verdict = exercise.check(exercise.reference)
    assert (verdict.status, verdict.notes) == ("passed", ())


def test_what_is_remembered_is_small():
    numbers = 0
    for exercise in EXERCISES.values():
        for mistake in exercise.mistakes:
            for outcome in mistake.outcomes:
                if isinstance(outcome.value, torch.Tensor):
                    numbers += outcome.value.numel()
                if outcome.error:
                    assert outcome.error.__traceback__ is None, "it keeps all local variables"
    assert numbers < 250_000, "less than a megabyte, at 4 bytes each"


def sizes_differ(tensor):
    """Whether no two axes can be taken for one another; (T, T) counts as one axis."""
    shape = list(tensor.shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        shape.pop()
    return len(set(shape)) == len(shape) and min(shape) > 1


@exercise
def test_no_mistake_hides_in_the_inputs(exercise):
    cases = exercise.cases()
    assert len(cases) > 1
    tensors = [[value for value in case if torch.is_tensor(value)] for case in cases]
    assert any(all(map(sizes_differ, case)) for case in tensors)
    for tensor in itertools.chain(*tensors):
        if tensor.dim() == 3:
            assert not torch.equal(tensor[0], tensor[1]), "all sequences are alike"


@prediction
def test_no_two_choices_of_a_prediction_are_alike(prediction):
    for what in ("text", "explanation"):
        texts = {getattr(choice, what) for choice in prediction.choices.values()}
        assert len(texts) == len(prediction.choices)


def test_a_mistake_is_named_where_an_error_of_pytorch_is_all_that_names_it():
    def keeps_the_mean_only(x, eps=1e-5):
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred / (x.var(dim=-1, unbiased=False) + eps).sqrt()

    assert EXERCISES["07.2"].check(keeps_the_mean_only).mistake == "axis not kept"


class WithoutBase(right_08.MultiHeadAttention):
    def __init__(self, C, n_head):
        super().__init__(C, n_head)


class NotCausal(right_08.MultiHeadAttention):
    def forward(self, x):
        return super().forward(x.flip(1)).flip(1)


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (WithoutBase, "Your MultiHeadAttention is not that of 08, made with (C, n_head, base)"),
        (NotCausal, "itself gives other numbers than the one of 08"),
    ],
)
def test_the_class_is_blamed_and_not_what_fills_it(cls, said):
    mine = {"MultiHeadAttention": cls}  # as in the notebook
    text = "def fill(attention, query, key, value, proj):\n    pass\n"
    execute(text, "a notebook", mine, mine)
    verdict = EXERCISES["15.fill"].check(mine["fill"])
    assert verdict.status == "failed" and said in " ".join(verdict.message.split())
