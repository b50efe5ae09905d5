"""How kernels are compiled: once, without the interpreter lock, and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(kernel: Kernel) -> Kernel:
    """Compile a kernel on its first call and cache the machine code.

    Kernels release the interpreter lock, so that plain threads run them side by side. Where no
    folder for the cache can be written, each process compiles anew.
    """
    # No kernel is called from C; the way in for it takes an eighth of the time to compile.
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        return cast(Kernel, numba.njit(cache=True, **options)(kernel))
    except RuntimeError:
        return cast(Kernel, numba.njit(**options)(kernel))
