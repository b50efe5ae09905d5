"""From a Spark frame to partitions: one shuffle of the rows by item, and one of the annotators.

No process holds all rows or all ids, and the driver sees counts and the categories only:

1. the rows are shuffled by item; a task encodes the ids of its rows and writes the codes;
2. the annotators of every partition are shuffled by id; a task assigns codes to its annotators, in
   the order of the ids, and writes which codes they have in which partition;
3. a task per partition replaces the codes by those common to all partitions and sorts the labels,
   as in memory.

Every order is that of the ids, so the order of the rows does not matter.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.engines.spark.annotator_codes import (
    AnnotatorCodes,
    assign_codes,
    codes_in_partition,
)
from annotruth.engines.spark.encoded_rows import EncodedRows, check_rows, encode_rows
from annotruth.engines.spark.frames import is_spark_frame
from annotruth.engines.spark.labels import SparkLabels
from annotruth.engines.spark.partitions import LabelPartition, write_partition
from annotruth.engines.spark.shared_folder import SharedFolder
from annotruth.engines.spark.tasks import run_on_partitions, run_tasks
from annotruth.errors import InputError
from annotruth.labels import DuplicatePolicy, Labels, Scale, TableOptions, validate
from annotruth.labels.build import decide_scale
from annotruth.labels.encode import encode_column, match_ids
from annotruth.labels.frames import LABEL_ROLES, as_arrow, as_numpy, find_columns
from annotruth.labels.layout import RowCodes, find_repeats
from annotruth.labels.times import warn_of_unused_times
from annotruth.labels.truth import MatchedTruth, TruthTable, check_matches, read_truths

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MAX_VALUES = 100_000  # distinct labels, which the driver collects
_NAMED_REPEATS = 3  # in a message


class SortedPartition(NamedTuple):
    """What a task returns of a partition it has sorted and written.

    Attributes
    ----------
    partition
        The partition.
    n_repeats, repeats
        How many labels repeat an item and annotator, and the ids of some of them.
    n_known
        How many of its items have a known truth.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from annotruth.engines.spark.partitioning import SortedPartition
    >>> from annotruth.engines.spark.partitions import LabelPartition
    >>> partition = LabelPartition("labels-1.arrow", 10, 25, 40, 7)
    >>> no_ids = (pa.array([], pa.string()), pa.array([], pa.string()))
    >>> SortedPartition(partition, n_repeats=0, repeats=no_ids, n_known=2).partition.n_labels
    40
    """

    partition: LabelPartition
    n_repeats: int
    repeats: tuple[pa.Array, pa.Array]
    n_known: int


class _Categories(NamedTuple):
    """The scale, and the category of every distinct label."""

    scale: Scale
    values: pa.Array
    codes: NDArray[np.int32]


class _KnownTruths(NamedTuple):
    """The known truths of some items, as categories."""

    ids: pa.Array
    codes: NDArray[np.int32]


def partition_frame(
    frame: DataFrame,
    folder: SharedFolder,
    options: TableOptions,
    *,
    gold: Any = None,
    n_partitions: int | None = None,
    from_text: bool = False,
) -> SparkLabels:
    """Check the labels of a frame and write them to partitions in a folder of their own.

    Parameters
    ----------
    frame, folder, options
        The frame, the folder, and how to read the labels.
    gold
        Known truths of some items: a frame of ``item, label``, a mapping or a Series.
    n_partitions
        How many partitions to make; by default Spark chooses.
    from_text
        Whether the columns have no types, as in a CSV.
    """
    if options.duplicates == "last":
        raise InputError(
            "rows of a Spark table have no order, so none is the last: pass duplicates='keep' "
            "(`--duplicates keep`)"
        )
    spark = frame.sparkSession
    known = None if gold is None else _collect_gold(gold)
    names = find_columns(frame.columns, LABEL_ROLES, options.columns)
    warn_of_unused_times(frame.columns, names.values(), "on Spark")
    rows = frame.select(*(_column(frame, name).alias(role) for role, name in names.items()))
    empty = rows.limit(0).toArrow()
    validate.check_types({role: empty.column(role) for role in names}, names)
    shuffled = (
        rows.repartition("item") if n_partitions is None else rows.repartition(n_partitions, "item")
    )

    encoded = run_on_partitions(shuffled, partial(encode_rows, folder))
    check_rows(encoded)
    categories = _decide_categories(encoded, options, from_text=from_text)
    files = [one.file for one in encoded]
    id_type = empty.schema.field("annotator").type
    n_annotators = sum(one.n_annotators for one in encoded)
    annotator_codes = assign_codes(spark, folder, files, n_annotators, id_type)
    truths = None if known is None else _known_truths(known, categories.scale)
    task = partial(
        _sort_partition, folder, files, annotator_codes, categories, truths, options.duplicates
    )
    written = run_tasks(spark, task, len(encoded))
    _check_repeats(written)
    if truths is not None:
        check_matches(sum(one.n_known for one in written), truths.ids, "gold")
    folder.remove(files)
    return SparkLabels(
        spark=spark,
        folder=folder,
        scale=categories.scale,
        partitions=[one.partition for one in written],
        annotator_partitions=[one.partition for one in annotator_codes],
        n_dropped=sum(one.n_rows - one.n_kept for one in encoded),
    )


def _column(frame: DataFrame, name: str) -> Column:
    """Return a column by its name, which may have dots and backticks in it."""
    return frame["`" + name.replace("`", "``") + "`"]


def _collect_gold(gold: Any) -> TruthTable:
    """Return the known truths, which are few; refuse items that occur twice."""
    known = read_truths(gold.toArrow() if is_spark_frame(gold) else gold, role="gold")
    codes = encode_column(pa.chunked_array([known.ids])).codes
    validate.check_items_once(codes, known.ids, "gold")
    return known


def _known_truths(known: TruthTable, scale: Scale) -> _KnownTruths:
    truth = MatchedTruth(np.arange(len(known.ids)), known.values, scale, "gold")
    return _KnownTruths(known.ids, truth.categories())


def _decide_categories(
    encoded: list[EncodedRows], options: TableOptions, *, from_text: bool
) -> _Categories:
    values = pc.unique(pa.chunked_array([one.values for one in encoded]))
    values = values.take(pc.sort_indices(values))
    if len(values) > _MAX_VALUES:
        raise InputError(
            f"there are {len(values):,} different labels: if they are numbers of a continuous "
            "scale, put them into bins: pass bins=10 (`--bins 10`)"
        )
    scale, codes = decide_scale(values, options, from_text=from_text)
    return _Categories(scale, values, codes)


def _sort_partition(
    folder: SharedFolder,
    files: list[str],
    annotator_codes: list[AnnotatorCodes],
    categories: _Categories,
    truths: _KnownTruths | None,
    duplicates: DuplicatePolicy,
    number: int,
) -> SortedPartition:
    """Replace a partition's codes by those common to all partitions, sort its labels, write it."""
    rows = folder.read(files[number])
    codes = codes_in_partition(folder, annotator_codes, number, len(rows["annotator"]))
    order = np.argsort(codes)
    local_code = np.empty(len(order), dtype=np.int32)
    local_code[order] = np.arange(len(order), dtype=np.int32)
    item, annotator = as_numpy(rows["item_codes"]), local_code[as_numpy(rows["annotator_codes"])]
    category = categories.codes[match_ids(rows["label"], categories.values)]
    label = category[as_numpy(rows["label_codes"])]
    # Within an item and category labels are in the order of the annotators, not of the rows.
    by_annotator = np.argsort(annotator, kind="stable")
    labels = Labels.from_codes(
        item[by_annotator],
        annotator[by_annotator],
        label[by_annotator],
        items=rows["item"],
        annotators=rows["annotator"].take(as_arrow(order)),
        scale=categories.scale,
        frame="pyarrow",
    )
    later = np.empty(0, dtype=np.int64)
    if duplicates == "refuse":
        # Identical rows are refused too: they could only be counted once all partitions are.
        repeats = find_repeats(RowCodes(item, annotator, label), len(order))
        later = np.sort(np.concatenate([repeats.identical, repeats.changed]))
    named = later[:_NAMED_REPEATS]
    n_known = 0
    if truths is not None:
        place = match_ids(truths.ids, labels.items)
        present = place >= 0
        n_known = int(present.sum())
        labels.known[place[present]] = truths.codes[present]
    return SortedPartition(
        write_partition(folder, labels, codes[order]),
        len(later),
        (
            labels.items.take(as_arrow(item[named])),
            labels.annotators.take(as_arrow(annotator[named])),
        ),
        n_known,
    )


def _check_repeats(written: list[SortedPartition]) -> None:
    """Refuse annotators who labelled an item twice, which tasks count and do not refuse."""
    n_repeats = sum(one.n_repeats for one in written)
    if n_repeats:
        items, annotators = (
            pa.concat_arrays([one.repeats[side] for one in written])[:_NAMED_REPEATS]
            for side in (0, 1)
        )
        validate.refuse_repeats(items, annotators, n_repeats)
