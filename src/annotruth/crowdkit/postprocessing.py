"""Filters of labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from annotruth.crowdkit.metrics.data import uncertainty
from annotruth.crowdkit.votes import select
from annotruth.errors import AnnotruthWarning

__all__ = ["entropy_threshold"]


def entropy_threshold(
    answers: pd.DataFrame,
    workers_skills: pd.Series[Any] | None = None,
    percentile: int = 10,
    min_answers: int = 2,
) -> pd.DataFrame:
    """Return the labels without those of workers who nearly always give the same label.

    Workers are removed if the entropy of their labels, weighted by ``workers_skills``, is at most this
    ``percentile``; those with fewer than ``min_answers`` labels are kept.
    """
    frame = select(answers)
    n_labels = frame["worker"].value_counts()
    frame = frame[frame["worker"].isin(n_labels.index[n_labels >= min_answers])]
    if not len(frame):
        return answers
    entropies = uncertainty(frame, workers_skills, compute_by="worker", aggregate=False)
    removed = entropies.index[entropies <= np.percentile(entropies, percentile)]
    kept = answers[~answers["worker"].isin(removed)]
    if len(kept) <= len(answers) // 2:
        warnings.warn(
            "Removed >= 1/2 of answers with entropy_threshold. This might lead to poor annotation "
            "quality. Pass a lower percentile or a higher min_answers.",
            AnnotruthWarning,
            stacklevel=2,
        )
    return kept
