"""A module made from its class: C and n_head go to the arguments whose names say so."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args

from attention_base.numbers import joined
from attention_clinic.names import (
    CHANNEL_NAMES,
    HEAD_COUNT_NAMES,
    HEAD_SIZE_NAMES,
    LENGTH_NAMES,
)
from attention_clinic.targets import CannotRun, their_errors

CONFIG_NAMES = ("config", "cfg", "conf", "args", "params", "hparams")
CONFIG_ENDINGS = ("Config", "Args", "Arguments", "Params", "Settings")
MOST_TOKENS = 1024  # for a class that has to be told
IN_THE_FILE = "You can make it in the file instead, attention = {}(…), and name that: attention."


class Made(NamedTuple):
    """An instance of a class, how it was made, and with which number of heads, if that is known."""

    instance: Any
    told: str
    n_head: int | None


def read_arguments(pairs: Iterable[str]) -> dict[str, Any]:
    """Read ``name=value`` pairs: numbers, True, None, lists as in Python; all else is text."""
    given = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise CannotRun(f"--arg takes NAME=VALUE, such as --arg dropout=0.1; got {pair}.")
        if text in ("true", "false", "none"):
            raise CannotRun(f"--arg {pair}: Python writes {text.capitalize()}.")
        try:
            given[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            given[name] = text
    return given


def make(
    made_class: type, C: int, n_head: int | None, given: Mapping[str, Any], among: Mapping[str, Any]
) -> Made:
    """Make an instance of a class.

    Parameters
    ----------
    made_class
        The class. A required argument named ``config`` is made in the same way, if the class of
        its annotation, or one class in ``among``, has a name such as ``GPTConfig``.
    C, n_head
        Handed on by the usual names (`names`), such as ``d_model`` and ``num_heads``.
    given
        Other arguments, by name; they count first.
    among
        Name -> what stands in the same file.
    """
    parameters = _parameters(made_class)
    arguments = {key: value for key, value in given.items() if _takes(parameters, key)}
    others = {key: value for key, value in given.items() if key not in arguments}
    arguments = _sizes(parameters, C, n_head, arguments) | arguments
    texts = {key: repr(value) for key, value in arguments.items()}
    missing = [key for key in _required(parameters) if key not in arguments]
    if missing and missing[0] in CONFIG_NAMES:
        config_class = _config_class(parameters[missing[0]], among)
        name = missing.pop(0)
        if config_class:
            arguments[name], texts[name], n_head = make(config_class, C, n_head, others, {})
        else:
            arguments[name] = config = Config(C, n_head, others)
            texts[name] = "the usual names"
            n_head = config.n_head or n_head
        others = {}
    if others:
        name = next(iter(others))
        near = difflib.get_close_matches(name, parameters, n=1)
        told = f"did you mean {near[0]}?" if near else f"it takes {_names(parameters)}."
        raise CannotRun(f"{made_class.__name__} takes no argument {name}: {told}")
    if missing:
        raise CannotRun(_wants(made_class, parameters, missing))
    told = ", ".join(f"{key}={text}" for key, text in texts.items())
    told = f"{made_class.__name__}({told})"
    counts = [arguments[name] for name in HEAD_COUNT_NAMES if type(arguments.get(name)) is int]
    with their_errors(f"{told} cannot be made"):
        made = made_class(**arguments)
    if n_head is not None and not any(name in (*HEAD_COUNT_NAMES, *CONFIG_NAMES) for name in texts):
        told += f", no argument of which is a number of heads: n_head = {n_head} is only assumed"
    return Made(made, told, counts[0] if counts else n_head)


def _parameters(made_class: type) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(made_class).parameters)
    except ValueError:  # of a class written in C
        return {}


def _required(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [
        key for key, one in parameters.items() if one.default is one.empty and one.kind in named
    ]


def _takes(parameters: Mapping[str, inspect.Parameter], name: str) -> bool:
    any_name = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return any_name or name in parameters


def _sizes(
    parameters: Mapping[str, inspect.Parameter],
    C: int,
    n_head: int | None,
    given: Mapping[str, Any],
) -> dict[str, int]:
    """C and n_head, each for the first usual name, and C for all others that have no default."""
    sizes, required = {}, _required(parameters)
    for names, size in ((CHANNEL_NAMES, C), (HEAD_COUNT_NAMES, n_head)):
        found = [name for name in names if name in parameters and name not in given]
        if size is None and found and type(parameters[found[0]].default) is int:
            size = parameters[found[0]].default  # told, for the module may not keep it
        if size is not None:
            sizes |= {name: size for name in found if name == found[0] or name in required}
    for name in required:
        if name not in sizes and (size := _usual_size(name, C, n_head)) is not None:
            sizes[name] = size
    return {key: sizes[key] for key in parameters if key in sizes}


def _usual_size(name: str, C: int, n_head: int | None) -> float | None:
    """What goes to an argument of a usual name that has no default; None for another name."""
    if name in CHANNEL_NAMES:
        return C
    if name in HEAD_COUNT_NAMES:
        return n_head
    if name in HEAD_SIZE_NAMES:
        return C // (n_head or 1)
    if name in LENGTH_NAMES:
        return MOST_TOKENS
    if name in ("layer_idx", "layer_id"):
        return 0
    return 0.0 if "drop" in name else None


class Config(dict):
    """A configuration whose class is not known: config.n_embd and config["n_embd"] are C."""

    def __init__(self, C: int, n_head: int | None, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.__dict__.update(_C=C, n_head=given.get("n_head", n_head))

    def __missing__(self, name: str) -> Any:
        if "bias" in name:
            return False
        size = _usual_size(name, self._C, self.n_head)
        if size is None:
            raise KeyError(f"it reads {name} of its configuration: add --arg {name}=16")
        return size

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None


def _config_class(parameter: inspect.Parameter, among: Mapping[str, Any]) -> type | None:
    annotation = parameter.annotation
    annotation = among.get(annotation) if isinstance(annotation, str) else annotation
    annotation = next(iter(get_args(annotation)), annotation)  # of A | B the first
    if isinstance(annotation, type) and annotation not in (parameter.empty, dict, object):
        return annotation
    found = {value for key, value in among.items() if _is_config(key, value)}
    return found.pop() if len(found) == 1 else None


def _is_config(name: str, value: Any) -> bool:
    return isinstance(value, type) and name.endswith(CONFIG_ENDINGS)


def _wants(
    made_class: type, parameters: Mapping[str, inspect.Parameter], missing: list[str]
) -> str:
    """Which arguments a class wants, and how they are given."""
    name = made_class.__name__
    options = []
    for key in missing:
        if key in HEAD_COUNT_NAMES:
            options.append("--n-head 4")
        else:
            options.append(f"--arg {key}={_an_example(parameters[key])}")
    add = f" Add, for example, {' '.join(options)}." if options else ""
    return f"{name} wants {joined(missing)} as well.{add} {IN_THE_FILE.format(name)}"


def _an_example(parameter: inspect.Parameter) -> Any:
    if parameter.annotation in (bool, "bool"):
        return True
    return 0.1 if parameter.annotation in (float, "float") or "drop" in parameter.name else 16


def _names(parameters: Mapping[str, inspect.Parameter]) -> str:
    return joined(list(parameters)) if parameters else "none"
