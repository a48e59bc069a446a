"""Run notebooks and store their outputs: ``python -m tools.refresh [--all] [03 ...]``.

Outputs get one normal form: twice in a row changes nothing. A cell tagged nbval-ignore-output
(versions, times) keeps its stored output while that says what the new one says but for its numbers,
unless ``--all`` is given.
A notebook with a failing cell stays as it is.
"""

import argparse
import copy
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools import glossary, ignored_cells, notebooks

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
TIMEOUT = 60  # seconds a cell, as under make test


class CellFailed(Exception):
    """A cell raised, took too long or lost its kernel; the message says which, in words."""


def execute(nb: NotebookNode, folder: Path) -> NotebookNode:
    """Run a copy of the notebook in ``folder`` and return it with its new outputs.

    Raises
    ------
    CellFailed
        Where a cell raises, writes to stderr, takes too long or ends the kernel.
    """
    # Here, since make lint needs nothing but nbformat.
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from nbconvert.preprocessors import ExecutePreprocessor

    nb = copy.deepcopy(nb)
    for cell in code_cells(nb):
        cell.outputs, cell.execution_count = [], None
    started = 0

    def note(cell: NotebookNode, cell_index: int) -> None:
        nonlocal started
        started = cell_index

    run = ExecutePreprocessor(
        kernel_name="python3",
        timeout=TIMEOUT,
        record_timing=False,
        store_widget_state=False,
        on_cell_start=note,
        extra_arguments=["--log-level=ERROR"],  # ipykernel warns of every TCP port it opens
    )
    try:
        done = run.preprocess(nb, {"metadata": {"path": str(folder)}})[0]
    except CellExecutionError as error:
        raise CellFailed(f"{cell_name(nb, started)} raised {error.ename}: {error.evalue}") from None
    except CellTimeoutError:
        raise CellFailed(f"{cell_name(nb, started)} took more than {TIMEOUT} s") from None
    except DeadKernelError:
        raise CellFailed(f"{cell_name(nb, started)} ended the kernel") from None
    for index, cell in enumerate(done.cells):
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                said = output.text.strip().splitlines()[-1]
                raise CellFailed(f"{cell_name(done, index)} wrote to stderr: {said}")
    return done


def normalise(nb: NotebookNode, number: str) -> NotebookNode:
    """Bring a notebook that has run into the one form that is committed, in place."""
    nb.nbformat, nb.nbformat_minor = 4, 5
    nb.metadata = nbformat.from_dict(notebooks.METADATA)
    count = 0
    for position, cell in enumerate(nb.cells, 1):
        cell.id = notebooks.cell_id(number, position)
        kept = {k: v for k, v in cell.metadata.items() if k in notebooks.CELL_METADATA and v}
        cell.metadata = nbformat.from_dict(kept)
        if cell.cell_type != "code":
            continue
        count += 1
        if count == 1:
            cell.metadata.jupyter = nbformat.from_dict(notebooks.FOLDED)
        cell.execution_count = count
        cell.outputs = merge_streams(cell.outputs)
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
            if "data" in output:
                output.data.pop(WIDGET_VIEW, None)
                output.metadata = nbformat.from_dict(
                    {kind: m for kind, m in output.metadata.items() if kind in output.data and m}
                )
            if "traceback" in output:
                output.traceback = [part for part in output.traceback if not _names_file(part)]
    return nb


def merge_streams(outputs: list) -> list:
    """Join neighbouring outputs to the same stream: how a print is cut up depends on the moment."""
    merged: list = []
    for output in outputs:
        last = merged[-1] if merged else None
        if (
            last is not None
            and output.output_type == last.output_type == "stream"
            and output.name == last.name
        ):
            last.text += output.text
        else:
            merged.append(output)
    return merged


def keep_ignored(new: NotebookNode, old: NotebookNode, number: str) -> None:
    """Give ignored cells their stored outputs, as far as these still say what the new ones say."""
    stored = {c.source: c.outputs for c in code_cells(old) if is_ignored(c) and c.outputs}
    for cell in code_cells(new):
        if is_ignored(cell) and cell.source in stored:
            entry = ignored_cells.listed(number, cell.source)
            if entry and not entry.words:  # no comparison says whether they still hold
                continue
            texts = [ignored_cells.text_of(o) for o in (stored[cell.source], cell.outputs)]
            if not ignored_cells.differences(*texts, entry.share if entry else None):
                cell.outputs = copy.deepcopy(stored[cell.source])


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    """The code cells, in order."""
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def is_ignored(cell: NotebookNode) -> bool:
    """Whether the outputs of this cell are not compared."""
    return ignored_cells.TAG in cell.metadata.get("tags", [])


def refresh(path: Path, *, everything: bool = False) -> bool:
    """Run one notebook and write it back in normal form; True where that changed the file."""
    before = path.read_text(encoding="utf-8")
    old = nbformat.reads(before, as_version=4)
    new = execute(old, path.parent)
    if not everything:
        keep_ignored(new, old, path.stem[:2])
    after = nbformat.writes(normalise(new, path.stem[:2])) + "\n"
    if after == before:
        return False
    notebooks.write_whole(path, after)
    return True


def cell_name(nb: NotebookNode, index: int) -> str:
    """Name a cell by its place, from 1, and its first line: "cell 7 (`x = 1`)"."""
    return f"cell {index + 1} (`{ignored_cells.first_line(nb.cells[index].source)}`)"


def _names_file(part: str) -> bool:
    """Whether a part of a traceback is a frame in a file: its path is of one machine only."""
    return bool(re.match(r"(\x1b\[[\d;]*m)*File ", part))


def main() -> None:
    """Refresh the notebooks that the command line names, all of them by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--all", action="store_true", help=f"{ignored_cells.TAG} cells get new outputs too"
    )
    parser.add_argument("nb", nargs="*", help="which ones: 03, or nothing for all")
    options = parser.parse_args()
    notebooks.one_environment()
    notebooks.need_room(notebooks.SOURCE)
    failed = False
    for path in [p for nb in options.nb or [""] for p in notebooks.chosen(nb)]:
        print(f"{path.name} ... ", end="", flush=True)
        try:
            print("changed" if refresh(path, everything=options.all) else "unchanged")
        except CellFailed as error:
            failed = True
            print(f"not refreshed: {error}. The file is as it was: mend the cell, refresh again.")
    glossary.main()
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
