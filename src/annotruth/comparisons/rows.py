"""Rows of a table of comparisons: checked, and in codes of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.comparisons.outcomes import Pairs
from annotruth.errors import InputError, shown
from annotruth.labels import validate
from annotruth.labels.encode import EncodedColumn, encode_column, to_text
from annotruth.labels.frames import as_arrow


@dataclass(frozen=True)
class ParsedComparisons:
    """Comparisons as columns, with what else was found in a source.

    Attributes
    ----------
    columns
        Of each role its column: left, right, annotator and winner; and context, order and time where
        there are any. The winner is a word for a side, or the id of the item.
    covariates
        Further columns by name.
    sides_known
        Whether left and right are the sides on which the items were shown.
    from_text
        Whether the columns have no types, as in a CSV.
    sides
        What the two items are called in messages.
    title, notes
        The name of the format, and what was found and left out, for the summary.

    Examples
    --------
    >>> roles = {"left": ["a"], "right": ["b"], "annotator": ["ann"], "winner": ["tie"]}
    >>> columns = {role: pa.chunked_array([values]) for role, values in roles.items()}
    >>> ParsedComparisons(columns, title="a table", notes=("1 row left out",)).read_as
    'a table (1 row left out)'
    """

    columns: Mapping[str, pa.ChunkedArray]
    covariates: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)
    sides_known: bool = True
    from_text: bool = False
    sides: tuple[str, str] = ("left item", "right item")
    title: str = ""
    notes: Sequence[str] = ()

    def with_notes(self, *notes: str) -> ParsedComparisons:
        """Return the same comparisons with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    @property
    def read_as(self) -> str:
        """Return one line on how the source was read."""
        notes = ", ".join(note for note in self.notes if note)
        if not self.title:
            return notes
        return f"{self.title} ({notes})" if notes else self.title


class FoundRows(NamedTuple):
    """The rows of a table that have a winner, in codes; what the winners mean is still open.

    Attributes
    ----------
    n_rows, rows
        How many rows there are, and the positions of those with a winner.
    columns
        The columns of those.
    winner, item, annotator, context
        The same in codes; items are the left ones, then the right ones.

    Examples
    --------
    >>> roles = {"left": ["a", "b"], "right": ["b", "a"], "annotator": [1, 1], "winner": [None, "b"]}
    >>> columns = {role: pa.chunked_array([values]) for role, values in roles.items()}
    >>> find_rows(ParsedComparisons(columns)).rows.tolist()
    [1]
    """

    n_rows: int
    rows: NDArray[np.int64]
    columns: Mapping[str, pa.ChunkedArray]
    winner: EncodedColumn
    item: EncodedColumn
    annotator: EncodedColumn
    context: EncodedColumn | None

    @property
    def pairs(self) -> Pairs:
        """The two items of each comparison."""
        left, right = np.split(self.item.codes, 2)
        return Pairs(left, right, self.item.values)


def find_rows(parsed: ParsedComparisons, first_row: int = 0) -> FoundRows:
    """Return the rows that have a winner; refuse those without ids, or with the same item twice.

    ``first_row`` is the position of the first row in the input.
    """
    columns = dict(parsed.columns)
    validate.check_types(columns, {role: role for role in columns})
    winner = encode_column(columns["winner"])
    n_rows = len(winner.codes)
    kept = ~validate.missing(winner.values)[winner.codes]
    rows = np.flatnonzero(kept)
    if len(rows) < n_rows:
        columns = {role: column.filter(as_arrow(kept)) for role, column in columns.items()}
        winner = winner.take(kept)
    item, annotator = _encode_ids(columns, parsed.sides, rows + first_row)
    context = encode_column(columns["context"]) if "context" in columns else None
    found = FoundRows(n_rows, rows, columns, winner, item, annotator, context)
    _refuse_self(found.pairs, rows + first_row)
    return found


def check_any(n_rows: int, n_kept: int) -> None:
    """Refuse a source without comparisons."""
    if n_rows == 0:
        raise InputError("there are no rows, only column names: nothing to rank")
    if n_kept == 0:
        raise InputError(f"every row has an empty winner ({n_rows:,} in all): nothing to rank")


def _encode_ids(
    columns: Mapping[str, pa.ChunkedArray], sides: tuple[str, str], rows: NDArray[np.int64]
) -> tuple[EncodedColumn, EncodedColumn]:
    """Return the codes of the items, left ones first, and of the annotators.

    ``sides`` is what the two items are called in messages.
    """
    left, right = columns["left"], columns["right"]
    if left.type != right.type:
        left, right = to_text(left), to_text(right)
    both = pa.chunked_array([*left.chunks, *right.chunks], left.type)
    item = encode_column(both)
    annotator = encode_column(columns["annotator"])
    left_codes, right_codes = np.split(item.codes, 2)
    for who, codes, values in (
        (sides[0], left_codes, item.values),
        (sides[1], right_codes, item.values),
        ("annotator", annotator.codes, annotator.values),
    ):
        unnamed = validate.unnamed_rows(codes, values, None)
        if len(unnamed):
            validate.refuse_unnamed(int(rows[unnamed[0]]), len(unnamed), who, "an outcome")
    return item, annotator


def _refuse_self(pairs: Pairs, rows: NDArray[np.int64]) -> None:
    same = np.flatnonzero(pairs.left == pairs.right)
    if len(same):
        item = shown(pairs.ids[int(pairs.left[same[0]])].as_py())
        raise InputError(
            f"row {rows[same[0]] + 1} compares item {item} with itself ({len(same):,} in all): "
            "remove the row, or correct one of its items"
        )
