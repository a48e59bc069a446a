"""What the kernel of each notebook takes of memory, beside the least that any such kernel takes.

That floor is a notebook that imports torch, matplotlib and ipywidgets, draws one picture, and
backpropagates once. Each notebook runs in a fresh kernel, in turn with the floor.
"""

import os
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


def megabytes(nb: nbformat.NotebookNode) -> float:
    """The resident memory of a notebook's kernel after its last cell."""
    client = NotebookClient(nb, kernel_name="python3", resources={"metadata": {"path": FOLDER}})
    with client.setup_kernel():
        for index, cell in enumerate(nb.cells):
            if cell.cell_type == "code":
                client.execute_cell(cell, index)
        kernel = psutil.Process(client.km.provisioner.process.pid)
        return kernel.memory_info().rss / MB


def main() -> None:
    os.environ["ATTENTION_PROGRESS"] = "0"  # no learner runs these cells
    floor, above = [], []
    print("MB of memory at the end    kernel   above the floor")
    for path in [FOLDER / name for name in sys.argv[1:]] or sorted(FOLDER.glob("[01]*.ipynb")):
        floor.append(megabytes(v4.new_notebook(cells=[v4.new_code_cell(FLOOR)])))
        taken = megabytes(nbformat.read(path, as_version=4))
        above.append(taken - floor[-1])
        print(f"{path.stem:27}{taken:6.0f}   {above[-1]:6.0f}", flush=True)
    print(f"{'floor (median)':27}{statistics.median(floor):6.0f}")


if __name__ == "__main__":
    main()
