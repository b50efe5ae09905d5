"""What atomic writes ask of the operating system: locks, flushed disks, exchanged folders."""

from __future__ import annotations

import errno
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from annotruth.errors import AnnotruthWarning

NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF}
"""The errors of a disk without locks."""

NO_EXCHANGE = NO_LOCKS | {errno.EXDEV, errno.EBUSY, errno.EPERM, errno.EACCES}
"""The errors of folders that cannot be exchanged."""


@contextmanager
def exclusive(
    path: Path, *, seconds: float, on_wait: Callable[[], object] | None = None
) -> Iterator[None]:
    """Hold the lock of a file, which is created; no other process or thread holds it meanwhile.

    ``on_wait`` is called once if the lock is not free; after some ``seconds`` a TimeoutError is raised.
    """
    deadline = time.monotonic() + seconds
    lock = lock_if_possible(path)
    if lock is None and on_wait is not None:
        on_wait()
    while lock is None:
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, "another process is writing to it")
        time.sleep(0.02)
        lock = lock_if_possible(path)
    try:
        yield
    finally:
        os.close(lock)


def lock_if_possible(path: Path) -> int | None:
    """Lock a file as `try_lock` does, or just open it on a disk that has no locks, with a warning."""
    try:
        return try_lock(path)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        warnings.warn(
            f"{path.parent} is on a disk without locks: do not write to it from two processes",
            AnnotruthWarning,
            stacklevel=2,
        )
        return os.open(path, os.O_RDONLY)


def try_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock of a file or folder; None if another one holds it.

    A missing file is created. The system releases the lock when the descriptor is closed, at the
    latest at the end of the process.
    """
    while True:
        flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
        descriptor = os.open(path, flags, 0o666)
        try:
            if not _lock(descriptor):
                os.close(descriptor)
                return None
            with suppress(FileNotFoundError):  # else the holder of the lock has removed the file
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


if sys.platform == "win32":

    def _lock(descriptor: int) -> bool:
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:

    def _lock(descriptor: int) -> bool:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def sync_file(path: Path) -> None:
    """Wait until the content of a file has reached the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> bool:
    """Wait until renames in a folder have reached the disk; return whether that is certain."""
    if sys.platform == "win32":
        return True  # it has no such function
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        # The files are complete and in place; only a failure of the power could undo the rename.
        return False
    return True


def exchange_folders(one: Path, other: Path) -> None:
    """Exchange two folders in one step; raise an OSError of `NO_EXCHANGE` if that is impossible."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(one), os.fsencode(other)
    here, exchange = -100, 2  # AT_FDCWD; RENAME_EXCHANGE, and RENAME_SWAP of macOS
    if hasattr(library, "renameat2"):
        failed = library.renameat2(here, paths[0], here, paths[1], exchange)
    elif hasattr(library, "renamex_np"):
        failed = library.renamex_np(*paths, exchange)
    else:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(other))
