"""Calls a function as an exercise does, and notes what came of it.

The arguments are copies, and the random state and the number of threads are the same each time, so
that nothing of a call is left behind.
"""

import ast
import copy
import dis
import inspect
import io
import math
import re
import signal
import sys
import sysconfig
import textwrap
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from threading import current_thread, main_thread
from types import CodeType, FrameType
from typing import Any, TextIO

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attention_base.same import same, same_conditions, seed_all
from feedback.messages import tensor_shapes, text_of

MOST_LINES = 20  # of what an answer prints
# Where Python's steps are not counted.
LIBRARIES = (sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"])


@dataclass(frozen=True)
class Outcome:
    """What came of one call: a value or an exception, and what else it did."""

    value: Any = None
    error: BaseException | None = None
    plain: bool = True  # whether the value was no sparse tensor; it is none here
    changed_input: str | None = None  # the name of the argument that was written into
    called: frozenset[str] = frozenset()  # functions of torch, where they were watched
    effect: Tensor | None = None  # what is judged in the place of the value, if anything is
    failure: str = ""  # what is wrong with the effect, or why there is none


def call(
    function: Callable, arguments: tuple, names: Sequence[str], several: bool = False, seed: int = 0
) -> Outcome:
    """Call a function with copies of the arguments; what it raises becomes part of the outcome.

    Parameters
    ----------
    function, arguments
        What to call, and with what.
    names
        The names of the arguments.
    several
        Whether a tuple, a list or an iterator of tensors of one shape counts as their stack.
    seed
        Of the random state.
    """
    with same_conditions(seed), warnings.catch_warnings():
        # PyTorch warns of .T on a batch, with a line of ours; the verdict names the mistake.
        warnings.filterwarnings("ignore", message="The use of `x.T`")
        return _call(function, arguments, names, several)


def call_again(
    function: Callable,
    arguments: tuple,
    names: Sequence[str],
    several: bool = False,
    seed: int = 0,
    share_modules: bool = False,
) -> Outcome:
    """Do the same as `call`, faster, for many calls within `same_conditions`.

    Parameters
    ----------
    function, arguments, names, several, seed
        As in `call`.
    share_modules
        Give it the modules themselves, not copies: for a function that was seen to change none.
    """
    if torch.get_num_threads() != 1:  # the call before may have changed it
        torch.set_num_threads(1)
    seed_all(seed)
    return _call(function, arguments, names, several, share_modules)


def _call(
    function: Callable,
    arguments: tuple,
    names: Sequence[str],
    several: bool,
    share_modules: bool = False,
) -> Outcome:
    given = [_shared(argument) if share_modules else copied(argument) for argument in arguments]
    plain = True
    try:
        value = function(*given)
        if several and isinstance(value, Iterator):
            value = tuple(value)
        if several and len(tensor_shapes(value)) == 1:
            value = torch.stack(tuple(value))
        if isinstance(value, Tensor):  # a copy, since a later call may use the same memory
            plain = value.layout == torch.strided
            value = value.detach().cpu().to_dense().clone()
    except (KeyboardInterrupt, TooSlow):
        raise
    except BaseException as error:  # of whatever kind: SystemExit, GeneratorExit, their own
        return Outcome(error=error)
    for name, before, after in zip(names, arguments, given, strict=False):
        if before is not after and not _unchanged(before, after):
            return Outcome(value=value, changed_input=name)
    return Outcome(value=value, plain=plain)


def _shared(argument: Any) -> Any:
    """The same modules, in a list of their own if they are in one; a copy of anything else."""
    if isinstance(argument, list):
        return [_shared(part) for part in argument]
    return argument if isinstance(argument, nn.Module) else copied(argument)


def copied(argument: Any) -> Any:
    """A copy that shares no memory; a tensor keeps its strides, and whether it wants a gradient."""
    if isinstance(argument, Tensor):
        return argument.detach().clone().requires_grad_(argument.requires_grad)
    return argument if isinstance(argument, int | float) else copy.deepcopy(argument)


def _unchanged(before: Any, after: Any) -> bool:
    """Compare tensors, modules, and lists of either; anything else passes."""
    if any(isinstance(before, a) != isinstance(after, a) for a in (nn.Module, list, Tensor)):
        return False
    if isinstance(before, nn.Module):
        if _settings(before) != _settings(after):
            return False
        before, after = (list(module.state_dict().values()) for module in (before, after))
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_unchanged, before, after))
    if not isinstance(before, Tensor):
        return True
    if (before.shape, before.dtype) != (after.shape, after.dtype):
        return False
    return torch.equal(before, after) or same(before, after)  # nan, if any, stays


