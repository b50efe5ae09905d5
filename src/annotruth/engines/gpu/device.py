"""The card: arrays on it, copies to and from it, CUDA files compiled for it, its limits and errors.

A label is one word of 32 bits. Sums are integers of 64 bits, so that they do not depend on the order of
their terms: a number is a multiple of the inverse of a unit, which is a power of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError, option
from annotruth.kernels.arrays import copy_on_all_cores, slices
from annotruth.observations import Labels


def choose_memory() -> str:
    """Return what to do where the GPU cannot be used."""
    return f"choose {option('engine', 'memory')}"


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
        return (
            f"the memory of the card, or page-locked memory, is full ({reason}): {choose_memory()}"
        )
    if "failed to load" in text:
        return f"CuPy finds no CUDA libraries ({reason}): pip install 'cupy-cuda13x[ctk]', or {choose_memory()}"
    if kind in ("CompileException", "NVRTCError"):
        return f"CuPy cannot compile the kernels ({reason}): update CuPy, or {choose_memory()}"
    return f"the card failed ({reason}): {choose_memory()}"


def first_line(text: str) -> str:
    """Return the first line of an error's text that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")


def _is_of_cupy(error: Exception) -> bool:
    module = type(error).__module__.partition(".")[0]
    return module in ("cupy", "cupy_backends") or "CuPy failed to load" in str(error)


MAX_CATEGORIES = 64
"""An item's distribution is with the thread that processes it."""

MAX_LABELS = (1 << 32) - 1

DOUBLE_LABELS = 1 << 22
"""Up to so many labels, gpm is in double precision."""

SINGLE_CATEGORIES = 16
"""Up to so many categories, gpm may be in single precision: an item's shares are in registers."""

LABELS_AT_ONCE = 1 << 26
"""Of so many labels, what takes much memory is computed at once."""

_WORD_BITS = 32  # of a label: the category, and the annotator
_STATES_PER_CLASS, _SHAPES = 3, 32  # the latent states of robust-gpm, at most


def category_shift(n_categories: int) -> int:
    """Return how many bits of a label are left for the annotator."""
    return _WORD_BITS - max(n_categories - 1, 1).bit_length()


def limit_exceeded(labels: Labels) -> str:
    """Return which limit of the engine labels exceed, in words; nothing if they exceed none."""
    n_categories, most = labels.n_categories, 1 << category_shift(labels.n_categories)
    if n_categories > MAX_CATEGORIES:
        return f"{MAX_CATEGORIES:,} categories, not {n_categories:,}"
    if labels.n_labels > MAX_LABELS:
        return f"{MAX_LABELS:,} labels, not {labels.n_labels:,}"
    if labels.n_annotators > most:
        return f"{most:,} annotators with {n_categories:,} categories, not {labels.n_annotators:,}"
    return ""


def bytes_on_card(labels: Labels) -> int:
    """Return at most how much memory of a card a fit takes."""
    n_states = max(_STATES_PER_CLASS * labels.n_categories, _SHAPES)
    by_label = 64  # while labels are sorted by annotator
    by_item = 8 * (n_states + 4 * labels.n_categories)
    by_annotator = 8 * 8 * labels.n_categories * n_states  # of eight tables at a time
    at_once = 4 * n_states * min(labels.n_labels, LABELS_AT_ONCE)
    by_label = by_label * labels.n_labels + at_once
    return by_label + by_item * labels.n_items + by_annotator * labels.n_annotators


def unit_of(bits: int, n_labels: int) -> np.float64:
    """Return the unit of sums over this many labels that are below 2**bits each."""
    return np.float64(2.0 ** min(62 - bits - int(np.ceil(np.log2(n_labels + 1))), 52))


_COMMON, _ARITHMETIC = "common.cuh", "arithmetic.hpp"
_BLOCKS_PER_PROCESSOR, _THREADS = 8, 256
_FEW_BYTES = 1 << 22  # which are copied at once
_STAGED_BYTES = 1 << 27  # copied at once, of more
_MODULES: dict[tuple[Any, ...], Any] = {}  # compiled files, by card, name and macros


def cuda_source(family: str) -> str:
    """Return the CUDA C++ of a family of kernels, with what all of them share."""
    folder = resources.files("annotruth.kernels.cuda")
    common, own, arithmetic = (
        (folder / name).read_text("utf-8") for name in (_COMMON, f"{family}.cu", _ARITHMETIC)
    )
    return common.replace(f'#include "{_ARITHMETIC}"', arithmetic) + own


def check_room(device: CUDADevice, n_bytes: int, what: str) -> None:
    """Raise if that many bytes are more than is free on the device."""
    free = device.free_bytes()
    if n_bytes > free:
        raise InputError(
            f"the card has {free / 1e9:,.1f} GB free, and {what} need {n_bytes / 1e9:,.1f} GB: "
            f"{choose_memory()}"
        )


class CUDADevice:
    """The current NVIDIA card, through CuPy: where arrays of a session are, and where its kernels run."""

    def __init__(self) -> None:
        self.xp = cupy_with_a_card()  # has the functions of NumPy
        self._device = self.xp.cuda.Device()
        self.n_processors = int(self._device.attributes["MultiProcessorCount"])
        # how much shared memory a block may have
        self.shared_bytes = int(self._device.attributes["MaxSharedMemoryPerBlockOptin"])

    def to_host(self, values: Any) -> NDArray[Any]:
        """Return a copy of an array of the card.

        Large ones are copied by way of page-locked memory, from which all cores copy on. The driver's own
        copy into memory that is used for the first time takes several times as long.
        """
        if values.nbytes <= _FEW_BYTES:
            return np.asarray(self.xp.asnumpy(values))
        in_memory = np.empty(values.shape, values.dtype)
        on_card, to = self.xp.ascontiguousarray(values).reshape(-1), in_memory.reshape(-1)
        size = min(_STAGED_BYTES // on_card.itemsize, len(on_card))
        staged = np.frombuffer(
            self.xp.cuda.alloc_pinned_memory(size * on_card.itemsize), on_card.dtype, size
        )
        for part in slices(len(on_card), size):
            source = staged[: part.stop - part.start]
            on_card[part].get(out=source)
            copy_on_all_cores(source, to[part])
        return in_memory

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
        blocks: int | None = None,
        threads: int = _THREADS,
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
        blocks = blocks or _BLOCKS_PER_PROCESSOR * self.n_processors
        kernel((blocks,), (threads,), tuple(arguments), shared_mem=shared_bytes)


def cupy_with_a_card() -> Any:
    """Return the package CuPy; raise if it or a card is missing."""
    try:
        import cupy
    except ModuleNotFoundError:
        raise InputError(
            f"{option('engine', 'gpu')} needs the package CuPy: pip install 'annotruth[gpu]'"
        ) from None
    except ImportError as error:
        raise InputError(
            f"CuPy is installed but does not load ({first_line(str(error))}): install it again, or "
            f"{choose_memory()}"
        ) from None
    try:
        n_cards = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if "InsufficientDriver" in str(error):
            raise InputError(
                f"{option('engine', 'gpu')} finds no NVIDIA driver that is new enough for this CuPy: "
                "update the driver, or install an older CuPy, such as cupy-cuda12x"
            ) from None
        raise InputError(
            f"{option('engine', 'gpu')} finds no NVIDIA card ({error}): {choose_memory()}"
        ) from None
    if not n_cards:
        raise InputError(f"{option('engine', 'gpu')} finds no NVIDIA card: {choose_memory()}")
    return cupy
