"""A description of the machine and the versions, printed with every result."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from annotruth.engines.memory import MemoryEngine

PACKAGES = ("annotruth", "numpy", "crowd-kit", "pandas")


def describe(names: Sequence[str] = PACKAGES) -> str:
    """Return processor, cores, versions and load in one line."""
    packages = ", ".join(text for name in names if (text := _version(name)))
    cores = MemoryEngine().threads
    return (
        f"{_cpu()}, {cores} usable {'core' if cores == 1 else 'cores'}, {platform.system()}; "
        f"Python {platform.python_version()}, {packages}; {_load()}"
    )


def _version(name: str) -> str:
    """Return a package and its version, or nothing if it is not installed."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def _load() -> str:
    """Return the load of the machine in the minute before."""
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
