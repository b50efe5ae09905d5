"""Results of a model of voters beside what one can count."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats, inner
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.observations.pairs.table import LEFT, TIE, Comparisons

if TYPE_CHECKING:
    from annotruth.models.result import RankFit

PLAIN_SCORES = "plain_scores"
"""The parameter with the scores of all votes counted alike (Bradley and Terry's model)."""

MIN_CORRELATION = 0.8  # of ranks, with those of all votes counted alike
MAX_SIDE_BIAS = 1.5  # log odds, where both sides are chosen about equally often
_BALANCED = 0.1  # of the share of left among decided votes from one half
_MIN_ITEMS, _MIN_ANNOTATORS = 4, 5
_PLAIN = "compare with `--model bradley-terry`, which counts all votes alike"


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
    decided = data.votes.outcome != TIE
    n = int(np.count_nonzero(decided))
    return int(np.count_nonzero(data.votes.outcome == LEFT)) / n if n else 0.5


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
