"""Tables as JSON: a list of records, one a row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

_ROWS = 1 << 14  # what is turned into Python objects at once


def write_json(pieces: Iterable[pa.Table], path: Path) -> None:
    """Write a table, in pieces, as a list of objects, one a line; what is not finite is null."""
    separator = "[\n"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for batch in chain.from_iterable(one.to_batches(max_chunksize=_ROWS) for one in pieces):
            for row in batch.to_pylist():
                record = {name: _value(value) for name, value in row.items()}
                file.write(separator + json.dumps(record, ensure_ascii=False, default=str))
                separator = ",\n"
        file.write("[]\n" if separator == "[\n" else "\n]\n")


def _value(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
