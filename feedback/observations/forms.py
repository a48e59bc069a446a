"""Wrong shapes, wrong types and crashes: what can be found out all the same."""

import ast
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attention_base.numbers import joined
from feedback import axes as names_of_axes
from feedback.calls import is_number
from feedback.contracts import other_fronts
from feedback.observations.order import Rank
from feedback.observations.trial import ORDINALS, Observation, Trial

TAKEN = ": is one taken for the other?"
EXAMPLES = (8, 32, 16, 64, 10, 3, 4, 5, 6)  # sizes that examples often have


def what_form_it_has(trial: Trial) -> Iterator[Observation]:
    """The shape in letters, the right result inside a tuple, or where it runs at all."""
    if not trial.got[trial.shown].error:
        if any(outcome.changed_input for outcome in trial.got) and all(trial.right):
            yield Observation(Rank.ONE_RULE, "The numbers that your function returns are right.")
        yield from _another_type(trial)
        yield from _inside(trial)
        yield from _pieces(trial)
        yield from _shape_in_letters(trial)


# ---------------------------------------------------------------- types


def _another_type(trial: Trial) -> Iterator[Observation]:
    """Right numbers of another dtype or in an array; or an argument that is no tensor."""
    values = [outcome.value for outcome in trial.got]
    if all(isinstance(v, np.ndarray) for v in values):
        tensors = [torch.from_numpy(v).double() for v in values]
        if all(map(trial.same, tensors, trial.wanted)):
            text = "The numbers are right, but they stand in a NumPy array, not in a tensor."
            yield Observation(Rank.OTHER_FORM, text)
    elif all(trial.right) and all(isinstance(v, Tensor) for v in values):
        got, wanted = values[0].dtype, torch.as_tensor(trial.expected[0].value).dtype
        if got != wanted and values[0].is_floating_point():
            text = f"The numbers are right, but they are {got}, not {wanted}."
            yield Observation(Rank.OTHER_FORM, text)
    for i, name in enumerate(trial.names[: len(trial.inputs[0])]):
        given = [case[i] for case in trial.inputs]
        if all(map(_same_module, values, given)):
            yield Observation(Rank.STEP, f"Your result is `{name}` itself, unchanged.")


