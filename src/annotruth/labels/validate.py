"""Every check of the input, each ending in one line that says what, where and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NoReturn, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.labels.buffers import as_arrow, as_numpy
from annotruth.labels.formatting import listed, shown
from annotruth.labels.scale import Scale, is_text, plain

# Names that need no flag, by role: ours, crowd-kit's, the VLDB'17 benchmark's and rater's.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "item": ("item", "task", "question"),
    "annotator": ("annotator", "worker", "rater"),
    "label": ("label", "answer", "rating"),
    "truth": ("label", "truth", "answer", "rating"),
}
_LARGEST = 1e100  # its square, and sums of many, are still far from overflow
LABEL_ROLES = ("item", "annotator", "label")
TRUTH_ROLES = ("item", "truth")


def find_columns(
    names: Sequence[str], roles: Sequence[str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Find the column that plays each role, by the given name or by a name we know."""
    if not isinstance(given, Mapping | None):
        raise InputError(f"columns is {shown(given)}: give a mapping of role to name")
    # pandas numbers columns that have no names; here every name is text.
    given = {role: str(name) for role, name in (given or {}).items()}
    unknown = sorted(set(given) - set(roles))
    if unknown:
        raise InputError(f"columns names no {unknown[0]!r}: the roles are {', '.join(roles)}")
    spelled = {str(name).strip().lower(): name for name in reversed(names)}
    spelled.update((name, name) for name in names)  # the exact spelling comes first
    found = {}
    for role in roles:
        if role in given:
            if given[role] not in names:
                raise InputError(f"no column {given[role]!r} (found: {listed(names)})")
            found[role] = given[role]
            continue
        matches = [spelled[alias] for alias in ALIASES[role] if alias in spelled]
        if not matches:
            raise InputError(
                f"no column for the {role} (found: {listed(names)}); "
                f"name it {ALIASES[role][0]!r} or say which it is: columns {role}=NAME"
            )
        if len(matches) > 1:
            raise InputError(
                f"columns {' and '.join(map(repr, matches))} could both be the {role}; "
                f"say which it is: columns {role}=NAME"
            )
        found[role] = matches[0]
    for name in found.values():
        if names.count(name) > 1:
            raise InputError(f"two columns are named {name!r}: rename one")
        playing = [role for role, column in found.items() if column == name]
        if len(playing) > 1:
            raise InputError(
                f"column {name!r} cannot be the {' and the '.join(playing)} at once; "
                f"say which column is the {playing[1]}: columns {playing[1]}=NAME"
            )
    return found


def is_known_name(name: str) -> bool:
    """Whether a column of this name needs no flag."""
    return any(name.strip().lower() in known for known in ALIASES.values())


def check_types(by_role: Mapping[str, pa.ChunkedArray], names: Mapping[str, str]) -> None:
    """Refuse columns of lists, records, bytes and other things that are no ids or labels."""
    for role, column in by_role.items():
        kind = column.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if not (is_text(kind) or pa.types.is_primitive(kind) or _is_simple(kind)):
            raise InputError(
                f"column {names[role]!r} holds values of type {kind}, which cannot be the {role}: "
                "turn them into text or numbers"
            )


def _is_simple(kind: pa.DataType) -> bool:
    return bool(pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind))


def missing(column: pa.Array) -> NDArray[np.bool_]:
    """Mark the cells that hold nothing: null, NaN, blank text, or the word nan."""
    column = plain(column)
    if pa.types.is_null(column.type):
        return np.ones(len(column), dtype=bool)
    empty = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    if is_text(column.type):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(column))
        blank = pc.is_in(words, value_set=as_arrow(["", "nan"]).cast(words.type))
        empty = pc.or_(empty, blank)
    return as_numpy(empty)


def check_any_labels(n_rows: int, n_kept: int) -> None:
    """Refuse a table without a single label."""
    if n_rows == 0:
        raise InputError("there are no rows, only column names: nothing to fit")
    if n_kept == 0:
        raise InputError(f"every row has an empty label ({n_rows:,} in all): nothing to fit")


def check_finite(values: pa.Array) -> None:
    """Refuse infinite labels, also where they stand among numbers written as text."""
    try:
        numbers = plain(values).cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return
    if not pc.all(pc.is_finite(numbers)).as_py():
        raise InputError("a label is infinite: labels must be finite numbers or words")


def check_magnitude(scale: Scale) -> None:
    """Refuse numbers whose squares, or those of their differences, no double holds."""
    values = np.sort(scale.values)
    if np.abs(values).max() > _LARGEST:
        raise InputError(
            f"label {values[np.abs(values).argmax()]:g} is too large to reckon with: scale the "
            f"labels to within {_LARGEST:g}"
        )
    gap = np.diff(values).min(initial=1.0)
    if gap < 1.0 / _LARGEST:
        raise InputError(
            f"two labels are only {gap:g} apart, too little to reckon with: scale the labels up"
        )


def check_ids(
    codes: NDArray[np.int32], values: pa.Array, role: str, kept: NDArray[np.bool_] | None
) -> None:
    """Refuse a label whose item or annotator is not named.

    ``kept`` marks the rows that the codes are of, None for all.
    """
    empty = unnamed_rows(codes, values, kept)
    if len(empty):
        refuse_unnamed(int(empty[0]), len(empty), role)


