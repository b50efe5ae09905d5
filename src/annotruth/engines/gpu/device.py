"""The card: arrays on it, copies to and from it, CUDA files compiled for it, its limits and errors.

A label is one word of 32 bits. Sums are integers of 64 bits, so that they do not depend on the order of
their terms: a number is a multiple of the inverse of a unit, which is a power of two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import copy_on_all_cores, slices
from annotruth.observations import Labels

_IN_MEMORY = "choose engine='memory' (`--engine memory`)"


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Replace what CuPy raises by one line; CuPy's error is its cause."""
    try:
        yield
    except Exception as error:
        if not _is_of_cupy(error):
            raise
        raise InputError(describe_error(error)) from error


def describe_error(error: Exception) -> str:
    """Return what to do after an error of CuPy."""
    text, kind = str(error), type(error).__name__
    reason = first_line(text)
    if isinstance(error, MemoryError) or "cudaErrorMemoryAllocation" in text:
        return f"the memory of the card, or page-locked memory, is full ({reason}): {_IN_MEMORY}"
    if "failed to load" in text:
        return f"CuPy finds no CUDA libraries ({reason}): pip install 'cupy-cuda13x[ctk]', or {_IN_MEMORY}"
    if kind in ("CompileException", "NVRTCError"):
        return f"CuPy cannot compile the kernels ({reason}): update CuPy, or {_IN_MEMORY}"
    return f"the card failed ({reason}): {_IN_MEMORY}"


def first_line(text: str) -> str:
    """Return the first line of an error's text that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")


def _is_of_cupy(error: Exception) -> bool:
    module = type(error).__module__.partition(".")[0]
    return module in ("cupy", "cupy_backends") or "CuPy failed to load" in str(error)


DENSE_CATEGORIES = 16
"""Up to so many categories, an item's distribution is in registers."""

DOUBLE_LABELS = 1 << 22
"""Up to so many labels, gpm and dawid-skene are in double precision."""

MAX_CATEGORIES = 1024
"""The shared memory of a block holds a distribution of so many categories."""

UNIT = 2.0**32
"""The unit of sums of probabilities."""

_WORD_BITS = 32  # of a label: the category, and the annotator

# Of robust-gpm: what a label takes while labels are sorted; an item's share in results; an entry of
# annotators' counts, of which there are eight tables at a time.
_BYTES_PER_LABEL, _BYTES_PER_SHARE, _BYTES_PER_COUNT = 64, 32, 64
_STATES_PER_CLASS, _SHAPES = 3, 32


def category_shift(n_categories: int) -> int:
    """Return how many bits of a label are left for the annotator."""
    return _WORD_BITS - max(n_categories - 1, DENSE_CATEGORIES - 1).bit_length()


def limit_exceeded(labels: Labels) -> str:
    """Return which limit of the engine labels exceed, in words; nothing if they exceed none."""
    n_categories, shift = labels.n_categories, category_shift(labels.n_categories)
    if n_categories > MAX_CATEGORIES:
        return f"{MAX_CATEGORIES:,} categories, not {n_categories:,}"
    if labels.n_annotators > 1 << shift:
        return (
            f"{1 << shift:,} annotators with {n_categories:,} categories, not "
            f"{labels.n_annotators:,}"
        )
    return ""


def resident_bytes(labels: Labels) -> int:
    """Return at most how much memory of a card a fit of robust-gpm takes, with all labels there."""
    n_categories = labels.n_categories
    n_states = max(_STATES_PER_CLASS * n_categories, _SHAPES)
    by_item = 4 * n_states + _BYTES_PER_SHARE * n_categories
    by_annotator = _BYTES_PER_COUNT * n_categories * n_states
    return (
        _BYTES_PER_LABEL * labels.n_labels
        + by_item * labels.n_items
        + by_annotator * labels.n_annotators
    )


def log_unit(n_labels: int) -> np.float32:
    """Return the unit of sums of logs; 64 bits hold them if every label has the least probability."""
    return _power_of_two(62 - 7, n_labels)


def slope_unit(n_labels: int) -> np.float32:
    """Return the unit of sums of slopes of this many labels, each below 2**20."""
    return _power_of_two(62 - 20, n_labels)


def _power_of_two(bits: int, n_labels: int) -> np.float32:
    return np.float32(2.0 ** min(bits - int(np.ceil(np.log2(n_labels + 1))), 32))


_COMMON = "common.cuh"
_FEW_BYTES = 1 << 22  # which are copied at once
_STAGED_BYTES = 1 << 27  # copied at once, of more
_MODULES: dict[tuple[Any, ...], Any] = {}  # compiled files, by card, name and macros


def cuda_source(family: str) -> str:
    """Return the CUDA C++ of a family of kernels, with what it includes and all of them share."""
    folder = resources.files("annotruth.kernels.cuda")

    def read(name: str) -> str:
        return (folder / name).read_text("utf-8")

    own = re.sub(r'#include "(\w+\.cuh)"', lambda found: read(found[1]), read(f"{family}.cu"))
    return f"{read(_COMMON)}\n{own}"


def check_room(device: CUDADevice, n_bytes: int, what: str) -> None:
    """Raise if that many bytes are more than is free on the device."""
    free = device.free_bytes()
    if n_bytes > free:
        raise InputError(
            f"the card has {free / 1e9:,.1f} GB free, and {what} need {n_bytes / 1e9:,.1f} GB: "
            "choose engine='memory' (`--engine memory`)"
        )


class CUDADevice:
    """An NVIDIA card, through CuPy: where arrays of a session are, and where its kernels run.

    ``number``: Which card, if there are several; the current one by default.
    """

    def __init__(self, number: int | None = None) -> None:
        self.xp = cupy_with_a_card()  # has the functions of NumPy
        self._device = self.xp.cuda.Device(number)
        self.n_processors = int(self._device.attributes["MultiProcessorCount"])
        # how much shared memory a block may have
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
        """Run a function of ``kernels/cuda/<family>.cu``, compiled with some macros defined."""
        key = (self._device.id, family, *defines)
        if key not in _MODULES:
            options = ("-std=c++17", *(f"-D{define}" for define in defines))
            _MODULES[key] = self.xp.RawModule(code=cuda_source(family), options=options)
        kernel = _MODULES[key].get_function(function)
        if shared_bytes:
            kernel.max_dynamic_shared_size_bytes = shared_bytes
        kernel((blocks,), (threads,), tuple(arguments), shared_mem=shared_bytes)


class CUDAQueue:
    """A CUDA stream: copies and kernels that run one after the other, beside those of others.

    Kernels that are started within ``with queue:`` belong to it.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._stream = cupy.cuda.Stream(non_blocking=True)

    def __enter__(self) -> Any:
        return self._stream.__enter__()

    def __exit__(self, *error: object) -> None:
        self._stream.__exit__(*error)

    def begin(self) -> None:
        """Let this queue wait for what was started outside of queues."""
        self._stream.wait_event(self._cupy.cuda.get_current_stream().record())

    def end(self) -> None:
        """Let what is started outside of queues from now on wait for this queue."""
        self._cupy.cuda.get_current_stream().wait_event(self._stream.record())

    def wait(self) -> None:
        """Wait until everything in this queue is done."""
        self._stream.synchronize()

    def upload(self, values: NDArray[Any], to: Any) -> None:
        """Copy an array of the host, from page-locked memory, to one of the card."""
        to.data.copy_from_host_async(values.ctypes.data, values.nbytes, self._stream)

    def download(self, values: Any, to: NDArray[Any]) -> None:
        """Copy an array of the card to one of the host, in page-locked memory."""
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
