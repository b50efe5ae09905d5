"""Files of labels that do not fit into memory, read some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.content import Kind, content_of
from annotruth.io.options import ReadOptions
from annotruth.io.readers import damage_told, explained, held_in_codes, without_twins
from annotruth.labels.on_disk.disk import Disk, size_of
from annotruth.labels.on_disk.table import LabelBuilder, MappedLabels
from annotruth.labels.validate import LABEL_ROLES, find_columns

Columns = Callable[[list[str]], list[str]]

_MOST_ROWS = 1 << 19
_BYTES_A_ROW = 1000  # what reading and encoding a row takes at most, with room for all else


def read_labels_within(path: str | os.PathLike[str], read: ReadOptions) -> MappedLabels:
    """Read labels as `read_labels` does, taking about ``read.memory``; the labels go to disk.

    The ids must fit into memory. Only a long table as CSV or TSV, Parquet or Arrow can be read
    so, plain or packed with gzip, bzip2, zstd or lz4.
    """
    assert read.memory is not None
    memory = size_of(read.memory)
    with explained(path):
        if read.input_format not in (None, "long") or read.question is not None:
            raise InputError(
                "within a given memory only a table of one row per label is read: "
                "leave out the input format and the question, or the memory"
            )
        disk = Disk(memory)
        kind, data = content_of(Path(path), disk)
        found: dict[str, str] = {}

        def choose(names: list[str]) -> list[str]:
            found.update(find_columns(names, LABEL_ROLES, read.columns))
            return list(found.values())

        gathering: LabelBuilder | None = None
        most = max(1, min(_MOST_ROWS, memory // _BYTES_A_ROW))
        for batch in _batches(kind, data, partial(without_twins, choose), most):
            gathering = gathering or LabelBuilder(disk, found)
            for start in range(0, batch.num_rows, most):
                gathering.take_up(pa.Table.from_batches([batch.slice(start, most)]))
        gathering = gathering or LabelBuilder(disk, found)
        return gathering.labels(read, from_text=kind == "text")


def _batches(kind: Kind, data: pa.Buffer, columns: Columns, most: int) -> Iterator[pa.RecordBatch]:
    if kind == "text":
        from annotruth.io.delimited import delimited_batches

        yield from delimited_batches(data, columns)
        return
    if kind == "json":
        raise InputError(
            "JSON is not read within a given memory: save the labels as CSV or Parquet"
        )
    with damage_told(kind):
        for batch in (_of_parquet if kind == "parquet" else _of_arrow)(data, columns, most):
            batch.validate(full=True)
            yield batch


def _of_parquet(data: pa.Buffer, columns: Columns, most: int) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(pa.BufferReader(data)) as file:
        metadata, names = file.metadata, columns(file.schema_arrow.names)
    with pyarrow.parquet.ParquetFile(
        pa.BufferReader(data), metadata=metadata, read_dictionary=held_in_codes(metadata, names)
    ) as file:
        yield from file.iter_batches(batch_size=most, columns=names)


def _of_arrow(data: pa.Buffer, columns: Columns, most: int) -> Iterator[pa.RecordBatch]:
    import pyarrow.ipc

    if data.slice(0, 6).to_pybytes() != b"ARROW1":
        with pyarrow.ipc.open_stream(data) as stream:
            names = columns(stream.schema.names)
            yield from (batch.select(names) for batch in stream)
        return
    with pyarrow.ipc.open_file(data) as file:
        names = columns(file.schema.names)
        for number in range(file.num_record_batches):
            yield file.get_batch(number).select(names)
