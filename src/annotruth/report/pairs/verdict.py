"""What the report of a fit of comparisons says first: whether the ranking can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from annotruth.analyses.advice.annotators import RANK_VERDICTS, verdicts
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.pairs.beside import contradictions
from annotruth.models.pairs.summary import ONE_ANNOTATOR, only_outcome
from annotruth.models.result import RankFit
from annotruth.observations.pairs.table import TIE, Comparisons
from annotruth.observations.pairs.votes import in_order_of_codes
from annotruth.report.render import as_sentence
from annotruth.report.verdict import Trust, chance_rule, chance_trust, ranked_trust, steps_text

ORDER_FROM = (0.95, 0.85, 0.7)
"""The expected shares of pairs in the right order from which the answer is Yes, Mostly, Partly."""

SURE_ORDER = 0.975
"""The probability from which two neighbours in the ranking count as separated."""

_MAX_PAIRS = 200_000


@dataclass(frozen=True)
class RankVerdict:
    """The report's first screen in numbers.

    Attributes
    ----------
    trust
        Whether the ranking can be trusted.
    right_order
        The expected share of pairs of items in the right order; nan without any pair.
    n_separated, n_neighbours
        How many neighbours in the ranking are separated with 97.5% probability, and of how many.
    same, same_by_chance
        How often two votes on a pair agree, and how often they would by chance; nan without.
    annotators
        How many annotators have each verdict; empty for models without reliabilities.
    """

    trust: Trust
    right_order: float
    n_separated: int
    n_neighbours: int
    same: float
    same_by_chance: float
    annotators: dict[str, int]


def rank_verdict(fit: RankFit) -> RankVerdict:
    """Return the numbers of the first screen."""
    right_order = expected_order(fit)
    order = np.lexsort((-fit.scores.mean, fit.part))
    above, below = order[:-1], order[1:]
    same_part = fit.part[above] == fit.part[below]
    p = _order_probability(fit, above[same_part], below[same_part])
    same, by_chance = vote_agreement(fit.data)
    counts: dict[str, int] = {}
    if fit.reliability is not None:
        words = verdicts(fit)[0]
        counts = {word: int(np.count_nonzero(words == word)) for word in RANK_VERDICTS}
    return RankVerdict(
        trust=_trust(fit, right_order),
        right_order=right_order,
        n_separated=int(np.count_nonzero(p >= SURE_ORDER)),
        n_neighbours=len(p),
        same=same,
        same_by_chance=by_chance,
        annotators=counts,
    )


def expected_order(fit: RankFit) -> float:
    """Return the expected share of pairs of items of one part that are in the right order."""
    n = fit.data.n_items
    if n * (n - 1) // 2 <= _MAX_PAIRS:
        first, second = np.triu_indices(n, 1)
    else:  # a sample, always the same
        first, second = np.random.default_rng(0).integers(n, size=(2, _MAX_PAIRS))
    kept = (fit.part[first] == fit.part[second]) & (first != second)
    if not kept.any():
        return math.nan
    return float(_order_probability(fit, first[kept], second[kept]).mean())


def _order_probability(fit: RankFit, first: Codes, second: Codes) -> Floats:
    """Return the probability that two items are in the order of their scores."""
    covariance, mean = fit.scores.covariance, fit.scores.mean
    variance = fit.scores.sd[first] ** 2 + fit.scores.sd[second] ** 2
    if covariance.ndim == 2:
        variance = variance - 2.0 * covariance[first, second]
    sd = np.sqrt(np.maximum(variance, 1e-18))
    probability: Floats = ndtr(np.abs(mean[first] - mean[second]) / sd)
    return probability


def vote_agreement(data: Comparisons) -> tuple[float, float]:
    """Return how often two votes on the same pair agree, and how often they would by chance.

    Where there are contexts, both votes are in the same one.
    """
    first, second, outcome = in_order_of_codes(data.left, data.right, data.outcome)
    key = first.astype(np.int64) * data.n_items + second
    if data.context is not None:
        key = key * (int(data.context.max()) + 1) + data.context
    _, pair = np.unique(key, return_inverse=True)
    counts = np.bincount(pair * 3 + outcome, minlength=3 * (int(pair.max()) + 1)).reshape(-1, 3)
    total = counts.sum(axis=1)
    n_pairs = (total * (total - 1)).sum()
    if n_pairs == 0:
        return math.nan, math.nan
    ties = float(np.mean(data.outcome == TIE))
    by_chance = ties**2 + (1.0 - ties) ** 2 / 2.0
    return float((counts * (counts - 1)).sum() / n_pairs), by_chance


def _trust(fit: RankFit, right_order: float) -> Trust:
    same = only_outcome(fit.data)
    if same and fit.data.n_comparisons > 1:
        return Trust("No", "bad", as_sentence(same), "")
    if fit.data.n_annotators == 1:
        why = f"{as_sentence(ONE_ANNOTATOR)} The ranking is that person's."
        return Trust("Too few annotators to tell", "bad", why, "")
    if fit.verdict == "chance":
        return chance_trust("votes", "ranks", chance_rule(fit.model, "votes"))
    if math.isnan(right_order):
        return Trust("Too few votes to tell", "bad", "No two items can be compared.", "")
    within = " within the parts of the graph" if fit.n_parts > 1 else ""
    if against := contradictions(fit):
        return Trust("Not as it is", "bad", " ".join(map(as_sentence, against)), "")
    return ranked_trust(
        sum(right_order < limit for limit in ORDER_FROM),
        f"About {right_order:.0%} of all pairs of items{within} are expected to be in the right "
        "order.",
        "The expected share of pairs in the right order, the mean of their probabilities: "
        f"{steps_text(f'from {limit:.0%}' for limit in ORDER_FROM)}.",
    )
