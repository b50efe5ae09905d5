"""What to do next, by simple rules: whom to drop or watch, which items need labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotruth.advice.verdicts import FEW_LABELS, judged
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.intervals import Z_95
from annotruth.models.result import Fit
from annotruth.report.consensus import Consensus

MANY_MORE = 10
"""Labels to ask for at a time; an item that needs more in spite of many is divided."""

_FAR = 3.0  # standard errors below the median
_AND_LOWER = 0.15

ITEM_RULES = {
    "more labels": f"{MANY_MORE} or fewer should settle it, or it has fewer than {FEW_LABELS}",
    "divided": f"it would need more than {MANY_MORE}: people differ",
    "settled": "no further label is needed",
    "known": "its truth was given",
}


def annotator_rules(fit: Fit) -> dict[str, str]:
    """Say what leads to which advice on annotators."""
    few = {
        "few labels": "too few to tell",
        "keep": "none of these",
    }
    if fit.spammer is None:
        return {"watch": "matches the recovered labels far less often than the median"} | few
    return {
        "drop": f"a spammer with the whole interval below {SPAMMER_BELOW}",
        "watch": f"reliability, or the lower end of its interval, below {SPAMMER_BELOW}",
        **few,
    }


@dataclass(frozen=True, eq=False)
class Advice:
    """A word for each annotator and each item, and how many labels each item needs."""

    annotators: NDArray[np.str_]
    items: NDArray[np.str_]
    more: Floats


def advise(fit: Fit, consensus: Consensus) -> Advice:
    """Go through annotators and items."""
    return Advice(_advise_annotators(fit, consensus), *_advise_items(fit))


def _advise_annotators(fit: Fit, consensus: Consensus) -> NDArray[np.str_]:
    """Say of each annotator: drop, watch, few labels or keep (see `annotator_rules`)."""
    if fit.spammer is not None:
        words = judged(fit)
        return np.where(words == "unsure", "watch", words)
    n = fit.data.labels_per_annotator
    share = consensus.matches
    usual = np.median(share)
    error = np.sqrt(np.maximum(usual * (1.0 - usual), 1e-9) / n)
    watch = (share < usual - _FAR * error) & (share < usual - _AND_LOWER)
    return np.select([n < FEW_LABELS, watch], ["few labels", "watch"], "keep")


def _advise_items(fit: Fit) -> tuple[NDArray[np.str_], Floats]:
    """Say of each item how it stands (see ``ITEM_RULES``), and how many labels it needs.

    Classes are settled when the lead of the first category over the second is more than 1.96
    standard errors of n labels, n counting labels by how likely they are serious. Scores are
    settled when their 95% interval is at most one step of the scale wide. Both errors fall with
    the root of n, which tells how many labels are missing.
    """
    data = fit.data
    n = data.labels_per_item.astype(float)
    if fit.p_serious is not None:
        item = data.item_of_cell()[data.cell_of_label()]
        n = np.bincount(item, fit.p_serious, data.n_items)
    n = np.maximum(n, 1e-3)
    needed = _for_score(fit, n) if data.scale.is_ordinal else _for_lead(fit, n)
    # Rounded first, so that 1e-12 too few is none.
    more = np.ceil(np.round(np.maximum(needed - n, 0.0), 6))
    more = np.where(np.isnan(more), np.inf, more)
    few = data.labels_per_item < FEW_LABELS
    stand = np.select(
        [data.known >= 0, more == 0, (more <= MANY_MORE) | few],
        ["known", "settled", "more labels"],
        "divided",
    )
    return stand, np.where(stand == "more labels", np.minimum(more, MANY_MORE), 0.0)


def _for_lead(fit: Fit, n: Floats) -> Floats:
    """Count the labels at which the present lead would be beyond chance."""
    assert fit.distribution is not None  # only scores lack one, and classes have no scores
    theta = fit.distribution
    first = theta.confidence()
    rest = theta.probability.copy()
    leads = np.flatnonzero(rest == first[theta.item()])
    # One leading entry an item is taken out; of a tie the other stays.
    rest[leads[np.unique(theta.item()[leads], return_index=True)[1]]] = 0.0
    second = np.maximum.reduceat(rest, theta.ptr[:-1])
    lead = first - second
    variance = first + second - lead**2
    # A single vote is a lead of 1 without variance: at least two are asked for.
    with np.errstate(divide="ignore"):
        return np.maximum(Z_95**2 * variance / lead**2, 2.0)


def _for_score(fit: Fit, n: Floats) -> Floats:
    """Count the labels at which the score's interval would be one step wide."""
    values, columns = fit.data.scale.values, fit.item_columns
    step = np.ptp(values) / max(len(values) - 1, 1)
    if "score_low" in columns and "score_high" in columns:
        width = np.asarray(columns["score_high"] - columns["score_low"])
    elif fit.distribution is not None:
        theta = fit.distribution
        mean = theta.expectation(values)
        variance = theta.expectation(values**2) - mean**2
        width = 2.0 * Z_95 * np.sqrt(np.maximum(variance, 0.0) / n)
    else:
        # Nothing is known of the error but the labels themselves.
        data = fit.data
        item, votes = data.item_of_cell(), np.diff(data.cell_ptr)
        value = values[data.cell_category]
        mean = np.bincount(item, votes * value) / data.labels_per_item
        variance = np.bincount(item, votes * (value - mean[item]) ** 2) / data.labels_per_item
        width = 2.0 * Z_95 * np.sqrt(variance / n)
    return np.maximum(n * (width / max(step, 1e-12)) ** 2, 2.0)
