"""From tables of comparisons to the arrays of `Comparisons`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError, option, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import validate
from annotruth.observations.build import TableBuilder
from annotruth.observations.covariates import to_array, to_numbers
from annotruth.observations.encode import EncodedColumn, encode_column, to_text
from annotruth.observations.frames import as_arrow, as_numpy
from annotruth.observations.options import ParsedSource
from annotruth.observations.pairs.codes import (
    find_tie,
    outcomes_by_tie,
    outcomes_given,
    plain_codes,
)
from annotruth.observations.pairs.columns import FURTHER, PairColumns
from annotruth.observations.pairs.outcomes import Pairs, both_bad, rankings_to_pairs, read_winners
from annotruth.observations.pairs.table import (
    BOTH_BAD,
    RANKING,
    Comparisons,
    join_further,
)
from annotruth.observations.pairs.votes import covariates_in_order_of_codes, in_order_of_codes
from annotruth.observations.scale import to_plain

_TIES = ("1", "1.0", "true", "yes", "y", "tie", "t", "draw")
_NO_TIES = ("0", "0.0", "false", "no", "n", "f")
_CODES = ("left", "right", "annotator", "context")

ALL = "all"
"""The annotator of comparisons in a table without annotators."""


@dataclass(frozen=True)
class ParsedComparisons(ParsedSource):
    """Comparisons as columns, with what else was found in a source."""

    columns: Mapping[str, pa.ChunkedArray]
    """Of each role its column: left, right, annotator and winner, which is a word for a side or the id
    of the item; and context, order, time, ranking and further columns (``further:NAME``) where there
    are any."""
    covariates: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)
    sides_known: bool = True
    """Whether left and right are the sides on which the items were shown."""
    numbered_sides: bool = False
    """Whether the columns of the items are numbered 1 and 2."""
    sides: tuple[str, str] = ("left item", "right item")
    """What the two items are called in messages."""


def parse_table(table: pa.Table, columns: PairColumns, *, from_text: bool) -> ParsedComparisons:
    """Return the comparisons of a table, whatever its shape."""
    alone = ""
    by_role = {role: to_plain(table.column(name)) for role, name in columns.by_role.items()}
    if "annotator" not in by_role:
        by_role["annotator"] = pa.chunked_array([pa.repeat(ALL, table.num_rows)])
    if columns.shape in ("ranks", "rank columns", "ranking"):
        if columns.covariates:
            raise InputError(
                f"covariates are of pairs, and these are ranks: leave out {option('covariates')}"
            )
        ranked = [table.column(name) for name in columns.ranked]
        by_role, alone = rankings_to_pairs(by_role, ranked)
    elif columns.shape == "winners":
        by_role = _sides_of_winners(by_role, table.num_rows)
    covariates = {name: table.column(name) for name in columns.covariates}
    return ParsedComparisons(
        by_role,
        covariates,
        sides_known=columns.shape == "sides",
        numbered_sides=columns.by_role.get("right", "").strip().endswith("2"),
        from_text=from_text,
        sides=("winner", "loser") if columns.shape == "winners" else ParsedComparisons.sides,
        notes=(columns.read_as, alone),
    )


def _sides_of_winners(
    by_role: Mapping[str, pa.ChunkedArray], n_rows: int
) -> dict[str, pa.ChunkedArray]:
    """Return winners as the left and losers as the right items, which is undone later."""
    winner, loser = by_role["winner"], by_role["loser"]
    outcome = pa.chunked_array([pa.repeat("left", n_rows)])
    # A row without a winner is no comparison, as it is where sides are known.
    outcome = pc.if_else(as_arrow(validate.missing(winner)), None, outcome)
    if "tie" in by_role:
        outcome = pc.if_else(_is_tie(by_role["tie"]), "tie", outcome)
    others = {role: by_role[role] for role in by_role if role not in ("winner", "loser", "tie")}
    return {**others, "left": winner, "right": loser, "winner": outcome}


def _is_tie(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which rows are ties; refuse what is neither yes nor no. Empty cells are no ties."""
    text = pc.utf8_lower(pc.utf8_trim_whitespace(to_text(column)))
    is_tie = pc.is_in(text, value_set=pa.array(_TIES, text.type))
    is_known = pc.or_(is_tie, pc.is_in(text, value_set=pa.array(_NO_TIES, text.type)))
    is_known = pc.or_(is_known, as_arrow(validate.missing(column)))
    unknown = np.flatnonzero(~as_numpy(is_known))
    if len(unknown):
        value = column[int(unknown[0])].as_py()
        raise InputError(
            f"tie is {shown(value)} in row {unknown[0] + 1}, which is neither yes nor no: "
            "write 1 or 0, or leave it empty"
        )
    return is_tie


