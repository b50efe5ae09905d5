"""Every check of the input; each message is one line that says what, where and what to do."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from numbers import Integral, Real
from typing import Any, NoReturn, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError, counted, did_you_mean, listed, option, shorten, shown
from annotruth.observations.encode import EncodedColumn
from annotruth.observations.frames import as_arrow, as_numpy
from annotruth.observations.scale import LEADING_ZERO, Scale, is_text, parse_numbers, to_plain

MAX_VALUE = 1e100
"""The largest number that is taken: its square, and sums of many, are far from overflow."""

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+\s*")
_WHOLE = re.compile(r"\s*[-+]?\d+\s*")
_NUMBER = re.compile(r"\s*[-+]?\d+(\.\d*)?\s*")
_INTEGERS_BELOW = 1 << 63  # NumPy has no larger ones
_MISSING = ("", "nan")  # without spaces around them and in lower case
NOT_AVAILABLE = ("na", "n/a", "#n/a", "<na>", "null", "nat")
"""How other programs write a missing value into text, in lower case."""

_MAX_TEXTS = 5  # among numbers; where there are more, the numbers are text as well


def check_types(by_role: Mapping[str, pa.ChunkedArray], names: Mapping[str, str]) -> None:
    """Refuse columns of lists, structs, bytes and other types that cannot be ids or labels."""
    for role, column in by_role.items():
        kind = column.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        simple = (pa.types.is_primitive, pa.types.is_null, pa.types.is_boolean, pa.types.is_decimal)
        if not (is_text(kind) or any(is_kind(kind) for is_kind in simple)):
            raise InputError(
                f"column {names[role]!r} holds values of type {kind}, which cannot be the {role}: "
                "turn them into text or numbers"
            )


def check_header(
    encoded: Mapping[str, EncodedColumn], names: Mapping[str, str], n_before: int
) -> None:
    """Refuse the column names among the rows of a text, where files were joined with their headers.

    ``n_before`` is the number of rows before these.
    """
    is_header: NDArray[np.bool_] | None = None
    for role in ("label", "annotator", "item"):  # usually there are most items
        codes, values, _ = encoded[role]
        if not is_text(values.type) or names[role].isdecimal():
            return
        # The second file's byte order mark is before the name of its first column.
        both = as_arrow([names[role], f"\ufeff{names[role]}"]).cast(values.type)
        is_name = as_numpy(pc.is_in(values, value_set=both))
        if not is_name.any():
            return
        is_header = is_name[codes] if is_header is None else is_header & is_name[codes]
    if is_header is not None and is_header.any():
        raise InputError(
            f"row {n_before + int(is_header.argmax()) + 1} repeats the names of the columns "
            f"({int(is_header.sum()):,} in all): remove it; several files are read if you name each"
        )


def missing(column: pa.Array) -> NDArray[np.bool_]:
    """Return which cells are empty: null, NaN, blank text, or the text nan."""
    column = to_plain(column)
    if pa.types.is_null(column.type):
        return np.ones(len(column), dtype=bool)
    empty = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    if is_text(column.type):
        text = pc.utf8_lower(pc.utf8_trim_whitespace(column))
        blank = pc.is_in(text, value_set=as_arrow(list(_MISSING)).cast(text.type))
        empty = pc.or_(empty, blank)
    return as_numpy(empty)


def not_available(labels: pa.Array, categories: Sequence[Any] | None) -> NDArray[np.bool_]:
    """Return which labels of a text file are NA or the like, and not among the caller's categories."""
    labels = to_plain(labels)
    if not is_text(labels.type):
        return np.zeros(len(labels), dtype=bool)
    words = set(NOT_AVAILABLE)
    if categories is not None:
        words -= {str(each).strip().lower() for each in categories}
    text = pc.utf8_lower(pc.utf8_trim_whitespace(labels))
    return as_numpy(pc.is_in(text, value_set=as_arrow(sorted(words)).cast(text.type)))


def describe_unavailable(n: int) -> str:
    """Return how many labels were NA or the like, for "read as"."""
    if not n:
        return ""
    what = counted(n, "cell of NA or the like means", "cells of NA or the like mean")
    among = option("categories", ["A", "B", "NA"])
    return f"{what} no label; if it is a category, name it among all ({among})"


def check_value(role: str, text: str) -> None:
    """Refuse an id or label as tables are: a label that is infinite, and whatever counts as missing."""
    if text.strip().lower() in _MISSING:
        raise InputError(f"the {role} {shown(text)} counts as missing: give another one")
    number = 0.0
    with suppress(ValueError):
        number = float(text)
    if role == "label" and math.isinf(number):
        raise InputError(f"the label {shown(text)} is infinite: give a finite number or text")


