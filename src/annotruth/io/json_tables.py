"""Tables as JSON: a list of records, one per row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

_ROWS_AT_ONCE = 1 << 14  # turned into Python objects


def write_json(partitions: Iterable[pa.Table], path: Path) -> None:
    """Write a table, given in partitions, as a list of objects, one per line.

    Numbers that are not finite are written as null.
    """
    batches = (table.to_batches(max_chunksize=_ROWS_AT_ONCE) for table in partitions)
    separator = "[\n"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for batch in chain.from_iterable(batches):
            for row in batch.to_pylist():
                record = {name: _to_json(value) for name, value in row.items()}
                file.write(separator + json.dumps(record, ensure_ascii=False, default=str))
                separator = ",\n"
        file.write("[]\n" if separator == "[\n" else "\n]\n")


def _to_json(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
