"""A device that runs the CUDA kernels on the processor, so that they are tested without a card."""

import ctypes
import hashlib
import importlib.util
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.gpu.card_array import CardArray, CardNumPy

from annotruth.engines.gpu.device import CUDADevice, cuda_source

COMPILER = shutil.which("g++")
_SHIM = (Path(__file__).parent / "host.cuh").read_text("utf-8")


class HostDevice:
    """Blocks run one after the other, and the threads of a block are threads of this process.

    A warp is a block, so kernels that use warps need a power of two of threads.
    """

    def __init__(self, *, n_processors: int = 2, threads: int = 1, shared_bytes: int = 64) -> None:
        self.xp = CardNumPy()
        self.n_processors, self.shared_bytes = n_processors, shared_bytes
        self._threads = threads

    def to_host(self, values: Any) -> Any:
        return values.get()

    def free_bytes(self) -> int:
        return 1 << 30

    def run(
        self, family, function, defines, arguments, *, blocks=None, threads=256, shared_bytes=0
    ) -> None:
        assert shared_bytes <= self.shared_bytes
        assert threads <= 1024
        library = compiled(family, (f"WARP_SIZE={self._threads}", *defines))
        blocks = blocks or 8 * self.n_processors
        kernel = getattr(library, function)
        passed = [as_c(argument) for argument in arguments]

        def run_thread(thread: int) -> None:
            library.begin_thread(thread)
            kernel(*passed)

        if self._threads == 1:
            for block in range(blocks):
                library.begin_block(block, blocks, 1)
                run_thread(0)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            for block in range(blocks):
                library.begin_block(block, blocks, self._threads)
                # All at once, as threads of a block wait for each other.
                for done in [pool.submit(run_thread, t) for t in range(self._threads)]:
                    done.result()


def as_c(argument: Any) -> Any:
    """Return an argument of a kernel as C takes it."""
    if isinstance(argument, CardArray):
        assert argument.values.flags.c_contiguous
        return ctypes.c_void_p(argument.values.ctypes.data)
    kinds = {
        np.float32: ctypes.c_float,
        np.float64: ctypes.c_double,
        np.uint32: ctypes.c_uint32,
        np.int64: ctypes.c_int64,
        np.uint64: ctypes.c_uint64,
    }
    return kinds[type(argument)](argument.item())


@cache
def compiled(family: str, defines: tuple[str, ...]) -> ctypes.CDLL:
    """Return the kernels of a file, compiled for the processor."""
    source = _SHIM + cuda_source(family)
    name = hashlib.sha256(source.encode()).hexdigest()[:16]
    with tempfile.TemporaryDirectory(prefix="annotruth-cuda-") as folder:
        path = Path(folder) / f"{name}.so"
        command = [COMPILER, "-x", "c++", "-", "-o", path, "-shared", "-fPIC", "-O1", "-std=c++20"]
        options = ["-pthread", "-Wno-unknown-pragmas", *(f"-D{name}" for name in defines)]
        subprocess.run([*command, *options], input=source.encode(), check=True)
        return ctypes.CDLL(str(path))  # it stays loaded when its file is gone


def host_device(**options: Any) -> HostDevice:
    """Return a device on the processor; skip the test without a compiler."""
    if COMPILER is None:
        pytest.skip("g++ is missing: install it to test CUDA kernels on the processor")
    return HostDevice(**options)


def device_of(kind: str, **options: Any) -> Any:
    """Return a card if the kind is "card", or a device on the processor; skip the test without one."""
    if kind != "card":
        return host_device(**options)
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is missing: install it to test on a card")
    return CUDADevice()
