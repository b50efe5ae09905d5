"""Compile kernels, and cache them on disk so that outdated machine code is never loaded.

The machine code of a kernel contains that of every helper it calls, whichever file defines the
helper, but Numba stamps a cached function only with the file that defines the function itself. Here
the stamp is a hash of the content of all files of this package and of the versions in `versions`.
Each stamp has its own folder, inside the folder that Numba would choose, so that processes running
different versions of the code never read each other's files.

Cached machine code is run, so whoever can write it can run code, as with Python's own ``.pyc`` files.
Numba stores it in ``__pycache__`` beside the sources, which is as safe as the sources themselves;
where that cannot be written, in the user's cache folder, or in ``NUMBA_CACHE_DIR``. There it is used
only if no other user but root can have written it.

This is the only file that knows Numba's cache classes and events, which are not public. Where they are not as
expected, kernels are compiled anew in each process.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

from annotruth.kernels.simd.llvm import LLVMLITE_VERSION

Kernel = TypeVar("Kernel", bound=Callable[..., object])

KERNELS = Path(__file__).parent
"""The folder whose files the stamp covers."""

_PREFIX = "annotruth-"
_STAMPS_KEPT = 3  # the current one, and some to switch back to
_NAME_LENGTH = 16  # digits of the stamp in the name of its folder


def compiled(kernel: Kernel) -> Kernel:
    """Compile a kernel on its first call and cache the machine code on disk.

    Kernels release the interpreter lock, so that threads run them in parallel. Any change in this
    package compiles all of its kernels anew.
    """
    return _compiled(kernel, fastmath=False)


def compiled_in_any_order(kernel: Kernel) -> Kernel:
    """Compile a kernel whose sums and products may be computed in any order.

    Its loops that add up or multiply then use SIMD instructions. Infinities and NaN stay what they are.
    """
    return _compiled(kernel, fastmath={"reassoc", "contract"})


def _compiled(kernel: Kernel, fastmath: bool | set[str]) -> Kernel:
    # Entry points that nobody uses take a quarter of the compile time: no kernel is called from C, and
    # private ones are called by other kernels only.
    is_private = kernel.__name__.startswith("_")
    options = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": is_private,
    }
    dispatcher = numba.njit(**options, fastmath=fastmath)(kernel)
    if hasattr(dispatcher, "py_func"):  # not if Numba is switched off
        _ignore_constants(dispatcher)
        if is_private:
            _refuse_python(dispatcher)
        else:
            _pause_collector(dispatcher)
    add_cache(dispatcher)
    return cast(Kernel, dispatcher)


def _ignore_constants(dispatcher: Any) -> None:
    """Compile a kernel once for all values of its arguments that are constants in its callers."""
    get_call_template = dispatcher.get_call_template

    def without_constants(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        unliteral = numba.types.unliteral
        named = {name: unliteral(kind) for name, kind in kws.items()}
        return get_call_template(tuple(map(unliteral, args)), named)

    dispatcher.get_call_template = without_constants


def _refuse_python(dispatcher: Any) -> None:
    """Raise if Python calls a kernel that has no entry point for it, which would end the process."""

    def add_overload(compiled: Any) -> None:
        # Not known to the code in C that looks for an entry point; it then asks for a compilation.
        dispatcher.overloads[tuple(compiled.signature.args)] = compiled

    def refuse(*_: Any, **__: Any) -> None:
        name = dispatcher.py_func.__name__
        raise TypeError(f"{name} is for kernels only: call {name}.py_func from Python")

    dispatcher.add_overload = add_overload
    dispatcher._compile_for_args = refuse


def _pause_collector(dispatcher: Any) -> None:
    """Pause the garbage collector while a kernel is compiled, which takes a tenth longer with it."""
    compile_for_args = dispatcher._compile_for_args

    def compile_without_collector(*args: Any, **kws: Any) -> Any:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return compile_for_args(*args, **kws)
        finally:
            if was_enabled:
                gc.enable()

    dispatcher._compile_for_args = compile_without_collector


def add_cache(dispatcher: Any) -> None:
    """Let a dispatcher of Numba load its machine code from disk and save it there.

    The dispatcher stays without a cache, and so compiles in each process, if its function is not
    defined in this package, if the sources cannot be read, if no folder can be written, or if
    Numba's cache classes are not as expected.
    """
    stamp = _process_stamp()
    function = getattr(dispatcher, "py_func", None)
    if stamp is None or function is None or not hasattr(dispatcher, "_cache"):
        return
    if KERNELS not in Path(function.__code__.co_filename).parents:
        return
    try:
        stamped = _cache_class()(function)
        if stamped.stamp == stamp and Path(stamped.cache_path).name == _folder_name(stamp):
            dispatcher._cache = stamped
    except (AttributeError, ImportError, OSError, RuntimeError, TypeError):
        return


_COMPILATION = "numba:compile"


class RunningCompilations:
    """Counts the functions that are being compiled, by the events that Numba reports."""

    def __init__(self) -> None:
        from numba.core import event

        self.number = 0
        event.Listener.register(RunningCompilations)
        event.register(_COMPILATION, self)

    def notify(self, event: Any) -> None:
        """Count the start or the end of a compilation."""
        self.number += 1 if event.is_start else -1

    def close(self) -> None:
        """Stop counting."""
        from numba.core import event

        event.unregister(_COMPILATION, self)


@contextmanager
def on_first_compilation(call: Callable[[], None]) -> Iterator[None]:
    """Call a function once in the block, when a function begins to be compiled."""
    from numba.core import event

    class FirstCompilation(event.Listener):  # type: ignore[misc]
        is_called = False

        def on_start(self, _: Any) -> None:
            if not self.is_called:
                self.is_called = True
                call()

        def on_end(self, _: Any) -> None:
            pass

    with event.install_listener(_COMPILATION, FirstCompilation()):
        yield


def versions() -> dict[str, str]:
    """Return the versions of what compiled code depends on besides its source."""
    try:
        annotruth = version("annotruth")
    except PackageNotFoundError:  # run from its source without being installed
        annotruth = "unknown"
    return {
        "annotruth": annotruth,
        "llvmlite": LLVMLITE_VERSION,
        "numba": numba.__version__,
        "numpy": np.__version__,
    }


def source_stamp(folder: Path, versions: Mapping[str, str]) -> str | None:
    """Return a hash of all Python files in a folder and its subfolders, and of some versions.

    It is made from the files' content: times of change are kept by copies and archives. None if
    the files cannot be read, as in a zip archive.
    """
    digest = hashlib.sha256(repr(sorted(versions.items())).encode())
    try:
        sources = [(str(path.relative_to(folder)), path.read_bytes()) for path in _sources(folder)]
    except OSError:
        return None
    for name, content in sources:
        digest.update(repr((name, len(content))).encode() + content)
    return digest.hexdigest() if sources else None


def _sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


@cache
def _process_stamp() -> str | None:
    """Return the stamp of this process, computed before it compiles anything."""
    return source_stamp(KERNELS, versions())


def _folder_name(stamp: str) -> str:
    return _PREFIX + stamp[:_NAME_LENGTH]


class _StampedLocator:
    """One of Numba's locators of caches, with a folder for each stamp inside its own."""

    def __init__(self, locator: Any, stamp: str) -> None:
        self._locator = locator
        self._stamp = stamp
        self._path = Path(locator.get_cache_path()) / _folder_name(stamp)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._locator, name)

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str:
        return self._stamp

    def ensure_cache_path(self) -> None:
        if not self._path.is_dir():
            self._path.mkdir(mode=0o755, parents=True, exist_ok=True)
            _remove_old(self._path)


