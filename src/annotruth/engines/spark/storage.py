"""Folders in the storage: made for this process, and removed with it.

In each storage a process has one folder of its own, in which it makes a folder for the labels and
one for the tables of each fit. The process's folder is removed with the last folder in it, at the
latest when the program ends. A program that is killed cannot do so; the next one on the same machine
does: a process holds a lock on a file in its folder, and the operating system releases the lock
however the process ends.
"""

from __future__ import annotations

import atexit
import glob
import os
import platform
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock

from annotruth.engines.spark.shared_folder import SharedFolder, storage_errors
from annotruth.io.atomic.system import try_lock

_LOCK = "lock"


@dataclass
class _ProcessFolder:
    """The folder of this process in a storage, the folders in it, and the lock."""

    folder: SharedFolder
    lock: int | None
    process: int = field(default_factory=os.getpid)
    in_use: set[SharedFolder] = field(default_factory=set)

    def remove(self) -> None:
        """Remove everything, unless this process is a fork of the one that made it."""
        if self.process == os.getpid():
            self.folder.remove_all()
            if self.lock is not None:
                os.close(self.lock)


_process_folders: dict[str, _ProcessFolder] = {}  # by storage
_mutex = RLock()  # garbage collection may remove a folder while another one is made


def make_folder(storage: str, *, private: bool = False) -> SharedFolder:
    """Make a folder in a storage; ``private`` if only this user's processes may see it."""
    with _mutex, storage_errors("write to", storage):
        while True:
            owner = _process_folders.get(storage)
            if owner is None or owner.process != os.getpid():
                owner = _process_folders[storage] = _make_process_folder(storage, private=private)
            folder = owner.folder.subfolder()
            owner.in_use.add(folder)
            if _process_folders.get(storage) is owner:
                folder.make()
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
                with storage_errors("remove", folder.uri):
                    if owner.in_use:
                        folder.remove_all()
                    else:
                        del _process_folders[storage]
                        owner.remove()


@atexit.register
def _remove_all() -> None:
    with _mutex:
        while _process_folders:
            _, owner = _process_folders.popitem()
            with suppress(OSError):  # nobody is left to handle it
                owner.remove()


def _make_process_folder(storage: str, *, private: bool) -> _ProcessFolder:
    parent, prefix = SharedFolder(storage), f"annotruth-spark-{platform.node()}-"
    if parent.local_path is not None:
        _remove_leftovers(parent.local_path, prefix)
    while True:
        folder = parent.subfolder(prefix)
        folder.make(private=private)
        if folder.local_path is None:
            return _ProcessFolder(folder, None)
        try:
            lock = try_lock(folder.local_path / _LOCK)
        except FileNotFoundError:
            continue  # another process took it for a leftover
        except OSError:  # some shared disks have no locks
            return _ProcessFolder(folder, None)
        if lock is not None:
            return _ProcessFolder(folder, lock)


def _remove_leftovers(storage: Path, prefix: str) -> None:
    """Remove the folders of killed processes of this user on this machine.

    Processes of other machines are left alone, because their locks may not be visible here.
    """
    for path in storage.glob(glob.escape(prefix) + 32 * "[0-9a-f]"):
        with suppress(OSError):  # without locks, or another process removes it too
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode) and _is_own(status):
                lock = try_lock(path / _LOCK)
                if lock is not None:
                    shutil.rmtree(path)
                    os.close(lock)


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()  # Windows has no user ids