def _settings(module: nn.Module) -> dict:
    """What else than its weights can be changed in a module: hooks, attributes, and its parts.

    Not whether it trains: a function may call eval(). Of attributes that are no plain numbers or
    text, only the names count.
    """
    found: dict = {}
    for path, part in module.named_modules():
        found[path] = type(part)
        for name, value in vars(part).items():
            if "_hooks" in name:
                value = len(value)
            elif name[0] == "_" or name == "training" or not isinstance(value, int | float | str):
                value = None
            found[path, name] = value
    return found


def is_number(value: Any) -> bool:
    """Tell whether this is a real number, of Python or NumPy, or a tensor of them."""
    if isinstance(value, Tensor):
        return not value.is_complex()
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)


def is_stub(error: Exception | None) -> bool:
    """Tell whether this is a stub's own ``raise NotImplementedError``.

    PyTorch raises NotImplementedError too, for instance for the softmax of whole numbers. That
    one has a text, and the line it comes from does not begin with ``raise``.
    """
    if not isinstance(error, NotImplementedError):
        return False
    line = traceback.extract_tb(error.__traceback__)[-1].line or ""
    return not text_of(error) or line.startswith("raise")


# ---------------------------------------------------------------- how it was computed


class CalledNames(TorchFunctionMode):
    """Notes the names of the torch functions and tensor methods that are called meanwhile.

    It also notes the names of some functions of Python.

    Parameters
    ----------
    also
        These functions.
    """

    def __init__(self, also: Sequence[Callable] = ()) -> None:
        super().__init__()
        self.names: set[str] = set()
        self._also = {inspect.unwrap(one).__code__: one.__name__ for one in also}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.add(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> "CalledNames":
        # Who profiles already goes on.
        self._profiles = bool(self._also) and sys.getprofile() is None
        if self._profiles:
            sys.setprofile(self._note)
        return super().__enter__()

    def __exit__(self, *exception) -> None:
        super().__exit__(*exception)
        if self._profiles:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _) -> None:
        if event == "call" and frame.f_code in self._also:
            self.names.add(self._also[frame.f_code])


class _FewLines(io.TextIOBase):
    """Passes the first lines of a text on, and counts the others."""

    def __init__(self, shown: TextIO) -> None:
        self.shown, self.lines = shown, 0

    def write(self, text: str) -> int:
        for line in text.splitlines(keepends=True):
            if self.lines < MOST_LINES:
                self.shown.write(line)
            self.lines += line.endswith("\n")
        return len(text)


@contextmanager
def few_lines() -> Iterator[None]:
    """Show only the first lines of what is printed, and say how many there were."""
    few = _FewLines(sys.stdout)
    with redirect_stdout(few):
        yield
    if few.lines > MOST_LINES:
        more = few.lines - MOST_LINES
        print(f"… and {more:,} more lines: your answer prints them, and is called many times.")


class NoEnd(KeyboardInterrupt):
    """An answer still runs; it is stopped as a learner would stop it."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise NoEnd in what still runs by then, where signals can (not on Windows)."""
    if not hasattr(signal, "setitimer") or current_thread() is not main_thread():
        yield
        return

    def ring(*_) -> None:
        raise NoEnd

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class TooSlow(BaseException):
    """There is no more time; no exception that an answer could take for its own."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlow where Python code, outside of libraries, goes on for longer."""
    before, end = sys.gettrace(), time.perf_counter() + seconds

    def watch(frame: FrameType, _event: str, _) -> Callable | None:
        if time.perf_counter() > end:
            raise TooSlow
        return None if frame.f_code.co_filename.startswith(LIBRARIES) else watch

    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)


