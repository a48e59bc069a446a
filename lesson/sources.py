"""Finds what a learner wrote in a cell: its text, and the names that it takes from elsewhere."""

import ast
import builtins
import dis
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

DEFINITIONS = ast.FunctionDef | ast.ClassDef


class NoSource(Exception):
    """The text of a function or class cannot be found; this one says why, as a half sentence."""


def definitions(text: str) -> dict[str, str]:
    """The text of each function, class and value at the top level; the last one of each name.

    A value is what has a name of its own, such as ``SIZE = 4``, and is no call of `check` or
    `kept`.

    Raises
    ------
    SyntaxError
        When the text is no Python.
    """
    lines, found = text.split("\n"), {}
    for node in ast.parse(text).body:
        name = name_of(node)
        value = isinstance(node, ast.Assign) and ast.unparse(node.value)
        if name and not (value and (name in found or re.match(r"(lesson\.)?kept\(", value))):
            found[name] = "\n".join(lines[first_line(node) - 1 : node.end_lineno]) + "\n"
    return found


def name_of(node: ast.stmt) -> str:
    """What a statement defines: a function, a class, or a value under one name; "" for another."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return getattr(node.targets[0], "id", "")
    return node.name if isinstance(node, DEFINITIONS) else ""


def first_line(node: ast.stmt) -> int:
    """The number of its first line, decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def cell_of(thing: Callable) -> str:
    """The text of the cell, or of the file, in which a function or class was written.

    `inspect.getsource` finds no class of a notebook's cell, but its methods know their cell.

    Raises
    ------
    NoSource
        When there is no such text, or the thing does not stand in it at the top level.
    """
    functions = _functions(thing)
    if not functions:
        raise NoSource("it has no `def` of its own")
    code = functions[0].__code__
    text = "".join(linecache.getlines(code.co_filename))
    name = getattr(thing, "__name__", "")
    if not text:
        raise NoSource("its text cannot be found. Write it in a cell, and run that cell")
    for node in ast.parse(text).body:
        own = isinstance(node, DEFINITIONS) and node.name == name
        if own and first_line(node) <= code.co_firstlineno <= node.end_lineno:
            return text
    raise NoSource(f"no line of its cell says `def {name}` or `class {name}` at the left margin")


def names_of(thing: Callable) -> Mapping[str, Any]:
    """The globals among which a function or class was written; none where it has no code."""
    functions = _functions(thing)
    return functions[0].__globals__ if functions else {}


def _functions(thing: Callable) -> list[FunctionType]:
    """The function itself, or the methods that a class defines, without their decorators."""
    own = vars(thing).values() if isinstance(thing, type) else [thing]
    return [
        one
        for one in map(inspect.unwrap, own)
        if isinstance(one, FunctionType)
        and (one.__qualname__.startswith(f"{thing.__qualname__}.") or not isinstance(thing, type))
    ]


def taken_from_outside(text: str) -> set[str]:
    """The global names that a definition reads, but for Python's own and itself."""
    found: set[str] = set()
    codes = [compile(text, "<part>", "exec", dont_inherit=True)]
    while codes:
        code = codes.pop()
        steps = [*dis.get_instructions(code)]
        own = {step.argval for step in steps if step.opname == "STORE_NAME"}  # as in a class
        found |= {s.argval for s in steps if s.opname in ("LOAD_GLOBAL", "LOAD_NAME")} - own
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
    bound = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, DEFINITIONS)}
    bound.add(name_of(ast.parse(text).body[0]))
    return found - bound - set(vars(builtins)) - {"__name__", "__module__", "__qualname__"}


def import_line(name: str, value: Any) -> str:
    """The line that imports a value under this name, as in `from torch import nn`; "" for none."""
    if isinstance(value, ModuleType):
        parent, _, last = value.__name__.rpartition(".")
        if value.__name__ == name:
            return f"import {name}"
        return (
            f"from {parent} import {name}" if last == name else f"import {value.__name__} as {name}"
        )
    module, own = getattr(value, "__module__", None), getattr(value, "__name__", "")
    if not module or module in ("__main__", "mine") or not own:
        return ""
    if getattr(sys.modules.get(module), own, None) is not value:
        return ""
    return f"from {module} import {own}" + f" as {name}" * (own != name)
