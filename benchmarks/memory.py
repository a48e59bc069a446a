"""What the kernel of each notebook takes of memory, beside the least that any such kernel takes.

At its end, and at most (where the system tells: Linux does). README says the most, rounded up to
50 MB. That floor is a notebook that imports torch, matplotlib and ipywidgets, draws one picture,
and backpropagates once. Each notebook runs in a fresh kernel, in turn with the floor.
"""

import math
import os
import re
import statistics
import sys
from pathlib import Path

import nbformat
import psutil
from nbclient import NotebookClient
from nbformat import v4

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
FLOOR = """
import io
import ipywidgets
import torch
from matplotlib.figure import Figure

Figure().savefig(io.BytesIO(), format="png")
x = torch.ones(8, 8, requires_grad=True)
(x @ x).sum().backward()
"""
MB = 2**20


def megabytes(nb: nbformat.NotebookNode) -> tuple[float, float]:
    """The resident memory of a notebook's kernel: after its last cell, and at most."""
    client = NotebookClient(nb, kernel_name="python3", resources={"metadata": {"path": FOLDER}})
    with client.setup_kernel():
        for index, cell in enumerate(nb.cells):
            if cell.cell_type == "code":
                client.execute_cell(cell, index)
        pid = client.km.provisioner.process.pid
        return psutil.Process(pid).memory_info().rss / MB, _most(pid)


def _most(pid: int) -> float:
    """The most resident memory that a process has had, or nan where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return math.nan
    return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1024


def main() -> None:
    os.environ["ATTENTION_PROGRESS"] = "0"  # no learner runs these cells
    floor, above = [], []
    print("MB of memory               at the end   above the floor   at most")
    for path in [FOLDER / name for name in sys.argv[1:]] or sorted(FOLDER.glob("[01]*.ipynb")):
        floor.append(megabytes(v4.new_notebook(cells=[v4.new_code_cell(FLOOR)]))[0])
        taken, most = megabytes(nbformat.read(path, as_version=4))
        above.append(taken - floor[-1])
        print(f"{path.stem:27}{taken:10.0f}   {above[-1]:15.0f}   {most:7.0f}", flush=True)
    print(f"{'floor (median)':27}{statistics.median(floor):6.0f}")


if __name__ == "__main__":
    main()
