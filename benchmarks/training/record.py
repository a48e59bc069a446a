"""Measurements as JSON, with the machine and the versions that they were made with."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from datetime import date
from pathlib import Path
from typing import Any

import psutil
import torch

FLAGS = "avx2", "avx512f", "avx512_bf16", "amx_bf16"  # of a processor, where Linux lists them
RESULTS = Path(__file__).resolve().parent.parent / "results"


def conditions() -> dict[str, Any]:
    """The machine, the date, the load average of now, and the versions."""
    listed = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return {
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}",
        "flags": [flag for flag in FLAGS if re.search(rf"\b{flag}\b", listed)],
        "date": date.today().isoformat(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def processor() -> str:
    """The name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists() and (found := re.search(r"model name\s*: (.+)", cpuinfo.read_text())):
        return found[1]
    return platform.processor() or platform.machine()


class Others:
    """A clock of what other programs do: ``others.cores()`` since it was made, 1.0 for one core."""

    def __init__(self) -> None:
        self.start, self.used = time.perf_counter(), self._used()

    def cores(self) -> float:
        """How many cores other programs have kept busy on average."""
        return (self._used() - self.used) / (time.perf_counter() - self.start)

    @staticmethod
    def _used() -> float:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # in user, too
        return sum(times) - guests - idle - time.process_time()


def write(name: str, measured: dict[str, Any]) -> Path:
    """Write benchmarks/results/<name>.json: one line for each name, and for each run in a list."""
    parts = [f'"{key}": {_lines(value)}' for key, value in measured.items()]
    path = RESULTS / f"{name}.json"
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    return path


def _lines(value: Any) -> str:
    if not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return json.dumps(value)
    return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n]"
