"""Makes and calls a learner's class, and says what is wrong with that alone.

What is told stands in ``builds.md``, a section a build; the first is about any class.
"""

import contextlib
import dis
import functools
import inspect
import io
import random
import signal
import sys
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.nn.parameter import is_lazy

from attention_base.known import Known, Section, changed_text, execute, read
from attention_base.numbers import described, joined
from attention_base.same import same_conditions
from attention_clinic.lists import registered
from feedback import messages
from feedback.calls import TooSlow, is_stub, time_limit
from lesson.builds import right, right_08, right_14

# The name of each build, its id if it is a newer version, and "Any" -> its section of the page.
TOLD: dict[str, Section] = {}
for _section in read(Path(__file__).with_name("builds.md")):
    _id = _section.head.split()[0]
    _name = _id.rpartition(".")[2]
    TOLD[_id if _name in TOLD else _name] = _section
_LATER = {"08": right_08, "14": right_14}
# The right program of each.
RIGHT = {
    build: getattr(_LATER.get(build[:2], right), build.rpartition(".")[2])
    for build in TOLD
    if build != "Any"
}
SECONDS, MORE_SECONDS = 6, 10  # for an answer; for our experiments, if its calls are fast
ALARM = getattr(signal, "SIGALRM", None)  # Windows has none
FIXED_LENGTH = "not for every number of tokens"
FIXED_NUMBER = "not for every number of texts"
# What may come of a number of the notebook, such as T = 8.
FROM_OUTSIDE = ("", FIXED_LENGTH, FIXED_NUMBER, "scores times another factor")
ELSEWHERE = '\n`{0}` is not defined in this notebook: {0} = kept("{0}") takes it from your file.'
PRINTS = "One more thing: each call of {} prints something, and training calls it very often."


class Wrong(Exception):
    """An answer is wrong: the name of the mistake, "" for one that has none, and what to tell."""

    def __init__(self, name: str, message: str, sure: bool = True) -> None:
        super().__init__(message)
        self.name, self.message = name, message
        self.sure = sure  # and not only of a kind that the clinic does not know


class Begun(NotImplementedError):
    """An answer is not finished; the text says what is done, "" where nothing is."""


class Call(NamedTuple):
    """A call of a part of a module: what it read, and what it gave."""

    part: nn.Module
    read: Tensor
    gave: Tensor


