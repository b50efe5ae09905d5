"""Atomic writes: a result is complete or not there at all, also when the process is killed.

Files are written to a *workspace*, a hidden folder on the disk of their destination, and take their
place by one rename after their content has reached the disk. A workspace is locked by its process,
and the system releases the lock when the process ends, however it ends. So the next write to the
same place recognises the workspaces of killed processes and removes them.

The files of an existing folder are replaced all at once. A temporary folder with the new files and
links to all others is exchanged for the folder in one step; the folder itself, which nobody sees
now, gets the new files; and both are exchanged again. So the folder keeps its owner, its subfolders
and the processes that work in it. Where folders cannot be exchanged (a mount point, Windows, some
network disks), files are renamed one by one, and the next write completes what a killed one began.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from annotruth.errors import AnnotruthWarning, system_errors_reported

_WORKSPACE = re.compile(r"\.annotruth-[0-9a-f]{16}")
_LOCK = "lock"  # in a workspace: locked while its process lives
_NEW = "new"  # in a workspace: new files of a folder, in progress
_READY = "ready"  # in a workspace inside a folder: complete new files, to be renamed one by one
_EXCHANGED = (
    "exchanged"  # in a workspace: the folder that is exchanged for the one of the same name
)
_TEMPORARY = ".annotruth-temporary"  # a file in the temporary one of two exchanged folders

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF}
_NO_EXCHANGE = _NO_LOCKS | {errno.EXDEV, errno.EBUSY, errno.EPERM, errno.EACCES}
_WAIT_SECONDS = 60.0


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Return a temporary file name that is renamed to ``path`` when the block succeeds.

    Missing parent folders are created. When the block fails, the temporary file and the folders
    created for it are removed, and an existing file at ``path`` stays as it was.
    """
    # As in plain writing, a link is followed: the file behind it is replaced, not the link.
    destination = Path(os.path.realpath(path))
    with system_errors_reported(path), folders_created(destination.parent):
        check_replaceable(destination)
        with _workspace(destination.parent) as workspace:
            temporary = workspace / destination.name
            yield temporary
            if destination.exists():
                shutil.copymode(destination, temporary)
            sync_file(temporary)
            temporary.replace(destination)
            sync_folder(destination.parent)


