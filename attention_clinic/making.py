"""A module made from its class: C and n_head go to the arguments whose names say so."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args

from attention_base.numbers import joined
from attention_clinic.names import (
    CHANNEL_NAMES,
    HEAD_COUNT_NAMES,
    HEAD_SIZE_NAMES,
    LENGTH_NAMES,
    USUAL,
)
from attention_clinic.targets import CannotRun, their_errors
from attention_clinic.watch import limited

Parameters = Mapping[str, inspect.Parameter]
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
    """Make an instance of a class: C and n_head go to arguments of the usual names (`names`).

    `given` are other arguments, which count first, and `among` is what stands in the same file. A
    required argument named ``config`` is made in the same way, if the class of its annotation, or
    one class in `among`, has a name such as ``GPTConfig``.
    """
    parameters = _parameters(made_class)
    any_name = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    arguments = {key: value for key, value in given.items() if any_name or key in parameters}
    others = {key: value for key, value in given.items() if key not in arguments}
    arguments = _sizes(parameters, C, n_head, arguments) | arguments
    texts = {key: repr(value) for key, value in arguments.items()}
    missing = [key for key in _required(parameters) if key not in arguments]
    for name in [key for key in missing if key in CONFIG_NAMES]:
        missing.remove(name)
        if config_class := _config_class(parameters[name], among):
            arguments[name], texts[name], n_head = make(config_class, C, n_head, others, {})
            if hasattr(arguments[name], "_attn_implementation"):  # of transformers
                arguments[name]._attn_implementation = "eager"  # takes masks of any form
        else:
            arguments[name] = config = Config(C, n_head, others, among)
            texts[name] = "the usual names"
            n_head = config.n_head or n_head
        others = {}
    if others:
        name = next(iter(others))
        near = difflib.get_close_matches(name, parameters, n=1)
        names = joined(list(parameters)) if parameters else "none"
        told = f"did you mean {near[0]}?" if near else f"it takes {names}."
        raise CannotRun(f"{made_class.__name__} takes no argument {name}: {told}")
    if missing:
        raise CannotRun(_wants(made_class, parameters, missing))
    told = ", ".join(f"{key}={text}" for key, text in texts.items())
    told = f"{made_class.__name__}({told})"
    counts = [arguments[name] for name in HEAD_COUNT_NAMES if type(arguments.get(name)) is int]
    with their_errors(f"{told} cannot be made"), limited():
        made = made_class(**arguments)
    if not counts and any(name in HEAD_SIZE_NAMES for name in texts):
        return Made(made, f"{told}, one head", 1)
    if n_head is not None and not any(name in (*HEAD_COUNT_NAMES, *CONFIG_NAMES) for name in texts):
        told += f", no argument of which is a number of heads: n_head = {n_head} is only assumed"
    return Made(made, told, counts[0] if counts else n_head)


def _parameters(made_class: type) -> dict[str, inspect.Parameter]:
    try:
        found = dict(inspect.signature(made_class).parameters)
    except ValueError:  # of a class written in C
        return {}
    init = made_class.__init__
    if found and inspect.isfunction(init) and all(str(one)[0] == "*" for one in found.values()):
        fixed = f"'self', {init.__code__.co_consts}"  # 'dim' in super().__init__(dim=8, **more)
        handed_on = inspect.signature(super(made_class, made_class).__init__).parameters
        found |= {key: one for key, one in handed_on.items() if repr(key) not in fixed}
    return found


def _required(parameters: Parameters) -> list[str]:
    """The arguments without a default, and those annotated as a configuration."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    config = {key for key in CONFIG_NAMES if "Config" in str(parameters.get(key))}
    wanted = {key for key, one in parameters.items() if one.default is one.empty} | config
    return [key for key, one in parameters.items() if key in wanted and one.kind in named]