def check_any_labels(n_rows: int, n_kept: int) -> None:
    """Refuse a table without a single label."""
    if n_rows == 0:
        raise InputError("there are no rows, only column names: nothing to fit")
    if n_kept == 0:
        raise InputError(f"every row has an empty label ({n_rows:,} in all): nothing to fit")


def check_finite(values: pa.Array) -> None:
    """Refuse infinite labels, also among numbers written as text."""
    try:
        numbers = to_plain(values).cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return
    if not pc.all(pc.is_finite(numbers)).as_py():
        raise InputError("a label is infinite: labels must be finite numbers or text")


def check_scale(scale: Scale) -> None:
    """Refuse categories that frames cannot name, and numbers whose squares overflow or underflow."""
    if is_text(scale.categories.type):
        for name in scale.names:
            if "\0" in name:  # at which frame libraries end the name of a column
                raise InputError(f"label {shown(name)} contains a NUL character: remove it")
    values = np.sort(scale.values)
    if np.abs(values).max() > MAX_VALUE:
        raise InputError(
            f"label {values[np.abs(values).argmax()]:g} is too large to compute with: scale the "
            f"labels to within {MAX_VALUE:g}"
        )
    gap = np.diff(values).min(initial=1.0)
    if gap < 1.0 / MAX_VALUE:
        raise InputError(
            f"two labels are only {gap:g} apart, too little to compute with: scale the labels up"
        )