class Made:
    """A learner's class: how it is made, called and watched.

    Parameters
    ----------
    build
        Its name, such as "Head", or its id for a newer version, such as "08.MultiHeadAttention".
    names
        The namespace in which the learner's parts live.
    """

    def __init__(self, build: str, names: Mapping[str, Any]) -> None:
        self.id, self.build = build, build.rpartition(".")[2]
        self.names, self.cls = names, names.get(self.build)
        self.made = self.doing = self.build  # as told, such as Head(12, 5)

    def known(self, name: str, /, **words: Any) -> Wrong:
        """A mistake of the page; the words stand in the place of what is in braces there."""
        told = next(one for one in self._entries() if one.name == name)
        words = {"build": self.build, "where": "", "error": "", **words}
        return Wrong(name, told.message.format(**words).strip())

    def _entries(self) -> list[Known]:
        """Those of this build, of what it grew out of (or, with a cache, contains), and of any."""
        before = [*TOLD][: [*TOLD].index(self.id)]
        older = [b for b in before if b.endswith(self.build) or b[:3] == self.id[:3] == "14."]
        return [one for build in (self.id, *older, "Any") for one in TOLD[build].entries]

    # ------------------------------------------------ making

    def make(self, *sizes: int, **more: int) -> nn.Module:
        """Make an object of the class, in evaluation mode; say what hinders that."""
        given = [*map(str, sizes), *(f"{name}={size}" for name, size in more.items())]
        self.made = self.doing = f"{self.build}({', '.join(given)})"
        self._refuse_class(sizes, more)
        try:
            module = self.cls(*sizes, **more)
        except BaseException as error:
            raise self.explained(error) from error
        if "_modules" not in vars(module):
            raise self.known("no super().__init__()")
        zeros = defaultdict(list)  # by the module that owns the layer
        for name, own in module.named_parameters():
            if not is_lazy(own) and own.is_floating_point() and own.dim() > 1 and not own.any():
                zeros[name.removesuffix(".weight").rpartition(".")[0]].append(own)
        for beside in zeros.values():  # one layer of zeros hides those before it, two never learn
            if len(beside) == 1:
                beside[0].data.normal_(std=0.1)
        return module.eval()

    def _refuse_class(self, sizes: tuple, more: Mapping[str, int]) -> None:
        """Refuse a class in which `__init__` or forward is missing, or takes something else."""
        if not isinstance(self.cls, type):
            what = f"of the type {type(self.cls).__name__}, and no class"
            what = "not defined" if self.cls is None else what
            raise Wrong(
                "", f"{self.build} is {what}. It begins with class {self.build}(nn.Module):"
            )
        if not issubclass(self.cls, nn.Module):
            raise self.known("not an nn.Module")
        own: dict[str, Any] = {}
        for base in self.cls.__mro__[-3::-1]:  # without object and nn.Module
            own |= vars(base)
        asked = {
            "__init__": (", ".join(inspect.signature(RIGHT[self.id]).parameters), sizes),
            "forward": (
                ", ".join(list(inspect.signature(RIGHT[self.id].forward).parameters)[1:]),
                (None,),
            ),
        }
        for method, (wanted, given) in asked.items():
            words = {"method": method, "given": wanted, "made": self.made}
            if method not in own:
                raise self._missing(method, own, words)
            signature, n = inspect.signature(own[method]), len(given)
            got = [name for name in signature.parameters if name != "self"]
            if got == [*signature.parameters] and len(got) <= n:
                raise self.known("self forgotten", **words | {"given": ", ".join(got)})
            right_order = wanted.split(", ")[:n]
            if {*got[:n]} == {*right_order} and got[:n] != right_order:
                raise self.known("arguments in another order", **words)
            try:
                cache = {"cache": {}} if "cache" in wanted else {}
                signature.bind(None, *given, **more if method == "__init__" else cache)
            except TypeError:
                name = "other arguments" if method == "__init__" else "other arguments of forward"
                raise self.known(name, got=signature, **words) from None

    def _missing(self, method: str, own: Mapping[str, Any], words: Mapping[str, Any]) -> Wrong:
        methods = [name for name, one in own.items() if isinstance(one, FunctionType)]
        if method == "__init__":
            return self.known("__init__ is missing", **words)
        if "__call__" in own:
            return self.known("__call__ in the place of forward")
        inside = [one.co_name for one in own["__init__"].__code__.co_consts if _is_code(one)]
        name = "forward inside of __init__" if "forward" in inside else "forward is missing"
        return self.known(name, methods=joined(methods))

    # ------------------------------------------------ calling

    def problem(
        self,
        module: nn.Module,
        inputs: Callable[[int, int], Tensor],
        *sizes: int,
        longest: int = 64,
    ) -> Wrong | None:
        """What is wrong with calls on inputs of several shapes; None for nothing.

        Parameters
        ----------
        module
        inputs
            Makes an input of B sequences with T tokens.
        *sizes
            The shape of the output, behind B and T.
        longest
            The most tokens that it has to take.
        """
        begin = time.perf_counter()
        for B, T in ((2, 6), (2, 1), (1, 7), (3, longest)):
            x = inputs(B, T)
            before, self.doing = x.clone(), f"{self.made}, called with {tuple(x.shape)},"
            new: list[str] = []  # the kinds of layers that get parameters in this call
            hook = register_module_parameter_registration_hook(
                lambda layer, *_, new=new: new.append(type(layer).__name__)
            )
            try:
                with hook:
                    out = module(x)
            except BaseException as error:
                wrong = self.explained(error, module)
                if wrong.name or not isinstance(error, Exception):
                    return wrong
                return self._of_sizes(module, inputs, B, T, wrong)
            if new:
                return self.known("layers made in forward", layers=joined(sorted({*new})))
            if wrong := self.wrong_output(out, (B, T, *sizes)):
                return wrong
            if not x.equal(before):
                return self.known("its input changed in place")
        if time.perf_counter() - begin < 0.2:
            limit(MORE_SECONDS)
        with registered(module) as in_lists:
            plain = not in_lists and not list(module.parameters())
        return self.known("plain tensors") if plain else None

    def _of_sizes(self, module: nn.Module, inputs: Callable, B: int, T: int, wrong: Wrong) -> Wrong:
        """An error, or that it comes with some sizes only."""
        words = {"T": T, "B": B, "where": wrong.message.partition("\n")[0]}
        if (B, T) != (2, 6) and not runs(module, inputs(2, 6)):  # as the first call has done
            return self.known("a call that spoils the next", **words)
        if B != 2 and runs(module, inputs(2, T)):
            return self.known(FIXED_NUMBER, **words)
        if T != 6:
            return self.known(FIXED_LENGTH, taken=6, **words)
        some = [n for n in (8, 16, 32, 64) if runs(module, inputs(2, n))]
        return self.known(FIXED_LENGTH, taken=some[0], **words) if some else wrong

    def wrong_output(self, out: Any, shape: tuple[int, ...]) -> Wrong | None:
        """What is wrong with what a call gave, apart from its numbers; None for nothing."""
        if out is None:
            return self.known("nothing returned")
        if isinstance(out, tuple | list) and any(isinstance(one, Tensor) for one in out):
            return self.known("several things returned", n=len(out), shape=shape)
        if not isinstance(out, Tensor):
            return Wrong("", f"{self.doing} gives {described(out)}. A tensor {shape} is wanted.")
        if out.shape != shape:
            swapped = sorted(out.shape) == sorted(shape)
            told = " The sizes are right; their order is not." if swapped else ""
            return Wrong("", f"{self.doing} gives {tuple(out.shape)}; {shape} is wanted.{told}")
        if out.dtype != torch.float32:
            return self.known("numbers of another type", doing=self.doing, dtype=out.dtype)
        return None

    # ------------------------------------------------ errors

    def explained(self, error: BaseException, module: nn.Module | None = None) -> Wrong:
        """What to tell of an error; a stub and an interrupt pass through."""
        text = str(error)
        if isinstance(error, Wrong):
            return error
        if is_stub(error) and "missing the required" not in text:
            raise self._begun(error, module) from None
        if isinstance(error, TooSlow):
            return self.known("it does not end", doing=self.doing)
        if isinstance(error, SystemExit):
            return Wrong("", f"{self.doing} ends Python: take exit() or quit() out.")
        if isinstance(error, KeyboardInterrupt):
            raise error
        told = messages.raised(error, self.cls)
        place, _, more = told.removeprefix("Your function").partition("\n")
        place = f"{self.doing}{place.replace(' raised', ' raises', 1).rstrip('.')}."
        words = {
            "where": f"{place}\n",
            "error": text.rstrip("."),
            "name": getattr(error, "name", ""),
        }
        seen, parts = place + text, lambda one: one.settings.get("error", "").split(" | ")
        for known in self._entries():
            if any(part and all(x in seen for x in part.split(" & ")) for part in parts(known)):
                return self.known(known.name, **words)
        if isinstance(error, NameError) and words["name"] in TOLD:
            return Wrong("", place + ELSEWHERE.format(words["name"]))
        if isinstance(error, NameError) and words["name"]:
            own = getattr(module, error.name, None) is not None or error.name in vars(self.cls)
            return self.known("self. forgotten" if own else "a name that is not defined", **words)
        if isinstance(error, AttributeError) and isinstance(owner := error.obj, nn.Module):
            has = [name for name in vars(owner) if name[0] != "_" and name != "training"]
            has = joined([f"`{name}`" for name in [*has, *owner._modules]]) or "nothing"
            owner = type(owner).__name__
            return self.known("an attribute that is not there", has=has, owner=owner, **words)
        return Wrong("", f"{place}\n{more}".strip())

    def _begun(self, error: BaseException, module: nn.Module | None) -> Begun:
        """What is done where a stub is left."""
        trace = error.__traceback__
        while trace.tb_next:
            trace = trace.tb_next
        code = trace.tb_frame.f_code
        *_, owner, method = ["", *code.co_qualname.split(".")]
        if owner and owner != self.build:
            return Begun(f"{self.build} uses {owner}, which is not written yet.")
        if {*code.co_names} - {
            "super",
            "__init__",
            "NotImplementedError",
        } or code.co_nlocals > code.co_argcount:
            return Begun(f"{method} still says `raise NotImplementedError`. Take that line out.")
        if module is None:
            return Begun()
        layers = sum(1 for part in module.modules() if list(part.parameters(recurse=False)))
        n = sum(own.numel() for own in module.parameters())
        told = f"{layers} layer{'s' * (layers > 1)} with {n:,} parameters"
        told = told if layers else "no layers in self"
        return Begun(f"__init__ runs, and {self.made} has {told}. forward comes next.")

    def or_of_outside(self, wrong: Wrong) -> Wrong:
        """A mistake, or the numbers of the notebook that the class reads, if these may be why."""
        stores = ("STORE_FAST", "STORE_ATTR")
        code = dis.get_instructions(getattr(getattr(self.cls, "__init__", None), "__code__", ""))
        made = {one.argval for one in code if one.opname in stores}
        for method, name, value in self._read_outside():
            if wrong.name in FROM_OUTSIDE and type(value) in (int, Tensor):
                if name in made:
                    return self.known("self. forgotten", name=name)
                value = f"a tensor {tuple(value.shape)}" if type(value) is Tensor else value
                words = {"name": name, "method": method, "value": value}
                return self.known("a number of the notebook", **words, told=wrong.message)
        return wrong

    def helpers_called(self) -> list[str]:
        """The functions of `helpers.attention` and `helpers.positions` that it reads."""
        from_helpers = "helpers.attention", "helpers.positions"
        return [
            name
            for _, name, value in self._read_outside()
            if getattr(value, "__module__", "").startswith(from_helpers)
        ]

    def _read_outside(self) -> Iterator[tuple[str, str, Any]]:
        """What it reads from outside: the method, the name and the value."""
        own = vars(self.cls).values() if isinstance(self.cls, type) else [self.cls]
        for one in (one for one in own if isinstance(one, FunctionType)):
            for name in sorted(_globals_read(one.__code__)):
                yield one.__name__, name, one.__globals__.get(name)

    # ------------------------------------------------ watching

    def sizes_given(self, part: str, make: Callable) -> list[tuple]:
        """With which sizes the parts of a name, such as "Block", are made meanwhile."""
        cls, given = self.names.get(part), []
        if not isinstance(cls, type) or "__init__" not in vars(cls):
            return []
        init = cls.__init__

        @functools.wraps(init)
        def noting(one: nn.Module, *sizes: Any, **more: Any) -> None:
            with contextlib.suppress(TypeError):  # init raises it, too
                given.append(inspect.signature(init).bind(one, *sizes, **more).args[1:])
            init(one, *sizes, **more)

        cls.__init__ = noting
        try:
            make()
        finally:
            cls.__init__ = init
        return given

    def calls(self, module: nn.Module, part: str, x: Tensor) -> list[Call]:
        """The calls of the parts of a name, such as "Block", in a call of the module."""
        cls, seen = self.names.get(part), []
        parts = [one for one in module.modules() if isinstance(cls, type) and type(one) is cls]
        with contextlib.ExitStack() as hooks, torch.no_grad():
            for one in parts:
                note = lambda one, given, out: seen.append(Call(one, given[0], out))  # noqa: E731
                hooks.enter_context(one.register_forward_hook(note))
            module(x)
        return seen


