"""A small table of labels, and functions to write and compress it."""

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest

from annotruth.errors import InputError
from annotruth.io.readers import read_labels

ROWS = [("a,1", "ann", 2), ("a,1", "böb", 5), ('b"2', "ann", 2), ("c\n3", "böb", 3)]


@pytest.fixture
def table() -> pa.Table:
    item, annotator, label = zip(*ROWS, strict=True)
    return pa.table({"item": item, "annotator": annotator, "label": label, "seconds": [1.5] * 4})


def _separated(separator: str) -> Callable[[pa.Table], bytes]:
    def write(table: pa.Table) -> bytes:
        rows = [table.column_names, *map(list, zip(*table.to_pydict().values(), strict=True))]
        quoted = (['"' + str(cell).replace('"', '""') + '"' for cell in row] for row in rows)
        return "".join(separator.join(row) + "\r\n" for row in quoted).encode()

    return write


def _to_sink(write: Callable[[pa.Table, pa.BufferOutputStream], None]):
    def to_bytes(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        write(table, sink)
        return sink.getvalue().to_pybytes()

    return to_bytes


def _ipc(new: Callable[..., pa.ipc.RecordBatchStreamWriter]):
    def write(table: pa.Table, sink: pa.BufferOutputStream) -> None:
        with new(sink, table.schema) as writer:
            writer.write_table(table)

    return _to_sink(write)


FORMATS: dict[str, Callable[[pa.Table], bytes]] = {
    "csv": _separated(","),
    "tsv": _separated("\t"),
    "semicolon.csv": _separated(";"),
    "bar.txt": _separated("|"),
    "bom.csv": lambda table: b"\xef\xbb\xbf" + _separated(",")(table),
    "parquet": _to_sink(pa.parquet.write_table),
    "arrow": _ipc(pa.ipc.new_file),
    "arrows": _ipc(pa.ipc.new_stream),
    "feather": _to_sink(pa.feather.write_feather),
    "jsonl": lambda table: "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode(),
}


def _arrow_compressor(codec: str) -> Callable[[bytes], bytes]:
    def compress(content: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(content)
        return sink.getvalue().to_pybytes()

    return compress


def zipped_content(content: bytes, names: tuple[str, ...] = ("labels",)) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("folder")
        for name in names:
            archive.writestr(name, content)
    return buffer.getvalue()


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": _arrow_compressor("zstd"),
    ".lz4": _arrow_compressor("lz4"),
    ".zip": zipped_content,
}


@pytest.fixture(params=FORMATS)
def written(request, table) -> tuple[str, bytes]:
    """A suffix and the table's bytes in that format."""
    return request.param, FORMATS[request.param](table)


@pytest.fixture(params=COMPRESSIONS)
def compression(request) -> tuple[str, Callable[[bytes], bytes]]:
    """A suffix and the function that compresses so."""
    return request.param, COMPRESSIONS[request.param]


@pytest.fixture
def formats():
    return FORMATS


@pytest.fixture
def compressions():
    return COMPRESSIONS


@pytest.fixture
def zipped():
    return zipped_content


def refused_source(source, **options) -> str:
    """Read labels, and return the one line that refuses them; nothing in it is secret."""
    with pytest.raises(InputError) as caught:
        read_labels(source, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert "5ecret" not in text
    assert caught.value.__cause__ is None or caught.value.__suppress_context__
    return text


@pytest.fixture
def refused(tmp_path):
    """Write a file, read it as labels, and return the one line that refuses it."""

    def read(content: Any, name: str = "labels.csv", **options) -> str:
        path = tmp_path / name
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        text = refused_source(path, **options)
        assert text.startswith(f"{path}: ")
        assert len(text) < len(str(path)) + 400
        return text.removeprefix(f"{path}: ")

    return read
