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
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from annotruth.errors import check_path, system_errors_reported
from annotruth.io import system

_WAIT_SECONDS = 60.0


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Return a temporary file name that is renamed to ``path`` when the block succeeds.

    Missing parent folders are created. When the block fails, the temporary file and the folders
    created for it are removed, and an existing file at ``path`` stays as it was.
    """
    destination = path_behind_links(path)
    with system_errors_reported(path), folders_created(destination.parent):
        check_replaceable(destination)
        with open_workspace(destination.parent) as workspace:
            temporary = workspace / destination.name
            yield temporary
            if destination.exists():
                shutil.copymode(destination, temporary)
            system.sync_file(temporary)
            temporary.replace(destination)
            system.sync_folder(destination.parent)


@contextmanager
def atomic_write_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Return a temporary folder whose files are moved to ``folder`` when the block succeeds.

    A new folder appears at once with all its files; in an existing one, all files are replaced at
    once, and other files stay.
    """
    destination = path_behind_links(folder)
    with system_errors_reported(folder), folders_created(destination.parent):
        place = destination.parent
        if destination.is_dir():
            remove_leftovers(destination)
            if os.path.ismount(destination) or not os.access(place, os.W_OK):
                place = destination
        elif destination.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        with open_workspace(place) as workspace:
            new = workspace / NEW
            new.mkdir()
            yield new
            for file in new.iterdir():
                system.sync_file(file)
            system.sync_folder(new)
            if not _appears(new, destination):
                with _folder_locked(destination):
                    _replace_files(new, destination, workspace)


def path_behind_links(path: str | os.PathLike[str]) -> Path:
    """Return the path that is written to: as in plain writing, links are followed, not replaced."""
    check_path(path, "the name of what is written")
    destination = Path(os.path.realpath(path))
    with system_errors_reported(path):
        if os.path.islink(destination):  # noqa: PTH114 - False where the name is too long
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return destination


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
    system.sync_folder(destination.parent)
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
        system.exchange_folders(exchanged, destination)
    except OSError as error:
        if error.errno not in system.NO_EXCHANGE:
            raise
    else:
        system.sync_folder(destination.parent)
        # The new files are in place. If the folder does not come back now, it does at the next
        # write to the same place.
        with suppress(OSError):
            bring_back(exchanged, destination)
        return
    with open_workspace(destination) as inner:
        (inner / NEW).mkdir()
        for name in names:
            shutil.move(exchanged / name, inner / NEW / name)  # possibly to another disk
            system.sync_file(inner / NEW / name)
        _replace_one_by_one(inner)


def _add_other_files(new: Path, destination: Path, workspace: Path) -> Path:
    """Give a temporary folder links to all other files of its destination; return its new place.

    Subfolders cannot have hard links: their links lead to where they are after the exchange.
    """
    names = {file.name for file in new.iterdir()}
    for entry in os.scandir(destination):
        if entry.name in names or WORKSPACE.fullmatch(entry.name):
            continue
        try:
            os.link(entry.path, new / entry.name, follow_symlinks=False)
        except OSError:
            target = Path("..", workspace.name, EXCHANGED, destination.name, entry.name)
            (new / entry.name).symlink_to(target)
    shutil.copymode(destination, new)
    (new / TEMPORARY).write_text(workspace.name, "utf-8")
    system.sync_folder(new)
    exchanged = workspace / EXCHANGED / destination.name
    exchanged.parent.mkdir()
    new.rename(exchanged)
    system.sync_folder(workspace)
    return exchanged


def _replace_one_by_one(workspace: Path) -> None:
    """Replace files of the folder that a workspace is in, also if the process is killed meanwhile."""
    (workspace / NEW).rename(workspace / READY)  # from now on they are renamed, sooner or later
    system.sync_folder(workspace)
    rename_ready_files(workspace)
    system.sync_folder(workspace.parent)


