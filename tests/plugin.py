"""What holds for all tests, notebooks (through nbval) and tests/: ``pytest -p tests.plugin``."""

import difflib
import gc
import os
import re
import sys
from collections import Counter

import pytest
from jupyter_client.provisioning import local_provisioner

from tests.stored import stale
from tools import kernels, notebooks

# nbval, which is imported after this file, imports jsonschema, which does without the grammars of
# web addresses: to build them takes each process two seconds, and no notebook has such a field.
sys.modules["rfc3987_syntax"] = None
# nbval gives up when a cell is silent for 5 s; the first cell imports torch, on slow machines too.
SECONDS_TO_WAIT_FOR_OUTPUT = 60
# Files that take longest, of the slow tests and of the others. Two workers take one file each in
# turn, so whoever begins such a file last works on alone at the end. Of the rest, the one with most
# tests comes first.
LONGEST = (
    "test_reruns.py",
    "test_cheats.py",
    "test_exercises.py",
    "10_tiny_gpt.ipynb",
    "12_inside_a_trained_model.ipynb",
    "14_what_attention_costs.ipynb",
)
# From this cell on notebook 10 trains a further model. test_stored_pictures.py runs them (slow).
TRAINS_AGAIN = "broken = softmax_first()"

# Before any test module or kernel starts: both inherit it.
notebooks.one_environment()
if sys.platform == "linux":  # where a process with torch and matplotlib in it may fork
    local_provisioner.launch_kernel = kernels.launch


def pytest_itemcollected(item):
    if _is_cell(item):
        notebook = item.parent
        notebook.again = getattr(notebook, "again", False) or TRAINS_AGAIN in item.cell.source
        if notebook.again:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)  # once those that -m leaves out are gone
def pytest_collection_modifyitems(items):
    for item in items:
        if _is_cell(item):
            item.output_timeout = SECONDS_TO_WAIT_FOR_OUTPUT
    tests = Counter(item.path for item in items)
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (rank.get(item.path.name, len(rank)), -tests[item.path]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let a worker take one file in turn; and of the files that go through notebooks, a notebook.

    Among the slow tests, such a file takes minutes, and would keep one worker busy to the end.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrNotebook(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file, _, test = nodeid.partition("::")
            if file.startswith("tests/browser/"):  # in two halves; pages train their models once
                return "lab" if file.endswith(("_lab.py", "_slides.py")) else "pages"
            one = re.search(r"\[\d\d_\w+", test)
            if file.startswith(("tests/feedback/", "tests/lesson/")):
                return "exercises"  # what they compute of each is computed once
            return one[0] if one and file.startswith("tests/notebooks/") else file

    return ByFileOrNotebook(config, log)


def pytest_collection_finish():
    """What is there now stays until the end: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_sessionfinish():
    kernels.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Compare also what nbval leaves out: pictures, and in words the cells that it ignores."""
    yield
    if _is_cell(item) and any(_stale(item)):
        item.raise_cell_error("Cell outputs differ")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Tell all that differs: nbval tells one field, and of a new one, as of stderr, no text."""
    report = yield
    if _is_cell(item) and call.excinfo and str(call.excinfo.value) == "Cell outputs differ":
        stored, now = (
            _compared(item, outputs) for outputs in (item.cell.outputs, item.test_outputs)
        )
        differences = difflib.unified_diff(stored, now, "stored", "now", n=0, lineterm="")
        found = [*differences, *_stale(item)]
        report.longrepr = "\n".join(["Cell outputs differ", item.cell.source, "", *found])
    return report


def _is_cell(item):
    """Whether a test is a notebook's cell."""
    return hasattr(item, "output_timeout")


def _stale(item):
    if os.environ.get("ATTENTION_PICTURES") == "0":  # tools/check_upgrade.py says so
        return ()
    return stale(item.path.name[:2], item.cell, item.test_outputs)


def _compared(item, outputs):
    """What nbval compares of a cell's outputs: its lines, each after its kind."""
    return [
        f"{output.get('name', kind)}: {line}"  # a stream's kind is text, its name stdout or stderr
        for output in outputs
        for kind, text in {**output, **output.get("data", {})}.items()
        if kind not in (*item.parent.skip_compare, "data")
        for line in str(text).splitlines()
    ]
