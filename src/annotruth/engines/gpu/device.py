"""The card: arrays on it, copies to and from it, and CUDA files compiled for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import resources
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annotruth.engines.gpu.errors import first_line
from annotruth.errors import InputError
from annotruth.kernels.arrays import copy_on_all_cores, slices

_COMMON = "common.cuh"
_FEW_BYTES = 1 << 22  # which are copied at once
_STAGED_BYTES = 1 << 27  # copied at once, of more
_MODULES: dict[tuple[Any, ...], Any] = {}  # compiled files, by card, name and macros


class Queue(Protocol):
    """Copies and kernels that run one after the other, beside those of other queues.

    Kernels that are started within ``with queue:`` belong to it.

    Examples
    --------
    >>> from annotruth.engines.gpu.device import CUDADevice
    >>> queue = CUDADevice().queue()  # doctest: +SKIP
    >>> queue.wait()  # doctest: +SKIP
    """

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: object) -> None: ...

    def begin(self) -> None:
        """Let this queue wait for what was started outside of queues."""

    def end(self) -> None:
        """Let what is started outside of queues from now on wait for this queue."""

    def wait(self) -> None:
        """Wait until everything in this queue is done."""

    def upload(self, values: NDArray[Any], to: Any) -> None:
        """Copy an array of the host, from page-locked memory, to one of the device."""

    def download(self, values: Any, to: NDArray[Any]) -> None:
        """Copy an array of the device to one of the host, in page-locked memory."""


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

    def current(self) -> AbstractContextManager[Any]:
        """Return a context in which ``xp`` makes arrays on this device."""

    def to_host(self, values: Any) -> NDArray[Any]:
        """Return a copy of an array of the device."""

    def copy_to_host(self, values: Any, to: NDArray[Any]) -> None:
        """Copy an array of the device to one of the host, whose type may differ."""

    def free_bytes(self) -> int:
        """Return how much memory is free on the device."""

    def page_locked(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an empty array of the host that is copied while kernels run."""

    def queue(self) -> Queue:
        """Return a new queue."""

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
    """Return the CUDA C++ of a family of kernels, with what it includes and all of them share."""
    folder = resources.files("annotruth.kernels.cuda")

    def read(name: str) -> str:
        return (folder / name).read_text("utf-8")

    own = re.sub(r'#include "(\w+\.cuh)"', lambda found: read(found[1]), read(f"{family}.cu"))
    return f"{read(_COMMON)}\n{own}"


def check_room(device: Device, n_bytes: int, what: str) -> None:
    """Raise if that many bytes are more than is free on the device."""
    free = device.free_bytes()
    if n_bytes > free:
        raise InputError(
            f"the card has {free / 1e9:,.1f} GB free, and {what} need {n_bytes / 1e9:,.1f} GB: "
            "choose engine='memory' (`--engine memory`)"
        )


