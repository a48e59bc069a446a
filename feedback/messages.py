"""What is wrong with an answer, and what is right about it, in the words that a learner reads.

`grading` finds out what came back, and chooses from these texts.
"""

import inspect
import re
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attention_base.known import PageError, read
from attention_base.numbers import joined, told_apart

# Folders whose lines are not the learner's own; a project that uses this adds its own.
NOT_THEIRS = [sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"]]

TURNED = "(.T turns all axes round; .mT swaps the last two.)"
RIGHT_BUT = "The numbers are right, but"
# A part of what PyTorch or Python says of a mistake that beginners make -> what to do about it;
# what is unusual about an input -> why a right answer is fragile there.
_SECTIONS = read(Path(__file__).with_name("remedies.md"))
if [section.head for section in _SECTIONS] != ["Errors", "Fragile"]:
    _where = _SECTIONS[-1].where if _SECTIONS else "remedies.md"
    raise PageError(f"{_where}: its sections are `# Errors` and `# Fragile`, in this order.")
REMEDIES, REASONS = (
    {part: known.message for known in section.entries for part in known.name.split(" | ")}
    for section in _SECTIONS
)


# ---------------------------------------------------------------- it could not be run


def not_callable(candidate: Any, reference: Callable, arguments: tuple) -> str:
    """Say why a candidate cannot be called in the place of the reference; "" when it can."""
    name = reference.__name__
    if inspect.isclass(candidate):
        instance = f"{candidate.__name__}(…)"
        return f"You handed over a class; give a function, or an instance: {instance}."
    if not callable(candidate):
        return (
            f"Expected a function, got {_describe(candidate)}.\n"
            f"Hand over the function itself, without brackets after its name: {name}."
        )
    try:
        signature = inspect.signature(candidate)
    except (TypeError, ValueError):  # built-in functions have none
        return ""
    wanted = inspect.signature(reference)
    mine, names = list(signature.parameters), list(wanted.parameters)
    try:
        signature.bind(*arguments)
        fits = sorted(mine) != sorted(names) or mine == names
    except TypeError:
        fits = False
    if fits:
        return ""
    called = ", ".join(names[: len(arguments)])
    return (
        f"Your function takes {signature}, but it is called as {name}({called}).\n"
        f"Its first line should read: def {name}{wanted}:"
    )


def not_attempted(candidate: Callable) -> str:
    """Say that the stub is still there, and, where there is code too, which line to remove."""
    code = getattr(candidate, "__code__", None)
    if code and (len(code.co_names) > 1 or code.co_nlocals > code.co_argcount):
        return "not attempted yet: it still says `raise NotImplementedError`. Take that line out."
    return "not attempted yet."


def not_changed() -> str:
    """Say that the program is still the one to fix."""
    return "not changed yet: this is the program as it was given, and it is wrong."


def raised(error: Exception, candidate: Callable) -> str:
    """Repeat an exception, with the learner's line that led to it, and say what to do."""
    message = f"Your function raised {type(error).__name__}{_in_line(error, candidate)}"
    if is_refused(error, candidate):
        message = ""
    turned = TURNED if re.search(r"\.T\b", message) and isinstance(error, RuntimeError) else ""
    return "\n".join(filter(None, [message, _text(error), remedy(error), turned]))


def is_refused(error: Exception, candidate: Callable) -> bool:
    """Tell whether a function raised nothing itself, and what uses it refused its result."""
    own = hasattr(inspect.unwrap(candidate), "__code__")
    return own and not _learners_line(error, candidate)


def remedy(error: Exception) -> str:
    """Say what to do about an exception that beginners meet; "" for another."""
    text = f"{type(error).__name__}: {_text(error)}"
    return next((remedy for part, remedy in REMEDIES.items() if part in text), "")


def text_of(error: BaseException) -> str:
    """What an exception says, in one line; nothing where its own __str__ raises."""
    try:
        return " ".join(str(error).split())
    except Exception:
        return ""


def _text(error: Exception) -> str:
    return _shorten(text_of(error), 300)


def interrupted(stop: BaseException, candidate: Callable, seconds: int = 0) -> str:
    """Say where a function was that somebody stopped, or a clock after so many seconds."""
    who = f"After {seconds} seconds, check" if seconds else "You"
    return f"{who} stopped your function{_in_line(stop, candidate)}\nDoes every loop in it end?"


def _in_line(error: BaseException, candidate: Callable) -> str:
    frame = _learners_line(error, candidate)
    if not frame or not frame.line:
        return "."
    return f" in line {frame.lineno}: `{_shorten(frame.line, 100)}`"


def _learners_line(error: BaseException, candidate: Callable) -> traceback.FrameSummary | None:
    """Find the innermost line in the candidate's own cell, else in any code but libraries'."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is our own call
    code = getattr(inspect.unwrap(candidate), "__code__", None)
    own = [frame for frame in frames if code and frame.filename == code.co_filename]
    others = [frame for frame in frames if not frame.filename.startswith(tuple(NOT_THEIRS))]
    return (own or others or [None])[-1]


# ---------------------------------------------------------------- what came back is wrong


def changed_input(name: str, given: Any) -> str:
    """Say that an argument was written into; `given` is one such argument."""
    if isinstance(given, nn.Module):
        return (
            f"Your function leaves `{name}` changed: a hook that was not removed, an attribute, or "
            "its parameters.\n"
            f"Its caller still needs `{name}` as it was. Take back what you change, or change a "
            f"copy: copy.deepcopy({name}). Methods that end in _ write into parameters, and "
            ".double() converts them."
        )
    return (
        f"Your function changed its input `{name}`, which its caller still needs.\n"
        f"{name} += y, {name}[…] = y and methods that end in _ write into it, as pop and append do "
        f"into a list. {name} = {name} + y makes a new tensor; .clone() makes a copy."
    )


def forbidden_call(word: str, ready_made: bool = False) -> str:
    """Say that the work was left to a function that has it done already, torch's or another."""
    own = f"a ready-made {word}" if ready_made else f"torch's own {word}"
    return f"Your function calls {own}. Here you write it yourself."


def nothing_returned() -> str:
    """Say that None came back."""
    return "Your function returned None: its `return` is missing, or what it returns is None."


def not_a_tensor(value: Any, expected: Tensor, several: bool) -> str:
    """Say what came back in the place of a tensor, and how to make one of it."""
    message = f"Expected {_describe_expected(expected, several)}, got {_describe(value)}."
    name = type(value).__name__
    if callable(value) and not isinstance(value, nn.Module):
        return f"{message} Are the brackets of a call missing?"
    if several:
        return message
    if isinstance(value, tuple | list) and tensor_shapes(value):
        return f"{message} Return one tensor."
    if type(value).__module__ == "numpy":
        way = "from_numpy" if name == "ndarray" else "tensor"
        return (
            f"{message} Return a tensor: torch.{way}(…) makes one; staying with torch is simpler."
        )
    return f"{message} torch.tensor(…) takes plain numbers." if name == "list" else message


def wrong_shape(value: Tensor, expected: Tensor, several: bool = False) -> str:
    """Compare two shapes; say so where the sizes are right and only their order is not.

    Of several tensors, which came as one stack, it is how many there are, and their shape.
    """
    if several:
        one = value.dim() != expected.dim()
        got = (
            f"one of shape {_shape(value)}" if one else f"{len(value)} of shape {_shape(value)[1:]}"
        )
        return f"Expected {_describe_expected(expected, several)}, got {got}."
    if not expected.dim():
        return f"Expected one number, got a tensor of shape {_shape(value)}."
    message = f"Wrong shape: expected {_shape(expected)}, got {_shape(value)}"
    wanted, got = list(expected.shape), list(value.shape)
    if not got:
        return f"{message}, a single number."
    if sorted(got) == sorted(wanted):
        return f"{message}. The sizes are right; their order is not."
    if [n for n in got if n != 1] == [n for n in wanted if n != 1]:
        if len(got) > len(wanted):
            return f"{message}. An axis of size 1 is left over."
        return f"{message}. An axis of size 1 is missing: keepdim=True keeps it."
    return f"{message}."


def wrong_kind(value: Tensor, expected: Tensor) -> str:
    """Say that the numbers are of another kind, such as whole numbers for floats."""
    remedies = {
        "floats": " Start from floats, or use .float().",
        "True and False": " A comparison, such as == 1, makes them.",
    }
    wanted = kind(expected)
    return f"Expected {wanted}, got {kind(value)} ({value.dtype}).{remedies.get(wanted, '')}"


def wrong_dtype(value: Tensor, expected: Tensor) -> str:
    """Say that the right floats have too many or too few digits."""
    return (
        "PyTorch refuses @ and allclose between two dtypes, so cells below would fail. Leave out "
        f"dtype=… and .double(), or end with .to({expected.dtype})."
    )


def not_plain() -> str:
    """Say that the right numbers came in a sparse tensor."""
    return (
        "The numbers are right, but they come in a sparse tensor, which most functions of PyTorch "
        "refuse, so cells below would fail. Return a plain tensor: end with .to_dense()."
    )


def wrong_numbers(value: Tensor, expected: Tensor, right: Tensor, part: str = "") -> str:
    """Show the first difference, where `right` says which numbers are right.

    `part` is the name of the result, where it is one of several.
    """
    index = tuple((~right).nonzero()[0].tolist())
    wanted, got = told_apart(expected[index].item(), value[index].item())
    if part:
        return f"In your {part}, the number at {list(index)} is {got}, not {wanted}."
    return f"{f'out{list(index)}' if index else 'Your result'} is {got}, not {wanted}."


def wrong_part(wrong: str, right: Sequence[str]) -> str:
    """Say which one of several results is wrong."""
    return f"Your {joined(list(right))} are right, your {wrong} are not."


def told_of_part(texts: Sequence[str], name: str) -> tuple[str, ...]:
    """What was observed of a result, said of one of several, whose name is a plural."""
    told: list[str] = []
    for text in texts:
        for one, many in (("is", "are"), ("was", "were"), ("has", "have"), ("does", "do")):
            text = re.sub(rf"\b([Yy])our result {one}\b", rf"\1our {name} {many}", text)
        text = re.sub(r"\b([Yy])our result\b", rf"\1our {name}", text)
        text = text.replace(f"{name} are the right one ", f"{name} are the right ones ")
        text = text.replace(", and is wrong ", ", and are wrong ")
        if not told and f"our {name}" not in text:
            text = f"Of your {name}: {text[0].lower()}{text[1:]}"
        told.append(text)
    return tuple(told)


def lost(value: Tensor, expected: Tensor) -> str:
    """Say how many numbers are nan or inf, and what makes them so; "" where none is."""
    lost = ~value.isfinite() & expected.isfinite()
    if not lost.any():
        return ""
    message = f"{int(lost.sum())} of {value.numel()} numbers are nan or inf."
    if value.isnan().any():
        message += " nan comes of 0 / 0, inf / inf, inf - inf, 0 * inf, or of the root or the "
        message += "logarithm of a negative number, and then spreads."
    return message


# ---------------------------------------------------------------- right, but …


def right_but(
    told: str, problem: str, lost: Sequence[str], candidate: Callable, advice: str = ""
) -> str:
    """Say for which other input a right answer turns out to be wrong, and what is lost there.

    The advice is for the one property that is lost.
    """
    message = f"Right for the first inputs, but not for {told}.\n{problem}"
    if lost:
        message += f"\nWhat does not hold there: {', '.join(lost)}."
        message += f" {advice}" if advice and len(lost) == 1 else ""
    elif "as large" in told:
        message += low_mask(candidate)
    if " ax" in told or "..." in told:
        message += "\nThe ... in the docstring stands for any number of axes in front."
    return message


def low_mask(candidate: Callable) -> str:
    """Ask for the number with which scores are masked; "" where none is seen to be."""
    asked = " Is your mask minus infinity, or a number that is not low enough there?"
    return asked if "masked_fill" in _source(candidate) else ""


def fragile(told: str, reason: str, error: Exception | None, value: Any, expected: Any) -> str:
    """Say for which input that the task does not name a right answer fails, and why."""
    expected, head = torch.as_tensor(expected), f"One more thing: with {told}"
    if error is not None:
        text = _shorten(text_of(error).rstrip("."), 120)
        what = f"{head}, your function raises {type(error).__name__}{': ' + text if text else ''}"
        return f"{what}, because {REASONS[reason]}." if reason == "float64" else f"{what}."
    if (value := torch.as_tensor(value)).shape != expected.shape:
        what = f"your result has the shape {_shape(value)}, not {_shape(expected)}"
    elif not value.isfinite().all():
        what = f"{int((~value.isfinite()).sum())} of {value.numel()} numbers are nan or inf"
    else:
        far = (value.double() - expected.double()).abs().flatten()
        wanted, got = (one.flatten()[far.argmax()].item() for one in (expected, value))
        what = "a number is {1} where {0} is right".format(*told_apart(wanted, got))
    return f"{head}, {what}, because {REASONS[reason]}."


def because(reason: str) -> str:
    """Say why an answer fails, in a sentence of its own."""
    return f"{REASONS[reason][0].upper()}{REASONS[reason][1:]}."


def backward_in_place() -> str:
    """Say that a right answer cannot be trained."""
    return (
        "One more thing: in training, backpropagation would stop with an error, because numbers "
        "that it needs are changed in place. z = z + y makes a new tensor, z += y changes z."
    )


def fewer_inputs() -> str:
    """Say that a slow answer was tried on smaller inputs."""
    return (
        "One more thing: your function takes long, so only smaller inputs were tried. Operations "
        "on whole tensors in the place of loops in Python take less."
    )


def property_missing(name: str, atol: float, advice: str = "") -> str:
    """Say that the numbers are near enough, and still lack something."""
    within = f"Every number is within {atol:g} of the right one"
    return f"{within}, but this does not hold: {name}. {advice}".rstrip()


def missing_call(what: str, names: Sequence[str]) -> str:
    """Say that a step that the task asks for is not there."""
    return (
        f"{RIGHT_BUT} the task asks for a {what}, and your function calls none of "
        f"{', '.join(names[:4])}."
    )


def loops(noun: str, letter: str, counts: Sequence[tuple[int, int]], called: Sequence[str]) -> str:
    """Say that Python works longer along an axis, so that there is a loop over it.

    `called` names the functions that were called, such as the answer of an earlier exercise.
    """
    (few, a), (many, b) = counts
    through = f"calls {joined(list(called))}, which loops" if called else "loops"
    return (
        f"{RIGHT_BUT} your function {through} over the {noun}s in Python, and the "
        f"task asks for a way without this loop. (With {letter} = {many} in the place of {few}, "
        f"Python takes {b / a:.1f} times as many steps.)"
    )


CUTS = (
    "math.",
    "load_state_dict",
    ".detach(",
    ".data",
    "no_grad",
    ".item(",
    ".tolist(",
    ".numpy(",
    "torch.tensor(",
)


def raised_with_gradients(error: Exception, candidate: Callable) -> str:
    """Say that the numbers are right, and that it raises where gradients are wanted."""
    told = raised(error, candidate).replace("Your function raised", "there your function raised", 1)
    return f"{RIGHT_BUT} in training the inputs ask for gradients, and {told}"


def wrong_gradient(name: str, none: bool, candidate: Callable) -> str:
    """Say which argument gets no gradient, or a wrong one, and what in the code may be why."""
    what = f"no gradient reaches `{name}`" if none else f"the gradient of `{name}` is not"
    message = f"{RIGHT_BUT} {what}, so training would go wrong."
    found = next((cut for cut in CUTS if cut in _source(candidate)), "")
    return f"{message}\n`{found.strip('.(')}` in your code may cut it off." if found else message


def _source(function: Callable) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


# ---------------------------------------------------------------- what it was given, and what holds


def inputs(names: Sequence[str], arguments: tuple) -> str:
    """Write the arguments of a call: tensors by shape, all else as it is; modules only alone."""
    texts = [
        f"{name} of shape {_shape(argument)}"
        if isinstance(argument, Tensor)
        else f"{name} = {_shorten(_write(argument), 400)}"
        for name, argument in zip(names, arguments, strict=False)
        if not isinstance(argument, nn.Module) or len(arguments) == 1
    ]
    return f"Input: {', '.join(texts)}."


def what_holds(
    value: Tensor,
    expected: Tensor,
    right: Tensor,
    properties: Sequence[tuple[str, bool, bool]] = (),
) -> str:
    """Say what is right about a wrong answer of the right shape, which narrows the search.

    `right` says which numbers are. Of each property come its name, whether the answer has it, and
    whether it should.
    """
    finite = bool(value.isfinite().all())
    holds = [f"the shape {_shape(value)}", *(["all numbers finite"] if finite else [])]
    holds += [name for name, has, should in properties if has and should]
    fails = [name for name, has, should in properties if should and not has and finite]
    extra = [name for name, has, should in properties if has and not should]
    count = f"{int(right.sum())} of the {right.numel()} numbers are right"
    message = f"{count}. What holds: {', '.join(holds)}."
    if fails:
        message += f" What does not: {', '.join(fails)}."
    if extra:
        message += f" What should not hold: {', '.join(extra)}."
    return "\n".join(filter(None, [lost(value, expected), message]))


def broken_experiment(name: str, error: Exception) -> str:
    """Say that we could not find out something, which is our fault."""
    return (
        f"(One of our experiments with your answer broke: {name}, {type(error).__name__}: {error}. "
        "That is a fault of these notebooks; please report it.)"
    )


# ---------------------------------------------------------------- what a value is


def kind(tensor: Tensor) -> str:
    """Say what the numbers of a tensor are: floats, whole numbers, …."""
    if tensor.dtype == torch.bool:
        return "True and False"
    if tensor.is_complex():
        return "complex numbers"
    return "floats" if tensor.is_floating_point() else "whole numbers"


def tensor_shapes(value: Any) -> set[tuple[int, ...]]:
    """The different shapes of the tensors in a tuple or list; none if it is anything else."""
    if not isinstance(value, tuple | list) or not all(isinstance(v, Tensor) for v in value):
        return set()
    return {_shape(tensor) for tensor in value}


def _describe(value: Any) -> str:
    """Say what came back in the place of what was expected."""
    if value is None:
        return "None"
    if len(shapes := tensor_shapes(value)) > 1:
        told = joined([str(_shape(tensor)) for tensor in value[:6]])
        more = " …" if len(value) > 6 else ""
        return f"{len(value)} tensors of the shapes {told}{more}"
    if isinstance(value, Tensor):
        return f"a tensor of shape {_shape(value)}, which looks like a result"
    name = type(value).__name__
    if shapes and name in ("list", "tuple"):
        return f"a {name} of {len(value)} tensors of shape {next(iter(shapes))}"
    if type(value).__module__ == "numpy":
        return "a numpy array" if name == "ndarray" else f"a number of numpy ({name})"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _describe_expected(expected: Tensor, several: bool) -> str:
    if several:
        return f"{len(expected)} tensors of shape {_shape(expected[0])}"
    return f"a tensor of shape {_shape(expected)}" if expected.dim() else "one number"


def _write(argument: Any) -> str:
    """Write an argument that is no tensor within a line."""
    if isinstance(argument, list):
        more = f", … {len(argument)} in all" if len(argument) > 4 else ""
        return f"[{', '.join(map(_write, argument[:4]))}{more}]"
    if isinstance(argument, nn.Module) and not isinstance(argument, nn.Linear):
        return f"{type(argument).__name__}(…)"
    return argument.__name__.lstrip("_") if inspect.isfunction(argument) else repr(argument)


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + " …"


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
