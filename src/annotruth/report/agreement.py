"""Agreement before and after doubtful labels are left out or count less."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from annotruth.agreement import Metric, fleiss_kappa, krippendorff_alpha
from annotruth.labels.scale import numbers_behind
from annotruth.models.result import Fit


@dataclass(frozen=True)
class AgreementRow:
    """The coefficients of some of the labels; nan where one has no value."""

    name: str
    n_labels: int
    values: dict[str, float]


def agreement_rows(fit: Fit) -> list[AgreementRow]:
    """Measure all labels, those without spammers, and all by how likely they are serious."""
    data, spammer = fit.data, fit.spammer
    rows = [_row(fit, "all labels", np.ones(data.n_labels))]
    if spammer is not None and spammer.any():
        kept = ~spammer[data.annotator]
        rows.append(_row(fit, "without spammers", kept.astype(float)))
    if fit.p_serious is not None:
        rows.append(_row(fit, "weighted by p serious", fit.p_serious, whole=False))
    return rows


def metrics_of(fit: Fit) -> list[Metric]:
    """Choose the differences that the scale has: an interval needs numbers."""
    scale = fit.data.scale
    if not scale.is_ordinal:
        return ["nominal"]
    numbers = numbers_behind(scale.categories) is not None
    return ["ordinal", "interval", "nominal"] if numbers else ["ordinal", "nominal"]


def _row(fit: Fit, name: str, weight: np.ndarray, *, whole: bool = True) -> AgreementRow:
    values = {
        f"alpha ({metric})": krippendorff_alpha(fit.data, metric, weight)
        for metric in metrics_of(fit)
    }
    # Kappa counts labels; it has no weights.
    values["Fleiss' kappa"] = fleiss_kappa(fit.data, weight) if whole else float("nan")
    return AgreementRow(name, int(np.count_nonzero(weight)), values)
