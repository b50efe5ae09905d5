"""How good sets of labels are, compared with known sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.observations.sets import Members, known_members, match_known_sets
from annotruth.sets.fit import SetFit


def evaluate_sets(
    fit: SetFit,
    truth: Any,
    *,
    separator: str | None = None,
    max_size: str | int | None = None,
    **_: object,
) -> dict[str, float]:
    """Return micro-F1, macro-F1, the share of exact matches, and Jaccard's index.

    ``truth`` is a frame of ``item`` and a column of lists, or of text with the separator between
    labels (by default that of the fit), or a mapping of items to sets.
    """
    separator = separator or fit.separator
    with file_named_in_errors(truth):
        table = load_table(truth, max_size=max_size)
        known = match_known_sets(table, fit.data, role="truth", separator=separator)
    return set_metrics(known_members(known, fit.data.scale), fit.sets[known.item])


def set_metrics(truth: Members, sets: Members) -> dict[str, float]:
    """Return the metrics of sets, items x labels, compared with true sets.

    Two empty sets have Jaccard's index 1. Macro-F1 is over the labels that are in some set.
    """
    both = (truth & sets).sum(axis=0)
    total = truth.sum(axis=0) + sets.sum(axis=0)
    seen = total > 0
    common, either = (truth & sets).sum(axis=1), (truth | sets).sum(axis=1)
    jaccard = np.where(either > 0, common / np.maximum(either, 1), 1.0)
    return {
        "f1_micro": float(2.0 * both.sum() / max(total.sum(), 1)),
        "f1_macro": float(np.mean(2.0 * both[seen] / total[seen])) if seen.any() else 0.0,
        "exact_match": float((truth == sets).all(axis=1).mean()),
        "jaccard": float(jaccard.mean()),
    }
