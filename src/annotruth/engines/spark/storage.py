"""Folders that the driver and all workers can reach: made for one fit, and removed with it.

Files in them are written once, never changed. A folder is removed at the latest when the program ends;
a program that is killed leaves it behind.
"""

from __future__ import annotations

import atexit
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import fs

from annotruth.errors import AnnotruthError, OutputError
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
    private: bool = False  # on this machine: for this user only

    @property
    def local_path(self) -> Path | None:
        """The path, if the folder is on a disk of this machine or mounted on it."""
        parts = urlsplit(self.uri)
        return Path(parts.path) if parts.scheme in ("", "file") else None

    def new_in(self, prefix: str) -> SharedFolder:
        """Return a folder in this one, with a unique name, which is still to be made."""
        return replace(self, uri=f"{self.uri.rstrip('/')}/{prefix}{uuid.uuid4().hex}")

    def make(self) -> None:
        """Make the folder."""
        if self.local_path is not None:
            self.local_path.mkdir(mode=0o700 if self.private else 0o777, parents=True)
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

    def remove(self, names: Iterable[str | None]) -> None:
        """Remove files; None is none."""
        system, _ = self._locate()
        paths = [self._locate(name)[1] for name in names if name is not None]
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
            "they can read and write as storage"
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


_own_folders: dict[SharedFolder, int] = {}  # with the process that made each


def make_folder(storage: str, *, private: bool = False) -> SharedFolder:
    """Make a folder in a storage; ``private`` if only this user's processes may see it."""
    folder = SharedFolder(storage, private).new_in("annotruth-spark-")
    with storage_errors("write to", storage):
        folder.make()
    _own_folders[folder] = os.getpid()
    return folder


def make_sibling(folder: SharedFolder) -> SharedFolder:
    """Make a folder beside one that `make_folder` made."""
    return make_folder(folder.uri.rpartition("/")[0], private=folder.private)


def remove_folder(folder: SharedFolder) -> None:
    """Remove a folder that `make_folder` made in this process, not in one that this is a fork of."""
    if _own_folders.pop(folder, None) == os.getpid():
        with storage_errors("remove", folder.uri):
            folder.remove_all()


@atexit.register
def _remove_all() -> None:
    for folder in list(_own_folders):
        with suppress(OutputError):  # nobody is left to handle it
            remove_folder(folder)
