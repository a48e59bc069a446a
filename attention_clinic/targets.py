"""What to diagnose, by its name: ``path/to/file.py:Class`` or ``package.module:Class``.

A file is imported as when Python runs it: from its own folder, or as a part of its package. Behind
that folder, as for ``python -m``, stands the one where the command was started.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from torch import nn

from attention_base.numbers import joined
from attention_clinic.command import FORMS, CannotRun
from attention_clinic.crashes import is_own_fault, where_raised
from attention_clinic.watch import IMPORTED, MAIN, OWN_HOME, limited, own_fault, running, short_path

IN_A_CLONE = Path(OWN_HOME, "pyproject.toml").exists()
INSTALL = f"pip install {OWN_HOME if IN_A_CLONE else '/path/to/attention_clinic'}"


class Place(NamedTuple):
    """Where something stands."""

    folder: Path  # where its imports begin
    module: str  # its dotted name, "" for a file that belongs to no package
    name: str
    file: Path | None  # None where a module was named

    def told(self) -> str:
        """The file or the module, as it was named."""
        return short_path(self.file) if self.file else self.module


def place_of(target: str) -> Place:
    """Read ``path/file.py:Name`` or ``package.module:Name``."""
    where, colon, name = target.rpartition(":")
    if not colon or os.sep in name:  # no name, or the colon of C:\\file.py
        where, name = target, ""
    if not where.endswith(".py") and os.sep not in where:
        if not all(part.isidentifier() for part in where.split(".")):
            raise CannotRun(f"{target} is neither a file nor a module: name it as {FORMS}.")
        return Place(Path.cwd(), where, name, None)
    file = Path(where).expanduser().resolve()
    if not file.is_file():
        raise CannotRun(f"There is no file {where}.")
    folder, parts = file.parent, [file.stem]
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    if parts[-1] == "__init__":
        parts.pop()
    return Place(folder, ".".join(parts) if folder != file.parent else "", name, file)


@contextlib.contextmanager
def importing_from(place: Place) -> Iterator[None]:
    """Let imports begin in the folder of a place; afterwards all is as it was."""
    path, argv = sys.path[:], sys.argv
    sys.path[:0] = [str(place.folder), os.getcwd()]
    sys.argv = [str(place.file or place.module)]  # for a program that reads its arguments
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:], sys.argv = path, argv


def load(place: Place) -> tuple[Any, ModuleType]:
    """Import what is named; returns it and the module it stands in. Within `importing_from`."""
    with their_errors(f"{place.told()} {IMPORTED}"), limited():
        module = _import(place)
    name = place.name
    if name and hasattr(module, name):
        return getattr(module, name), module
    told = f"{place.told()} has no {name}" if name else f"Name what to diagnose, as {FORMS}"
    own = [key for key, value in vars(module).items() if _is_candidate(value, module)]
    if near := difflib.get_close_matches(name, own, n=3):
        raise CannotRun(f"{told}: did you mean {' or '.join(near)}?")
    raise CannotRun(f"{told}. It holds {joined(own) if own else 'no class and no function'}.")


def _import(place: Place) -> ModuleType:
    if place.module:
        module = importlib.import_module(place.module)
        file = getattr(module, "__file__", None)
        if place.file and (file is None or Path(file).resolve() != place.file):
            raise CannotRun(f"Its name is taken: {place.module} is {file} here.")
        return module
    name = f"{place.file.stem}_to_diagnose"  # another file may have its name
    spec = importlib.util.spec_from_file_location(name, place.file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def _is_candidate(value: Any, module: ModuleType) -> bool:
    """Tell whether something may be what was meant: not what its file has imported."""
    if isinstance(value, nn.Module):
        return True
    own = getattr(value, "__module__", None) == module.__name__
    return own and (inspect.isfunction(value) or isinstance(value, type))


# ---------------------------------------------------------------- errors of theirs


@contextlib.contextmanager
def their_errors(doing: str, ours: bool = False) -> Iterator[None]:
    """Tell an error of their code in one line; of ours, too, if that runs within."""
    try:
        with running(doing):
            yield
    except (CannotRun, KeyboardInterrupt):
        raise
    except SystemExit as error:
        told = f"{doing}: {where_raised(error)}it ends the program."
        below = f" In a file that is imported, that belongs below {MAIN}."
        raise CannotRun(told + below * doing.endswith(IMPORTED)) from error
    except BaseException as error:
        if ours and is_own_fault(error):
            raise CannotRun(own_fault(error)) from error
        message = " ".join(str(error).split())[:300] or "no message"
        if "relative import" in message:
            message += ". Its folder has no __init__.py: name it as package.module:Class."
        told = f"{where_raised(error)}{type(error).__name__}: {message}"
        raise CannotRun(f"{doing}: {told}{missing_package(error)}") from error


def missing_package(error: BaseException) -> str:
    """What to do about a package that this Python does not have; "" for another error."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    return (
        f". The clinic runs in {sys.executable}, which has no {error.name}: run python -m "
        f"attention_clinic in the environment of your model, after {INSTALL} there, or in the "
        f"folder where {error.name} lies."
    )
