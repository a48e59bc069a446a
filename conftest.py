"""What holds for all tests: notebooks (through nbval) and tests/."""

from tools import notebooks

# nbval gives up when a cell is silent for 5 s; the first cell imports torch, on slow machines too.
SECONDS_TO_WAIT_FOR_OUTPUT = 60

# Before any test module or kernel starts: both inherit it.
notebooks.one_environment()


def pytest_collection_modifyitems(items):
    for item in items:
        if hasattr(item, "output_timeout"):  # a notebook's cell
            item.output_timeout = SECONDS_TO_WAIT_FOR_OUTPUT
