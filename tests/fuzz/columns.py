"""Frames with odd column types: pandas, polars and pyarrow."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from tests.fuzz.checks import Failed, check_text, refused_or

import annotruth as at

Values = list[Any]

KINDS: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "int": lambda n, rng: n,
    "negative": lambda n, rng: -n - 1,
    "large": lambda n, rng: 2**62 + n,
    "huge": lambda n, rng: 10**30 + n,
    "float": lambda n, rng: n + 0.5,
    "whole": lambda n, rng: float(n),
    "tiny": lambda n, rng: n * 5e-324,
    "bool": lambda n, rng: bool(n % 2),
    "text": lambda n, rng: f"t{n}",
    "digits": lambda n, rng: str(n),
    "nul": lambda n, rng: f"a\0{n}",
    "surrogate": lambda n, rng: f"\ud800{n}",
    "blank": lambda n, rng: " " * n,
    "long text": lambda n, rng: "x" * 10_000 + str(n),
    "bytes": lambda n, rng: b"\xff%d" % n,
    "date": lambda n, rng: datetime.date(2020, 1, 1) + datetime.timedelta(days=n),
    "time": lambda n, rng: datetime.datetime(2020, 1, 1, n % 24),
    "zoned": lambda n, rng: datetime.datetime(2020, 1, 1, n % 24, tzinfo=datetime.UTC),
    "clock": lambda n, rng: datetime.time(n % 24),
    "delta": lambda n, rng: datetime.timedelta(seconds=n),
    "decimal": lambda n, rng: decimal.Decimal(n) / 4,
    "uuid": lambda n, rng: uuid.UUID(int=n),
    "list": lambda n, rng: [n],
    "tuple": lambda n, rng: (n, "x"),
    "struct": lambda n, rng: {"a": n},
    "none": lambda n, rng: None,
    "nan": lambda n, rng: float("nan"),
    "infinite": lambda n, rng: (float("inf"), -float("inf"))[n % 2],
    "complex": lambda n, rng: complex(n, 1),
    "numpy": lambda n, rng: np.int16(n),
    "object": lambda n, rng: object(),
    "mixed": lambda n, rng: (n, str(n), n + 0.5, None, True, b"x")[n % 6],
}
COMMON = ("int", "text", "digits", "float", "whole", "bool", "date", "decimal")


def odd_columns(rng: np.random.Generator, folder: Path) -> str:
    """Fit a frame with columns of any type."""
    kinds = []
    for _ in range(3):
        pool = list(KINDS) if rng.random() < 0.5 else COMMON
        kinds.append(str(rng.choice(pool)))
    sizes = (12, 6, 4)
    codes = [rng.integers(size, size=40) for size in sizes]
    columns = [
        [KINDS[kind](int(n), rng) for n in code] for kind, code in zip(kinds, codes, strict=True)
    ]
    if rng.random() < 0.3:
        place = int(rng.integers(3))
        for row in rng.integers(40, size=3):
            columns[place][row] = None
    make = FRAMES[rng.integers(len(FRAMES))]
    what = f"{make.__name__} of {', '.join(kinds)}"
    try:
        frame = make(columns, rng)
    except (
        pa.ArrowException, TypeError, ValueError, OverflowError, pl.exceptions.PolarsError,
    ):  # fmt: skip
        return f"{what}: no such frame"
    fit = refused_or(lambda: at.fit(frame, "majority", duplicates="keep"))
    if fit is None:
        return f"{what}: refused"
    check_text(fit.summary().replace("\x1b", ""))
    expected = sum(not _is_missing(value) for value in columns[2])
    if fit.data.n_labels != expected or fit.data.n_labels + fit.data.n_dropped != 40:
        raise Failed(f"{what}: {fit.data.n_labels} labels of {expected}")
    for table in (fit.items(), fit.annotators(), fit.labels()):
        if len(table) == 0:
            raise Failed(f"{what}: an empty table")
    return what


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in ("", "nan")


NAMES = ("item", "annotator", "label")


def _tuples(columns: list[Values], rng: np.random.Generator) -> Any:
    return list(zip(*columns, strict=True))


def _arrow(columns: list[Values], rng: np.random.Generator) -> Any:
    arrays = [pa.array(column) for column in columns]
    for place in range(3):
        kind = rng.integers(6)
        if kind == 0:
            arrays[place] = arrays[place].dictionary_encode()
        elif kind == 1 and pa.types.is_string(arrays[place].type):
            arrays[place] = arrays[place].cast(
                (pa.large_string(), pa.string_view(), pa.binary())[rng.integers(3)]
            )
        elif kind == 2 and pa.types.is_integer(arrays[place].type):
            types = (pa.int8(), pa.uint64(), pa.float16(), pa.decimal128(20, 2), pa.timestamp("ns"))
            arrays[place] = arrays[place].cast(types[rng.integers(5)], safe=False)
        elif kind == 3:
            arrays[place] = pa.chunked_array([arrays[place][:7], arrays[place][7:]])
        elif kind == 4:
            arrays[place] = pa.concat_arrays([arrays[place][:3], arrays[place]])[3:]
    return pa.table(arrays, names=NAMES)


def _pandas(columns: list[Values], rng: np.random.Generator) -> Any:
    frame = pd.DataFrame(dict(zip(NAMES, columns, strict=True)))
    for name in NAMES:
        kind = rng.integers(6)
        if kind == 0:
            frame[name] = frame[name].astype("category")
        elif kind == 1:
            frame[name] = frame[name].astype(object)
        elif kind == 2:
            frame[name] = frame[name].convert_dtypes()
        elif kind == 3:
            frame[name] = frame[name].astype("string")
    if rng.random() < 0.2:
        frame.index = pd.MultiIndex.from_product([["a"], range(len(frame))])
    return frame


def _polars(columns: list[Values], rng: np.random.Generator) -> Any:
    frame = pl.DataFrame(dict(zip(NAMES, columns, strict=True)), strict=bool(rng.integers(2)))
    for name in NAMES:
        kind = rng.integers(5)
        if kind == 0 and frame[name].dtype == pl.String:
            frame = frame.with_columns(pl.col(name).cast(pl.Categorical))
        elif kind == 1 and frame[name].dtype == pl.String:
            levels = sorted(set(frame[name].drop_nulls()))
            frame = frame.with_columns(pl.col(name).cast(pl.Enum(levels)))
    return frame.lazy() if rng.random() < 0.1 else frame


FRAMES = (_tuples, _arrow, _pandas, _polars)
