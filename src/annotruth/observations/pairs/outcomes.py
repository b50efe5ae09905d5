"""From what a file says about the winner to outcomes: left, right or tie."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError, shown
from annotruth.observations.encode import EncodedColumn, match_ids, to_text
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE

# Ties that say of what quality both items are, which is not used.
_BOTH_BAD = ("tie (bothbad)", "tie (both bad)", "bothbad", "both bad", "neither")
_RATED_TIES = (*_BOTH_BAD, "both good", "bothgood")
_WORDS = {
    LEFT: ("left", "l", "a", "1", "first"),
    RIGHT: ("right", "r", "b", "2", "second"),
    TIE: (
        *("tie", "ties", "tied", "draw", "equal", "same", "both", "no preference"),
        *_RATED_TIES,
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
    """The two items of each comparison in codes, and the ids behind them."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    ids: pa.Array


class WinnerReadings:
    """What winners may mean, while rows are added: words for sides, or ids of items.

    They are the one or the other in all rows alike; words for ties may be among both.
    """

    def __init__(self) -> None:
        self._unknown = _UnknownWinners(), _UnknownWinners()
        self._ambiguous: tuple[Any, int] | None = None  # the first such winner, and its row
        self._rated_ties: dict[str, None] = {}  # as they are written

    def add(
        self, winner: EncodedColumn, pairs: Pairs, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Return the outcomes by words and by ids, -1 where there is none.

        ``rows`` are the numbers of the rows in the input.
        """
        by_word = _by_word(winner)
        by_id = _by_id(winner, pairs)
        texts = to_text(winner.values).to_pylist()
        rated = [text for text in texts if _plain(text) in _RATED_TIES]
        if rated:
            items = set(to_text(pairs.ids).to_pylist())
            self._rated_ties |= dict.fromkeys(text for text in rated if text not in items)
        for unknown, outcome in zip(self._unknown, (by_word, by_id), strict=True):
            unknown.add(winner, outcome, rows)
        differs = by_word != by_id
        if self._ambiguous is None and differs.any():
            first = int(differs.argmax())
            self._ambiguous = _value(winner, first), int(rows[first])
        return by_word, by_id

    def note(self) -> str:
        """Return which winners count as ties although they say more; empty if none do."""
        found = list(self._rated_ties)
        if not found:
            return ""
        listed = ", ".join(shown(text) for text in found[:_MAX_SHOWN])
        return f"{listed} {'counts as a tie' if len(found) == 1 else 'count as ties'}"

    def are_ids(self) -> bool:
        """Return whether winners are ids; refuse those that are neither, or may be both."""
        words, ids = self._unknown
        if words.n and ids.n:
            (words if words.n <= ids.n else ids).refuse()
        if not words.n and not ids.n and self._ambiguous is not None:
            value, row = self._ambiguous
            raise InputError(
                f"winner {shown(value)} of row {row} may be a side or an item of that name: rename "
                "the item, or write left, right or tie as the winner"
            )
        return words.n > 0


class _UnknownWinners:
    """Winners that one of the readings does not know: how many, and the first of them."""

    def __init__(self) -> None:
        self.n = 0
        self._rows: dict[Any, int] = {}  # the first row of each value

    def add(
        self, winner: EncodedColumn, outcome: NDArray[np.int8], rows: NDArray[np.int64]
    ) -> None:
        unknown = np.flatnonzero(outcome == _UNKNOWN)
        self.n += len(unknown)
        while len(unknown) and len(self._rows) <= _MAX_SHOWN:
            first = unknown[0]
            self._rows.setdefault(_value(winner, first), int(rows[first]))
            unknown = unknown[winner.codes[unknown] != winner.codes[first]]

    def refuse(self) -> None:
        """Refuse winners that are neither a side nor one of the two items, naming the first."""
        named = [f"{shown(value)} (row {row})" for value, row in self._rows.items()]
        more = " and others" if len(named) > _MAX_SHOWN else ""
        raise InputError(
            f"{self.n:,} winner{'s are' if self.n > 1 else ' is'} neither left, right or tie nor one "
            f"of the two items: {', '.join(named[:_MAX_SHOWN])}{more}; write left, right or tie, or "
            "the id of the item that won"
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
