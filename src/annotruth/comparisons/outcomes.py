"""From what a file says about the winner to outcomes: left, right or tie."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.comparisons.table import LEFT, RIGHT, TIE
from annotruth.errors import InputError, shown
from annotruth.labels.encode import EncodedColumn, match_ids, to_text

_WORDS = {
    LEFT: ("left", "l", "a", "1", "first"),
    RIGHT: ("right", "r", "b", "2", "second"),
    TIE: (
        *("tie", "ties", "tied", "draw", "equal", "same", "both", "neither", "no preference"),
        *("tie (bothbad)", "tie (both bad)", "bothbad", "both bad", "both good", "bothgood"),
    ),
}
_OUTCOME_OF_WORD = {word: code for code, words in _WORDS.items() for word in words}
# What sides are called after: model_a, response 1, left_better.
_SIDE_NAMES = re.compile(
    r"(?:(?:model|item|system|option|response|answer|assistant|image|video|text)\s?)?"
    r"(left|right|a|b|1|2)(?:(?: is)? (?:wins?|won|better))?"
)
_UNKNOWN = -1
_MAX_SHOWN = 3


class Pairs(NamedTuple):
    """The two items of each comparison in codes, and the ids behind them.

    Examples
    --------
    >>> pairs = Pairs(np.array([0]), np.array([1]), pa.array(["x", "y"]))
    >>> pairs.ids.take(pa.array(pairs.right)).to_pylist()
    ['y']
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    ids: pa.Array


def find_outcomes(winner: EncodedColumn, pairs: Pairs, rows: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the outcome of each comparison; ``rows`` are their numbers in the input.

    Winners are either words for sides or ids of items, in all rows alike; words for ties may be
    among both. Where both readings are possible and differ, the input is refused.
    """
    by_word = _by_word(winner)
    by_id = _by_id(winner, pairs)
    n_words, n_ids = np.count_nonzero(by_word == _UNKNOWN), np.count_nonzero(by_id == _UNKNOWN)
    if n_words and n_ids:
        _refuse(winner, by_word if n_words <= n_ids else by_id, rows)
    if not n_words and not n_ids and (by_word != by_id).any():
        first = int(np.flatnonzero(by_word != by_id)[0])
        value = shown(_value(winner, first))
        raise InputError(
            f"winner {value} of row {rows[first]} may be a side or an item of that name: write "
            "left, right or tie as the winner"
        )
    return by_id if n_words else by_word


def outcome_of_word(value: Any) -> int:
    """Return the outcome that a word stands for, -1 for any other text."""
    text = re.sub(r"[\s_-]+", " ", str(value).strip().lower())
    if text in _OUTCOME_OF_WORD:
        return _OUTCOME_OF_WORD[text]
    side = _SIDE_NAMES.fullmatch(text)
    return _UNKNOWN if side is None else _OUTCOME_OF_WORD[side[1]]


def _by_word(winner: EncodedColumn) -> NDArray[np.int8]:
    outcome = [outcome_of_word(value) for value in to_text(winner.values).to_pylist()]
    return np.array(outcome, dtype=np.int8)[winner.codes]


def _by_id(winner: EncodedColumn, pairs: Pairs) -> NDArray[np.int8]:
    item = match_ids(winner.values, pairs.ids)[winner.codes]
    outcome = np.where(_by_word(winner) == TIE, TIE, _UNKNOWN).astype(np.int8)
    outcome[item == pairs.left] = LEFT
    outcome[item == pairs.right] = RIGHT
    return outcome


def _refuse(winner: EncodedColumn, outcome: NDArray[np.int8], rows: NDArray[np.int64]) -> None:
    """Refuse winners that are neither a side nor one of the two items, naming the first."""
    unknown = np.flatnonzero(outcome == _UNKNOWN)
    _, first = np.unique(winner.codes[unknown], return_index=True)
    named = ", ".join(
        f"{shown(_value(winner, at))} (row {rows[at]})"
        for at in unknown[np.sort(first)][:_MAX_SHOWN]
    )
    more = f" and {len(first) - _MAX_SHOWN:,} others" if len(first) > _MAX_SHOWN else ""
    n = len(unknown)
    raise InputError(
        f"{n:,} winner{'s are' if n > 1 else ' is'} neither left, right or tie nor one of the two "
        f"items: {named}{more}; write left, right or tie, or the id of the item that won"
    )


def _value(winner: EncodedColumn, at: int) -> Any:
    return winner.values[int(winner.codes[at])].as_py()
