"""How much memory there is: of the machine, or of the container this process runs in."""

from __future__ import annotations

import os
from pathlib import Path

_USUAL_MEMORY = 16_000_000_000  # of a machine that does not report how much it has
# The limits of a container, in version 2 and version 1 of Linux's control groups.
_CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_MEMORY_INFO = Path("/proc/meminfo")


def memory_size() -> int:
    """Return how many bytes of memory the machine has, or those its container may use."""
    return min([_machine_memory(), *_container_limits()])


def available_memory() -> int:
    """Return how many bytes of memory no other process uses, where the system reports it."""
    try:
        lines = _MEMORY_INFO.read_text().splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return min(1024 * int(kilobytes), memory_size())
    except (OSError, StopIteration, ValueError):  # only Linux has this file
        return memory_size()


def _machine_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on every system
        return _USUAL_MEMORY


def _container_limits() -> list[int]:
    limits = []
    for path in _CONTAINER_LIMITS:
        try:
            limits.append(int(path.read_text()))
        except (OSError, ValueError):  # there is no such file, or it holds "max"
            continue
    return limits
