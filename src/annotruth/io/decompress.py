"""Decompression, never of more bytes than a limit, and how much memory decoding takes."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, OutputError, option, shorten
from annotruth.observations.columns.names import LABEL_ROLES
from annotruth.observations.disk import Disk, format_size
from annotruth.observations.scale import is_text

VALUE_BYTES = 24
"""What reading takes for each value, beside the value itself: offset, code and sorted code."""

_READ_AT_ONCE = 1 << 24
# What zipfile raises for damaged archives, beside its own error: its fields are not checked.
_ZIP_DAMAGE = (
    *(AttributeError, IndexError, KeyError, NotImplementedError, OverflowError, RuntimeError),
    *(ValueError, struct.error),
)


def decompress(
    data: pa.Buffer, compression: str, *, limit: int, disk: Disk | None = None
) -> pa.Buffer:
    """Return the content of a compressed file, on ``disk`` if that is given."""
    if compression in ("xz", "zip") and disk is not None:
        raise InputError(
            f"{compression} is not decompressed within a memory limit: decompress the file first, "
            f"or leave out {option('memory')}"
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
        f"{reason}, the limit: if that is what you expect, pass {option('max_size', enough)}; "
        f"{option('memory', '1GB')} keeps labels on disk"
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


_UNCOMPRESSED = -1  # a buffer's length, where compressing it would not have made it smaller


def decoded_size(table: pa.Table, *, keep_codes: bool) -> int:
    """Return how many bytes texts take as plain columns, which are now views or dictionaries.

    With ``keep_codes`` dictionaries are not decoded.
    """
    size = 0
    for array in (chunk for column in table.columns for chunk in column.chunks):
        is_coded = pa.types.is_dictionary(array.type)
        values = array.dictionary if is_coded else array
        times: Any = 1
        counts = _is_view(values.type)
        if is_coded and not keep_codes:
            kind = values.type
            counts |= is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
            times = np.bincount(array.indices.drop_null().to_numpy(), minlength=len(values))
        if counts:
            size += int((times * _text_lengths(values)).sum())
    return size


def _text_lengths(values: pa.Array) -> Any:
    if not _is_view(values.type):
        return pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    views = np.frombuffer(values.buffers()[1], dtype=np.int32)[::4]  # a length begins each
    lengths = views[values.offset : values.offset + len(values)].astype(np.int64)
    return np.where(values.is_valid().to_numpy(zero_copy_only=False), lengths, 0)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def arrow_size(data: pa.Buffer) -> int:
    """Return how many bytes reading an Arrow file or stream takes, of labels in three columns."""
    try:
        return sum(_batch_size(each) for each in _messages(data) if each.type in _BATCHES)
    except (struct.error, IndexError) as error:
        raise pa.ArrowInvalid("a message is not what its header says") from error


# Arrow's metadata are flatbuffers: a table begins with the distance back to its vtable, which holds
# the distance of each field from the table, 0 where the field is absent.
_BATCHES = ("dictionary", "record batch")


def _messages(data: pa.Buffer) -> Iterator[Any]:
    import pyarrow.ipc

    if data.slice(0, 6).to_pybytes() != b"ARROW1":
        yield from pyarrow.ipc.MessageReader.open_stream(data)
        return
    # A file ends with its footer, the footer's length and the magic.
    file, starts, end = memoryview(data), set(), data.size - 10
    footer = end - _read("<i", file, end)
    table = footer + _read("<I", file, footer)
    for field in (2, 3):  # dictionaries, record batches
        for block in _vector(file, _field(file, table, field), 24):
            start = _read("<q", file, block)
            if start in starts:  # the same message again
                raise IndexError
            starts.add(start)
            yield pyarrow.ipc.read_message(data.slice(start))


def _batch_size(message: Any) -> int:
    data, body = memoryview(message.metadata), memoryview(message.body or b"")
    header = _field(data, _read("<I", data, 0), 2)
    batch = header + _read("<I", data, header)
    if message.type == "dictionary":
        header = _field(data, batch, 1)
        batch = header + _read("<I", data, header)
    length = _field(data, batch, 0)
    size = len(LABEL_ROLES) * VALUE_BYTES * (_read("<q", data, length) if length else 0)
    is_compressed = bool(_field(data, batch, 3))
    for place in _vector(data, _field(data, batch, 2), 16):
        at, n_bytes = struct.unpack_from("<qq", data, place)
        if is_compressed and n_bytes >= 8:
            before = _read("<q", body, at)
            n_bytes = n_bytes - 8 if before == _UNCOMPRESSED else before
        size += max(n_bytes, 0)
    return size


def _field(data: memoryview, table: int, number: int) -> int:
    """Return where a field of a table is, 0 if it is absent."""
    vtable = table - _read("<i", data, table)
    slot = 4 + 2 * number
    distance = _read("<H", data, vtable + slot) if slot < _read("<H", data, vtable) else 0
    return table + distance if distance else 0


def _vector(data: memoryview, field: int, width: int) -> range:
    """Return where each entry of a vector of structs is."""
    if not field:
        return range(0)
    start = field + _read("<I", data, field)
    n = _read("<I", data, start)
    if start + 4 + n * width > len(data):
        raise IndexError
    return range(start + 4, start + 4 + n * width, width)


def _read(format: str, data: memoryview, place: int) -> int:
    if place < 0:
        raise IndexError
    value: int = struct.unpack_from(format, data, place)[0]
    return value