def unnamed_rows(
    codes: NDArray[np.int32], values: pa.Array, kept: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    """Return the rows whose id is empty; ``kept`` marks the rows that have a code, None for all."""
    unnamed = missing(values)
    if not unnamed.any():
        return np.empty(0, dtype=np.int64)
    empty = np.flatnonzero(unnamed[codes])
    return empty if kept is None else np.flatnonzero(kept)[empty]


def refuse_unnamed(row: int, n: int, role: str, what: str = "a label") -> NoReturn:
    """Refuse ``n`` labels, or ``what``, without an item or annotator; ``row`` is the first."""
    raise InputError(
        f"row {row + 1} has {what} but no {role} ({n:,} in all): name the {role} or remove the row"
    )


def check_codes(codes: NDArray[np.integer[Any]], n: int, role: str) -> None:
    """Refuse codes outside their range, with which kernels would read and write out of bounds."""
    if len(codes) and not (codes.min() >= 0 and codes.max() < n):
        raise InputError(f"a code of the {role}s is outside 0..{n - 1}: give every {role} its id")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is not one of the choices for an option."""
    if not isinstance(value, str) or value not in choices:
        *first, last = choices
        raise InputError(
            f"unknown {name} {shown(value)}: choose {', '.join(first)} or {last}"
            f"{did_you_mean(value, choices)}"
        )


def check_column_names(name: str, columns: object) -> None:
    """Refuse a value of an option that is not a list of different column names."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise InputError(f"{option(name)} is {shown(columns)}: give a list of column names")
    for column in columns:
        if not isinstance(column, str):
            raise InputError(f"{option(name)} names {shown(column)}: give a list of column names")
        if columns.count(column) > 1:
            raise InputError(f"{option(name)} names {column!r} twice: keep one")


def check_option(name: str, kind: str, value: object) -> None:
    """Refuse an option of a model that is not of the type that its field names.

    Only bool, int and float are checked.
    """
    if kind == "bool" and not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {shown(value)}: give true or false")
    if kind == "int" and not is_integer(value):
        raise InputError(f"{name} is {shown(value)}: give a whole number")
    if kind == "float" and (isinstance(value, bool) or not isinstance(value, Real)):
        raise InputError(f"{name} is {shown(value)}: give a number")
    if kind in ("int", "float") and is_integer(value) and abs(value) >= _INTEGERS_BELOW:
        raise InputError(f"{name} is {shown(value)}: integers must be below {_INTEGERS_BELOW:,}")


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer, also one of NumPy; True and 2.0 are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_seed(seed: object) -> None:
    """Refuse a seed that is not an integer from 0."""
    if not is_integer(seed) or seed < 0:
        raise InputError(f"seed is {seed!r}: give a whole number from 0")


def check_ordinal(scale: Scale, who: str) -> None:
    """Refuse categories without an order where a model needs one."""
    if not scale.is_ordinal:
        order = (
            f"pass {option('scale', 'ordinal')}"
            if scale.reason
            else f"list them from lowest to highest ({option('categories')})"
        )
        raise InputError(
            f"{who} needs an ordinal scale, and these {len(scale):,} categories have no order: "
            f"{order}, or use a model for classes"
        )


def check_known_categories(
    codes: NDArray[np.int32], values: pa.Array, scale: Scale, *, of_fit: bool = False
) -> None:
    """Refuse labels outside the listed categories, or those of a fit that they are added to."""
    unknown = np.flatnonzero(codes < 0)
    if not len(unknown):
        return
    label, names = shown(values[int(unknown[0])].as_py()), listed(scale.names)
    if of_fit:
        raise InputError(
            f"label {label} is new, and the fit has the categories {names}: correct it, or fit all "
            f"labels again with every category listed ({option('categories')})"
        )
    raise InputError(
        f"label {label} is not among the categories {names}: list every category, or correct the label"
    )


def refuse_repeats(items: pa.Array, annotators: pa.Array, n: int) -> NoReturn:
    """Refuse ``n`` labels that repeat an earlier one, of which the first are given."""
    named = ", ".join(
        f"annotator {shown(annotator.as_py())} on item {shown(item.as_py())}"
        for item, annotator in zip(items, annotators, strict=True)
    )
    more = f" and {n - len(items):,} more" if n > len(items) else ""
    raise InputError(
        f"labelled twice: {named}{more}; pass {option('duplicates', 'keep')} to count both, or "
        f"{option('duplicates', 'last')} to count the later one"
    )


def check_annotators_match(annotator: NDArray[np.integer[Any]], ids: pa.Array, what: str) -> None:
    """Refuse data about annotators that names one twice, or none with a label.

    ``annotator`` holds their codes, -1 for annotators without labels.
    """
    matched = np.flatnonzero(annotator >= 0)
    codes, first = np.unique(annotator[matched], return_index=True)
    if len(codes) < len(matched):
        repeated = np.setdiff1d(np.arange(len(matched)), first)
        who = shown(ids[int(matched[repeated[0]])].as_py())
        raise InputError(f"{what} name annotator {who} twice: keep one row per annotator")
    if len(matched) == 0:
        raise InputError(
            f"{what} name none of the annotators of these labels: check that the ids match"
        )


def check_known_items(item: NDArray[np.integer[Any]], ids: pa.Array, role: str) -> None:
    """Refuse data about an item without labels, and two rows of one item."""
    unknown = np.flatnonzero(item < 0)
    if len(unknown):
        raise InputError(
            f"the {role} names item {shown(ids[int(unknown[0])].as_py())}, which has no labels "
            f"({len(unknown):,} in all): remove it, or check that the ids match"
        )
    check_items_once(item, ids, role)


def check_items_once(item: NDArray[np.integer[Any]], ids: pa.Array, role: str) -> None:
    """Refuse two rows of one item."""
    values, counts = np.unique(item, return_counts=True)
    if (counts > 1).any():
        row = int(np.flatnonzero(item == values[counts > 1][0])[0])
        raise InputError(
            f"the {role} names item {shown(ids[row].as_py())} twice: keep one row per item"
        )


def input_warnings(scale: Scale) -> Iterator[str]:
    """Return warnings about labels that were read as text, as classes without an order."""
    if scale.is_ordinal or not is_text(scale.categories.type):
        return
    names = scale.names
    if pair := find_spelling_variants(names):
        yield (
            f"labels {shown(pair[0])} and {shown(pair[1])} differ only in spaces, capitals or Unicode "
            "form, and are two categories: spell them alike if they are one"
        )
    if any(map(_DECIMAL_COMMA.fullmatch, names)) and all(
        _DECIMAL_COMMA.fullmatch(name) or _WHOLE.fullmatch(name) for name in names
    ):
        yield (
            f"labels such as {shown(names[0])} were read as text: if they are numbers, write "
            "them with a point"
        )
        return
    if describe_codes(scale):
        return
    not_numbers = (name for name in names if parse_numbers(as_arrow([name])) is None)
    texts = list(islice(not_numbers, _MAX_TEXTS + 1))
    if texts and len(texts) <= _MAX_TEXTS and len(names) - len(texts) > 1:
        yield (
            f"the labels are numbers except {listed(map(shown, texts))}, so all of them were read "
            "as text: leave a cell empty where there is no label"
        )
    elif unavailable := [name for name in names if name.strip().lower() in NOT_AVAILABLE]:
        yield (
            f"{shown(unavailable[0])} is taken for a category: leave the cell empty if it means "
            "that there is no label"
        )


def describe_codes(scale: Scale) -> str:
    """Return which label makes numbers text because it has leading zeros, for "read as"."""
    if not is_text(scale.categories.type) or parse_numbers(scale.categories) is not None:
        return ""
    names = scale.names
    codes = [name for name in names if re.match(LEADING_ZERO, name.strip())]
    if not codes or not all(_NUMBER.fullmatch(name) for name in names):
        return ""
    return f"labels as text, because {shorten(codes[0])} is not how a number is written"


def find_spelling_variants(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that differ only in spaces, capitals or Unicode form, if there are such."""
    seen: dict[str, str] = {}
    for name in names:
        plain = unicodedata.normalize("NFC", name)
        other = seen.setdefault(" ".join(plain.split()).casefold(), name)
        if other != name:
            return other, name
    return None
