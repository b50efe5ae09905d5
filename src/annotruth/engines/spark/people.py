"""The annotators of all chunks, numbered by tasks: nobody collects their ids."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.engines.spark.labels import Shard
from annotruth.engines.spark.storage import Storage
from annotruth.engines.spark.tasks import mapped, run_on_rows
from annotruth.kernels.arrays import Codes
from annotruth.labels.buffers import as_arrow, as_numpy
from annotruth.labels.encode import EncodedColumn, encode_column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PEOPLE_A_SHARD = 1 << 20


class People(NamedTuple):
    """What a task tells of the annotators it has numbered."""

    shard: Shard
    chunks: NDArray[np.int64]
    ends: NDArray[np.int64]


def in_order(column: EncodedColumn) -> EncodedColumn:
    """Give values numbers in their own order, so that the order of rows does not matter."""
    order = as_numpy(pc.sort_indices(column.values))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return EncodedColumn(place[column.codes], column.values.take(as_arrow(order)))


def numbered(
    spark: SparkSession, storage: Storage, files: list[str], n_listed: int, kind: pa.DataType
) -> list[People]:
    """Give all annotators numbers, each in the shard that the hash of the id says.

    ``files`` are the chunks' raw codes, ``n_listed`` how many annotators they name in all, and
    ``kind`` is the type of the ids.
    """
    n_shards = -(-n_listed // _PEOPLE_A_SHARD)

    def listed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield _people_of(storage, files[place], place, kind)

    people = mapped(spark.range(0, len(files), 1, len(files)), listed, _people_schema(kind))
    by_id = people.repartition(n_shards, "annotator")
    return run_on_rows(by_id, partial(_number, storage))


def _people_schema(kind: pa.DataType) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import LongType, StructType

    whole = LongType()
    schema = StructType().add("annotator", from_arrow_type(kind))
    return schema.add("chunk", whole).add("local", whole).add("n_labels", whole)


def _people_of(storage: Storage, file: str, place: int, kind: pa.DataType) -> pa.RecordBatch:
    raw = storage.read(file)
    annotators = raw["annotator"].cast(kind)
    n = len(annotators)
    columns = [
        annotators,
        as_arrow(np.full(n, place, dtype=np.int64)),
        as_arrow(np.arange(n, dtype=np.int64)),
        raw["n_labels"],
    ]
    return pa.record_batch(columns, names=["annotator", "chunk", "local", "n_labels"])


def _number(storage: Storage, rows: pa.Table) -> People | None:
    """Give some annotators numbers in the order of their ids, and tell every chunk who is who."""
    if not rows.num_rows:
        return None
    coded = in_order(encode_column(rows.column("annotator")))
    chunk, local, n = (as_numpy(rows.column(name)) for name in ("chunk", "local", "n_labels"))
    order = np.lexsort((local, chunk))
    chunks, starts = np.unique(chunk[order], return_index=True)
    counts = np.bincount(coded.codes, weights=n, minlength=len(coded.values)).astype(np.int64)
    file = storage.write(
        "people",
        {
            "annotators": coded.values,
            "n_labels": counts,
            "local": local[order],
            "code": coded.codes[order],
        },
    )
    return People(Shard(file, len(coded.values)), chunks, np.append(starts, len(order)))


def codes_of(storage: Storage, people: list[People], place: int, n: int) -> Codes:
    """Look up which codes a chunk's annotators have among all."""
    codes = np.empty(n, dtype=np.int64)
    before = 0
    for shard, chunks, ends in people:
        at = int(np.searchsorted(chunks, place))
        if at < len(chunks) and chunks[at] == place:
            columns = storage.read(shard.file)
            here = slice(int(ends[at]), int(ends[at + 1]))
            codes[as_numpy(columns["local"])[here]] = as_numpy(columns["code"])[here] + before
        before += shard.n_annotators
    return codes