def _sizes(parameters: Parameters, C: int, n_head: int | None, given: Mapping) -> dict[str, Any]:
    """C and n_head for the first usual names, and usual sizes where no default is; no list's."""
    sizes, required = {}, _required(parameters)
    defaults = {key: one.default for key, one in parameters.items() if key not in given}
    nones = (key for key in (*HEAD_SIZE_NAMES, *USUAL) if defaults.get(key, 0) is None)
    required += [key for key in nones if isinstance(USUAL.get(key, 0), int)]
    for names, size in ((CHANNEL_NAMES, C), (HEAD_COUNT_NAMES, n_head)):
        found = [key for key in names if not isinstance(defaults.get(key, []), list | tuple)]
        if size is None and found and type(defaults[found[0]]) is int:
            size = defaults[found[0]]  # told, for the module may not keep it
        if size is not None:
            sizes |= {n: size for n in found if n in (found[0], *required) or "coder_" in n}
    for name, size in defaults.items():  # so many heads of keys and values would not fit
        if n_head and USUAL.get(name) == "n_head" and type(size) is int and n_head % (size or 1):
            sizes[name] = n_head
    for name in required:
        if name not in sizes and (size := _usual_size(name, C, n_head)) is not None:
            sizes[name] = size
    return {key: sizes[key] for key in parameters if key in sizes}


def _usual_size(name: str, C: int, n_head: int | None) -> Any:
    """What goes to an argument of a usual name that has no default; None for another name."""
    if name in CHANNEL_NAMES:
        return C
    if name in HEAD_COUNT_NAMES:
        return n_head
    if name in HEAD_SIZE_NAMES:
        return C // (n_head or 1)
    if name in LENGTH_NAMES:
        return MOST_TOKENS
    if name in USUAL:
        return {"4C": 4 * C, "n_head": n_head}.get(USUAL[name], USUAL[name])
    parts = {"bias": False, "drop": 0.0, "_eps": 1e-5}
    return next((value for part, value in parts.items() if part in name), None)


class Config(dict):
    """A configuration whose class is not known: config.n_embd and config["n_embd"] are C."""

    def __init__(self, C: int, n_head: int | None, given: Mapping, among: Mapping) -> None:
        super().__init__(given)
        # What has no usual name is as in another configuration of the file.
        others = dict(ChainMap(*map(_parameters, filter(_is_config, among.values()))))
        self.__dict__.update(_C=C, n_head=given.get("n_head", n_head), _others=others)

    def __missing__(self, name: str) -> Any:
        size = _usual_size(name, self._C, self.n_head)
        if size is None and name in {*self._others} - {*_required(self._others)}:
            return self._others[name].default
        if size is None:
            raise KeyError(f"it reads {name} of its configuration: add --arg {name}=16")
        return size

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None


def _config_class(parameter: inspect.Parameter, among: Mapping[str, Any]) -> type | None:
    name = str(parameter.annotation).partition("|")[0].strip()
    annotation = among.get(name, parameter.annotation)
    annotation = next(iter(get_args(annotation)), annotation)  # of A | B the first
    found = set(filter(_is_config, among.values()))
    if isinstance(annotation, type) and annotation not in (parameter.empty, dict, object):
        sized = len(found) < 2 or _sizes(_parameters(annotation), 1, 1, {})
        return annotation if sized else None  # made of the others
    return found.pop() if len(found) == 1 else None


def _is_config(value: Any) -> bool:
    return isinstance(value, type) and value.__name__.endswith(CONFIG_ENDINGS)


def _wants(made_class: type, parameters: Parameters, missing: list[str]) -> str:
    """Which arguments a class wants, and how they are given."""
    name = made_class.__name__
    options = (
        "--n-head 4" if key in HEAD_COUNT_NAMES else f"--arg {key}={_an_example(parameters[key])}"
        for key in missing
    )
    options = " ".join(options)
    guessed = ", where the number is a guess" if "=16" in options else ""
    add = f"Add, for example, {options}{guessed}."
    return f"{name} wants {joined(missing)} as well. {add} {IN_THE_FILE.format(name)}"


def _an_example(parameter: inspect.Parameter) -> Any:
    if parameter.annotation in (bool, "bool"):
        return True
    if parameter.annotation in (str, "str") or parameter.name.endswith(("type", "mode", "kind")):
        return "TEXT"
    return 0.1 if parameter.annotation in (float, "float") else 16
