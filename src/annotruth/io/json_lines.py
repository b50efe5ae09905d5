"""JSON lines, with the types that JSON has."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, option
from annotruth.io.content import check_utf8, partitions
from annotruth.io.decompress import VALUE_BYTES, check_size
from annotruth.observations.frames import ChooseColumns, records_to_arrow

_BLOCK = 1 << 24  # bytes parsed at once; an object must fit in them
_EXACT = 2.0**53  # beyond it, neighbouring integers are the same double
_MAX_DEPTH = 100  # of lists and objects in each other; Arrow ends the process at some ten thousand
_ARROW_BYTES = {b"\n": 40, b":": VALUE_BYTES}  # what reading takes for one of each
_PYTHON_BYTES = {b"{": 200, b"[": 60, b",": 60, b":": 60}  # as Python's objects
_KEY = re.compile(rb'"([^"]*)"\s*:')
_SAMPLE, _MAX_SAMPLES, _MAX_KEYS = 1 << 14, 16, 1000
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'{}[]"'))


def read_json_lines(data: pa.Buffer, choose: ChooseColumns, *, limit: int) -> pa.Table:
    """Read one object per line; ``choose`` picks the columns, given all keys."""
    if is_json_list(data):
        if data.to_pybytes().translate(None, b" \t\r\n") == b"[]":
            raise InputError("the JSON list is empty: nothing to fit")
        raise InputError(
            "this JSON list is in no known format: write one object per line, such as "
            '{"item": 1, "annotator": "ann", "label": 2}, or pass '
            f"{option('input_format')}"
        )
    _check_size(data, _ARROW_BYTES, limit)
    table = None
    if not (_may_be_deep(data) or _has_many_keys(data)):
        try:
            table = _read_fast(data)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            check_utf8(data)
    # Large integers may have lost digits when they became doubles.
    if table is None or any(
        pc.any(pc.greater_equal(pc.abs(column), _EXACT)).as_py()
        for column in table.columns
        if pa.types.is_floating(column.type)
    ):
        check_object_size(data, limit)
        return _read_slowly(data, choose)
    return table.select(list(choose(table.column_names)))


def is_json_list(data: pa.Buffer) -> bool:
    """Return whether JSON is a list, not one object per line."""
    return bool(data.slice(0, min(64, data.size)).to_pybytes().lstrip().startswith(b"["))


def check_object_size(data: pa.Buffer, limit: int) -> None:
    """Refuse JSON that takes more bytes than the limit as Python's objects."""
    _check_size(data, _PYTHON_BYTES, limit)


def _check_size(data: pa.Buffer, bytes_of: Mapping[bytes, int], limit: int) -> None:
    if data.size * (1 + max(bytes_of.values())) <= limit:
        return
    size = int(data.size)
    for part in partitions(data):
        size += sum(each * part.count(mark) for mark, each in bytes_of.items())
    check_size(size, "JSON", limit)


def is_deep(value: Any) -> bool:
    """Return whether lists and objects are nested in each other more than 100 deep."""
    for _ in range(_MAX_DEPTH):
        value = [
            each
            for outer in value
            if isinstance(outer, list | dict)
            for each in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(each, list | dict)
        ]
        if not value:
            return False
    return True


def _may_be_deep(data: pa.Buffer) -> bool:
    """Return whether JSON may be nested deeply; False is certain.

    What is not structure is deleted, then strings, then neighbouring pairs of brackets, from the
    inside out. Brackets without a partner remain, which is a fault to be found by reading slowly.
    """
    rest, escape = b"", b""
    for part in partitions(data):
        part = escape + part
        if b"\\" in part:
            escape = b"\\" if re.search(rb"(?<!\\)(?:\\\\)*\\\Z", part) else b""
            part = re.sub(rb"\\.", b"", part.removesuffix(escape), flags=re.DOTALL)
        else:
            escape = b""
        rest = (rest + part.translate(None, _NOT_STRUCTURE)).replace(b'""', b"")
        if b'"' in rest:
            rest = re.sub(rb'"[^"]*"', b"", rest)
            start, quote, _ = rest.partition(b'"')  # a string that ends in the next partition
            rest = start + quote
        for _ in range(_MAX_DEPTH):
            shorter = rest.replace(b"{}", b"").replace(b"[]", b"")
            if len(shorter) == len(rest):
                break
            rest = shorter
        if len(rest) > _MAX_DEPTH:
            return True
    return False


def _has_many_keys(data: pa.Buffer) -> bool:
    """Return whether samples have so many different keys that Arrow takes minutes for them.

    Arrow's time grows with the number of keys times that of lines.
    """
    step = max(_SAMPLE, data.size // _MAX_SAMPLES)
    keys: set[bytes] = set()
    for start in range(0, data.size, step):
        sample = data.slice(start, min(_SAMPLE, data.size - start)).to_pybytes()
        keys.update(_KEY.findall(sample))
        if len(keys) > _MAX_KEYS:
            return True
    return False


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


def _read_slowly(data: pa.Buffer, choose: ChooseColumns) -> pa.Table:
    """Read line by line: slow, but errors name the line, and integers may have any size."""
    rows: list[dict[str, Any]] = []
    lines = io.TextIOWrapper(pa.BufferReader(data), encoding="utf-8")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.rstrip(), object_pairs_hook=_with_unique_keys)
        except InputError as error:
            raise InputError(f"line {number} {error}") from None
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"line {number} is not JSON ({describe_fault(error)}): write one object per line"
            ) from error
        if not isinstance(row, dict):
            raise InputError(
                f"line {number} is a {type(row).__name__}, not an object: write one object "
                'per line, such as {"item": 1, "annotator": "ann", "label": 2}'
            )
        if is_deep([row]):
            raise InputError(f"line {number} is nested too deeply to be labels: export it again")
        rows.append(row)
    return records_to_arrow(rows, choose)


def describe_fault(error: Exception) -> str:
    """Return what is wrong with a line of JSON, and where in the line."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1:,}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "an integer has too many digits"  # the only other fault that Python's json finds


def _with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"has the key {twice!r} twice: keep one")
    return row