def changed(build: str, known: Known) -> Callable:
    """The right program of a build with the changes of a mistake, in a namespace of its own."""
    program, name = RIGHT[build], build.rpartition(".")[2]
    names = {**vars(sys.modules[program.__module__]), "__name__": "known_mistake"}
    text = changed_text(inspect.getsource(program), known.changes, known.where, name)
    execute(text, f"{known.where}, “{known.name}”", names, names)
    return names[name]


def runs(module: nn.Module, x: Tensor) -> bool:
    """Tell whether a module takes an input."""
    with contextlib.suppress(Exception):
        module(x)
        return True
    return False


def _is_code(one: Any) -> bool:
    return isinstance(one, CodeType)


def _globals_read(code: CodeType) -> set[str]:
    found = {one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL"}
    return found.union(*(_globals_read(one) for one in code.co_consts if _is_code(one)))


# ---------------------------------------------------------------- a judge


def limit(seconds: float = SECONDS) -> None:
    """Let `judges` raise TooSlow after so many seconds from now, also while something sleeps."""
    if ALARM and signal.getsignal(ALARM) is _too_slow:
        signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # again, if an except: has caught it


def _too_slow(*_: Any) -> None:
    raise TooSlow


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    if not ALARM or threading.current_thread() is not threading.main_thread():
        with time_limit(MORE_SECONDS):
            yield
        return
    before = signal.signal(ALARM, _too_slow)
    timer = signal.getitimer(signal.ITIMER_REAL)
    try:
        limit()
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(ALARM, before)


@contextlib.contextmanager
def conditions() -> Iterator[io.StringIO]:
    """The same conditions for each answer; gives what is printed.

    What an answer may have left changed is put back: seeds, threads, the type of floats, and
    whether gradients are kept.
    """
    printed = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        stack.callback(random.setstate, random.getstate())
        for one in (
            same_conditions(),
            torch.enable_grad(),
            warnings.catch_warnings(action="ignore"),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(io.StringIO()),
            _limited(),
        ):
            stack.enter_context(one)
        yield printed


Look = Callable[[Made], list[str]]
Judge = Callable[[Mapping[str, Any]], list[str]]


def judges(build: str) -> Callable[[Look], Judge]:
    """Make a judge of a function that looks at a class, and returns notes about a right one."""

    def decorate(look: Look) -> Judge:
        @functools.wraps(look)
        def judge(names: Mapping[str, Any]) -> list[str]:
            made = Made(build, names)
            with conditions() as printed:
                try:
                    notes = look(made)
                except Wrong as wrong:
                    raise made.or_of_outside(wrong) from None
                except Begun:
                    raise
                except BaseException as error:
                    made.doing = f"{made.build}, in a later call,"
                    raise made.explained(error) from error
            prints = printed.getvalue() and build != "train"
            return [*notes, PRINTS.format(made.build)] if prints else notes

        return judge

    return decorate
