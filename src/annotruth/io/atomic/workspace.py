"""Workspaces: hidden folders for files in progress, and how what is in them is completed."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from annotruth.io.atomic import system

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
