"""Winners written as 0, 1 and 2: which of these is a tie, as the caller or the votes say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError, listed, option, shown
from annotruth.observations.encode import EncodedColumn, to_text
from annotruth.observations.pairs.table import OUTCOMES

if TYPE_CHECKING:
    from annotruth.observations.pairs.outcomes import Pairs

_CODES = ("0", "1", "2")
_MAX_CODES = 9  # that are proposed
_CLEAR, _LIKE_CHANCE = 4.0, 2.0  # standard errors


def plain_codes(winner: EncodedColumn) -> list[str]:
    """Return the distinct winners as text, whole numbers without a point."""
    texts = [str(text).strip() for text in to_text(winner.values).to_pylist()]
    return [text.removesuffix(".0") for text in texts]


def outcomes_given(winner: EncodedColumn, given: Mapping[str, str]) -> NDArray[np.int8]:
    """Return the outcomes of winners that the caller says, and refuse others."""
    known = OUTCOMES
    for value, outcome in given.items():
        if outcome not in known:
            raise InputError(
                f"outcomes has {shown(value)} as {shown(outcome)}: give {listed(known)}"
            )
    codes = {
        str(value).strip().removesuffix(".0"): known.index(outcome)
        for value, outcome in given.items()
    }
    texts = plain_codes(winner)
    for text in texts:
        if text not in codes:
            raise InputError(f"outcomes does not say what winner {shown(text)} stands for: add it")
    return np.array([codes[text] for text in texts], dtype=np.int8)[winner.codes]


def find_tie(winner: EncodedColumn, pairs: Pairs, *, numbered_sides: bool) -> str | None:
    """Return which of 0, 1 and 2 is a tie; None where winners are other words, refused if it is open.

    Sides that are numbered 1 and 2 leave 0. Otherwise a tie is about as frequent whichever of two
    items is on the left, and the other codes are not.
    """
    texts = plain_codes(winner)
    if not set(texts) <= set(_CODES) or "0" not in texts:
        return None
    if numbered_sides:
        return "0"
    if len(texts) == len(_CODES):
        scores = {text: _asymmetry(winner.codes == n, pairs) for n, text in enumerate(texts)}
        even = [text for text, score in scores.items() if abs(score) < _LIKE_CHANCE]
        others = [score for text, score in scores.items() if text not in even]
        if len(even) == 1 and min(others) > _CLEAR:
            return even[0]
        codings = ({"0": "tie", "1": "left", "2": "right"}, {"0": "left", "1": "right", "2": "tie"})
    else:
        other = next(text for text in texts if text != "0")
        codings = ({"0": "left", other: "right"}, {"0": "right", other: "left"})
    raise InputError(
        f"winners are {listed(sorted(texts))}, and it is not known which of them is what: pass "
        f"{' or '.join(option('outcomes', coding) for coding in codings)}"
    )


def outcomes_by_tie(tie: str) -> dict[str, str]:
    """Return the outcome of each code: the smaller of the others is the left item."""
    left, right = (code for code in _CODES if code != tie)
    return {tie: "tie", left: "left", right: "right"}


def propose_outcomes(texts: Sequence[str]) -> str:
    """Return what to pass if winners are numbers: the two codings that are usual; else empty.

    Sides have the numbers below and above the middle, which is a tie; or 3 is one.
    """
    try:
        numbers = {text: float(text) for text in texts}
    except ValueError:
        return ""
    if not 2 <= len(numbers) <= _MAX_CODES or not all(map(math.isfinite, numbers.values())):
        return ""
    ordered = sorted(numbers, key=numbers.__getitem__)
    middle = (numbers[ordered[0]] + numbers[ordered[-1]]) / 2
    sides = [int(np.sign(numbers[text] - middle)) for text in ordered]
    first, second = (
        {text: names[side] for text, side in zip(ordered, sides, strict=True)}
        for names in (("tie", "right", "left"), ("tie", "left", "right"))
    )
    if ordered == ["1", "2", "3"]:
        second = {"1": "left", "2": "right", "3": "tie"}
    return f"pass {option('outcomes', first)} or {option('outcomes', second)}"


def _asymmetry(is_code: NDArray[np.bool_], pairs: Pairs) -> float:
    """Return by how many standard errors a winner depends on which of two items is on the left."""
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    _, pair = np.unique(low.astype(np.int64) * len(pairs.ids) + high, return_inverse=True)
    swapped = pairs.left > pairs.right
    n = np.array([np.bincount(pair, is_side, pair.max() + 1) for is_side in (~swapped, swapped)])
    k = np.array(
        [np.bincount(pair, is_side & is_code, pair.max() + 1) for is_side in (~swapped, swapped)]
    )
    share = k.sum(axis=0) / n.sum(axis=0)
    both = (n.min(axis=0) > 0) & (share > 0) & (share < 1)
    if not both.any():
        return np.nan
    n, k, share = n[:, both], k[:, both], share[both]
    squares = (k[0] / n[0] - k[1] / n[1]) ** 2 / (share * (1 - share) * (1 / n[0] + 1 / n[1]))
    return float((squares.sum() - len(squares)) / np.sqrt(2 * len(squares)))
