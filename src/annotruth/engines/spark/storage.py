"""Folders in the storage: made for this process, and removed with it.

In each storage a process has one folder of its own, in which it makes a folder for the labels and
one for the tables of each fit. The process's folder is removed with the last folder in it, at the
latest when the program ends. A program that is killed cannot do so; the next one on the same machine
does: a process holds a lock on a file in its folder, and the operating system releases the lock
however the process ends.
"""

from __future__ import annotations

import atexit
import os
import platform
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TextIO

from annotruth.engines.spark.shared_folder import SharedFolder, storage_errors

try:
    import fcntl
except ImportError:  # not on Windows: what a killed program leaves is not removed
    fcntl = None  # type: ignore[assignment]

_LOCK = "lock"


@dataclass
class _ProcessFolder:
    """The folder of this process in a storage, the folders in it, and the lock."""

    folder: SharedFolder
    lock: TextIO | None
    process: int = field(default_factory=os.getpid)
    in_use: set[SharedFolder] = field(default_factory=set)

    def remove(self) -> None:
        """Remove everything, unless this process is a fork of the one that made it."""
        if self.process == os.getpid():
            self.folder.remove_all()
            if self.lock is not None:
                self.lock.close()


_process_folders: dict[str, _ProcessFolder] = {}  # by storage
_mutex = Lock()


def make_folder(storage: str, *, private: bool = False) -> SharedFolder:
    """Make a folder in a storage; ``private`` if only this user's processes may see it."""
    with _mutex, storage_errors("write to", storage):
        owner = _process_folders.get(storage)
        if owner is None or owner.process != os.getpid():
            owner = _process_folders[storage] = _make_process_folder(storage, private=private)
        folder = owner.folder.make_subfolder()
        owner.in_use.add(folder)
    return folder


def make_sibling(folder: SharedFolder) -> SharedFolder:
    """Make a folder beside one that `make_folder` made."""
    storage = next(key for key, owner in _process_folders.items() if folder in owner.in_use)
    return make_folder(storage)


def remove_folder(folder: SharedFolder) -> None:
    """Remove a folder that `make_folder` made, if it still exists."""
    with _mutex:
        for storage, owner in list(_process_folders.items()):
            if folder in owner.in_use and owner.process == os.getpid():
                owner.in_use.remove(folder)
                if not owner.in_use:
                    del _process_folders[storage]
                    owner.remove()
                else:
                    folder.remove_all()


@atexit.register
def _remove_all() -> None:
    with _mutex:
        while _process_folders:
            _, owner = _process_folders.popitem()
            with suppress(OSError):  # the program has ended: nobody is left to be told
                owner.remove()


def _make_process_folder(storage: str, *, private: bool) -> _ProcessFolder:
    parent = SharedFolder(storage)
    if parent.local_path is not None:
        _remove_leftovers(parent.local_path)
    folder = parent.make_subfolder(private=private)
    return _ProcessFolder(folder, _take_lock(folder.local_path))


def _take_lock(path: Path | None) -> TextIO | None:
    """Lock a file in a folder; the name of this machine in it says that it is locked by now."""
    if path is None or fcntl is None:
        return None
    file = (path / _LOCK).open("x", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:  # some shared disks have no locks
        file.close()
        return None
    file.write(platform.node())
    file.flush()
    return file


def _remove_leftovers(storage: Path) -> None:
    """Remove the folders of this user's processes on this machine that were killed."""
    if fcntl is None:
        return
    for path in storage.glob(f"{SharedFolder.PREFIX}*/{_LOCK}"):
        with suppress(OSError):  # another process removes it too, or it is another user's
            if path.parent.is_symlink() or path.parent.stat().st_uid != os.geteuid():
                continue
            with path.open("r+", encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A lock that another machine holds may not be visible here.
                if file.read() == platform.node():
                    shutil.rmtree(path.parent)
