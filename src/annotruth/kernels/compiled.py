"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

from annotruth.kernels.cache import add_cache

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(kernel: Kernel) -> Kernel:
    """Compile a kernel on its first call and cache the machine code on disk.

    Kernels release the interpreter lock, so that threads run them in parallel. The cache is that
    of `annotruth.kernels.cache`: any change in this package compiles all of its kernels anew.
    """
    # No kernel is called from C; its entry point for C takes an eighth of the compile time.
    dispatcher = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(kernel)
    add_cache(dispatcher)
    return cast(Kernel, dispatcher)
