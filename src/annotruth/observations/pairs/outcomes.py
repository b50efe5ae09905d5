"""From what a file says about winners, or about ranks of several items, to outcomes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError, counted, option, shown
from annotruth.kernels.arrays import Codes
from annotruth.observations import validate
from annotruth.observations.covariates import to_array, to_numbers
from annotruth.observations.encode import EncodedColumn, encode_column, match_ids, to_text
from annotruth.observations.frames import as_arrow, as_numpy
from annotruth.observations.pairs.codes import plain_codes, propose_outcomes
from annotruth.observations.pairs.table import LEFT, OUTCOMES, RIGHT, TIE
from annotruth.observations.scale import first_not_number

# Ties that say of what quality both items are, which is not used.
_BOTH_BAD = ("tie (bothbad)", "tie (both bad)", "bothbad", "both bad", "neither")
_RATED_TIES = (*_BOTH_BAD, "both good", "bothgood")
_OUTCOME_OF_WORD = {
    **dict.fromkeys(("left", "l", "a", "1", "first"), LEFT),
    **dict.fromkeys(("right", "r", "b", "2", "second"), RIGHT),
    **dict.fromkeys(("tie", "ties", "tied", "draw", "equal", "same", "both"), TIE),
    **dict.fromkeys(("no preference", *_RATED_TIES), TIE),
}
# What sides are called after: model_a, response 1, left_better.
_SIDE_NAMES = re.compile(
    r"(?:(?:model|item|system|option|response|answer|assistant|image|video|text)\s?)?"
    r"(left|right|a|b|1|2)(?:(?: is)? (?:wins?|won|better))?"
)
_UNKNOWN = -1
_MAX_SHOWN = 3


class Pairs(NamedTuple):
    """The two items of each comparison in codes, and the ids behind them."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    ids: pa.Array


def read_winners(
    winner: EncodedColumn, pairs: Pairs, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int8], str]:
    """Return the outcomes, and which winners count as ties although they say more, if any do.

    Winners are words for sides, or ids of items: the one or the other in all rows alike; words for ties may
    be among both. ``rows`` are the numbers of the rows in the input.
    """
    by_word, by_id = _by_word(winner), _by_id(winner, pairs)
    no_word, no_id = by_word == _UNKNOWN, by_id == _UNKNOWN
    if no_word.any() and no_id.any():
        unknown = no_word if no_word.sum() <= no_id.sum() else no_id
        _refuse_unknown(winner, np.flatnonzero(unknown), rows)
    differs = by_word != by_id
    if differs.any() and not no_word.any() and not no_id.any():
        first = int(differs.argmax())
        raise InputError(
            f"winner {shown(_value(winner, first))} of row {rows[first]} may be a side or an item of "
            "that name: rename the item, or write left, right or tie as the winner"
        )
    return (by_id if no_word.any() else by_word), _note_on_ties(winner, pairs)


def _note_on_ties(winner: EncodedColumn, pairs: Pairs) -> str:
    texts = to_text(winner.values).to_pylist()
    rated = dict.fromkeys(text for text in texts if _plain(text) in _RATED_TIES)
    if rated:
        items = set(to_text(pairs.ids).to_pylist())
        rated = dict.fromkeys(text for text in rated if text not in items)
    if not rated:
        return ""
    named = ", ".join(shown(text) for text in list(rated)[:_MAX_SHOWN])
    return f"{named} {'counts as a tie' if len(rated) == 1 else 'count as ties'}"


def _refuse_unknown(winner: EncodedColumn, unknown: Codes, rows: NDArray[np.int64]) -> NoReturn:
    """Refuse winners that are neither a side nor one of the two items, naming the first."""
    _, first = np.unique(winner.codes[unknown], return_index=True)
    places = unknown[np.sort(first)]
    named = [f"{shown(_value(winner, at))} (row {rows[at]})" for at in places[:_MAX_SHOWN]]
    more = " and others" if len(places) > _MAX_SHOWN else ""
    codes = propose_outcomes(plain_codes(winner))
    raise InputError(
        f"{len(unknown):,} winner{'s are' if len(unknown) > 1 else ' is'} neither left, right or tie nor "
        f"one of the two items: {', '.join(named)}{more}; write left, right or tie, or the id of the item "
        f"that won{codes and f', or {codes}'}"
    )


def both_bad(winner: EncodedColumn) -> NDArray[np.bool_]:
    """Return which comparisons are ties of two bad items, as the winner says."""
    texts = to_text(winner.values).to_pylist()
    return np.array([_plain(text) in _BOTH_BAD for text in texts], dtype=np.bool_)[winner.codes]


