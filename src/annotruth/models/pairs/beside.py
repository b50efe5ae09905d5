r"""What stands beside the scores: plain counts, both bad, and a column such as the cost.

A tie of two bad items says something about both of them. The probability that both are called bad is

.. math:: 1 / (1 + e^{q_l + q_r - a}), \qquad q_i \sim N(0, \sigma^2),

with a quality q of each item, which such a vote lowers for both, and a variance that is estimated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit

from annotruth.errors import InputError, listed, option, shorten
from annotruth.kernels.arrays import Floats, inner
from annotruth.models.base_fit import SPAMMER_BELOW, table_of
from annotruth.models.distribution import Z_95
from annotruth.models.fits.further import FurtherResults
from annotruth.models.pairs.graph import count_pairs, sums_at
from annotruth.observations import validate
from annotruth.observations.covariates import to_numbers
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import BOTH_BAD, LEFT, TIE, Comparisons

if TYPE_CHECKING:
    from annotruth.models.result import RankFit

BESIDE = "beside"
"""The kind of results on a column beside the scores, such as the cost."""

_STEPS = 30
_MAX_ITEMS = 2000


PLAIN_SCORES = "plain_scores"
"""The parameter with the scores of all votes counted alike (Bradley and Terry's model)."""

MIN_CORRELATION = 0.8  # of ranks, with those of all votes counted alike
MAX_SIDE_BIAS = 1.5  # log odds, where both sides are chosen about equally often
_BALANCED = 0.1  # of the share of left among decided votes from one half
_MIN_ITEMS, _MIN_ANNOTATORS = 4, 5
_PLAIN = "compare with the model bradley-terry, which counts all votes alike"


def contradictions(fit: RankFit) -> list[str]:
    """Return where a ranking contradicts plain counts of the votes; empty if it does not."""
    lines = []
    plain = fit.parameters.get(PLAIN_SCORES)
    if plain is not None and fit.verdict != "chance":
        r = rank_correlation(fit.scores.mean, plain, fit.part)
        if r < MIN_CORRELATION:
            lines.append(
                "the ranking differs from that of all votes counted alike (rank correlation "
                f"{r:.2f}): {_PLAIN}"
            )
    share = left_share(fit.data)
    bias = 0.0 if fit.side_bias is None else float(fit.side_bias[0])
    if abs(bias) > MAX_SIDE_BIAS and abs(share - 0.5) < _BALANCED:
        lines.append(
            f"the side bias is estimated as {bias:+.2f} log odds, but {share:.0%} of the decided votes "
            f"are for the left item: {_PLAIN}"
        )
    spammer = fit.spammer
    doubtful = fit.p_serious is not None and np.mean(fit.p_serious < SPAMMER_BELOW) > 0.5
    if spammer is not None and len(spammer) >= _MIN_ANNOTATORS and 2 * spammer.sum() > len(spammer):
        lines.append(
            f"more than half of the annotators ({int(spammer.sum()):,} of {len(spammer):,}) are called "
            f"spammers: the model may not describe these votes; {_PLAIN}"
        )
    elif fit.verdict != "chance" and doubtful:
        lines.append(
            "more than half of the votes are probably not serious: the model may not describe them; "
            f"{_PLAIN}"
        )
    return lines


def left_share(data: Comparisons) -> float:
    """Return the share of the left item among decided votes; one half without any."""
    n_decided = int(np.count_nonzero(data.outcome != TIE))
    return int(np.count_nonzero(data.outcome == LEFT)) / n_decided if n_decided else 0.5


def rank_correlation(one: Floats, other: Floats, part: NDArray[np.int64] | None = None) -> float:
    """Return the rank correlation of two scores within the parts of the graph; 1 for few items."""
    from scipy.stats import rankdata  # slow to import, and few commands compare ranks

    members = np.zeros(len(one), dtype=np.int64) if part is None else part
    product = squares = others = 0.0
    for number in np.unique(members):
        own = members == number
        if own.sum() < _MIN_ITEMS:
            continue
        a, b = (rankdata(each[own]) - (own.sum() + 1) / 2.0 for each in (one, other))
        product += inner(a, b)
        squares += inner(a, a)
        others += inner(b, b)
    if squares * others == 0.0:
        return 1.0
    return round(product / math.sqrt(squares * others), 12)


def win_table(fit: RankFit) -> pa.Table:
    """Return one row per pair of items that was compared: the share of wins of the better one.

    Ties are half wins. Items are in the order of the ranking.
    """
    data, n = fit.data, fit.data.n_items
    order = np.lexsort((-fit.scores.mean, fit.part))
    place = np.argsort(order)
    counts = count_pairs(data)
    left, right = place[counts.left], place[counts.right]
    keys, pair = np.unique(
        np.minimum(left, right) * n + np.maximum(left, right), return_inverse=True
    )
    won_left, won_right, ties = counts.votes.T
    won, lost, tied = (
        sums_at(pair, votes, len(keys))
        for votes in (
            np.where(left < right, won_left, won_right),
            np.where(left < right, won_right, won_left),
            ties,
        )
    )
    item, other = (data.items.take(as_arrow(order[each])) for each in np.divmod(keys, n))
    total = won + lost + tied
    integers = (each.astype(np.int64) for each in (total, won, lost, tied))
    names = ("item", "other", "n_comparisons", "wins", "losses", "ties", "share")
    columns = (item, other, *integers, (won + tied / 2.0) / total)
    return table_of(dict(zip(names, columns, strict=True)))


def both_bad_results(fit: RankFit) -> FurtherResults | None:
    """Return how often each item is called bad together with another; None if votes do not say it."""
    data = fit.data
    flags = data.further.get(BOTH_BAD)
    if flags is None or data.n_items > _MAX_ITEMS:
        return None
    is_bad = flags.fill_null(False).to_numpy(zero_copy_only=False).astype(np.float64)
    weight = np.ones(len(is_bad)) if fit.p_serious is None else fit.p_serious
    quality, level, sd = _qualities(data, is_bad, weight)
    n_bad = np.bincount(data.left, is_bad, data.n_items)
    n_bad += np.bincount(data.right, is_bad, data.n_items)
    p, low, high = (expit(level - quality + z * sd) for z in (0.0, -Z_95, Z_95))
    order = np.argsort(p, kind="stable")
    table = table_of(
        {
            "item": data.items,
            "n_comparisons": data.comparisons_per_item,
            "n_both_bad": n_bad.astype(np.int64),
            "p_both_bad": p,
            "low": low,
            "high": high,
        }
    ).take(order)
    names = [shorten(str(data.items[int(k)].as_py()), 40) for k in order]
    line = (
        f"both bad: {is_bad.mean():.0%} of comparisons; against an average item, {names[0]} least often "
        f"({p[order[0]]:.0%}), {names[-1]} most often ({p[order[-1]]:.0%})"
    )
    return FurtherResults({BOTH_BAD: table}, {"share": float(is_bad.mean())}, [line])


def _qualities(data: Comparisons, is_bad: Floats, weight: Floats) -> tuple[Floats, float, Floats]:
    """Return the qualities, the level a, and the standard deviations of a - q."""
    n = data.n_items
    key = data.left.astype(np.int64) * n + data.right
    pairs, place = np.unique(key, return_inverse=True)
    left, right = np.divmod(pairs, n)
    votes, bad = (np.bincount(place, each) for each in (weight, weight * is_bad))
    design = np.zeros((len(pairs), n + 1))
    rows = np.arange(len(pairs))
    design[rows, left], design[rows, right], design[:, n] = -1.0, -1.0, 1.0
    share = float(np.clip(is_bad.mean(), 1e-4, 1.0 - 1e-4))
    values = np.zeros(n + 1)
    values[n] = np.log(share / (1.0 - share))
    variance = 1.0
    covariance: Floats = np.eye(n + 1)
    for _ in range(_STEPS):
        p = expit(design @ values)
        prior = np.append(np.full(n, 1.0 / variance), 1e-4)
        known = design.T @ (design * (votes * p * (1.0 - p))[:, np.newaxis]) + np.diag(prior)
        covariance = np.linalg.inv(known).astype(np.float64)
        move = covariance @ (design.T @ (bad - votes * p) - prior * values)
        values = values + np.clip(move, -1.0, 1.0)
        determined = n - float(np.trace(covariance[:n, :n])) / variance
        variance = (1.0 + float(values[:n] @ values[:n])) / (1.0 + max(determined, 0.0))
    of_items = np.diag(covariance)[:n] + covariance[n, n] - 2.0 * covariance[:n, n]
    return values[:n], float(values[n]), np.sqrt(np.maximum(of_items, 0.0))


def check_numbers(data: Comparisons, columns: tuple[str, str]) -> tuple[Floats, Floats]:
    """Return the two columns as numbers, nan where there is none; refuse text."""
    found = []
    for name in columns:
        column = data.further[name]
        has = ~validate.missing(column)
        numbers = to_numbers(column.filter(as_arrow(has)))
        if not (pa.types.is_floating(numbers.type) or pa.types.is_integer(numbers.type)):
            raise InputError(
                f"{name.replace(':', ' of the ')} item is not a number in every row: "
                f"{option('beside')} takes numbers, such as a cost or a length"
            )
        values = np.full(len(column), np.nan)
        values[has] = numbers.cast(pa.float64()).to_numpy(zero_copy_only=False)
        found.append(np.where(np.isfinite(values), values, np.nan))
    return found[0], found[1]


def beside_results(fit: RankFit, name: str, columns: tuple[str, str]) -> FurtherResults:
    """Return the mean of a column per item, and which items no other beats for less."""
    data = fit.data
    total, n = np.zeros(data.n_items), np.zeros(data.n_items)
    for item, values in zip((data.left, data.right), check_numbers(data, columns), strict=True):
        has = np.isfinite(values)
        total += np.bincount(item[has], values[has], data.n_items)
        n += np.bincount(item[has], minlength=data.n_items)
    with np.errstate(invalid="ignore"):
        mean = total / n
    front = _on_front(fit.scores.mean, mean)
    order = np.argsort(-fit.scores.mean, kind="stable")
    table = table_of(
        {
            "item": data.items,
            "score": fit.scores.mean,
            "value": mean,
            "n_values": n.astype(np.int64),
            "on_front": front,
        }
    ).take(order)
    named = [shorten(str(data.items[int(k)].as_py()), 40) for k in order[front[order]]]
    line = f"beside {shorten(name, 40)}: no item is better with a lower mean than {listed(named)}"
    return FurtherResults({BESIDE: table}, {"column": name}, [line])


def _on_front(scores: Floats, value: Floats) -> NDArray[np.bool_]:
    """Return whether no item with at most the same value has a higher score."""
    known = np.isfinite(value)
    order = np.lexsort((-scores, np.where(known, value, np.inf)))
    best = np.maximum.accumulate(scores[order])
    front = np.zeros(len(scores), dtype=np.bool_)
    front[order] = (scores[order] >= best) & known[order]
    return front