class CUDADevice:
    """An NVIDIA card, through CuPy.

    Parameters
    ----------
    number
        Which card, if there are several; the current one by default.

    Examples
    --------
    >>> from annotruth.engines.gpu.device import CUDADevice
    >>> CUDADevice().n_processors  # of an H200 # doctest: +SKIP
    132
    """

    def __init__(self, number: int | None = None) -> None:
        self.xp = cupy_with_a_card()
        self._device = self.xp.cuda.Device(number)
        self.n_processors = int(self._device.attributes["MultiProcessorCount"])
        self.shared_bytes = int(self._device.attributes["MaxSharedMemoryPerBlockOptin"])

    def current(self) -> AbstractContextManager[Any]:
        """Return a context in which arrays are made on this card."""
        device: AbstractContextManager[Any] = self._device
        return device

    def to_host(self, values: Any) -> NDArray[Any]:
        """Return a copy of an array of the card."""
        in_memory: NDArray[Any] = np.empty(values.shape, values.dtype)
        self.copy_to_host(values, in_memory)
        return in_memory

    def copy_to_host(self, values: Any, to: NDArray[Any]) -> None:
        """Copy an array of the card to one of the host, which is contiguous.

        Large ones are copied by way of page-locked memory, from which all cores copy on. The driver's own
        copy into memory that is used for the first time takes several times as long.
        """
        if values.nbytes <= _FEW_BYTES:
            to[...] = self.xp.asnumpy(values)
            return
        on_card, to = self.xp.ascontiguousarray(values).reshape(-1), to.reshape(-1)
        size = min(_STAGED_BYTES // on_card.itemsize, len(on_card))
        staged = self.page_locked((size,), on_card.dtype)
        for part in slices(len(on_card), size):
            source = staged[: part.stop - part.start]
            on_card[part].get(out=source)
            copy_on_all_cores(source, to[part])

    def free_bytes(self) -> int:
        """Return how much memory is free on the card."""
        with self._device:
            pool = self.xp.get_default_memory_pool()
            return int(self._device.mem_info[0]) + int(pool.free_bytes())

    def page_locked(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an empty array of the host that is copied while kernels run."""
        n = int(np.prod(shape, dtype=np.int64))
        memory = self.xp.cuda.alloc_pinned_memory(max(n, 1) * np.dtype(dtype).itemsize)
        return np.frombuffer(memory, dtype, n).reshape(shape)

    def queue(self) -> CUDAQueue:
        """Return a new queue."""
        with self._device:
            return CUDAQueue(self.xp)

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
        key = (self._device.id, family, *defines)
        if key not in _MODULES:
            options = ("-std=c++17", *(f"-D{define}" for define in defines))
            _MODULES[key] = self.xp.RawModule(code=cuda_source(family), options=options)
        kernel = _MODULES[key].get_function(function)
        if shared_bytes:
            kernel.max_dynamic_shared_size_bytes = shared_bytes
        kernel((blocks,), (threads,), tuple(arguments), shared_mem=shared_bytes)


class CUDAQueue:
    """A CUDA stream of the current card.

    Examples
    --------
    >>> import cupy  # doctest: +SKIP
    >>> CUDAQueue(cupy).wait()  # doctest: +SKIP
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._stream = cupy.cuda.Stream(non_blocking=True)

    def __enter__(self) -> Any:
        return self._stream.__enter__()

    def __exit__(self, *error: object) -> None:
        self._stream.__exit__(*error)

    def begin(self) -> None:
        """Let this queue wait for the current stream."""
        self._stream.wait_event(self._cupy.cuda.get_current_stream().record())

    def end(self) -> None:
        """Let the current stream wait for this queue."""
        self._cupy.cuda.get_current_stream().wait_event(self._stream.record())

    def wait(self) -> None:
        """Wait until everything in this queue is done."""
        self._stream.synchronize()

    def upload(self, values: NDArray[Any], to: Any) -> None:
        """Copy an array of the host to one of the card."""
        to.data.copy_from_host_async(values.ctypes.data, values.nbytes, self._stream)

    def download(self, values: Any, to: NDArray[Any]) -> None:
        """Copy an array of the card to one of the host."""
        values.data.copy_to_host_async(to.ctypes.data, to.nbytes, self._stream)


def all_cards() -> list[CUDADevice]:
    """Return the cards of this machine, the current one first."""
    cupy = cupy_with_a_card()
    first = int(cupy.cuda.Device().id)
    others = (n for n in range(cupy.cuda.runtime.getDeviceCount()) if n != first)
    return [CUDADevice(n) for n in (first, *others)]


def cupy_with_a_card() -> Any:
    """Return the package CuPy; raise if it or a card is missing."""
    try:
        import cupy
    except ModuleNotFoundError:
        raise InputError(
            "engine='gpu' (`--engine gpu`) needs the package CuPy: pip install 'annotruth[gpu]'"
        ) from None
    except ImportError as error:
        raise InputError(
            f"CuPy is installed but does not load ({first_line(str(error))}): install it again, or "
            "choose engine='memory' (`--engine memory`)"
        ) from None
    try:
        n_cards = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if "InsufficientDriver" in str(error):
            raise InputError(
                "engine='gpu' (`--engine gpu`) finds no NVIDIA driver that is new enough for this "
                "CuPy: update the driver, or install an older CuPy, such as cupy-cuda12x"
            ) from None
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
