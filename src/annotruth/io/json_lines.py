"""JSON lines, with the types that JSON has."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError
from annotruth.io.content import check_utf8
from annotruth.labels.frames import make_column

_BLOCK = 1 << 24  # bytes parsed at once; an object must fit in them
_EXACT = 2.0**53  # beyond it, neighbouring integers are the same double


def read_json_lines(data: pa.Buffer, choose: Callable[[list[str]], Iterable[str]]) -> pa.Table:
    """Read one object per line; ``choose`` picks the columns, given all keys."""
    if data.slice(0, min(64, data.size)).to_pybytes().lstrip().startswith(b"["):
        raise InputError(
            "this JSON list is in no known format: write one object per line, such as "
            '{"item": 1, "annotator": "ann", "label": 2}, or pass input_format (`--input-format`)'
        )
    try:
        table = _read_fast(data)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        check_utf8(data)
        table = _read_slowly(data)
    if any(_overflowed(column) for column in table.columns):
        table = _read_slowly(data)
    return table.select(list(choose(table.column_names)))


def _read_fast(data: pa.Buffer, schema: pa.Schema | None = None) -> pa.Table:
    import pyarrow.json

    table = pyarrow.json.read_json(
        pa.BufferReader(data),
        read_options=pyarrow.json.ReadOptions(block_size=_BLOCK),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=schema),
    )
    dates = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    if dates:
        # JSON has no dates: these are texts that Arrow took for dates.
        return _read_fast(data, pa.schema([(name, pa.string()) for name in dates]))
    return table


def _overflowed(column: pa.ChunkedArray) -> bool:
    """Return whether large integers may have lost digits when they became doubles."""
    if not pa.types.is_floating(column.type):
        return False
    return bool(pc.any(pc.greater_equal(pc.abs(column), _EXACT)).as_py())


def _read_slowly(data: pa.Buffer) -> pa.Table:
    """Read line by line: slow, but errors name the line, and integers may have any size."""
    rows: list[dict[str, Any]] = []
    names: dict[str, None] = {}
    lines = io.TextIOWrapper(pa.BufferReader(data), encoding="utf-8")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.rstrip(), object_pairs_hook=_with_unique_keys)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InputError(
                f"line {number} is not JSON ({_describe_fault(error)}): write one object per line"
            ) from error
        except InputError as error:
            raise InputError(f"line {number} {error}") from None
        if not isinstance(row, dict):
            raise InputError(
                f"line {number} is a {type(row).__name__}, not an object: write one object "
                'per line, such as {"item": 1, "annotator": "ann", "label": 2}'
            )
        rows.append(row)
        names.update(dict.fromkeys(row))
    return pa.table({name: make_column(name, [row.get(name) for row in rows]) for name in names})


def _describe_fault(error: json.JSONDecodeError | RecursionError) -> str:
    """Return what is wrong with a line of JSON, and where in the line."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1:,}"
    return "nested too deeply"


def _with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"has the key {twice!r} twice: keep one")
    return row