def steps(function: Callable, arguments: tuple) -> int:
    """Count the steps that Python takes in a function, outside of libraries.

    Without a loop they are as many for a large tensor as for a small one.
    """
    count = 0

    def note(frame: FrameType, event: str, _) -> Callable | None:
        nonlocal count
        if event == "call":
            if frame.f_code.co_filename.startswith(LIBRARIES):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return note

    given = [copied(argument) for argument in arguments]
    before = sys.gettrace()
    with same_conditions():
        sys.settrace(note)
        try:
            function(*given)
        except Exception:
            return 0
        finally:
            sys.settrace(before)
    return count


def numpy_calls(function: Callable) -> set[str]:
    """The names in a function that computes with NumPy or math, unseen by PyTorch; @ is matmul."""
    code, names, products = getattr(function, "__code__", None), set(), 0
    codes = [code] if code else []
    while codes:
        code = codes.pop()
        names |= {*code.co_names}
        products += any(step.argrepr == "@" for step in dis.get_instructions(code))
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
    found = [getattr(function, "__globals__", {}).get(name) for name in names]
    named = any(one is np or one is math for one in found) or names & {"numpy", "math"}
    return names | ({"matmul"} if products else set()) if named else set()


def code_of(function: Callable) -> str:
    """What a function's arguments and lines are, without comments and docstring; "" if unknown."""
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError, TypeError):
        return ""
    if not isinstance(node, ast.FunctionDef):  # a lambda
        return ""
    body = node.body[ast.get_docstring(node) is not None :]
    return ast.unparse(node.args) + "".join(f"\n{ast.unparse(line)}" for line in body)


def unused_steps(function: Callable) -> list[str]:
    """The names of what a function computes and never reads, apart from sizes."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return []
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    computed = [
        node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and node not in tree.body  # f = lambda x: …
        and isinstance(node.targets[0], ast.Name)
        and not re.search(r"shape|size|len\(", ast.unparse(node.value))
        and any(isinstance(part, ast.Call | ast.BinOp) for part in ast.walk(node.value))
    ]
    return [name for name in dict.fromkeys(computed) if name not in read]


def notebook_tensors(function: Callable) -> list[str]:
    """The names of tensors that a function uses and that stand outside of it."""
    found, code = getattr(function, "__globals__", {}), getattr(function, "__code__", None)
    steps = dis.get_instructions(code) if code else ()  # x.mean() is no use of a tensor mean
    names = dict.fromkeys(step.argval for step in steps if step.opname == "LOAD_GLOBAL")
    return [name for name in names if isinstance(found.get(name), Tensor)]


def own_calls(function: Callable, arguments: tuple) -> list[str]:
    """The names of the functions that a function calls by name, but for those of libraries."""
    called: dict[str, None] = {}
    names = getattr(getattr(function, "__code__", None), "co_names", ())

    def note(frame: FrameType, event: str, _) -> None:
        code = frame.f_code
        own = not code.co_filename.startswith(LIBRARIES)
        if event == "call" and own and code.co_name in names:
            called[code.co_name] = None

    given = [copied(argument) for argument in arguments]
    before = sys.getprofile()
    with same_conditions():
        sys.setprofile(note)
        try:
            function(*given)
        finally:
            sys.setprofile(before)
    return list(called)


def trainable(argument: Any) -> list[Tensor]:
    """What training could change of an argument: a float tensor, or the parameters of a module."""
    if isinstance(argument, nn.Module):
        return list(argument.parameters())
    is_float = isinstance(argument, Tensor) and argument.is_floating_point()
    return [argument] if is_float else []


def gradients(function: Callable, arguments: tuple, several: bool = False) -> list[Tensor | None]:
    """The gradients of a weighted sum of the result, for all that training could change.

    None where no gradient arrives. The weights of the sum are the same random numbers each time.
    """
    given = [copied(argument) for argument in arguments]
    floats = [tensor for argument in given for tensor in trainable(argument)]
    for tensor in floats:
        tensor.requires_grad_(True)
    with same_conditions(), torch.enable_grad():
        value = function(*given)
        if several:
            value = torch.stack(tuple(value))
        if not (isinstance(value, Tensor) and value.requires_grad):
            return [None] * len(floats)
        upstream = torch.randn(value.shape, generator=torch.Generator().manual_seed(0))
        # The sum first: a gradient for each output would make PyTorch import sympy, which is slow.
        return list(torch.autograd.grad((value * upstream).sum(), floats, allow_unused=True))