def unnamed_rows(
    codes: NDArray[np.int32], values: pa.Array, kept: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    """Find the rows whose id is empty, among all rows, of which ``kept`` marks the coded ones."""
    unnamed = missing(values)
    if not unnamed.any():
        return np.empty(0, dtype=np.int64)
    empty = np.flatnonzero(unnamed[codes])
    return empty if kept is None else np.flatnonzero(kept)[empty]


def refuse_unnamed(row: int, n: int, role: str) -> NoReturn:
    """Refuse labels whose item or annotator is not named, of which ``row`` is the first."""
    raise InputError(
        f"row {row + 1} has a label but no {role} ({n:,} in all): name the {role} or remove the row"
    )


def check_codes(codes: NDArray[np.integer[Any]], n: int, role: str) -> None:
    """Refuse codes outside their range, where the kernels would read and write elsewhere."""
    if len(codes) and not (codes.min() >= 0 and codes.max() < n):
        raise InputError(f"a code of the {role}s is outside 0..{n - 1}: give every {role} its id")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is not one of the choices for an option."""
    if value not in choices:
        *first, last = choices
        raise InputError(f"unknown {name} {value!r}: choose {', '.join(first)} or {last}")


def check_bins_alone(kind: str, categories: object) -> None:
    """Refuse bins beside another way to say what the categories are."""
    if categories is not None or kind == "nominal":
        raise InputError("bins make an ordinal scale of their own: leave out the other options")


def check_option(name: str, kind: str, value: object) -> None:
    """Refuse an option of a model that is no number, or no truth value, where one is needed.

    ``kind`` is the type that the model's field names; of others nothing is known here.
    """
    if kind == "bool" and not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {shown(value)}: give true or false")
    if kind == "int" and not is_whole(value):
        raise InputError(f"{name} is {shown(value)}: give a whole number")
    if kind == "float" and (isinstance(value, bool) or not isinstance(value, Real)):
        raise InputError(f"{name} is {shown(value)}: give a number")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is a whole number, NumPy's among them; True and 2.0 are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_seed(seed: object) -> None:
    """Refuse a seed that is no whole number from 0."""
    if not is_whole(seed) or seed < 0:
        raise InputError(f"seed is {seed!r}: give a whole number from 0")


def check_ordinal(scale: Scale, who: str) -> None:
    """Refuse classes without an order where a model counts on one."""
    if not scale.is_ordinal:
        raise InputError(
            f"{who} needs an ordinal scale, and these {len(scale):,} categories have no order: "
            "list them from lowest to highest, or choose a model for classes"
        )


def check_known_categories(codes: NDArray[np.int32], values: pa.Array, scale: Scale) -> None:
    """Refuse labels outside the listed categories."""
    strange = np.flatnonzero(codes < 0)
    if len(strange):
        raise InputError(
            f"label {shown(values[int(strange[0])].as_py())} is not among the categories "
            f"{listed(scale.names)}: list every category, or correct the label"
        )


def check_no_new_categories(codes: NDArray[np.int32], values: pa.Array, scale: Scale) -> None:
    """Refuse added labels outside the scale of the labels they are added to.

    ``codes`` are those of the values on that scale.
    """
    strange = np.flatnonzero(codes < 0)
    if len(strange):
        raise InputError(
            f"label {shown(values[int(strange[0])].as_py())} is new, and the fit knows "
            f"{listed(scale.names)}: correct it, or fit all labels again with every "
            "category listed"
        )


def check_no_repeats(
    later: NDArray[np.int64],
    items: pa.Array,
    item: NDArray[np.integer[Any]],
    annotators: pa.Array,
    annotator: NDArray[np.integer[Any]],
    most: int = 3,
) -> None:
    """Refuse people who labelled one item twice, naming the first offenders.

    ``later`` holds the rows that repeat an earlier one.
    """
    if len(later):
        first = later[:most]
        refuse_repeats(
            items.take(as_arrow(item[first])),
            annotators.take(as_arrow(annotator[first])),
            len(later),
        )


def refuse_repeats(items: pa.Array, annotators: pa.Array, n: int) -> NoReturn:
    """Refuse ``n`` labels of people who had labelled the item before, of whom some are given."""
    named = ", ".join(
        f"annotator {shown(annotator.as_py())} on item {shown(item.as_py())}"
        for item, annotator in zip(items, annotators, strict=True)
    )
    more = f" and {n - len(items):,} more" if n > len(items) else ""
    raise InputError(
        f"labelled twice: {named}{more}; choose duplicates keep (two votes) "
        "or last (the later one counts)"
    )


def check_known_items(found: NDArray[np.integer[Any]], ids: pa.Array, role: str) -> None:
    """Refuse a truth or gold label for an item that nobody labelled."""
    strange = np.flatnonzero(found < 0)
    if len(strange):
        raise InputError(
            f"the {role} names item {shown(ids[int(strange[0])].as_py())}, which has no labels "
            f"({len(strange):,} in all): remove it, or check that the ids match"
        )
    values, counts = np.unique(found, return_counts=True)
    if (counts > 1).any():
        row = int(np.flatnonzero(found == values[counts > 1][0])[0])
        raise InputError(
            f"the {role} names item {shown(ids[row].as_py())} twice: keep one row an item"
        )
