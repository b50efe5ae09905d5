"""A folder that the driver and all workers reach: files are written once and never changed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import fs

from annotruth.labels.buffers import as_arrow

Columns: TypeAlias = Mapping[str, pa.Array | NDArray[Any] | Sequence[str]]

_AT_ONCE = 16  # files that are removed side by side: object stores answer slowly


@dataclass(frozen=True)
class Storage:
    """A folder by its address, as Spark spells it: a path, ``file:``, ``hdfs:``, ``s3a:``, ...

    Object stores can neither rename nor map a file into memory, and a task may be run twice. So
    every file has a name of its own, and counts only once the driver has heard of it.
    """

    uri: str

    def new_folder(self) -> Storage:
        """Make a folder of one's own in this one."""
        made = Storage(f"{self.uri.rstrip('/')}/annotruth-{uuid.uuid4().hex}")
        system, path = made._place()
        system.create_dir(path, recursive=True)
        return made

    def beside(self) -> Storage:
        """Make another folder of one's own next to this one."""
        return Storage(self.uri.rpartition("/")[0]).new_folder()

    def address(self, name: str) -> str:
        """Spell out where a file is, for Spark."""
        return f"{self.uri}/{name}"

    def write(self, kind: str, columns: Columns) -> str:
        """Write columns of any lengths to a new file, and return its name."""
        return self.write_parts(kind, [columns])

    def write_parts(self, kind: str, parts: Iterable[Columns]) -> str:
        """Write sets of the same columns to a new file, to be read one set at a time."""
        # One row of lists each: the columns are read back without a copy.
        rows = (
            pa.record_batch([_as_list(column) for column in part.values()], names=list(part))
            for part in parts
        )
        first = next(rows)
        name = self.new_name(kind, "arrow")
        with self.create(name) as sink, pa.ipc.new_file(sink, first.schema) as writer:
            for row in chain([first], rows):
                writer.write(row)
        return name

    def read(self, name: str, part: int = 0) -> dict[str, pa.Array]:
        """Read a set of columns of a file, and no other; a local file is mapped into memory."""
        system, path = self._place(name)
        row = pa.ipc.open_file(system.open_input_file(path)).get_batch(part)
        return {field.name: row[field.name].flatten() for field in row.schema}

    def new_name(self, kind: str, ending: str) -> str:
        """Make up a name that no other file has."""
        return f"{kind}-{uuid.uuid4().hex}.{ending}"

    def create(self, name: str) -> pa.NativeFile:
        """Open a new file to write to."""
        system, path = self._place(name)
        return system.open_output_stream(path)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files that nobody needs any more."""
        system, _ = self._place()
        paths = [self._place(name)[1] for name in names]
        if len(paths) > 1:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(system.delete_file, paths))
        elif paths:
            system.delete_file(paths[0])

    def remove_all(self) -> None:
        """Remove the folder with all that is in it, also what failed tasks have left."""
        system, path = self._place()
        if system.get_file_info(path).type is not fs.FileType.NotFound:
            system.delete_dir(path)

    def _place(self, name: str = "") -> tuple[fs.FileSystem, str]:
        system, folder = _file_system(self.uri)
        return system, str(PurePosixPath(folder, name))


@cache
def _file_system(uri: str) -> tuple[fs.FileSystem, str]:
    """Find who reads and writes at an address, and the path there."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return fs.LocalFileSystem(use_mmap=True), parts.path
    system, path = fs.FileSystem.from_uri(uri.replace("s3a://", "s3://", 1))
    return system, path


def _as_list(column: pa.Array | NDArray[Any] | Sequence[str]) -> pa.Array:
    flat = column.ravel() if isinstance(column, np.ndarray) else column
    array = flat if isinstance(flat, pa.Array) else as_arrow(flat)
    return pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
