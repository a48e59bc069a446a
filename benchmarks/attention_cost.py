"""Time and memory of causal attention against the number of tokens, in seven ways.

One text, 4 heads of 16 channels, forward only, float32, without gradients. "one head" has a single
head of 64 channels. Times are medians of interleaved runs, with quartiles, on 1 and on 2 threads.
Memory is what a fresh process holds at most, beyond what it held before its first call. Beside them
stand the limits of the machine: how fast it multiplies large matrices, and how fast it copies.

Run: python benchmarks/attention_cost.py [--quick]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.training import record
from helpers.attention import attention, causal_mask
from helpers.cost import blockwise_attention

N_HEAD, HEAD_SIZE = 4, 16
SIZES = (128, 256, 512, 1024, 2048, 4096)
ROUNDS = 9
FEW = {"loop over tokens": 1024}  # beyond this T it only grows


# ---------------------------------------------------------------- the ways, (1, 4, T, 16) each


def loop(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    outs = []
    for t in range(q.shape[2]):
        scores = q[:, :, t : t + 1] @ k[:, :, : t + 1].mT / HEAD_SIZE**0.5
        outs.append(scores.softmax(dim=-1) @ v[:, :, : t + 1])
    return torch.cat(outs, dim=2)


def formula(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attention(q, k, v, causal_mask(q.shape[2]))[0]


def one_head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    wide = [z.transpose(1, 2).flatten(2)[:, None] for z in (q, k, v)]  # (1, 1, T, 64)
    return formula(*wide)


def list_of_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.cat([formula(*(z[:, [h]] for z in (q, k, v))) for h in range(N_HEAD)], dim=1)


def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def sdpa_own_mask(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(q.shape[2]))


WAYS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "loop over tokens": loop,
    "one head": one_head,
    "list of heads": list_of_heads,
    "formula": formula,
    "SDPA, own mask": sdpa_own_mask,
    "blocks in Python": blockwise_attention,
    "SDPA, is_causal": sdpa,
}


def inputs(T: int) -> Tensor:
    """q, k and v, (3, 1, n_head, T, head_size)."""
    return torch.randn(3, 1, N_HEAD, T, HEAD_SIZE, generator=torch.Generator().manual_seed(0))


# ---------------------------------------------------------------- measuring


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def times(T: int, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each way: quartiles of runs that take turns."""
    q, k, v = inputs(T)
    ways = {name: way for name, way in WAYS.items() if FEW.get(name, T) >= T}
    found: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(rounds + 1):
        for name, way in ways.items():
            took = seconds(lambda way=way: way(q, k, v))
            if i:  # the first round finds everything cold
                found[name].append(1000 * took)
    return {name: [round(ms, 3) for ms in quantiles(runs, n=4)] for name, runs in found.items()}


def extra_memory(name: str, T: int) -> float:
    """MB that a fresh process holds at most, beyond what it held before the first call."""
    code = "import attention as b, attention_cost as a, torch\n"
    code += "torch.set_num_threads(1); a.sdpa(*a.inputs(16))\n"
    code += f"x = a.inputs({T}); before = b.peak_so_far(); a.WAYS[{name!r}](*x)\n"
    code += "print(b.peak_so_far() - before)"
    command, folder = [sys.executable, "-c", code], Path(__file__).parent
    runs = [
        float(
            subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
        )
        for _ in range(3)
    ]
    return round(sorted(runs)[1], 1)


def limits() -> dict[str, float]:
    """Billions of multiplications and additions in a second, and GB copied; the best of nine."""
    a, b = torch.randn(2, 1024, 1024)
    large = torch.randn(16_000_000)  # 64 MB, more than the caches of a processor hold
    there = torch.empty_like(large)
    product = min(seconds(lambda: a @ b) for _ in range(9))
    copy = min(seconds(lambda: there.copy_(large)) for _ in range(9))
    return {
        "GFLOP/s": round(2 * 1024**3 / product / 1e9, 1),
        "GB/s": round(2 * large.nbytes / copy / 1e9, 1),  # read and written
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing stored")
    quick = parser.parse_args().quick
    runs, of_machine = [], {}
    with torch.no_grad():
        for threads in (1, 2):
            torch.set_num_threads(threads)
            of_machine[threads] = limits()
            print(f"{threads} threads: {of_machine[threads]}")
            for T in SIZES[:3] if quick else SIZES:
                for name, (low, median, high) in times(T, 3 if quick else ROUNDS).items():
                    runs.append({"way": name, "T": T, "threads": threads, "ms": median})
                    runs[-1] |= {"ms_quartiles": [low, high]}
                    if threads == 1 and not quick:
                        runs[-1]["extra_MB"] = extra_memory(name, T)
                    print(*runs[-1].values(), sep="  ", flush=True)
    if not quick:
        found = {"limits": {f"{n} threads": one for n, one in of_machine.items()}, "runs": runs}
        print("stored:", record.write("attention_cost", record.conditions() | found))
        draw(runs, of_machine[1])


def draw(runs: list[dict], limits: dict[str, float]) -> None:
    """Draw time and memory against T, on one thread, with the limits of the machine."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    in_time, in_memory = figure.subplots(1, 2)
    for name in WAYS:
        mine = [run for run in runs if run["way"] == name and run["threads"] == 1]
        sizes = [run["T"] for run in mine]
        in_time.plot(sizes, [run["ms"] for run in mine], marker="o", label=name)
        # What is too little to be seen in whole pages counts as 0.1 MB, for the logarithm.
        in_memory.plot(sizes, [max(run["extra_MB"], 0.1) for run in mine], marker="o", label=name)
    # The causal half of T² pairs, and for each a product of q and k and one of a weight and v.
    flops = [2 * T * T * N_HEAD * HEAD_SIZE for T in SIZES]
    moved = [2 * 4 * N_HEAD * T * T for T in SIZES]  # bytes: scores written once and read once
    for what, style, amount in (("GFLOP/s", "--", flops), ("GB/s", ":", moved)):
        in_time.plot(SIZES, [n / limits[what] / 1e6 for n in amount], style, color="0.4")
    told = "limits of the machine\n-- arithmetic\n·· scores written and read once"
    in_time.text(0.97, 0.03, told, color="0.3", ha="right", transform=in_time.transAxes)
    for axes, what in ((in_time, "milliseconds"), (in_memory, "MB more than before")):
        axes.set(xlabel="T", ylabel=what, xscale="log", yscale="log")
        axes.set_xticks(SIZES, map(str, SIZES), minor=False)
        axes.minorticks_off()
    in_memory.legend(frameon=False)
    figure.suptitle("Causal attention, 4 heads of 16 channels, one thread")
    path = record.RESULTS / "attention_cost.png"
    figure.savefig(path, dpi=100)
    print("drawn:", path)


if __name__ == "__main__":
    main()
