"""Refuses arguments that fit none of the types of a function's annotations, in words."""

from __future__ import annotations

import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attention_base.numbers import as_real, described

Function = TypeVar("Function", bound=Callable)
LISTS = (list, Sequence, Iterable)
WRONG = (TypeError, ValueError, RuntimeError)
WORDS = {
    Callable: "a function",
    Path: "a path",
    Tensor: "a plain tensor, as torch.tensor(…) makes it",
    bool: "True or False",
    float: "a finite number",
    int: "a whole number",
    nn.Module: "an nn.Module, a model",
    str: "a text",
    torch.Generator: "a generator, such as torch.Generator().manual_seed(0)",
    types.NoneType: "None",
}


def typed(function: Function) -> Function:
    """Let a function refuse what fits none of the types that it is annotated with.

    An int may also be a whole number of NumPy or of a tensor, and a float any real number: they
    come in as int and float. What stands in lists and dicts has to fit, too.

    Raises
    ------
    TypeError, ValueError
        By the function; the text names the argument, and says what it must be. A ValueError where
        a number is nan or inf.

    Examples
    --------
    >>> @typed
    ... def half(n: int) -> float:
    ...     return n / 2
    >>> half("6")
    Traceback (most recent call last):
    TypeError: n must be a whole number, got the str '6'.
    """
    signature, hints = inspect.signature(function), functools.cache(typing.get_type_hints)

    @functools.wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*given, **named)
        except TypeError:  # Python itself says which one is missing, or is too many
            return function(*given, **named)
        wanted = hints(function)
        for name, value in bound.arguments.items():
            try:
                bound.arguments[name] = _fitting(value, wanted.get(name, Any))
            except WRONG as error:
                kind = ValueError if isinstance(error, ValueError) else TypeError  # as of nan
                must, got = _words(wanted[name]), described(value)
                if isinstance(value, str) and must.startswith("a list, each part a text"):
                    got += f": {name}=[{value!r}]"
                if isinstance(value, type):
                    got = f"the class {value.__name__} itself; make one: {value.__name__}(…)"
                raise kind(f"{name} must be {must}, got {got}.") from None
        return function(*bound.args, **bound.kwargs)

    return checked


def _fitting(value: Any, hint: Any) -> Any:
    """The value as this type; one of WRONG where it does not fit."""
    kind, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if hint is Any:
        return value
    if kind in (types.UnionType, typing.Union):
        for part in parts:
            with suppress(*WRONG):
                return _fitting(value, part)
        raise TypeError
    if kind is int and not isinstance(value, bool):
        return operator.index(value)
    if kind is float:
        return as_real(value, "")
    if kind in LISTS and not isinstance(value, (str, Set, Mapping)):
        return [_fitting(one, parts[0]) for one in value]
    sparse = isinstance(value, Tensor) and (value.layout != torch.strided or value.is_meta)
    if kind in LISTS or not isinstance(value, kind) or sparse or kind is int:
        raise TypeError
    if kind is Mapping:
        for pair in value.items():
            _fitting(pair, tuple[parts])
    if kind is tuple:
        for one, part in zip(value, parts, strict=True):
            _fitting(one, part)
    return value


def _words(hint: Any) -> str:
    """What a value of this type is called."""
    kind, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind in (types.UnionType, typing.Union):
        return " or ".join(map(_words, parts))
    if kind in LISTS:
        return f"a list, each part {_words(parts[0])}"
    if kind is Mapping:
        return f"a dict of {_words(parts[0])} -> {_words(parts[1])}"
    if kind is tuple:
        return f"({', '.join(map(_words, parts))})"
    name = kind.__name__
    return WORDS.get(kind) or f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
