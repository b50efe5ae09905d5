"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from annotruth.engines.memory import MemoryEngine

PACKAGES = ("annotruth", "numpy", "numba", "crowd-kit", "pandas")


def describe(names: Sequence[str] = PACKAGES) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in names)
    cores = MemoryEngine().threads
    return (
        f"{_cpu()}, {cores} usable {'core' if cores == 1 else 'cores'}, {platform.system()}; "
        f"Python {platform.python_version()}, {packages}; {_load()}"
    )


def _load() -> str:
    """Say how busy the machine was with other work in the minute before."""
    if not hasattr(os, "getloadavg"):
        return "load before the run unknown"
    return f"load before the run {os.getloadavg()[0]:.1f}"


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