def _same_module(value: Any, given: Any) -> bool:
    if not isinstance(value, nn.Module) or type(value) is not type(given):
        return False
    pairs = zip(value.state_dict().values(), given.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


# ---------------------------------------------------------------- shapes


def _shape_in_letters(trial: Trial) -> Iterator[Observation]:
    pairs = list(zip(trial.values, trial.wanted, strict=True))
    wrong = [i for i, (v, e) in enumerate(pairs) if v is not None and v.shape != e.shape]
    if not wrong:
        return
    known = [trial.sizes[i] for i in wrong]
    shapes = [(trial.values[i].shape, trial.wanted[i].shape) for i in wrong]
    gone = [axis for axis in range(4) if all(_without(b, axis) == a for a, b in shapes)]
    if len(gone) == 1:
        yield Observation(Rank.WEIGHTED_SUM, f"Axis {gone[0]} is missing in your result.")
    right = trial.axes.get("return", "")
    likely = names_of_axes.letters(right)
    got = names_of_axes.spelled([tuple(a) for a, _ in shapes], known, likely)
    if got and not trial.wanted[0].dim():
        yield Observation(Rank.SHAPE, f"In letters, your result is {got}; it should be one number.")
    elif got and right and "..." not in right:
        wanted = ", ".join(names_of_axes.letters(right))
        yield Observation(Rank.SHAPE, f"In letters, your result is {got}; it should be ({wanted}).")


def _without(shape: torch.Size, axis: int) -> torch.Size | None:
    return shape[:axis] + shape[axis + 1 :] if axis < len(shape) else None


# ---------------------------------------------------------------- several values


def _inside(trial: Trial) -> Iterator[Observation]:
    """A tuple, a list or a dict that holds the right result, or makes it up."""
    values = [outcome.value for outcome in trial.got]
    if all(isinstance(v, dict) for v in values):
        parts = [list(v.values()) for v in values]
        if trial.several and _all_make(trial, parts, torch.stack):
            text = "The values of your dict are the right tensors: return them as a tuple."
            yield Observation(Rank.OTHER_FORM, text)
        return
    if not all(isinstance(v, tuple | list) and v for v in values):
        return
    kind = type(values[0]).__name__
    for i in range(min(map(len, values))):
        parts = [_number_or_none(v[i]) for v in values]
        if all(map(trial.same, parts, trial.wanted)):
            text = f"Item {i} of the {len(values[0])} in your {kind} is the right result"
            yield Observation(Rank.OTHER_FORM, f"{text}: return it alone.")
            return
        turned = [p.mT if p is not None and p.dim() > 1 else None for p in parts]
        if all(map(trial.same, turned, trial.wanted)):
            text = f"Item {i} of your {kind} is the right result transposed."
            yield Observation(Rank.OTHER_FORM, text)
            return
    for make, dim in [(m, d) for m in (torch.cat, torch.stack) for d in (-1, 0, 1, 2)]:
        if _all_make(trial, values, lambda parts, make=make, dim=dim: make(parts, dim=dim)):
            call = f"torch.{make.__name__}(…, dim={dim})"
            text = f"Your {kind} holds the right numbers in parts: {call} joins them."
            yield Observation(Rank.OTHER_FORM, text)
            return
    if _all_make(trial, values, lambda parts: torch.tensor(parts, dtype=torch.double)):
        of = "NumPy arrays" if isinstance(values[0][0], np.ndarray) else "numbers"
        text = f"The numbers are right, but your result is a {kind} of {of}, not a tensor."
        yield Observation(Rank.OTHER_FORM, text)


def _number_or_none(value: Any) -> Tensor | None:
    return torch.as_tensor(value).detach().double() if is_number(value) else None


def _all_make(trial: Trial, values: Sequence[Any], make: Callable) -> bool:
    """Tell whether in every input the parts make up the right result."""
    try:
        made = [make(list(parts)).detach().double() for parts in values]
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
        return False
    return all(map(trial.same, made, trial.wanted))


def _pieces(trial: Trial) -> Iterator[Observation]:
    """Which rows of an argument the pieces are, where several tensors are wanted."""
    value = trial.got[trial.shown].value
    if (
        not trial.several
        or not isinstance(value, tuple | list | Tensor)
        or trial.right[trial.shown]
    ):
        return
    if not all(isinstance(piece, Tensor) for piece in value) or not 0 < len(value) <= 8:
        return
    whole = next((a for a in trial.inputs[trial.shown] if isinstance(a, Tensor)), None)
    told = [_rows_of(piece.detach(), whole) for piece in value]
    right = [_rows_of(piece, whole) for piece in trial.wanted[trial.shown]]
    if all(told) and all(right):
        text = f"Your pieces are {_in_order(told)}; they should be {_in_order(right)}."
        yield Observation(Rank.OTHER_FORM, text)


def _in_order(told: list[str]) -> str:
    return joined([f"({i}) {text}" for i, text in enumerate(told)])


def _rows_of(piece: Tensor, whole: Tensor) -> str:
    """Say which rows of a matrix a piece is; "" when it is none."""
    if piece.dim() != 2 or piece.shape[1] != whole.shape[1]:
        return ""
    n = len(piece)
    if not n:
        return "no rows"
    for matrix, turned in ((piece, ""), (piece.mT, " transposed")):
        if matrix.shape[1] != whole.shape[1]:
            continue
        alike = (matrix.double()[:, None] == whole.double()).all(-1)  # (n, all rows)
        if alike.any(1).all():
            rows = alike.double().argmax(1).tolist()
            return f"row{'s' if len(rows) > 1 else ''} {_numbers(rows)}{turned}"
    return ""


def _numbers(rows: list[int]) -> str:
    """Numbers of rows: "0 to 5" where none is left out, else the first few."""
    if len(rows) > 2 and rows == list(range(rows[0], rows[0] + len(rows))):
        return f"{rows[0]} to {rows[-1]}"
    return joined([str(row) for row in rows]) if len(rows) < 5 else f"{str(rows[:4])[1:-1]}, …"


# ---------------------------------------------------------------- it raises


def where_it_runs(trial: Trial) -> tuple[str, Trial, str] | None:
    """An input for which a function that raises does not raise, and what this would show.

    Where some of the check inputs run and are right, it is told among the places.
    """
    runs = [i for i, outcome in enumerate(trial.got) if not outcome.error]
    if runs:
        right = any(trial.right[i] for i in runs)
        return None if right else (f"For the {ORDINALS[runs[0]]} input", trial.only(runs), "")
    tried = [
        (told, guess, [there for arguments in inputs if (there := trial.on(arguments))])
        for told, guess, inputs in _gentler(trial)
    ]
    for told, guess, trials in tried:
        if trials and all(all(there.right) for there in trials):
            return f"For {told}", trials[0], guess
    for told, _, trials in tried:
        for there in trials:
            # A size of 1 hides many a mistake.
            if not there.got[0].error and 1 not in there.sizes[0].values():
                return f"For {told}", there, ""
    return None


def _gentler(trial: Trial) -> Iterator[tuple[str, str, list[tuple]]]:
    """Inputs for which mixed-up axes or sizes do not raise, and what they would show."""
    case, sizes, written_in = trial.inputs[0], trial.sizes[0], _numbers_in_the_source(trial)
    own = names_of_axes.all_letters(trial.axes)
    letters = [k for k, n in sizes.items() if n > 1 and k in own]
    for told, arguments in other_fronts(case, trial.axes, trial.names):
        yield told, "", [arguments]
    for a, b in itertools.combinations(letters, 2):
        both = [_with_sizes(trial, {a: size, b: size}) for size in sorted((sizes[a], sizes[b]))]
        yield f"{a} = {b}", TAKEN, both
    others = [k for k in sizes if k not in own]  # such as the number of heads
    for a, b in itertools.product([k for k in letters if k in ("B", "T")], others):
        yield f"{a} = {b}", TAKEN, [_with_sizes(trial, {a: sizes[b]})]
    for a in letters:
        for size in EXAMPLES:
            guess = ": is this size written into your code?" if size in written_in else ""
            yield f"{a} = {size}", guess, [_with_sizes(trial, {a: size})]


def _with_sizes(trial: Trial, sizes: dict[str, int]) -> tuple:
    arguments = trial.inputs[0]
    for letter, size in sizes.items():
        arguments = names_of_axes.resized(trial.axes, trial.names, arguments, letter, size)
    return arguments


def _numbers_in_the_source(trial: Trial) -> set[int]:
    """The whole numbers in the candidate's code, its own and those of names from outside."""
    names = getattr(getattr(trial.candidate, "__code__", None), "co_names", ())
    around = getattr(trial.candidate, "__globals__", {})
    outside = {around[name] for name in names if type(around.get(name)) is int}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(trial.candidate)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return outside
    fills = [node for node in ast.walk(tree) if isinstance(node, ast.UnaryOp)]  # -10
    fills = {id(inner) for node in fills for inner in ast.walk(node)}
    own = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in fills]
    return outside | {n for n in own if type(n) is int}
