"""Codes for the annotators of all partitions, assigned by tasks: no process collects all ids."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.engines.spark.partitions import AnnotatorPartition
from annotruth.engines.spark.shared_folder import SharedFolder
from annotruth.engines.spark.tasks import map_batches, run_on_partitions
from annotruth.kernels.arrays import Codes
from annotruth.labels.encode import EncodedColumn, encode_column
from annotruth.labels.frames import as_arrow, as_numpy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANNOTATORS_PER_PARTITION = 1 << 20


class AnnotatorCodes(NamedTuple):
    """The annotators that one task has assigned codes to.

    Attributes
    ----------
    partition
        Their ids. The file also holds, for each label partition, the pairs of the code in that
        partition and the code in this one.
    label_partitions
        The numbers of the label partitions that they occur in, ascending.
    bounds
        The bounds of the label partitions among the pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.engines.spark.annotator_codes import AnnotatorCodes
    >>> from annotruth.engines.spark.partitions import AnnotatorPartition
    >>> partition = AnnotatorPartition("annotators-1.arrow", n_annotators=3)
    >>> codes = AnnotatorCodes(partition, np.array([0, 4]), bounds=np.array([0, 2, 3]))
    >>> np.diff(codes.bounds).tolist()  # annotators in the label partitions 0 and 4
    [2, 1]
    """

    partition: AnnotatorPartition
    label_partitions: NDArray[np.int64]
    bounds: NDArray[np.int64]


def sort_codes(column: EncodedColumn) -> EncodedColumn:
    """Return the column with codes in the order of the values, whatever the order of the rows."""
    order = as_numpy(pc.sort_indices(column.values))
    code = np.empty(len(order), dtype=np.int32)
    code[order] = np.arange(len(order), dtype=np.int32)
    return EncodedColumn(code[column.codes], column.values.take(as_arrow(order)))


def assign_codes(
    spark: SparkSession,
    folder: SharedFolder,
    files: list[str],
    n_annotators: int,
    id_type: pa.DataType,
) -> list[AnnotatorCodes]:
    """Assign codes to all annotators, who are divided among tasks by the hash of their ids.

    Parameters
    ----------
    spark, folder
        The session and the folder to write to.
    files
        The encoded rows of each label partition.
    n_annotators
        How many annotators the label partitions have in total, where some count several times.
    id_type
        The type of the ids.
    """
    n_partitions = -(-n_annotators // _ANNOTATORS_PER_PARTITION)

    def list_annotators(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _annotators_of(folder, files[number], number, id_type)

    numbers = spark.range(0, len(files), 1, len(files))
    annotators = map_batches(numbers, list_annotators, _annotator_schema(id_type))
    by_id = annotators.repartition(n_partitions, "annotator")
    return run_on_partitions(by_id, partial(_write_annotators, folder))


def _annotator_schema(id_type: pa.DataType) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import LongType, StructType

    schema = StructType().add("annotator", from_arrow_type(id_type))
    for name in ("label_partition", "local_code", "n_labels"):
        schema = schema.add(name, LongType())
    return schema


def _annotators_of(
    folder: SharedFolder, file: str, number: int, id_type: pa.DataType
) -> pa.RecordBatch:
    """Return one row per annotator of a label partition."""
    rows = folder.read(file)
    annotators = rows["annotator"].cast(id_type)
    n = len(annotators)
    return pa.record_batch(
        {
            "annotator": annotators,
            "label_partition": as_arrow(np.full(n, number, dtype=np.int64)),
            "local_code": as_arrow(np.arange(n, dtype=np.int64)),
            "n_labels": rows["n_labels"],
        }
    )


def _write_annotators(folder: SharedFolder, rows: pa.Table) -> AnnotatorCodes | None:
    """Give some annotators codes in the order of their ids, and write them."""
    if not rows.num_rows:
        return None
    coded = sort_codes(encode_column(rows.column("annotator")))
    partition, local_code, n_labels = (
        as_numpy(rows.column(name)) for name in ("label_partition", "local_code", "n_labels")
    )
    order = np.lexsort((local_code, partition))
    label_partitions, starts = np.unique(partition[order], return_index=True)
    totals = np.bincount(coded.codes, weights=n_labels, minlength=len(coded.values))
    file = folder.write(
        "annotators",
        {
            "annotators": coded.values,
            "n_labels": totals.astype(np.int64),
            "local_code": local_code[order],
            "code": coded.codes[order],
        },
    )
    return AnnotatorCodes(
        AnnotatorPartition(file, len(coded.values)), label_partitions, np.append(starts, len(order))
    )


def codes_in_partition(
    folder: SharedFolder, annotator_codes: list[AnnotatorCodes], number: int, n_annotators: int
) -> Codes:
    """Return the codes among all annotators of those in a label partition, by their local codes."""
    codes = np.empty(n_annotators, dtype=np.int64)
    offset = 0
    for partition, label_partitions, bounds in annotator_codes:
        found = int(np.searchsorted(label_partitions, number))
        if found < len(label_partitions) and label_partitions[found] == number:
            columns = folder.read(partition.file)
            pairs = slice(int(bounds[found]), int(bounds[found + 1]))
            local_code = as_numpy(columns["local_code"])[pairs]
            codes[local_code] = as_numpy(columns["code"])[pairs] + offset
        offset += partition.n_annotators
    return codes
