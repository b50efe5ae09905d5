"""Tables as JSON: a list of records, one per row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

_ROWS_AT_ONCE = 1 << 14  # turned into Python objects
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str)


def write_json(partitions: Iterable[pa.Table], path: Path) -> None:
    """Write a table, given in partitions, as a list of objects, one per line."""
    batches = (table.to_batches(max_chunksize=_ROWS_AT_ONCE) for table in partitions)
    write_records(
        (row for batch in chain.from_iterable(batches) for row in batch.to_pylist()), path
    )


def write_records(
    records: Iterable[Mapping[str, Any]], path: Path, *, as_lines: bool = False
) -> None:
    """Write objects as a JSON list, one per line; with ``as_lines``, as JSON lines.

    Numbers that are not finite are written as null.
    """
    start, between, end = ("", "\n", "\n") if as_lines else ("[\n", ",\n", "\n]\n")
    separator = start
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(separator + _encode(record))
            separator = between
        if separator == between:
            file.write(end)
        elif not as_lines:
            file.write("[]\n")


def _encode(record: Mapping[str, Any]) -> str:
    try:
        return _ENCODER.encode(record)
    except ValueError:  # a number that is not finite; to look for it in every record takes longer
        return _ENCODER.encode(_finite(record))


def _finite(value: Any) -> Any:
    """Return a value of a record with null in the place of numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value