class FoundRows(NamedTuple):
    """The rows of a table that have a winner, in codes; what the winners mean is still open."""

    n_rows: int
    """How many rows there are, without a winner as well."""
    rows: NDArray[np.int64]
    """The positions of those with a winner."""
    columns: Mapping[str, pa.ChunkedArray]
    winner: EncodedColumn
    item: EncodedColumn
    """The left items, then the right ones."""
    annotator: EncodedColumn
    context: EncodedColumn | None

    @property
    def pairs(self) -> Pairs:
        """The two items of each comparison."""
        left, right = np.split(self.item.codes, 2)
        return Pairs(left, right, self.item.values)


def find_rows(parsed: ParsedComparisons) -> FoundRows:
    """Return the rows that have a winner; refuse those without ids, or with the same item twice."""
    columns = dict(parsed.columns)
    validate.check_types(columns, {role: role for role in columns})
    winner = encode_column(columns["winner"])
    n_rows = len(winner.codes)
    kept = ~validate.missing(winner.values)[winner.codes]
    rows = np.flatnonzero(kept)
    if len(rows) < n_rows:
        columns = {role: column.filter(as_arrow(kept)) for role, column in columns.items()}
        winner = winner.take(kept)
    left, right = columns["left"], columns["right"]
    if left.type != right.type:
        left, right = to_text(left), to_text(right)
    item = encode_column(pa.chunked_array([*left.chunks, *right.chunks], left.type))
    annotator = encode_column(columns["annotator"])
    context = encode_column(columns["context"]) if "context" in columns else None
    found = FoundRows(n_rows, rows, columns, winner, item, annotator, context)
    pairs = found.pairs
    for who, codes, values in (
        (parsed.sides[0], pairs.left, pairs.ids),
        (parsed.sides[1], pairs.right, pairs.ids),
        ("annotator", annotator.codes, annotator.values),
    ):
        unnamed = validate.unnamed_rows(codes, values, None)
        if len(unnamed):
            validate.refuse_unnamed(int(rows[unnamed[0]]), len(unnamed), who, "an outcome")
    same = np.flatnonzero(pairs.left == pairs.right)
    if len(same):
        name = shown(pairs.ids[int(pairs.left[same[0]])].as_py())
        raise InputError(
            f"row {rows[same[0]] + 1} compares item {name} with itself ({len(same):,} in "
            "all): remove the row, or correct one of its items"
        )
    return found


def _further(found: FoundRows) -> dict[str, pa.Array]:
    """Return the columns that are kept as they are; of rankings, a number for each."""
    kept = {
        role.removeprefix(FURTHER): to_array(column)
        for role, column in found.columns.items()
        if role.startswith(FURTHER)
    }
    if RANKING in found.columns:
        annotator = found.annotator.codes.astype(np.int64)
        ranking = encode_column(found.columns[RANKING])
        key = annotator * len(ranking.values) + ranking.codes
        number = np.unique(key, return_inverse=True)[1].astype(np.int64)
        none = validate.missing(ranking.values)[ranking.codes]
        kept[RANKING] = pa.array(number, mask=none)
    bad = both_bad(found.winner)
    if bad.any():
        kept[BOTH_BAD] = as_arrow(bad)
    return kept


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