def outcome_of_word(value: Any) -> int:
    """Return the outcome that a word stands for, -1 for any other text."""
    text = _plain(value)
    if text in _OUTCOME_OF_WORD:
        return _OUTCOME_OF_WORD[text]
    side = _SIDE_NAMES.fullmatch(text)
    return _UNKNOWN if side is None else _OUTCOME_OF_WORD[side[1]]


def _plain(value: Any) -> str:
    """Return text in lower case with single spaces."""
    return re.sub(r"[\s_-]+", " ", str(value).strip().lower())


def _by_word(winner: EncodedColumn) -> NDArray[np.int8]:
    outcome = [outcome_of_word(value) for value in to_text(winner.values).to_pylist()]
    return np.array(outcome, dtype=np.int8)[winner.codes]


def _by_id(winner: EncodedColumn, pairs: Pairs) -> NDArray[np.int8]:
    item = match_ids(winner.values, pairs.ids)[winner.codes]
    outcome = np.where(_by_word(winner) == TIE, TIE, _UNKNOWN).astype(np.int8)
    outcome[item == pairs.left] = LEFT
    outcome[item == pairs.right] = RIGHT
    return outcome


def _value(winner: EncodedColumn, at: Any) -> Any:
    return winner.values[int(winner.codes[at])].as_py()


# Rankings of several items, as comparisons of all their pairs.

_MAX_PAIRS = 50_000_000


def rankings_to_pairs(
    by_role: Mapping[str, pa.ChunkedArray], ranked: Sequence[pa.ChunkedArray]
) -> tuple[dict[str, pa.ChunkedArray], str]:
    """Return the columns left, right, annotator, winner and ranking of all pairs of all rankings.

    The context and further columns follow, where there are any.

    Also returns a note on items that were ranked alone, which are in no pair; empty if none were.
    Rankings are given as one row per item with its rank; as columns that hold the items of each
    rank, best first; or as text or lists in one column.
    """
    columns = dict(by_role)
    n_rows = len([*by_role.values(), *ranked][0])
    row = np.arange(n_rows)
    if ranked:
        columns, row = _one_row_per_item(columns, [column.to_pylist() for column in ranked])
    elif "ranking" in columns:
        columns, row = _parse_rankings(columns)
    return _all_pairs(columns, row, n_rows)


def _one_row_per_item(
    by_role: Mapping[str, pa.ChunkedArray], ranked: Sequence[Sequence[Any]]
) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Return item and rank from columns that hold the item of each rank, and the row of each."""
    n_rows, n_ranks = len(ranked[0]), len(ranked)
    items = pa.array([column[at] for at in range(n_rows) for column in ranked])
    present = ~validate.missing(items)
    row = np.repeat(np.arange(n_rows), n_ranks)[present]
    return _repeated(by_role, row) | {
        "item": pa.chunked_array([items.filter(as_arrow(present))]),
        "rank": pa.chunked_array([as_arrow(np.tile(np.arange(n_ranks), n_rows)[present])]),
    }, row


def _parse_rankings(
    by_role: Mapping[str, pa.ChunkedArray],
) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Return item and rank from rankings such as "a > b = c" or ["a", "b"], and the row of each."""
    rows: list[int] = []
    items: list[Any] = []
    ranks: list[int] = []
    for at, value in enumerate(by_role["ranking"].to_pylist()):
        for rank, group in enumerate(_groups(value, at)):
            rows += [at] * len(group)
            items += group
            ranks += [rank] * len(group)
    others = {role: by_role[role] for role in by_role if role != "ranking"}
    row = np.array(rows, dtype=np.int64)
    return _repeated(others, row) | {
        "item": pa.chunked_array([pa.array(items)]),
        "rank": pa.chunked_array([pa.array(ranks, pa.int64())]),
    }, row


def _groups(value: Any, at: int) -> Iterator[list[Any]]:
    """Return the items of each rank, best first."""
    if value is None:
        return
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            try:
                value = json.loads(text)
            except ValueError:
                raise InputError(
                    f"the ranking of row {at + 1} is {shown(value)}, which is no list: write it as "
                    "a > b = c"
                ) from None
        else:
            for group in filter(None, text.split(">")):
                yield [item.strip() for item in group.split("=") if item.strip()]
            return
    for entry in value if isinstance(value, list) else [value]:
        yield entry if isinstance(entry, list) else [entry]


def _repeated(by_role: Mapping[str, pa.ChunkedArray], row: NDArray[np.int64]) -> dict[str, Any]:
    return {role: column.take(as_arrow(row)) for role, column in by_role.items()}


