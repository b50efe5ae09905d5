"""Folders that the driver and all workers can reach: made for this process, and removed with it.

Files in them are written once, never changed.

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
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import fs

from annotruth.errors import AnnotruthError, OutputError
from annotruth.io.system import try_lock
from annotruth.observations.frames import as_arrow

Columns: TypeAlias = Mapping[str, pa.Array | NDArray[Any] | Sequence[str]]

_REMOVAL_THREADS = 16  # object stores respond slowly, so files are removed side by side


@dataclass(frozen=True)
class SharedFolder:
    """A folder by its address as Spark spells it: a path, ``file:``, ``hdfs:``, ``s3a:``, ...

    Object stores can neither rename files nor map them into memory, and a task may run twice. So
    every file has a unique name, and is used only after its name has been returned to the driver.
    Files hold Arrow data only, so reading one never runs code from it.
    """

    uri: str

    @property
    def local_path(self) -> Path | None:
        """The path, if the folder is on a disk of this machine or mounted on it."""
        parts = urlsplit(self.uri)
        return Path(parts.path) if parts.scheme in ("", "file") else None

    def subfolder(self, prefix: str = "") -> SharedFolder:
        """Return a folder in this one, with a unique name, which is still to be made."""
        return SharedFolder(f"{self.uri.rstrip('/')}/{prefix}{uuid.uuid4().hex}")

    def make(self, *, private: bool = False) -> None:
        """Make the folder; a private one on this machine is for this user only."""
        if self.local_path is not None:
            self.local_path.mkdir(mode=0o700 if private else 0o777, parents=True)
        else:
            system, path = self._locate()
            system.create_dir(path, recursive=True)

    def address_of(self, name: str) -> str:
        """Return the address of a file, for Spark."""
        return f"{self.uri}/{name}"

    def write(self, kind: str, columns: Columns) -> str:
        """Write columns, which may differ in length, to a new file, and return its name."""
        return self.write_batches(kind, [columns])

    def write_batches(self, kind: str, batches: Iterable[Columns]) -> str:
        """Write batches of the same columns to a new file, and return its name."""
        # Each column of a batch is one list, so that it is read back without a copy.
        rows = (
            pa.record_batch([_as_list(column) for column in batch.values()], names=list(batch))
            for batch in batches
        )
        first = next(rows)
        name = self.new_name(kind, "arrow")
        with self.create(name) as sink, pa.ipc.new_file(sink, first.schema) as writer:
            for row in chain([first], rows):
                writer.write(row)
        return name

    def read(self, name: str, batch: int = 0) -> dict[str, pa.Array]:
        """Read one batch of columns from a file; a local file is mapped into memory.

        Arrow does not check lengths and offsets when it reads them, so they are checked here.
        """
        with storage_errors("read", self.address_of(name)):
            system, path = self._locate(name)
            row = pa.ipc.open_file(system.open_input_file(path)).get_batch(batch)
            row.validate(full=True)
            return {field.name: row[field.name].flatten() for field in row.schema}

    def new_name(self, kind: str, ending: str) -> str:
        """Return a file name that no other file has."""
        return f"{kind}-{uuid.uuid4().hex}.{ending}"

    @contextmanager
    def create(self, name: str) -> Iterator[pa.NativeFile]:
        """Open a new file for writing."""
        with storage_errors("write", self.address_of(name)):
            system, path = self._locate(name)
            with system.open_output_stream(path) as file:
                yield file

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        system, _ = self._locate()
        paths = [self._locate(name)[1] for name in names]
        if len(paths) > 1:
            with ThreadPoolExecutor(_REMOVAL_THREADS) as pool:
                list(pool.map(system.delete_file, paths))
        elif paths:
            system.delete_file(paths[0])

    def remove_all(self) -> None:
        """Remove the folder and all files in it, including those of tasks that failed."""
        system, path = self._locate()
        if system.get_file_info(path).type is not fs.FileType.NotFound:
            system.delete_dir(path)

    def _locate(self, name: str = "") -> tuple[fs.FileSystem, str]:
        system, folder = _file_system(self.uri)
        return system, str(PurePosixPath(folder, name))


@contextmanager
def storage_errors(action: str, address: str) -> Iterator[None]:
    """Turn errors of files and file systems into one line."""
    try:
        yield
    except AnnotruthError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        code = error.errno if isinstance(error, OSError) else None
        reason = str(error).partition("\n")[0] if code is None else os.strerror(code)
        raise OutputError(
            f"cannot {action} {address}: {reason}; the driver and all workers need a folder that "
            "they can read and write (`--storage URL`, `--out URL`)"
        ) from error


@cache
def _file_system(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of an address, and the path in it."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return fs.LocalFileSystem(use_mmap=True), parts.path
    system, path = fs.FileSystem.from_uri(uri.replace("s3a://", "s3://", 1))
    return system, path


def _as_list(column: pa.Array | NDArray[Any] | Sequence[str]) -> pa.Array:
    """Return an Arrow array of one list, which holds the column."""
    flat = column.ravel() if isinstance(column, np.ndarray) else column
    array = flat if isinstance(flat, pa.Array) else as_arrow(flat)
    return pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)


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
