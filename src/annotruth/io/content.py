"""What a file holds: decompressed, recognised by its first bytes, compared with its name."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

import pyarrow as pa

from annotruth.errors import InputError, check_path
from annotruth.io.decompress import VALUE_BYTES, check_size, decompress, read_stream
from annotruth.io.spreadsheets import read_sheet, refuse_old_workbook
from annotruth.observations.disk import Disk, parse_size

ContentKind = Literal["text", "json", "parquet", "arrow", "sqlite", "duckdb"]

_COMPRESSION_BY_MAGIC: Mapping[bytes, str] = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
}
_COMPRESSION_BY_SUFFIX: Mapping[str, str] = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".xz": "xz",
    ".lz4": "lz4",
    ".zip": "zip",
    **dict.fromkeys((".zst", ".zstd"), "zstd"),
}
_KIND_BY_MAGIC: Mapping[bytes, ContentKind] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"SQLite format 3\0": "sqlite",
    b"\xff\xff\xff\xff": "arrow",  # the first bytes of a message of an Arrow stream
}
_KIND_BY_SUFFIX: Mapping[str, ContentKind] = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "text"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".sqlite", ".sqlite3"), "sqlite"),
    ".duckdb": "duckdb",
}
DATABASE_TITLE: Mapping[ContentKind, str] = {
    "sqlite": "SQLite database",
    "duckdb": "DuckDB database",
}
_KIND_TITLE: Mapping[ContentKind, str] = {
    "text": "a CSV or TSV file",
    "json": "JSON lines",
    "parquet": "a Parquet file",
    "arrow": "an Arrow or Feather file",
    "sqlite": "a SQLite database",
    "duckdb": "a DuckDB database",
}
_WEBANNO = b"#FORMAT=WebAnno TSV"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_TAR = b"ustar"  # at byte 257
UTF8_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS: Mapping[bytes, str] = {  # the longer ones first
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_UNSUSPICIOUS = 500_000_000  # bytes of memory that any file may take
_MAX_RATIO = 200  # of the memory beyond that to the size of the file
_USUAL_MEMORY = 16_000_000_000  # of a machine that does not report how much it has
# The limits of a container, in version 2 and version 1 of Linux's control groups.
_CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_MEMORY_INFO = Path("/proc/meminfo")
_STANDARD_INPUT = Path("-")
_SEPARATORS = (b"\n", b",", b"\t", b";", b"|")


class FileContent(NamedTuple):
    """The bytes of a file, decompressed, and what they are."""

    kind: ContentKind
    data: pa.Buffer
    limit: int
    """How many bytes of memory reading the content may take."""
    sheet: str = ""
    """Which sheet of a workbook it is; empty for other files."""


def read_content(
    path: Path,
    *,
    disk: Disk | None = None,
    max_size: str | int | None = None,
    sheet: str | None = None,
) -> FileContent:
    """Open a file, decompress it if it is compressed, and recognise what it holds.

    Text comes without its byte order mark. With ``disk`` the content is never in memory as a
    whole. ``max_size`` replaces the limit on what a file may hold. ``sheet`` names that of a
    workbook, by default the first.
    """
    check_path(path, "the name of the file")  # Arrow opens no file whose name is not UTF-8
    data = _read_bytes(path, disk, max_size)
    if data.size == 0:
        raise InputError("the file is empty")
    limit = size_limit(data.size, max_size, in_memory=disk is None)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = _compression(data)
    if suffixes and suffixes[-1] in _COMPRESSION_BY_SUFFIX:
        expected = _COMPRESSION_BY_SUFFIX[suffixes.pop(-1)]
        if compression != expected:
            raise InputError(
                f"the name says {expected}, but the content is not: {_describe_start(data)}; "
                "rename the file, or download it again if it is damaged"
            )
    if compression == "zip" and disk is None:
        found = read_sheet(data, sheet, limit=limit)
        if found is not None:
            return _without_mark("text", found[0], limit)._replace(sheet=found[1])
    if compression:
        data = decompress(data, compression, limit=limit, disk=disk)
        if data.size == 0:
            raise InputError(f"the {compression} file is empty once it is decompressed")
        if inner := _compression(data):
            raise InputError(
                f"the {compression} file holds a compressed file ({inner}): decompress it once"
            )
    if disk is None:
        data = _as_utf8(data, limit)
    kind = _recognise_kind(data)
    expected_kind = _KIND_BY_SUFFIX.get(suffixes[-1]) if suffixes else None
    if expected_kind is not None and expected_kind != kind:
        raise InputError(
            f"the name says {_KIND_TITLE[expected_kind]}, but the content is not: "
            f"{_describe_start(data)}; rename the file, or download it again if it is damaged"
        )
    return _without_mark(kind, data, limit)


def _as_utf8(data: pa.Buffer, limit: int) -> pa.Buffer:
    """Return text in UTF-16 or UTF-32, which its mark shows, as UTF-8; other bytes as they are."""
    first = _first_bytes(data)
    encoding = next((name for mark, name in _OTHER_BOMS.items() if first.startswith(mark)), None)
    if encoding is None:
        return data
    check_size(3 * data.size, "text", limit)
    try:
        return pa.py_buffer(data.to_pybytes().decode(encoding).encode())
    except UnicodeError:
        raise InputError(
            f"the text begins as {encoding} does, but is not: save the file as UTF-8"
        ) from None


def recognise_content(data: pa.Buffer, limit: int) -> FileContent:
    """Return what bytes hold, without a file's name to compare with."""
    return _without_mark(_recognise_kind(data), data, limit)


