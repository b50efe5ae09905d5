"""From tables of comparisons to the arrays of `Comparisons`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.comparisons.columns import PairColumns
from annotruth.comparisons.outcomes import find_outcomes
from annotruth.comparisons.rows import ParsedComparisons, check_any, find_rows
from annotruth.comparisons.table import Comparisons
from annotruth.comparisons.votes import covariates_in_order_of_codes, in_order_of_codes
from annotruth.errors import InputError, shown
from annotruth.kernels.arrays import Floats
from annotruth.labels import validate
from annotruth.labels.covariates import to_array, to_numbers
from annotruth.labels.encode import (
    BatchEncoder,
    EncodedColumn,
    encode_column,
    restore_text,
    to_integers,
    to_text,
)
from annotruth.labels.frames import as_arrow, as_numpy
from annotruth.labels.scale import to_plain

_TIES = ("1", "1.0", "true", "yes", "y", "tie", "t", "draw")
_NO_TIES = ("0", "0.0", "false", "no", "n", "f")

ALL = "all"
"""The annotator of comparisons in a table without annotators."""


@dataclass(frozen=True)
class ResolvedComparisons:
    """Checked comparisons of one source in codes of their own.

    Examples
    --------
    >>> roles = {"left": ["a"], "right": ["b"], "annotator": ["ann"], "winner": ["b"]}
    >>> columns = {role: pa.chunked_array([values]) for role, values in roles.items()}
    >>> resolve(ParsedComparisons(columns)).outcome.tolist()
    [1]
    """

    parsed: ParsedComparisons
    item: EncodedColumn  # of the left items, then of the right items
    annotator: EncodedColumn
    context: EncodedColumn | None
    outcome: NDArray[np.int8]
    note: str  # on winners that count as ties
    covariates: Mapping[str, Floats]
    n_dropped: int
    n_repeated: int


def parse_table(
    table: pa.Table, columns: PairColumns, *, from_text: bool, first_row: int = 0
) -> ParsedComparisons:
    """Return the comparisons of a table, whatever its shape.

    ``first_row`` is the position of its first row in the input.
    """
    from annotruth.comparisons import ranks

    alone = ""
    by_role = {role: to_plain(table.column(name)) for role, name in columns.by_role.items()}
    if "annotator" not in by_role:
        by_role["annotator"] = pa.chunked_array([pa.repeat(ALL, table.num_rows)])
    if columns.shape in ("ranks", "rank columns", "ranking"):
        if columns.covariates:
            raise InputError(
                "covariates are of pairs, and these are ranks: leave them out (`--covariates`)"
            )
        ranked = [table.column(name) for name in columns.ranked]
        by_role, alone = ranks.to_pairs(by_role, ranked)
    elif columns.shape == "winners":
        by_role = _sides_of_winners(by_role, table.num_rows, first_row)
    covariates = {name: table.column(name) for name in columns.covariates}
    return ParsedComparisons(
        by_role,
        covariates,
        sides_known=columns.shape == "sides",
        from_text=from_text,
        sides=("winner", "loser") if columns.shape == "winners" else ParsedComparisons.sides,
        notes=(columns.read_as, alone),
    )


def _sides_of_winners(
    by_role: Mapping[str, pa.ChunkedArray], n_rows: int, first_row: int
) -> dict[str, pa.ChunkedArray]:
    """Return winners as the left and losers as the right items, which is undone later."""
    winner, loser = by_role["winner"], by_role["loser"]
    outcome = pa.chunked_array([pa.repeat("left", n_rows)])
    # A row without a winner is no comparison, as it is where sides are known.
    outcome = pc.if_else(as_arrow(validate.missing(winner)), None, outcome)
    if "tie" in by_role:
        outcome = pc.if_else(_is_tie(by_role["tie"], first_row), "tie", outcome)
    others = {role: by_role[role] for role in by_role if role not in ("winner", "loser", "tie")}
    return {**others, "left": winner, "right": loser, "winner": outcome}


def _is_tie(column: pa.ChunkedArray, first_row: int) -> pa.ChunkedArray:
    """Return which rows are ties; refuse what is neither yes nor no. Empty cells are no ties."""
    text = pc.utf8_lower(pc.utf8_trim_whitespace(to_text(column)))
    is_tie = pc.is_in(text, value_set=pa.array(_TIES, text.type))
    is_known = pc.or_(is_tie, pc.is_in(text, value_set=pa.array(_NO_TIES, text.type)))
    is_known = pc.or_(is_known, as_arrow(validate.missing(column)))
    unknown = np.flatnonzero(~as_numpy(is_known))
    if len(unknown):
        value = column[int(unknown[0])].as_py()
        raise InputError(
            f"tie is {shown(value)} in row {first_row + unknown[0] + 1}, which is neither yes nor no: "
            "write 1 or 0, or leave it empty"
        )
    return is_tie


def resolve(parsed: ParsedComparisons) -> ResolvedComparisons:
    """Return the comparisons of one source in codes; refuse rows that cannot be used."""
    found = find_rows(parsed)
    check_any(found.n_rows, len(found.rows))
    outcome, note = find_outcomes(found.winner, found.pairs, found.rows + 1)
    resolved = ResolvedComparisons(
        parsed,
        found.item,
        found.annotator,
        found.context,
        outcome,
        note,
        {name: _numbers(name, column, found.rows) for name, column in parsed.covariates.items()},
        n_dropped=found.n_rows - len(found.rows),
        n_repeated=0,
    )
    return _without_repeats(resolved, found.columns)


def _numbers(name: str, column: pa.ChunkedArray, rows: NDArray[np.int64]) -> Floats:
    """Return a covariate as numbers; refuse text, gaps, infinities and too large numbers."""
    values = to_array(column).take(as_arrow(rows))
    numbers = to_numbers(values)
    if not (pa.types.is_floating(numbers.type) or pa.types.is_integer(numbers.type)):
        if not pa.types.is_boolean(numbers.type):
            raise InputError(
                f"covariate {name!r} is not a number in every row (it is {numbers.type}): give "
                "numbers, such as the difference of two lengths"
            )
        numbers = numbers.cast(pa.int8())
    floats = as_numpy(pc.fill_null(numbers.cast(pa.float64()), np.nan))
    unusable = np.flatnonzero(~(np.abs(floats) <= validate.MAX_VALUE))  # or NaN
    if len(unusable):
        row = rows[unusable[0]] + 1
        what = "no finite number"
        if np.isfinite(floats[unusable[0]]):
            what = f"{floats[unusable[0]]:.3g}, which is too large,"
        raise InputError(
            f"covariate {name!r} has {what} in row {row} ({len(unusable):,} in all): correct it, or "
            "remove the row"
        )
    return floats


def _without_repeats(
    resolved: ResolvedComparisons, columns: Mapping[str, pa.ChunkedArray]
) -> ResolvedComparisons:
    """Return the comparisons without rows that were written twice.

    An annotator may compare a pair several times, so rows alike are counted, unless the table
    has the order or time of comparisons and this is the same, too.
    """
    marks = [encode_column(columns[role]).codes for role in ("order", "time") if role in columns]
    if not marks:
        return resolved
    left, right = np.split(resolved.item.codes, 2)
    context = [] if resolved.context is None else [resolved.context.codes]
    keys = np.stack([resolved.annotator.codes, left, right, resolved.outcome, *marks, *context])
    _, first = np.unique(keys, axis=1, return_index=True)
    if len(first) == len(left):
        return resolved
    keep = np.zeros(len(left), dtype=np.bool_)
    keep[first] = True
    return replace(
        resolved,
        item=resolved.item.take(np.concatenate([keep, keep])),
        annotator=resolved.annotator.take(keep),
        context=None if resolved.context is None else resolved.context.take(keep),
        outcome=resolved.outcome[keep],
        covariates={name: values[keep] for name, values in resolved.covariates.items()},
        n_repeated=len(left) - len(first),
    )


def build(parts: Sequence[ResolvedComparisons], *, frame: str | None = None) -> Comparisons:
    """Return the comparisons of one or several sources, one after the other."""
    first = parts[0].parsed
    item, items = _join([part.item for part in parts], from_text=first.from_text)
    annotator, annotators = _join([part.annotator for part in parts], from_text=first.from_text)
    halves = [np.split(codes, 2) for codes in item]
    left, right = (np.concatenate(side) for side in zip(*halves, strict=True))
    outcome = np.concatenate([part.outcome for part in parts])
    sides_known = all(part.parsed.sides_known for part in parts)
    covariates = {
        name: np.concatenate([part.covariates[name] for part in parts]) for name in first.covariates
    }
    if not sides_known:
        covariates = covariates_in_order_of_codes(left, right, covariates)
        left, right, outcome = in_order_of_codes(left, right, outcome)
    made = Comparisons.from_codes(
        left,
        right,
        np.concatenate(annotator),
        outcome,
        items=items,
        annotators=annotators,
        covariates=covariates,
        sides_known=sides_known,
        frame=frame,
    )
    further: dict[str, Any] = {
        "n_dropped": sum(part.n_dropped for part in parts),
        "n_repeated": sum(part.n_repeated for part in parts),
        "read_as": first.with_notes(*dict.fromkeys(part.note for part in parts)).read_as,
    }
    contexts = [part.context for part in parts if part.context is not None]
    if len(contexts) == len(parts):
        codes, values = _join(contexts, from_text=first.from_text)
        further |= {"contexts": values, "context": np.concatenate(codes)[made.row]}
    return replace(made, **further)


def _join(
    parts: Sequence[EncodedColumn], *, from_text: bool
) -> tuple[list[NDArray[np.int32]], pa.Array]:
    """Return the codes of columns of several sources, and the values of all of them."""
    if len({part.values.type for part in parts}) > 1:
        parts = [part._replace(values=to_text(part.values)) for part in parts]
    encoder = BatchEncoder()
    codes = [encoder.add(part) for part in parts]
    return codes, ids_of(encoder, from_text=from_text)


def ids_of(encoder: BatchEncoder, *, from_text: bool) -> pa.Array:
    """Return the ids behind codes; those of a table without types are numbers where they can be."""
    values = encoder.values()
    return to_integers(restore_text(values)) if from_text else values
