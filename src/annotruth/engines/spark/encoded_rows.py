"""Rows of a Spark frame as codes in files: the ids of some items, annotators and labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.engines.spark.annotator_codes import sort_codes
from annotruth.engines.spark.shared_folder import SharedFolder
from annotruth.errors import InputError
from annotruth.labels import validate
from annotruth.labels.encode import encode_columns
from annotruth.labels.frames import LABEL_ROLES


class EncodedRows(NamedTuple):
    """What a task returns of the rows it has encoded.

    Attributes
    ----------
    file
        The codes and ids of the rows that have a label.
    n_rows, n_kept, n_annotators
        The numbers of rows, of rows with a label, and of annotators.
    values
        The distinct labels.
    n_unnamed
        How many rows have a label but no item, and no annotator.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from annotruth.engines.spark.encoded_rows import EncodedRows
    >>> encoded = EncodedRows("rows-1.arrow", 100, 98, 12, pa.array([1, 2, 3]), {})
    >>> encoded.n_rows - encoded.n_kept  # rows without a label
    2
    """

    file: str
    n_rows: int
    n_kept: int
    n_annotators: int
    values: pa.Array
    n_unnamed: dict[str, int]


def encode_rows(folder: SharedFolder, rows: pa.Table) -> EncodedRows | None:
    """Encode the ids of some rows, drop the rows without a label, and write the codes."""
    if not rows.num_rows:
        return None
    coded = encode_columns({role: rows.column(role) for role in LABEL_ROLES})
    empty = validate.missing(coded["label"].values)
    if empty.any():
        kept = ~empty[coded["label"].codes]
        coded = {role: column.take(kept) for role, column in coded.items()}
    coded = {role: sort_codes(column) for role, column in coded.items()}
    n_unnamed = {
        role: int(validate.missing(column.values)[column.codes].sum())
        for role, column in coded.items()
    }
    annotator = coded["annotator"]
    n_annotators = len(annotator.values)
    file = folder.write(
        "rows",
        {
            **{f"{role}_codes": column.codes for role, column in coded.items()},
            **{role: column.values for role, column in coded.items()},
            "n_labels": np.bincount(annotator.codes, minlength=n_annotators),
        },
    )
    n_kept = len(annotator.codes)
    values = coded["label"].values
    return EncodedRows(file, rows.num_rows, n_kept, n_annotators, values, n_unnamed)


def check_rows(encoded: list[EncodedRows]) -> None:
    """Refuse a frame without labels, and labels without an item or annotator."""
    validate.check_any_labels(
        sum(one.n_rows for one in encoded), sum(one.n_kept for one in encoded)
    )
    for role in ("item", "annotator"):
        n = sum(one.n_unnamed[role] for one in encoded)
        if n:
            raise InputError(
                f"{n:,} rows have a label but no {role}: name the {role} or remove the rows"
            )
