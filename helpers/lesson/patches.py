"""Make a function from another one by changing a few characters of its source."""

import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterable


def patched(function: Callable, changes: Iterable[tuple[str, str]], name: str) -> Callable:
    """Compile a function again, with some of its source changed.

    Parameters
    ----------
    function
        A plain ``def`` at the top level of a module.
    changes
        Pairs of an old and a new text, put in one after the other.
    name
        What tracebacks and errors call the new source, such as "01.1, divided by T".

    Returns
    -------
    Callable
        Has the name and the globals of the old one; ``inspect.getsource`` shows what was compiled.

    Raises
    ------
    ValueError
        When an old text does not stand in the source exactly once.
    """
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in changes:
        if (count := source.count(old)) != 1:
            raise ValueError(
                f"{name}: the change of {old!r} must fit {function.__name__} exactly once, but "
                f"this text stands there {count} times. "
                + ("Quote more of its line." if count else "Quote it as it stands there now.")
            )
        source = source.replace(old, new)
    file = f"<{name}>"
    # Without a time (None), the lines are never compared with a file, and stay.
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    defined: dict[str, Callable] = {}
    code = compile(source, file, "exec", dont_inherit=True)
    exec(code, function.__globals__, defined)
    return defined[function.__name__]
