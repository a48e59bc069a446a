"""What a call leaves out has the value that is stored: a default changes on purpose only."""

import importlib
import inspect
import re
import types

from tools import notebooks


def functions(owner, home):
    """The functions and classes of a module, and the methods of the classes."""
    for _, one in sorted(vars(owner).items()):
        if isinstance(one, types.FunctionType | type) and one.__module__ == home:
            yield one
            if isinstance(one, type):
                yield from functions(one, home)


def test_defaults_are_those_that_are_stored(snapshot):
    lines = {}
    files = [p for room in notebooks.ROOMS for p in (notebooks.ROOT / room).rglob("[!_]*.py")]
    for path in sorted(path for path in files if "OLD_COPY" not in path.read_text()):
        home = path.relative_to(notebooks.ROOT).with_suffix("").as_posix().replace("/", ".")
        for one in functions(importlib.import_module(home), home):
            given = inspect.signature(one).parameters.values() if not isinstance(one, type) else ()
            given = [f"{p.name}={p.default!r}" for p in given if p.default is not p.empty]
            if given:
                lines[f"{home}.{one.__qualname__}: {', '.join(given)}"] = None
    assert re.sub(" at 0x[0-9a-f]+", "", "\n".join(lines)) == snapshot
