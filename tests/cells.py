"""Run a notebook's code cells in this process: the same IPython, without starting a kernel."""

import atexit
import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from attention_clinic import Report


@dataclass
class Ran:
    """What became of a cell: what it printed, its last value (and in text), and what it raised."""

    printed: str
    value: Any
    text: str
    error: BaseException | None
    seconds: float = 0.0  # where they are taken


class Shell:
    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def run(self, source: str) -> Ran:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            done = self.shell.run_cell(source)
        value = done.result
        text = "" if value is None else self.shell.display_formatter.formatters["text/plain"](value)
        if isinstance(value, Report):  # shows a picture too, which its plain text leaves out
            text = value._repr_mimebundle_()["text/plain"]
        error = done.error_before_exec or done.error_in_exec
        return Ran(printed.getvalue(), value, text, error)


@contextlib.contextmanager
def fresh_shell() -> Iterator[Shell]:
    InteractiveShell.clear_instance()
    quiet = Config()
    quiet.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=quiet)
    # The last value of a cell is looked at, not printed: no "Out[1]:", and no picture drawn.
    hook = shell.displayhook
    hook.compute_format_data = lambda value: ({}, {})
    hook.write_output_prompt = hook.finish_displayhook = lambda: None
    hook.write_format_data = lambda *_: None
    try:
        yield Shell(shell)
    finally:
        InteractiveShell.clear_instance()
        atexit.unregister(shell.atexit_operations)  # each would tidy up for a long moment
