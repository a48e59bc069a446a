"""The command ``attention-clinic``: `diagnose` for an attention in any file, with an exit code.

Their code runs in a child process (`child`). Here nothing of theirs runs, and PyTorch is not
imported: what ends Python, or never ends, has no say in the exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from attention_clinic import __version__, watch

EXIT_CODES = {"healthy": 0, "broken": 1, "different": 2, "could not run": 3, "incomplete": 4}
DESCRIPTION = """\
Say whether an attention, or a block with one, is right, and which bug it has.

Its file is imported, its class made and called: what stands there runs on your computer, so name
only code that you would run yourself. C and n_head go to the arguments whose names say so
(d_model, num_heads and the like); --arg gives others. A function or a module that the file has
made already is called as it is.
"""
EXIT_CODES_TOLD = """\
exit codes:
  0  healthy: every probe ran and passed
  1  broken: a probe failed, or a known bug was recognised
  2  different from the textbook, which may be meant (rotary positions, a sliding window)
  3  could not run: no such file or class, an error of its own, no attention, wrong sizes, too slow,
     or a fault of the clinic
  4  incomplete: no bug was found, but some probes could not run. It is not 0, since what was not
     checked may be wrong; and not 3, so that a CI job can accept it and still see a missing file.
"""
FORMS = "path/to/file.py:Class or package.module:Class"
# What the child process starts with. It finds our modules where this process has found them.
START = """
import json, sys
told = json.loads(sys.argv.pop())
sys.path[:] = told.pop("path")
from attention_clinic.command import in_child
in_child(**told)
"""
ANSWER = "answer.json"
MOST_SECONDS = 86_400

Answer = tuple[int, str]  # the exit code, and what is printed


class CannotRun(Exception):
    """Why something cannot be diagnosed, in words."""


def main(
    argv: Sequence[str] | None = None, ask: Callable[[argparse.Namespace], Answer] | None = None
) -> int:
    """Run the command with the arguments of a command line; returns its exit code.

    ``ask`` examines what they name, in a child process unless told otherwise.
    """
    argv = sys.argv[1:] if argv is None else argv
    ask = ask or _ask_child
    code, text = _answered(lambda: ask(_parser().parse_args(argv)), "--json" in argv)
    refused = code == 3 and "--json" not in argv
    return code if _print(text, sys.stderr if refused else sys.stdout) else 3


def _answered(ask: Callable[[], Answer], json_wanted: bool) -> Answer:
    """What is answered, whatever happens."""
    try:
        return ask()
    except KeyboardInterrupt:
        return 130, ""
    except CannotRun as error:
        why = str(error)
    except Exception as error:
        why = watch.own_fault(error)
    told = f"Could not run. {why}"
    return 3, as_json(status="could not run", error=why) if json_wanted else told


def as_json(**told: Any) -> str:
    """One JSON object, which has all keys."""
    empty = {"status": "", "bugs": [], "findings": [], "not_checked": {}, "different": {}}
    empty |= {"notes": [], "made_as": "", "example": None, "error": ""}
    return json.dumps(empty | told, ensure_ascii=False, indent=1)


def _print(text: str, stream: Any) -> bool:
    """Print, and tell whether that could be done: a full disk is no pass."""
    try:
        if text:
            print(text.encode("utf-8", "replace").decode(), file=stream, flush=True)
        return True
    except OSError as error:
        # Python would complain at the end, too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, BrokenPipeError):  # | head has read enough
            return True
        print(f"Could not run. The report cannot be written: {error}", file=sys.stderr)
        return False


# ---------------------------------------------------------------- the child process


def _ask_child(arguments: argparse.Namespace) -> Answer:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        told = json.dumps({"path": sys.path, "folder": folder, "arguments": vars(arguments)})
        words = [sys.executable, "-P", "-c", START, told]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=2)  # their prints: stderr
        answer = Path(folder, ANSWER)
        if not answer.exists():
            raise CannotRun(watch.how_it_ended(Path(folder), done.returncode, arguments.timeout))
        code, text = json.loads(answer.read_text(encoding="utf-8"))
        return code, text


def in_child(folder: str, arguments: dict[str, Any]) -> None:
    """Examine what is named, and leave the answer in a folder."""
    named = argparse.Namespace(**arguments)
    watch.start(Path(folder), named.timeout)

    def ask() -> Answer:  # by its name: PyTorch, which it imports, may be missing
        return importlib.import_module("attention_clinic.child").answer(named)

    answered = _answered(ask, named.json)
    Path(folder, ANSWER).write_text(json.dumps(answered), encoding="utf-8")
    watch.let_end()


# ---------------------------------------------------------------- the command line


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """An error of the command line is told like all others: 2 would mean "different"."""
        raise CannotRun(f"{message}. See attention-clinic --help.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="attention-clinic",
        description=DESCRIPTION,
        epilog=EXIT_CODES_TOLD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("target", help=f"{FORMS}; a function or a module will do, too")
    parser.add_argument("--C", type=int, required=True, help="channels of x (B, T, C)")
    parser.add_argument("--n-head", type=int, help="heads, where the module does not know its own")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another argument of the class, such as --arg dropout=0.1; repeat it for more",
    )
    parser.add_argument(
        "--no-causal", action="store_true", help="every token may attend to all, as in an encoder"
    )
    parser.add_argument(
        "--example",
        type=_sizes,
        metavar="B,T",
        help="run it on this many sequences and tokens (default: 3,8 or nearby)",
    )
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="WORD",
        help="a variant that is meant, such as rotary: healthy with it, different without",
    )
    parser.add_argument(
        "--layout", choices=("btc", "tbc"), help="the axes of x; tbc: it takes (T, B, C)"
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="that the import of the file may take, making the class, and each call (default: 10)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--version", action="version", version=f"attention-clinic {__version__}")
    return parser


def _sizes(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"takes two numbers, such as 4,16; got {text}")
    return int(parts[0]), int(parts[1])


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0.1 <= float(text) <= MOST_SECONDS:
            return float(text)
    raise argparse.ArgumentTypeError(f"takes seconds, from 0.1 to {MOST_SECONDS}; got {text}")
