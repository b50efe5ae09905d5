"""The card: arrays on it, and CUDA files compiled for it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any, Protocol

from numpy.typing import NDArray

from annotruth.errors import InputError

_COMMON = "common.cuh"


class Device(Protocol):
    """Where arrays of a session are, and where its kernels run.

    Examples
    --------
    >>> from annotruth.engines.gpu.device import CUDADevice
    >>> device = CUDADevice()  # doctest: +SKIP
    >>> device.to_host(device.xp.zeros(2))  # doctest: +SKIP
    array([0., 0.])
    """

    xp: Any
    """The array library of the device, with the functions of NumPy: CuPy for a card."""
    n_processors: int
    """The number of multiprocessors."""
    shared_bytes: int
    """How much shared memory a block may have."""

    def to_host(self, values: Any) -> NDArray[Any]:
        """Return a copy of an array of the device."""

    def free_bytes(self) -> int:
        """Return how much memory is free on the device."""

    def run(
        self,
        family: str,
        function: str,
        defines: Sequence[str],
        arguments: Sequence[Any],
        *,
        blocks: int,
        threads: int,
        shared_bytes: int = 0,
    ) -> None:
        """Run a function of ``kernels/cuda/<family>.cu``, compiled with some macros defined."""


def cuda_source(family: str) -> str:
    """Return the CUDA C++ of a family of kernels, with what all of them share."""
    folder = resources.files("annotruth.kernels.cuda")
    files = (folder / name for name in (_COMMON, f"{family}.cu"))
    return "\n".join(file.read_text("utf-8") for file in files)


class CUDADevice:
    """The current NVIDIA card, through CuPy.

    Examples
    --------
    >>> from annotruth.engines.gpu.device import CUDADevice
    >>> CUDADevice().n_processors  # of an H200 # doctest: +SKIP
    132
    """

    def __init__(self) -> None:
        self.xp = _cupy_with_a_card()
        self._modules: dict[tuple[str, ...], Any] = {}
        self._device = self.xp.cuda.Device()
        self.n_processors = int(self._device.attributes["MultiProcessorCount"])
        self.shared_bytes = int(self._device.attributes["MaxSharedMemoryPerBlockOptin"])

    def to_host(self, values: Any) -> NDArray[Any]:
        """Return a copy of an array of the card."""
        array: NDArray[Any] = self.xp.asnumpy(values)
        return array

    def free_bytes(self) -> int:
        """Return how much memory is free on the card."""
        pool = self.xp.get_default_memory_pool()
        return int(self._device.mem_info[0]) + int(pool.free_bytes())

    def run(
        self,
        family: str,
        function: str,
        defines: Sequence[str],
        arguments: Sequence[Any],
        *,
        blocks: int,
        threads: int,
        shared_bytes: int = 0,
    ) -> None:
        """Run a kernel."""
        key = (family, *defines)
        if key not in self._modules:
            options = ("-std=c++17", *(f"-D{define}" for define in defines))
            self._modules[key] = self.xp.RawModule(code=cuda_source(family), options=options)
        kernel = self._modules[key].get_function(function)
        if shared_bytes:
            kernel.max_dynamic_shared_size_bytes = shared_bytes
        kernel((blocks,), (threads,), tuple(arguments), shared_mem=shared_bytes)


def _cupy_with_a_card() -> Any:
    """Return the package CuPy; raise if it or a card is missing."""
    try:
        import cupy
    except ImportError:
        raise InputError(
            "engine='gpu' (`--engine gpu`) needs the package CuPy: pip install 'annotruth[gpu]'"
        ) from None
    try:
        n_cards = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise InputError(
            f"engine='gpu' (`--engine gpu`) finds no NVIDIA card ({error}): choose "
            "engine='memory' (`--engine memory`)"
        ) from None
    if not n_cards:
        raise InputError(
            "engine='gpu' (`--engine gpu`) finds no NVIDIA card: choose engine='memory' "
            "(`--engine memory`)"
        )
    return cupy
