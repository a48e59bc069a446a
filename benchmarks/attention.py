"""How much time and memory fused multi-head attention takes, against `nn.MultiheadAttention`.

Both get the same weights and the same causal mask, `need_weights=False`, and are in training mode.
Times are ratios of interleaved runs, because machines are noisy; memory is the peak of a fresh
process each. Then the growth with T, beside the explicit form that the notebooks teach.

Run: python benchmarks/attention.py [--rounds 15] [--sizes 128 256 …] [--picture growth.png]
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from helpers.attention import MultiHeadAttention, causal_mask
from helpers.pictures.lines import curves

B, C, N_HEAD = 4, 256, 8
SIZES = (128, 256, 512, 1024, 2048)
WAYS = ("forward", "forward and backward")
TIME, MEMORY = 1.05, 1.1  # the most that ours may take of theirs


def runner(who: str, T: int, way: str) -> Callable[[], object]:
    """One call of ours, theirs or the explicit form, on the same tokens."""
    torch.manual_seed(0)
    x = torch.randn(B, T, C)
    ours = MultiHeadAttention(C, N_HEAD, fused=who != "explicit").train()
    theirs = nn.MultiheadAttention(C, N_HEAD, bias=False, batch_first=True).train()
    with torch.no_grad():
        rows = [ours.query.weight, ours.key.weight, ours.value.weight]
        theirs.in_proj_weight.copy_(torch.cat(rows))
        theirs.out_proj = nn.Linear(C, C)
        theirs.out_proj.load_state_dict(ours.proj.state_dict())
    may_not = ~causal_mask(T)  # theirs: True = may not attend

    def forward() -> torch.Tensor:
        if who == "theirs":
            how = {"need_weights": False, "attn_mask": may_not, "is_causal": True}
            return theirs(x, x, x, **how)[0]
        return ours(x)

    def both() -> None:
        forward().sum().backward()

    x.requires_grad_(way != "forward")
    return forward if way == "forward" else both


def clock(run: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / times


def compare(T: int, way: str, rounds: int) -> tuple[float, list[float]]:
    """The median time of theirs in milliseconds, and the sorted ratios ours / theirs."""
    ours, theirs = runner("ours", T, way), runner("theirs", T, way)
    assert way != "forward" or torch.allclose(ours(), theirs(), atol=1e-5)
    once = max(clock(run, 3) for run in (ours, theirs))
    times = max(1, round(0.05 / once))  # a run of at least 50 ms
    pairs = []
    for i in range(rounds):  # in turns, and in turns the first
        first, second = (ours, theirs) if i % 2 else (theirs, ours)
        a, b = clock(first, times), clock(second, times)
        pairs.append((a, b) if i % 2 else (b, a))
    ratios = sorted(a / b for a, b in pairs)
    return 1000 * statistics.median(b for _, b in pairs), ratios


def peak_so_far() -> float:
    """The most memory that this process has held, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # not ru_maxrss: on Linux that begins with the peak of the parent
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # macOS tells bytes


def peak(who: str, T: int, way: str) -> float:
    """The peak of three fresh processes that call it three times, the one in the middle, in MB."""
    code = f"import attention as a; run = a.runner({who!r}, {T}, {way!r}); run(); run(); run()\n"
    code += "print(a.peak_so_far())"
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(3)
    ]
    return statistics.median(map(float, found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--picture", help="where to draw the growth with T, as PNG")
    chosen = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {chosen.rounds} pairs")
    print(f"ours / theirs, B={B}, C={C}, {N_HEAD} heads: median (middle half), peak of a process")
    too_much = []
    for way in WAYS:
        for T in chosen.sizes:
            theirs, ratios = compare(T, way, chosen.rounds)
            part = [ratios[int(share * len(ratios))] for share in (0.5, 0.25, 0.75)]
            memory = [peak(who, T, way) for who in ("ours", "theirs")]
            room = memory[0] / memory[1]
            print(
                f"{way:21} T={T:<5} theirs {theirs:7.2f} ms, ratio {part[0]:.2f} "
                f"({part[1]:.2f} to {part[2]:.2f}); {memory[0]:.0f} MB, ratio {room:.2f}",
                flush=True,
            )
            too_much += [f"{way} T={T}"] if part[0] > TIME or room > MEMORY else []
    growth(chosen.sizes, chosen.picture)
    if too_much:
        raise SystemExit(f"Above {TIME} in time or {MEMORY} in memory: {', '.join(too_much)}.")
    print(f"All within {TIME} in time and {MEMORY} in memory.")


def growth(sizes: list[int], picture: str | None) -> None:
    """Forward and backward as T grows: milliseconds a call, fused, PyTorch's and explicit."""
    names = {"fused": "ours", "nn.MultiheadAttention": "theirs", "explicit": "explicit"}
    lines = {name: [] for name in names}
    print("forward and backward, ms a call")
    print("    T" + "".join(f"{name:>24}" for name in names))
    for T in sizes:
        for name, who in names.items():
            run = runner(who, T, WAYS[1])
            run()
            lines[name].append(1000 * statistics.median(clock(run, 1) for _ in range(5)))
        print(f"{T:5}" + "".join(f"{values[-1]:24.1f}" for values in lines.values()), flush=True)
    if picture:
        panels = {"milliseconds, forward and backward": lines}
        drawn = curves(
            list(sizes),
            panels,
            xlabel="T, tokens",
            logx=True,
            logy=tuple(panels),
            title="The price of attention grows with T²",
        )
        Path(picture).write_bytes(drawn.png())
        print(f"drawn: {picture}")


if __name__ == "__main__":
    main()