class ComparisonBuilder(TableBuilder):
    """Builds comparisons from sources, one after the other."""

    def __init__(self, outcomes: Mapping[str, str] | None = None) -> None:
        self._given = outcomes  # what winners stand for, where the caller says it
        super().__init__(("item", "annotator", "context"), mixed_as_text=True)
        self._codes: dict[str, list[NDArray[np.int32]]] = {name: [] for name in _CODES}
        self._outcomes: list[NDArray[np.int8]] = []
        self._covariates: dict[str, list[Floats]] = {}
        self._further: list[dict[str, pa.Array]] = []
        self._first: ParsedComparisons | None = None
        self._sides_known = True
        self._notes: dict[str, None] = {}
        self._n_repeated = 0

    def add(self, parsed: ParsedComparisons) -> None:
        """Add a source; refuse one without comparisons."""
        self._first = self._first or parsed
        self._from_text = self._first.from_text
        self._sides_known &= parsed.sides_known
        found = find_rows(parsed)
        if found.n_rows == 0:
            raise InputError("there are no rows, only column names: nothing to rank")
        if not len(found.rows):
            raise InputError(
                f"every row has an empty winner ({found.n_rows:,} in all): nothing to rank"
            )
        covariates = {
            name: _numbers(name, column, found.rows) for name, column in parsed.covariates.items()
        }
        outcome, note = self._read_winners(found, parsed)
        left, right = np.split(self._encoders["item"].add(found.item), 2)
        codes = {"left": left, "right": right}
        codes["annotator"] = self._encoders["annotator"].add(found.annotator)
        if found.context is not None:
            codes["context"] = self._encoders["context"].add(found.context)
        kept = _without_repeats(found, [*codes.values(), outcome])
        for name, values in codes.items():
            self._codes[name].append(values[kept])
        for name, numbers in covariates.items():
            self._covariates.setdefault(name, []).append(numbers[kept])
        self._outcomes.append(outcome[kept])
        further = _further(found).items()
        self._further.append({name: each.take(as_arrow(kept)) for name, each in further})
        self._notes[note] = None
        self._unused.update(parsed.unused)
        self._n_rows += found.n_rows
        self._n_repeated += len(found.rows) - len(kept)

    def _read_winners(
        self, found: FoundRows, parsed: ParsedComparisons
    ) -> tuple[NDArray[np.int8], str]:
        """Return the outcomes, and a note on winners that stand for them."""
        if self._given:
            return outcomes_given(found.winner, self._given), ""
        tie = None
        if not set(plain_codes(found.winner)) & set(to_text(found.item.values).to_pylist()):
            tie = find_tie(found.winner, found.pairs, numbered_sides=parsed.numbered_sides)
        if tie is None:
            return read_winners(found.winner, found.pairs, found.rows + 1)
        given = outcomes_by_tie(tie)
        said = ", ".join(f"{value} = {outcome}" for value, outcome in given.items())
        return outcomes_given(found.winner, given), f"winners {said}"

    def end_source(self) -> None:
        """Count the source."""
        self._n_sources += 1

    def finish(self, *, frame: str | None = None) -> Comparisons:
        """Return the comparisons of all sources, one after the other."""
        first = self._first
        assert first is not None
        outcome = np.concatenate(self._outcomes)
        left, right, annotator, context = (
            np.concatenate([np.empty(0, np.int32), *parts]) for parts in self._codes.values()
        )
        items, annotators = self._ids("item"), self._ids("annotator")  # 1.0 and 1 are one
        contexts = self._ids("context")
        self._encoders["item"].renumber(left, right)
        self._encoders["annotator"].renumber(annotator)
        self._encoders["context"].renumber(context)
        has_context = len(context) == len(outcome)
        covariates = {name: np.concatenate(parts) for name, parts in self._covariates.items()}
        if not self._sides_known:
            covariates = covariates_in_order_of_codes(left, right, covariates)
            left, right, outcome = in_order_of_codes(left, right, outcome)
        made = Comparisons.from_codes(
            left,
            right,
            annotator,
            outcome,
            items=items,
            annotators=annotators,
            covariates=covariates,
            sides_known=self._sides_known,
            frame=frame,
        )
        about: dict[str, Any] = {
            "contexts": contexts if has_context else None,
            "n_dropped": self._n_rows - len(outcome) - self._n_repeated,
            "n_repeated": self._n_repeated,
            "unused": dict(+self._unused),
            "read_as": self._of_all_sources(
                replace(first, notes=(*first.notes, *self._notes)).read_as
            ),
        }
        if has_context:
            about["context"] = context[made.row]
        names = dict.fromkeys(name for columns in self._further for name in columns)
        sizes = list(map(len, self._outcomes))
        about["further"] = {}
        for name in names:
            parts = [
                columns.get(name, pa.nulls(n))
                for n, columns in zip(sizes, self._further, strict=True)
            ]
            about["further"][name] = join_further(name, parts).take(as_arrow(made.row))
        return replace(made, **about)


def _without_repeats(found: FoundRows, codes: list[NDArray[Any]]) -> Codes:
    """Return the places of the comparisons of a source without rows that were written twice.

    An annotator may compare a pair several times, so rows alike are counted, unless the table
    has the order or time of comparisons and this is the same, too.
    """
    marks = [found.columns[role] for role in ("order", "time") if role in found.columns]
    if not marks:
        return np.arange(len(found.rows))
    keys = [*codes, *(encode_column(column).codes for column in marks)]
    return np.sort(np.unique(np.stack(keys), axis=1, return_index=True)[1])
