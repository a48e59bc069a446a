"""What to say about a module that raises an error: what was tried, and the likely bug."""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn

from attention_base.numbers import listed
from attention_clinic.bugs import Named, of_parts
from attention_clinic.inspection import NOT_BATCH_FIRST
from attention_clinic.probes import Finding
from attention_clinic.watch import OWN_HOMES, of_others, short_path

NOT_CONTIGUOUS = of_parts("view of a tensor that is not contiguous")
# What is told of it beside that, where the module is right with reshape, and where it is not.
WRITE_RESHAPE, NOT_RESHAPE = (
    of_parts(f"the same, {what} with reshape")[1] for what in ("right", "not right")
)
MOST_TOKENS = 128  # that a module is examined with which runs with one number of tokens only
BY_MESSAGE = {  # part of an error's message -> the bug
    "view size is not compatible": NOT_CONTIGUOUS,
    "is_causal hint": of_parts("is_causal without attn_mask"),
    **dict.fromkeys(
        ("'Tensor' and 'tuple'", "'tuple' and 'Tensor'", "must be Tensor, not tuple"),
        of_parts("weights not taken apart from the output"),
    ),
    "without overflow": of_parts("fill value too large for this type"),
}


@contextlib.contextmanager
def reshape_for_view() -> Iterator[None]:
    """Where a view cannot be had, let `Tensor.view` do what reshape does, for a while."""
    view = torch.Tensor.view  # which it inherits

    def view_or_reshape(self: Tensor, *shape: Any) -> Tensor:
        try:
            return view(self, *shape)
        except RuntimeError:
            return self.reshape(*shape)

    torch.Tensor.view = view_or_reshape
    try:
        yield
    finally:
        del torch.Tensor.view


def raised_later(error: Exception, x: Tensor) -> Finding | None:
    """What to say of an error of a module that runs on x; None for an error of ours."""
    if is_own(error):
        return None
    told = f"it runs on x {tuple(x.shape)}, but in a later check, with other numbers or with "
    return Finding("runs", False, f"{told}gradients, it raises {_described(error)}.")


def _described(error: Exception) -> str:
    lines, frame = str(error).strip().splitlines() or ["no message"], _frame_of(error)
    told = f"{type(error).__name__}: {lines[0].rstrip('.')[:200]}"
    return f"{told}, in the line “{frame.line}”" if frame and frame.line else told


@dataclass(frozen=True)
class Crash:
    """An error of a module."""

    finding: Finding  # the error, the line, and what else was tried
    bug: Named | None = None  # if it shows
    resized: Tensor | None = None  # an input of as many tokens as the module runs with


def examine_crash(
    function: Callable, x: Tensor, error: Exception, run: Callable[[Tensor], Any]
) -> Crash:
    """Find out with how many tokens a module runs that raised an error on x (B, T, C)."""
    T, sizes = x.shape[1], _sizes_of_squares(function)
    told = f"on x {tuple(x.shape)} it raises {_described(error)}."
    by_message = (bug for part, bug in BY_MESSAGE.items() if part in str(error))
    if bug := next(by_message, None) or _not_batch_first(function):
        return Crash(Finding("runs", False, told), bug)
    head_sizes = _head_sizes(error)
    written = _numbers_in_code(function)
    sizes_to_try = {*(size for size in sizes | written if size <= 2048), *head_sizes}
    lengths = sorted({*range(1, T), *sizes_to_try} - {T})
    running = [n for n in lengths if runs(run, resized(x, n))]
    if not running:
        return Crash(Finding("runs", False, told))
    told += f" It runs with {listed(running)} {'token' if running == [1] else 'tokens'}"
    if running == [n for n in lengths if n < T and n <= running[-1]] and running[-1] > 1:
        told += ", and no more: is that its block_size?"
        return Crash(Finding("runs", False, told), resized=x[:, : running[-1]])
    told += " only."
    if "mat1 and mat2" in str(error) and running[-1] <= MOST_TOKENS:
        told += " Does a Linear layer read the tokens in the place of the channels?"
        other = torch.randn(len(x), running[-1], x.shape[-1], generator=torch.Generator())
        return Crash(Finding("runs", False, told), resized=other.to(x))
    several = set(running) - {1}
    if several and several <= _sizes_of_squares(function, masks=True):
        return Crash(Finding("runs", False, told), of_parts("mask not cut to T tokens"))
    if several and several <= head_sizes:
        return Crash(Finding("runs", False, told), of_parts("keys not transposed"))
    if fixed := sorted(written & set(running)):
        verb = "is" if len(fixed) == 1 else "are"
        told += f" {listed(fixed)} {verb} written in its code: should it be T, x.shape[1]?"
    return Crash(Finding("runs", False, told))