def _is_safe(folder: Path) -> bool:
    """Whether nobody but root, this user, and whoever can write the sources can write a folder."""
    if KERNELS in folder.parents or not hasattr(os, "geteuid"):  # Windows has no such permissions
        return True
    status = folder.stat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & others


def _remove_old(path: Path) -> None:
    """Remove the folders of old stamps beside a new one, but for the latest."""
    others = [other for other in path.parent.glob(_PREFIX + "*") if other != path]
    others.sort(key=lambda other: other.stat().st_mtime)
    for other in others[: 1 - _STAMPS_KEPT]:
        shutil.rmtree(other, ignore_errors=True)


@cache
def _cache_class() -> Any:
    """Return Numba's cache of compiled functions, with the stamp of this process."""
    from numba.core.caching import CompileResultCacheImpl, FunctionCache

    class StampedImplementation(CompileResultCacheImpl):  # type: ignore[misc]
        def __init__(self, function: Any) -> None:
            super().__init__(function)
            self._locator: Any = _StampedLocator(self.locator, _process_stamp() or "")

    class StampedCache(FunctionCache):  # type: ignore[misc]
        _impl_class = StampedImplementation

        @property
        def stamp(self) -> str:
            """What the index file is compared with, as Numba keeps it."""
            stamp: str = self._cache_file._source_stamp
            return stamp

        def load_overload(self, *args: Any) -> Any:
            try:
                return super().load_overload(*args) if _is_safe(Path(self.cache_path)) else None
            except (OSError, EOFError):  # no folder yet, or one that another process removes
                return None

        def save_overload(self, *args: Any) -> None:
            # Files changed since this process started, as by an upgrade: its modules may be
            # of both versions, and their machine code must not be found under either stamp.
            if source_stamp(KERNELS, versions()) != self.stamp:
                return
            try:
                self._impl.locator.ensure_cache_path()
                if _is_safe(Path(self.cache_path)):
                    super().save_overload(*args)
            except OSError:  # no room on the disk, or a folder that another process removes
                return

    return StampedCache
