"""What a file holds: unpacked, recognised by its first bytes, held against its name."""

from __future__ import annotations

import codecs
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError, OutputError
from annotruth.labels.on_disk.disk import Disk

Kind = Literal["text", "json", "parquet", "arrow"]

_PACKED_BY_MAGIC: Mapping[bytes, str] = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
}
_PACKED_BY_NAME: Mapping[str, str] = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".xz": "xz",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".lz4": "lz4",
    ".zip": "zip",
}
_KIND_BY_MAGIC: Mapping[bytes, Kind] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # how a message of an Arrow stream begins
}
_KIND_BY_NAME: Mapping[str, Kind] = {
    ".csv": "text",
    ".tsv": "text",
    ".tab": "text",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_CALLED: Mapping[Kind, str] = {
    "text": "a CSV or TSV file",
    "json": "JSON lines",
    "parquet": "a Parquet file",
    "arrow": "an Arrow or Feather file",
}
_UTF8_MARK = b"\xef\xbb\xbf"
_OTHER_MARKS: Mapping[bytes, str] = {  # the longer ones first
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def content_of(path: Path, disk: Disk | None = None) -> tuple[Kind, pa.Buffer]:
    """Open a file, unpack it if it is packed, and say what it holds.

    Text comes without its byte order mark. With ``disk`` the content is never in memory whole.
    """
    data = _bytes_of(path, disk)
    if data.size == 0:
        raise InputError("the file is empty")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = _packing(data)
    if suffixes and suffixes[-1] in _PACKED_BY_NAME:
        named = _PACKED_BY_NAME[suffixes.pop(-1)]
        if packed != named:
            raise InputError(
                f"the name says {named}, but the content is not: {_start(data)}; "
                "rename the file, or fetch it again if it is damaged"
            )
    if packed:
        data = _unpacked(data, packed) if disk is None else _unpacked_to(disk, data, packed)
        if data.size == 0:
            raise InputError(f"the file is empty once its {packed} is unpacked")
    kind = _kind(data)
    named_kind = _KIND_BY_NAME.get(suffixes[-1]) if suffixes else None
    if named_kind is not None and named_kind != kind:
        raise InputError(
            f"the name says {_CALLED[named_kind]}, but the content is not: {_start(data)}; "
            "rename the file, or fetch it again if it is damaged"
        )
    if kind in ("text", "json"):
        data = _without_mark(data)
        _check_no_nul(data)
    return kind, data


def chunks(data: pa.Buffer, size: int = 1 << 20) -> Iterator[bytes]:
    """Hand out the bytes in pieces that fit a cache; a large file is never held twice."""
    for start in range(0, data.size, size):
        yield data.slice(start, min(size, data.size - start)).to_pybytes()


def check_utf8(data: pa.Buffer) -> None:
    """Refuse bytes that are not UTF-8, and say where the first of them stands."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    start, line = 0, 1
    for chunk in (*chunks(data), b""):
        pending = decoder.getstate()[0]
        try:
            decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            at = error.start - len(pending)
            line += chunk[: max(at, 0)].count(b"\n")
            raise InputError(
                f"byte {start + at:,} (line {line:,}) is 0x{error.object[error.start]:02x}, which "
                "is not UTF-8: save the file as UTF-8"
            ) from error
        start += len(chunk)
        line += chunk.count(b"\n")


def _check_no_nul(data: pa.Buffer) -> None:
    start = 0
    for chunk in chunks(data):
        at = chunk.find(b"\0")
        if at >= 0:
            raise InputError(
                f"byte {start + at:,} is NUL, so this is no text: give CSV, TSV, JSON lines, "
                "Parquet or Arrow, as UTF-8 where it is text"
            )
        start += len(chunk)


def _bytes_of(path: Path, disk: Disk | None) -> pa.Buffer:
    if path.is_dir():
        raise IsADirectoryError
    if not path.is_file():  # a pipe cannot be mapped; a missing file says so here
        return pa.py_buffer(path.read_bytes())
    if path.stat().st_size == 0:
        return pa.py_buffer(b"")
    if disk is not None:
        return pa.py_buffer(disk.opened(path))
    return pa.memory_map(os.fspath(path)).read_buffer()


def _packing(data: pa.Buffer) -> str | None:
    first = _first(data)
    return next((how for magic, how in _PACKED_BY_MAGIC.items() if first.startswith(magic)), None)


def _unpacked(data: pa.Buffer, packed: str) -> pa.Buffer:
    with _damage_told(packed):
        if packed == "xz":
            return pa.py_buffer(lzma.decompress(data))
        if packed == "zip":
            return pa.py_buffer(_only_member(data))
        with pa.CompressedInputStream(pa.BufferReader(data), packed) as stream:
            return stream.read_buffer()


def _unpacked_to(disk: Disk, data: pa.Buffer, packed: str) -> pa.Buffer:
    if packed in ("xz", "zip"):
        raise InputError(f"{packed} is not unpacked within a given memory: unpack the file first")
    unpacked = disk.column(np.uint8)
    with _damage_told(packed), pa.CompressedInputStream(pa.BufferReader(data), packed) as stream:
        while piece := stream.read(1 << 24):
            unpacked.append(np.frombuffer(piece, dtype=np.uint8))
    return pa.py_buffer(unpacked.mapped())


@contextmanager
def _damage_told(packed: str) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise InputError(
            f"the {packed} content is damaged or cut short ({error}): fetch or pack it again"
        ) from error


def _only_member(data: pa.Buffer) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if any(member.filename == "[Content_Types].xml" for member in members):
            raise InputError("this is a spreadsheet or document: save the labels as CSV")
        if len(members) != 1:
            raise InputError(f"the zip holds {len(members)} files: unpack it and choose one")
        try:
            return archive.read(members[0])
        except (RuntimeError, NotImplementedError) as error:  # a password, or a rare method
            raise InputError(f"the zip cannot be unpacked here ({error}): unpack it") from error


def _kind(data: pa.Buffer) -> Kind:
    first = _first(data)
    for magic, kind in _KIND_BY_MAGIC.items():
        if first.startswith(magic):
            return kind
    for mark, called in _OTHER_MARKS.items():
        if first.startswith(mark):
            raise InputError(f"the text is {called}: save the file as UTF-8")
    start = first.removeprefix(_UTF8_MARK).lstrip()
    return "json" if start.startswith((b"{", b"[")) else "text"


def _without_mark(data: pa.Buffer) -> pa.Buffer:
    marked = _first(data).startswith(_UTF8_MARK)
    return data.slice(len(_UTF8_MARK)) if marked else data


def _first(data: pa.Buffer, size: int = 64) -> bytes:
    first: bytes = data.slice(0, min(size, data.size)).to_pybytes()
    return first


def _start(data: pa.Buffer) -> str:
    return f"it starts with {_first(data, 12)!r}"
