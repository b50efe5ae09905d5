"""What a fit says about people, whatever columns its model has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.result import Fit
from benchmarks.honesty.options import probabilities

Bools = NDArray[np.bool_]

NOTICES = ("low accuracy", "partly careless")
"""Behaviors that warn of somebody without a flag."""

TOO_FEW = "too few"
ANOTHER_OPINION = "another opinion"


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What a fit says about every annotator, in the order of its labels' annotators.

    Attributes
    ----------
    quality
        What ranks people: the accuracy, else the reliability, else the mean posterior at their
        labels; None without any.
    measure
        Which of them: "accuracy", "reliability", "posterior" or "-".
    low, high
        The interval of the accuracy; None without one.
    flagged
        Whether they are flagged as spammers; None for models that flag nobody.
    behavior
        What the model calls them; empty without names.
    """

    quality: Floats | None
    measure: str
    low: Floats | None
    high: Floats | None
    flagged: Bools | None
    behavior: Sequence[str]

    @property
    def noticed(self) -> Bools | None:
        """Whether people are flagged, or said to be of low accuracy or partly careless."""
        return None if self.flagged is None else self.flagged | self.behaves(*NOTICES)

    def behaves(self, *names: str) -> Bools:
        """Return whose behavior starts with one of the names."""
        n = 0 if self.flagged is None else self.flagged.size
        behavior = self.behavior or [""] * n
        return np.array([word.startswith(names) for word in behavior], dtype=np.bool_)


def verdicts_of(fit: Fit) -> Verdicts:
    """Return what the table of annotators says."""
    table = fit.annotator_table()

    def column(name: str) -> Floats | None:
        if name not in table.column_names:
            return None
        values: Floats = table[name].to_numpy().astype(np.float64)
        return values

    quality, measure = column("accuracy"), "accuracy"
    if quality is None:
        quality, measure = column("reliability"), "reliability"
    if quality is None and fit.distribution is not None:
        quality, measure = posterior_at_labels(fit), "posterior"
    flagged = column("spammer")
    return Verdicts(
        quality=quality,
        measure=measure if quality is not None else "-",
        low=column("accuracy_low"),
        high=column("accuracy_high"),
        flagged=None if flagged is None else flagged > 0,
        behavior=table["behavior"].to_pylist() if "behavior" in table.column_names else [],
    )


def posterior_at_labels(fit: Fit) -> Floats:
    """Return the mean probability of the labels that people gave, per annotator."""
    data = fit.data
    p = probabilities(fit)[data.item_of_label(), data.category_of_label()]
    means: Floats = np.bincount(data.annotator, p) / data.labels_per_annotator
    return means


def says_no_verdicts(fit: Fit) -> bool:
    """Return whether the summary's first line says that there are no verdicts on people."""
    first = fit.summary().partition("\n")[0]
    return first.startswith("WARNING:") and "no verdicts on people" in first
