"""Whom to keep: a verdict on every annotator, with the reason in words."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import AnnotruthError
from annotruth.models.base_fit import SPAMMER_BELOW, TOO_FEW
from annotruth.models.result import Fit

FEW_LABELS = 5
"""With fewer labels nobody is judged where the model gives no interval."""


def judged(fit: Fit) -> NDArray[np.str_]:
    """Judge every annotator: keep, drop, unsure, or few labels.

    Labels are few where the model says so itself. Else the interval of the reliability decides:
    all of it on or above the line under which one spams is keep, all of it below is drop, and
    across the line is unsure. Without an interval the reliability itself decides, and labels
    under `FEW_LABELS` are few. Nobody is dropped by a model that does not know spam from mistakes.
    """
    if fit.reliability is None:
        raise AnnotruthError(f"{fit.model} says nothing of annotators: fit another model, say gpm")
    low = fit.reliability if fit.low is None else fit.low
    high = fit.reliability if fit.high is None else fit.high
    few = (fit.data.labels_per_annotator < FEW_LABELS) & (fit.low is None)
    if fit.behavior is not None:
        few |= np.array(fit.behavior) == TOO_FEW
    spams = (high < SPAMMER_BELOW) & (fit.p_serious is not None)
    return np.select(
        [few, low >= SPAMMER_BELOW, spams], ["few labels", "keep", "drop"], default="unsure"
    )


def verdict_table(fit: Fit) -> pa.Table:
    """Tell the verdicts, few labels among the unsure, and what led to each."""
    words = judged(fit)
    assert fit.reliability is not None
    because = {
        "keep": f"not below {SPAMMER_BELOW:g}",
        "drop": f"below {SPAMMER_BELOW:g}",
        "few labels": TOO_FEW,
        "unsure": f"may be on either side of {SPAMMER_BELOW:g}",
    }
    no_telling = f"below {SPAMMER_BELOW:g}, but {fit.model} cannot tell why"
    high = fit.reliability if fit.high is None else fit.high
    behavior = fit.behavior or ["serious"] * len(words)
    reasons = []
    for s, word in enumerate(words):
        count = fit.data.labels_per_annotator[s]
        told = f"reliability {fit.reliability[s]:.2f}"
        if fit.low is not None and fit.high is not None:
            told += f" ({fit.low[s]:.2f} to {fit.high[s]:.2f})"
        told += f" on {count:,} label{'s' if count != 1 else ''}"
        told += f", {behavior[s]}" if behavior[s] not in ("serious", TOO_FEW) else ""
        blind = word == "unsure" and high[s] < SPAMMER_BELOW
        reasons.append(f"{told}: {no_telling if blind else because[word]}")
    verdict = np.where(words == "few labels", "unsure", words)
    return pa.table(
        {
            "annotator": fit.data.annotators,
            "verdict": pa.array(verdict.tolist(), pa.string()),
            "reason": pa.array(reasons, pa.string()),
        }
    )