def _not_batch_first(function: Callable) -> Named | None:
    named = function.named_modules() if isinstance(function, nn.Module) else ()
    for name, part in named:
        if name and isinstance(part, nn.MultiheadAttention) and not part.batch_first:
            told = f"{name}, an nn.MultiheadAttention, {NOT_BATCH_FIRST}."
            return Named("batch_first forgotten", told)
    return None


def _sizes_of_squares(function: Callable, masks: bool = False) -> set[int]:
    """The sizes n of buffers (…, n, n); of masks alone, which hold no places in a table."""
    buffers = function.buffers() if isinstance(function, nn.Module) else ()
    squares = [b for b in buffers if b.dim() > 1 and b.shape[-1] == b.shape[-2]]
    kept = [b for b in squares if not masks or b.is_floating_point() or int(b.max()) < 2]
    return {b.shape[-1] for b in kept}


def _numbers_in_code(function: Callable) -> set[int]:
    """The whole numbers from 2 on that stand in a function, or in the forward of a module."""
    parts = function.modules() if isinstance(function, nn.Module) else ()
    own = [part for part in parts if not type(part).__module__.startswith("torch.")]
    forwards = [inspect.unwrap(part.forward) for part in own]
    codes = [getattr(one, "__code__", None) for one in (*forwards, function)]
    numbers = set()
    while codes:
        for one in getattr(codes.pop(), "co_consts", ()):
            if type(one) is int and one > 1:
                numbers.add(one)
            elif isinstance(one, tuple):
                numbers |= {n for n in one if type(n) is int and n > 1}
            elif isinstance(one, CodeType):  # of a comprehension in it
                codes.append(one)
    return numbers


def _head_sizes(error: Exception) -> set[int]:
    """The numbers in the message of a matrix product that does not fit."""
    if "batch2" not in str(error) and "mat1 and mat2" not in str(error):
        return set()
    words = "".join(c if c.isdigit() else " " for c in str(error)).split()
    return {int(word) for word in words if 1 < int(word) <= 512}


def resized(x: Tensor, T: int) -> Tensor:
    """The first T tokens; x again and again where it has fewer."""
    repeats = -(-T // x.shape[1])
    return x.repeat(1, repeats, 1)[:, :T]


def runs(run: Callable[[Tensor], Any], x: Tensor) -> bool:
    """Tell whether a module raises no error on x."""
    try:
        run(x)
    except Exception:
        return False
    return True


def _frame_of(error: BaseException) -> traceback.FrameSummary | None:
    """The last place in the author's own code that the error went through."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next((one for one in frames if not of_others(one.filename)), None)


def is_own(error: BaseException) -> bool:
    """Tell whether an error was raised in our code."""
    return _last_frame(error).filename.startswith(OWN_HOMES)


def is_own_fault(error: BaseException) -> bool:
    """Tell whether an error comes from no code of theirs, and is not what ours refuses."""
    if is_own(error):
        return not (_last_frame(error).line or "").startswith("raise ")
    return not where_raised(error)


def _last_frame(error: BaseException) -> traceback.FrameSummary:
    # In __torch_function__ we hand on what a module has called.
    frames = traceback.extract_tb(error.__traceback__)
    return next(one for one in reversed(frames) if one.name != "__torch_function__")


def where_raised(error: BaseException) -> str:
    """``file.py:12: ``, the last place in its code that an error went through, or ""."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{short_path(Path(error.filename))}:{error.lineno}: "
    frame = _frame_of(error)
    return f"{short_path(Path(frame.filename))}:{frame.lineno}: " if frame else ""
