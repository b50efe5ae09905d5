"""Decompression, never of more bytes than a limit."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError, OutputError, shorten
from annotruth.labels.on_disk.disk import format_size

if TYPE_CHECKING:
    from annotruth.labels.on_disk.disk import Disk

_READ_AT_ONCE = 1 << 24
_ZIP_DAMAGE = (
    # What zipfile raises for damaged archives, beside its own error: its fields are not checked.
    AttributeError,
    IndexError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)


def decompress(
    data: pa.Buffer, compression: str, *, limit: int, disk: Disk | None = None
) -> pa.Buffer:
    """Return the content of a compressed file, on ``disk`` if that is given."""
    if compression in ("xz", "zip") and disk is not None:
        raise InputError(
            f"{compression} is not decompressed within a memory limit: decompress the file first, "
            "or leave out memory (`--memory`)"
        )
    what = f"{compression} file of {format_size(data.size)}"
    with _damage_reported(compression):
        if compression == "zip":
            with open_zip(io.BytesIO(data)) as archive:
                return read_member(archive, _only_member(archive), what, limit=limit)
        if compression == "xz":
            with lzma.LZMAFile(pa.BufferReader(data)) as file:
                return read_stream(file.read, what, limit=limit)
        with pa.CompressedInputStream(pa.BufferReader(data), compression) as stream:
            return read_stream(stream.read, what, limit=limit, disk=disk)


def read_stream(
    read: Callable[[int], bytes], what: str, *, limit: int, disk: Disk | None = None
) -> pa.Buffer:
    """Return all bytes of a stream, on ``disk`` if that is given; refuse more than ``limit``."""
    stream, column = pa.BufferOutputStream(), None if disk is None else disk.column(np.uint8)
    size = 0
    while part := read(_READ_AT_ONCE):
        size += len(part)
        if size > limit:
            refuse_size(f"the {what} holds more than {format_size(limit)}", 4 * limit)
        if column is None:
            stream.write(part)
        else:
            column.append(np.frombuffer(part, dtype=np.uint8))
    return stream.getvalue() if column is None else pa.py_buffer(column.to_array())


def check_size(size: int, what: str, limit: int) -> None:
    """Refuse content that takes more bytes than the limit."""
    if size > limit:
        refuse_size(
            f"reading the {what} takes {format_size(size)} of memory, more than {format_size(limit)}",
            size,
        )


def refuse_size(reason: str, size: float) -> NoReturn:
    """Refuse content that is too large, with the option that allows ``size`` bytes."""
    enough = f"{size / 1e9 + 0.1:.1f}GB"
    raise InputError(
        f"{reason}, the limit: if that is what you expect, pass max_size={enough!r} (`--max-size "
        f"{enough}`); `--memory 1GB` keeps labels on disk"
    )


@contextmanager
def open_zip(file: IO[bytes] | str) -> Iterator[zipfile.ZipFile]:
    """Open a zip; whatever is wrong with it is an `InputError`."""
    with _damage_reported("zip"):
        try:
            with zipfile.ZipFile(file) as archive:
                yield archive
        except InputError:
            raise
        except _ZIP_DAMAGE as error:
            raise zipfile.BadZipFile(str(error) or type(error).__name__) from error


def read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, what: str, *, limit: int
) -> pa.Buffer:
    """Return a file of a zip."""
    check_size(member.file_size, what, limit)
    if member.flag_bits & 1:
        raise InputError("the zip is encrypted: unzip it")
    try:
        with archive.open(member) as file:
            return read_stream(file.read, what, limit=limit)
    except NotImplementedError as error:
        raise InputError(f"the zip cannot be decompressed ({error}): unzip it") from error


def _only_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the only file of a zip, apart from what macOS adds, whose names start with . or _."""
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) > 1:
        members = [each for each in members if not each.filename.startswith((".", "_"))]
    if not members:
        raise InputError("the zip holds no files: create it again")
    if len(members) > 1:
        raise InputError(f"the zip holds {len(members)} files: unzip it and choose one")
    return members[0]


@contextmanager
def _damage_reported(compression: str) -> Iterator[None]:
    try:
        yield
    except (InputError, OutputError):
        raise
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise InputError(
            f"the {compression} content is damaged or truncated ({shorten(str(error), 120)}): "
            "download or compress it again"
        ) from error