@contextmanager
def _folder_locked(folder: Path) -> Iterator[None]:
    """Keep other processes from replacing files in a folder until the block ends."""
    lock = None
    deadline = time.monotonic() + _WAIT_SECONDS
    while lock is None:
        try:
            lock = system.try_lock(folder)
        except OSError as error:
            if not (error.errno in system.NO_LOCKS or sys.platform == "win32"):
                raise
            yield
            return
        if lock is not None and is_temporary(folder):
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


@contextmanager
def cleaned_up_on_sigterm() -> Iterator[None]:
    """End the process as an error does when SIGTERM comes meanwhile, so that nothing is left behind.

    Where a program handles the signal itself, or the block runs in another thread, nothing changes.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


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


# Workspaces: hidden folders for files in progress, and how what is in them is completed.

WORKSPACE = re.compile(r"\.annotruth-[0-9a-f]{16}")
"""The names of workspaces."""

_LOCK = "lock"  # in a workspace: locked while its process lives

NEW = "new"
"""In a workspace: new files of a folder, in progress."""

READY = "ready"
"""In a workspace inside a folder: complete new files, to be renamed one by one."""

EXCHANGED = "exchanged"
"""In a workspace: the folder that is exchanged for the one of the same name."""

TEMPORARY = ".annotruth-temporary"
"""A file in the temporary one of two exchanged folders."""


@contextmanager
def open_workspace(parent: Path) -> Iterator[Path]:
    """Return a new hidden folder under ``parent`` for files in progress; it is removed at the end."""
    remove_leftovers(parent)
    lock = None
    while lock is None:
        workspace = parent / f".annotruth-{secrets.token_hex(8)}"
        workspace.mkdir()
        try:
            lock = system.lock_if_possible(workspace / _LOCK)
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
        for path in [path for path in folder.iterdir() if WORKSPACE.fullmatch(path.name)]:
            with suppress(OSError):  # no lock: it may be in use
                lock = system.try_lock(path / _LOCK)
                if lock is not None:
                    _finish(path, lock)


def _finish(workspace: Path, lock: int) -> None:
    """Complete what is in a workspace if it can be seen from outside, and remove the rest."""
    removable = False
    try:
        with suppress(OSError):
            if (workspace / EXCHANGED).exists():
                for folder in (workspace / EXCHANGED).iterdir():
                    bring_back(folder, workspace.parent / folder.name)
            if (workspace / READY).exists():
                rename_ready_files(workspace)
            removable = True
    finally:
        os.close(lock)
    if removable:
        shutil.rmtree(workspace, ignore_errors=True)


def bring_back(folder: Path, destination: Path) -> None:
    """Exchange a folder for the temporary one at its destination, with the files of the latter.

    Afterwards the temporary folder is the one in the workspace, and can be removed.
    """
    workspace = folder.parent.parent
    if not (folder / TEMPORARY).exists():
        if not destination.exists():
            folder.rename(destination)
            return
        if not (destination / TEMPORARY).exists():
            raise FileExistsError(errno.EEXIST, "another folder took its place", str(folder))
        _carry_files(destination, folder, workspace)
        system.sync_folder(folder)
        system.exchange_folders(folder, destination)
        system.sync_folder(destination.parent)
        _carry_files(folder, destination, workspace)  # what others created in between
    # Removed file by file, it might lose its mark first, and be taken for the other folder.
    folder.rename(workspace / NEW)


def _carry_files(temporary: Path, folder: Path, workspace: Path) -> None:
    """Put into a folder what a temporary one has and the folder does not."""
    for entry in os.scandir(temporary):
        place = folder / entry.name
        if entry.name == TEMPORARY:
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


def is_temporary(folder: Path) -> bool:
    """Return whether another write has exchanged the folder for a temporary one."""
    mark = folder / TEMPORARY
    try:
        exchanged = (folder.parent / mark.read_text("utf-8")).exists()
    except FileNotFoundError:
        return False
    if not exchanged:  # somebody has removed the workspace with the other folder
        mark.unlink(missing_ok=True)
    return exchanged


def rename_ready_files(workspace: Path) -> None:
    """Rename the complete new files in a workspace to the folder that it is in."""
    for file in sorted((workspace / READY).iterdir()):
        file.replace(workspace.parent / file.name)