def _without_mark(kind: ContentKind, data: pa.Buffer, limit: int) -> FileContent:
    """Return the content; text comes without its byte order mark."""
    if kind in ("text", "json"):
        data = data.slice(len(UTF8_BOM)) if _first_bytes(data).startswith(UTF8_BOM) else data
        start = 0
        for part in partitions(data):
            position = part.find(b"\0")
            if position >= 0:
                raise InputError(
                    f"byte {start + position:,} is NUL, so this is not text: give CSV, TSV, JSON "
                    "lines, Parquet or Arrow, as UTF-8 where it is text"
                )
            start += len(part)
    if kind == "text" and data.size * (1 + VALUE_BYTES) > limit:
        n_values = sum(part.count(mark) for part in partitions(data) for mark in _SEPARATORS)
        check_size(data.size + VALUE_BYTES * n_values, "text", limit)
    return FileContent(kind, data, limit)


def partitions(data: pa.Buffer, size: int = 1 << 20) -> Iterator[bytes]:
    """Return the bytes in partitions that fit into a cache, so that no copy of all is made."""
    for start in range(0, data.size, size):
        yield data.slice(start, min(size, data.size - start)).to_pybytes()


def check_utf8(data: pa.Buffer) -> None:
    """Refuse bytes that are not UTF-8, naming the position of the first of them."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    start, line = 0, 1
    for part in (*partitions(data), b""):
        pending = decoder.getstate()[0]
        try:
            decoder.decode(part, final=not part)
        except UnicodeDecodeError as error:
            position = error.start - len(pending)
            line += part[: max(position, 0)].count(b"\n")
            raise InputError(
                f"byte {start + position:,} (line {line:,}) is "
                f"0x{error.object[error.start]:02x}, which is not UTF-8: save the file as UTF-8"
            ) from error
        start += len(part)
        line += part.count(b"\n")


def size_limit(file_size: int, max_size: str | int | None, *, in_memory: bool = True) -> int:
    """Return how many bytes of memory reading a file of this size may take.

    Labels compress to about a hundredth of that; what is smaller is made to exhaust memory.
    """
    if max_size is not None:
        return parse_size(max_size, "max_size")
    limit = max(_UNSUSPICIOUS, _MAX_RATIO * file_size)
    return min(limit, memory_size() // 4 * 3) if in_memory else limit


def memory_size() -> int:
    """Return how many bytes of memory the machine has, or those its container may use."""
    try:
        sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # not on every system
        sizes = [_USUAL_MEMORY]
    for path in _CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # there is no such file, or it holds "max"
            sizes.append(int(path.read_text()))
    return min(sizes)


def available_memory() -> int:
    """Return how many bytes of memory no other process uses, where the system reports it."""
    try:
        lines = _MEMORY_INFO.read_text().splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return min(1024 * int(kilobytes), memory_size())
    except (OSError, StopIteration, ValueError):  # only Linux has this file
        return memory_size()


def _read_bytes(path: Path, disk: Disk | None, max_size: str | int | None) -> pa.Buffer:
    if path == _STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.isatty():
            raise InputError(
                "nothing is piped into it: name a file, or type `... | annotruth ... -`"
            )
        limit = size_limit(0, max_size, in_memory=disk is None)
        return read_stream(sys.stdin.buffer.read, "standard input", limit=limit, disk=disk)
    if path.is_dir():
        raise IsADirectoryError
    if path.is_char_device() or path.is_block_device():
        raise InputError("this is a device, which may never end: copy what it holds to a file")
    if not path.is_file():  # a pipe cannot be mapped; a missing file fails here
        limit = size_limit(0, max_size, in_memory=disk is None)
        with path.open("rb") as file:
            return read_stream(file.read, "pipe", limit=limit, disk=disk)
    if path.stat().st_size == 0:
        return pa.py_buffer(b"")
    if disk is not None:
        return pa.py_buffer(disk.map_file(path))
    return pa.memory_map(os.fspath(path)).read_buffer()


def _compression(data: pa.Buffer) -> str | None:
    first = _first_bytes(data)
    return next(
        (name for magic, name in _COMPRESSION_BY_MAGIC.items() if first.startswith(magic)), None
    )


def _recognise_kind(data: pa.Buffer) -> ContentKind:
    first = _first_bytes(data)
    if _first_bytes(data, 262).endswith(_TAR):
        raise InputError("this is a tar archive: unpack it, and name a file of it")
    if first.startswith(_OLD_OFFICE):
        refuse_old_workbook(data)
    for magic, kind in _KIND_BY_MAGIC.items():
        if first.startswith(magic):
            return kind
    if first[8:12] == b"DUCK":  # after a checksum
        return "duckdb"
    for mark, encoding in _OTHER_BOMS.items():
        if first.startswith(mark):
            raise InputError(
                f"the text is {encoding}, which is not read within a memory limit: save the file as "
                "UTF-8"
            )
    start = first.removeprefix(UTF8_BOM).lstrip()
    if start.startswith(_WEBANNO):
        refuse_marks("INCEpTION or WebAnno")
    if start[:9].lower().startswith((b"<?xml", b"<!doctype", b"<html")):
        raise InputError("this is XML or HTML, which is not read: export the labels as JSON or CSV")
    return "json" if start.startswith((b"{", b"[")) else "text"


def refuse_marks(tool: str) -> NoReturn:
    """Refuse a file of a tool that marks parts of a text or an image."""
    raise InputError(
        f"this is a file of {tool}, which marks parts of a text or an image and does not say who did: "
        "only labels of whole items are read; write them as a table with the columns item, "
        "annotator, label"
    )


def _first_bytes(data: pa.Buffer, size: int = 64) -> bytes:
    first: bytes = data.slice(0, min(size, data.size)).to_pybytes()
    return first


def _describe_start(data: pa.Buffer) -> str:
    return f"it starts with {_first_bytes(data, 12)!r}"