def _all_pairs(
    columns: Mapping[str, pa.ChunkedArray], row: NDArray[np.int64], n_rows: int
) -> tuple[dict[str, pa.ChunkedArray], str]:
    """Return all pairs of the items that one annotator ranked in one context, and the note.

    ``row`` is the row of the table that each rank is in, of ``n_rows``, for messages.
    """
    rank = _rank_numbers(columns["rank"])
    ranked = np.flatnonzero(np.isfinite(rank))
    if n_rows and not len(ranked):
        raise InputError(f"every ranking is empty ({counted(n_rows, 'row')}): nothing to rank")
    for role in ("annotator", "item"):
        unnamed = ranked[validate.missing(columns[role])[ranked]]
        if len(unnamed):
            validate.refuse_unnamed(int(row[unnamed[0]]), len(unnamed), role, "a rank")
    ids = ("annotator", "item", *(["context"] if "context" in columns else []))
    validate.check_types({role: columns[role] for role in ids}, {role: role for role in ids})
    code = {role: encode_column(columns[role]).codes.astype(np.int64)[ranked] for role in ids}
    group = code["annotator"]
    if "context" in code:
        group = group * (code["context"].max(initial=0) + 1) + code["context"]
    order = np.lexsort((code["item"], group))
    _refuse_ranked_twice(columns, ranked[order], group[order], code["item"][order])
    first, second = _pairs_within(group[order])
    one, other = ranked[order[first]], ranked[order[second]]
    outcome = np.where(rank[one] < rank[other], LEFT, np.where(rank[one] > rank[other], RIGHT, TIE))
    words = pa.array(OUTCOMES)
    pairs = {
        "left": columns["item"].take(as_arrow(one)),
        "right": columns["item"].take(as_arrow(other)),
        "annotator": columns["annotator"].take(as_arrow(one)),
        "winner": pa.chunked_array([words.take(as_arrow(outcome))]),
    }
    pairs["ranking"] = pa.chunked_array([as_arrow(group[order[first]])])
    for role in columns.keys() - {*ids, "rank", "order", "time"} | {"context"} & columns.keys():
        pairs[role] = columns[role].take(as_arrow(one))
    if len(ranked) and not len(one):
        raise InputError("no annotator ranked two items (in one context): there is no pair")
    item = code["item"][order]
    n_alone = len(np.unique(item)) - len(np.unique(item[np.concatenate([first, second])]))
    if not n_alone:
        return pairs, ""
    return pairs, f"{counted(n_alone, 'item')} ranked alone and left out"


def _rank_numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return ranks as numbers, NaN where there is none."""
    values = to_array(column)
    empty = validate.missing(values)
    numbers = to_numbers(values.filter(as_arrow(~empty)))
    if not (pa.types.is_integer(numbers.type) or pa.types.is_floating(numbers.type)):
        if len(numbers):
            raise InputError(
                f"ranks such as {shown(first_not_number(numbers))} are not numbers: give 1 for the "
                "best, 2 for the next"
            )
        numbers = numbers.cast(pa.float64())
    rank = np.full(len(values), np.nan)
    rank[~empty] = as_numpy(numbers.cast(pa.float64()))
    return rank


def _refuse_ranked_twice(
    columns: Mapping[str, pa.ChunkedArray],
    row: NDArray[np.int64],
    group: NDArray[np.int64],
    item: NDArray[np.int64],
) -> None:
    twice = np.flatnonzero((group[1:] == group[:-1]) & (item[1:] == item[:-1]))
    if len(twice):
        at = int(row[twice[0] + 1])
        who = shown(columns["annotator"][at].as_py())
        what = shown(to_text(columns["item"].slice(at, 1))[0].as_py())
        raise InputError(
            f"annotator {who} ranks item {what} twice in one ranking ({len(twice):,} in all): name "
            f"the column that separates rankings ({option('columns', {'context': 'NAME'})}), or "
            "remove a row"
        )


def _pairs_within(group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of both entries of every pair of equal neighbours; groups are sorted."""
    start = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(group) else group
    size = np.diff(np.append(start, len(group)))
    # Entry e is paired with the ones after it in its group.
    after = np.repeat(start + size, size) - np.arange(len(group)) - 1
    n_pairs = int(after.sum())
    if n_pairs > _MAX_PAIRS:
        raise InputError(
            f"the rankings make {n_pairs:,} pairs, more than {_MAX_PAIRS:,}: name the column that "
            f"separates rankings ({option('columns', {'context': 'NAME'})})"
        )
    first = np.repeat(np.arange(len(group)), after)
    begin = np.cumsum(after) - after
    second = first + 1 + np.arange(n_pairs) - np.repeat(begin, after)
    return first, second