@contextmanager
def atomic_write_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Return a temporary folder whose files are moved to ``folder`` when the block succeeds.

    A new folder appears at once with all its files; in an existing one, all files are replaced at
    once, and other files stay.
    """
    destination = Path(os.path.realpath(folder))
    with system_errors_reported(folder), folders_created(destination.parent):
        place = destination.parent
        if destination.is_dir():
            remove_leftovers(destination)
            if os.path.ismount(destination) or not os.access(place, os.W_OK):
                place = destination
        elif destination.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        with _workspace(place) as workspace:
            new = workspace / _NEW
            new.mkdir()
            yield new
            for file in new.iterdir():
                sync_file(file)
            sync_folder(new)
            if not _appears(new, destination):
                with _folder_locked(destination):
                    _replace_files(new, destination, workspace)


def _appears(new: Path, destination: Path) -> bool:
    """Rename a folder to its destination; return False if there is a folder already."""
    if destination.exists():
        return False
    try:
        new.rename(destination)
    except OSError:
        if not destination.is_dir():  # else another process created it meanwhile
            raise
        return False
    sync_folder(destination.parent)
    return True


def _replace_files(new: Path, destination: Path, workspace: Path) -> None:
    """Replace files of an existing folder by those in ``new``, all at once if possible."""
    names = [file.name for file in new.iterdir()]
    for name in names:
        check_replaceable(destination / name)
    if workspace.parent == destination:
        _replace_one_by_one(workspace)
        return
    exchanged = _add_other_files(new, destination, workspace)
    try:
        _exchange(exchanged, destination)
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
    else:
        sync_folder(destination.parent)
        # The new files are in place. If the folder does not come back now, it does at the next
        # write to the same place.
        with suppress(OSError):
            _bring_back(exchanged, destination)
        return
    with _workspace(destination) as inner:
        (inner / _NEW).mkdir()
        for name in names:
            shutil.move(exchanged / name, inner / _NEW / name)  # possibly to another disk
            sync_file(inner / _NEW / name)
        _replace_one_by_one(inner)


def _add_other_files(new: Path, destination: Path, workspace: Path) -> Path:
    """Give a temporary folder links to all other files of its destination; return its new place.

    Subfolders cannot have hard links: their links lead to where they are after the exchange.
    """
    names = {file.name for file in new.iterdir()}
    for entry in os.scandir(destination):
        if entry.name in names or _WORKSPACE.fullmatch(entry.name):
            continue
        try:
            os.link(entry.path, new / entry.name, follow_symlinks=False)
        except OSError:
            target = Path("..", workspace.name, _EXCHANGED, destination.name, entry.name)
            (new / entry.name).symlink_to(target)
    shutil.copymode(destination, new)
    (new / _TEMPORARY).write_text(workspace.name, "utf-8")
    sync_folder(new)
    exchanged = workspace / _EXCHANGED / destination.name
    exchanged.parent.mkdir()
    new.rename(exchanged)
    sync_folder(workspace)
    return exchanged


def _bring_back(folder: Path, destination: Path) -> None:
    """Exchange a folder for the temporary one at its destination, with the files of the latter.

    Afterwards the temporary folder is the one in the workspace, and can be removed.
    """
    workspace = folder.parent.parent
    if not (folder / _TEMPORARY).exists():
        if not destination.exists():
            folder.rename(destination)
            return
        if not (destination / _TEMPORARY).exists():
            raise FileExistsError(errno.EEXIST, "another folder took its place", str(folder))
        _carry_files(destination, folder, workspace)
        sync_folder(folder)
        _exchange(folder, destination)
        sync_folder(destination.parent)
        _carry_files(folder, destination, workspace)  # what others created in between
    # Removed file by file, it might lose its mark first, and be taken for the other folder.
    folder.rename(workspace / _NEW)


def _carry_files(temporary: Path, folder: Path, workspace: Path) -> None:
    """Put into a folder what a temporary one has and the folder does not."""
    for entry in os.scandir(temporary):
        place = folder / entry.name
        if entry.name == _TEMPORARY:
            continue
        if entry.is_symlink() and workspace.name in Path(entry).readlink().parts:
            continue  # it leads to the entry of the folder
        with suppress(FileNotFoundError):
            if os.path.samestat(entry.stat(follow_symlinks=False), place.lstat()):
                continue
        if entry.is_dir(follow_symlinks=False):
            Path(entry).rename(place)
        else:
            carried = workspace / "carried"
            carried.unlink(missing_ok=True)
            os.link(entry, carried, follow_symlinks=False)
            carried.replace(place)


def _exchange(one: Path, other: Path) -> None:
    """Exchange two folders in one step; raise an OSError of `_NO_EXCHANGE` if that is impossible."""
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


def _replace_one_by_one(workspace: Path) -> None:
    """Rename the new files in a workspace to the folder that it is in."""
    (workspace / _NEW).rename(workspace / _READY)  # from now on they are renamed, sooner or later
    sync_folder(workspace)
    _rename_ready_files(workspace)
    sync_folder(workspace.parent)


def _rename_ready_files(workspace: Path) -> None:
    for file in sorted((workspace / _READY).iterdir()):
        file.replace(workspace.parent / file.name)


@contextmanager
def _workspace(parent: Path) -> Iterator[Path]:
    """Return a new hidden folder under ``parent`` for files in progress; it is removed at the end."""
    remove_leftovers(parent)
    lock = None
    while lock is None:
        workspace = parent / f".annotruth-{secrets.token_hex(8)}"
        workspace.mkdir()
        try:
            lock = _lock_if_possible(workspace / _LOCK)
        except FileNotFoundError:
            continue  # taken for a leftover in the moment before it was locked
        except BaseException:
            shutil.rmtree(workspace, ignore_errors=True)
            raise
    try:
        yield workspace
    finally:
        _finish(workspace, lock)


def remove_leftovers(folder: Path) -> None:
    """Complete or remove what processes left in a folder that were killed while they wrote to it."""
    with suppress(OSError):
        for path in [path for path in folder.iterdir() if _WORKSPACE.fullmatch(path.name)]:
            with suppress(OSError):  # no lock: it may be in use
                lock = try_lock(path / _LOCK)
                if lock is not None:
                    _finish(path, lock)


def _finish(workspace: Path, lock: int) -> None:
    """Complete what is in a workspace if it can be seen from outside, and remove the rest."""
    removable = False
    try:
        with suppress(OSError):
            if (workspace / _EXCHANGED).exists():
                for folder in (workspace / _EXCHANGED).iterdir():
                    _bring_back(folder, workspace.parent / folder.name)
            if (workspace / _READY).exists():
                _rename_ready_files(workspace)
            removable = True
    finally:
        os.close(lock)
    if removable:
        shutil.rmtree(workspace, ignore_errors=True)


@contextmanager
def _folder_locked(folder: Path) -> Iterator[None]:
    """Keep other processes from replacing files in a folder until the block ends."""
    lock = None
    deadline = time.monotonic() + _WAIT_SECONDS
    while lock is None:
        try:
            lock = try_lock(folder)
        except OSError as error:
            if not (error.errno in _NO_LOCKS or sys.platform == "win32"):
                raise
            yield
            return
        if lock is not None and _is_temporary(folder):
            os.close(lock)
            lock = None
        if lock is None:
            if time.monotonic() > deadline:
                raise OSError(errno.EBUSY, "another process is writing to it")
            time.sleep(0.01)
            remove_leftovers(folder.parent)
    try:
        yield
    finally:
        os.close(lock)


def _is_temporary(folder: Path) -> bool:
    """Return whether another write has exchanged the folder for a temporary one."""
    mark = folder / _TEMPORARY
    try:
        exchanged = (folder.parent / mark.read_text("utf-8")).exists()
    except FileNotFoundError:
        return False
    if not exchanged:  # somebody has removed the workspace with the other folder
        mark.unlink(missing_ok=True)
    return exchanged


@contextmanager
def exclusive(
    path: Path, *, seconds: float, on_wait: Callable[[], object] | None = None
) -> Iterator[None]:
    """Hold the lock of a file, which is created; no other process or thread holds it meanwhile.

    Parameters
    ----------
    path
        The file.
    seconds
        How long to wait for the lock; then a TimeoutError is raised.
    on_wait
        Called once if the lock is not free.
    """
    deadline = time.monotonic() + seconds
    lock = _lock_if_possible(path)
    if lock is None and on_wait is not None:
        on_wait()
    while lock is None:
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, "another process is writing to it")
        time.sleep(0.02)
        lock = _lock_if_possible(path)
    try:
        yield
    finally:
        os.close(lock)


def _lock_if_possible(path: Path) -> int | None:
    """Lock a file as `try_lock` does, or just open it on a disk that has no locks, with a warning."""
    try:
        return try_lock(path)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
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


def check_replaceable(path: Path) -> None:
    """Refuse to replace anything but a regular file."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        # A rename would replace a device or a pipe by a plain file.
        raise OSError(errno.EINVAL, "not a regular file", str(path))


@contextmanager
def folders_created(folder: Path) -> Iterator[None]:
    """Create a folder and its parents; remove them again if the block fails and they are empty."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):  # not created after all, or in use by another process
                each.rmdir()
        raise
