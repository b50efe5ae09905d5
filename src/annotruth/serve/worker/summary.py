"""The figures of a snapshot, and which annotators changed noticeably since the last one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from annotruth.advice.advice import Advice
from annotruth.advice.annotators import verdicts
from annotruth.advice.changes import LEAST_MOVE
from annotruth.agreement import krippendorff_alpha
from annotruth.models.result import Fit
from annotruth.serve.store.records import AnnotatorHistory, Project
from annotruth.serve.worker.fitting import AnyFit, CurrentFit
from annotruth.serve.worker.progress import expected_end, labels_needed


def summarize(
    project: Project,
    made: CurrentFit,
    advice: Advice | None,
    per_hour: Mapping[datetime, int],
    now: datetime,
) -> dict[str, Any]:
    """Return the figures of a snapshot, of JSON types; what there is not for a model is None."""
    fit, settings = made.fit, project.settings
    n_needed = None
    if advice is not None:
        n_needed = labels_needed(advice, settings.get("labels_per_item"))
    expected = expected_end(per_hour, now, n_needed=n_needed)
    cost = settings.get("cost_per_label")
    figures: dict[str, Any] = {
        "n_labels": fit.data.n_labels,
        "n_items": fit.data.n_items,
        "n_annotators": fit.data.n_annotators,
        "n_spammers": None if _has_no_verdicts(fit) else fit.n_spammers,
        "converged": fit.converged,
        "cost": None if cost is None else cost * fit.data.n_labels,
        "agreement": None,
        "n_finished": None,
        "n_needed": n_needed,
        "labels_per_hour": expected.labels_per_hour,
        "expected_end": None if expected.end is None else expected.end.isoformat(),
        "notes": [*_limits(fit), *made.notes],
    }
    if isinstance(fit, Fit) and advice is not None:
        alpha = krippendorff_alpha(fit.data)
        statuses = advice.of_items.count()
        figures |= {
            "agreement": alpha if math.isfinite(alpha) else None,
            "statuses": statuses,
            "n_finished": fit.data.n_items - statuses["needs labels"],
            "verdicts": advice.of_annotators.count(),
        }
    return figures


def _has_no_verdicts(fit: AnyFit) -> bool:
    """Whether it is not known who is a spammer: labels of chance, or two sides of a crowd."""
    return isinstance(fit, Fit) and (fit.is_void or fit.verdict == "camps")


def _limits(fit: AnyFit) -> list[str]:
    """Return what limits the results of a fit of labels."""
    return [note.sentence for note in fit.notes] if isinstance(fit, Fit) else []


def changed_annotators(
    project: Project,
    version: int,
    fit: AnyFit,
    last: Mapping[str, AnnotatorHistory],
    now: datetime,
) -> list[AnnotatorHistory]:
    """Return a row for every annotator who is new or changed noticeably since their last row.

    That is: another verdict or behavior, a reliability or an end of its interval that moved by
    `LEAST_MOVE`, or twice as many labels.
    """
    if fit.reliability is None and not isinstance(fit, Fit):
        return []
    n = fit.data.n_annotators
    reliability, low, high = (
        [None] * n if values is None else values.tolist()
        for values in (fit.reliability, fit.low, fit.high)
    )
    columns = (
        fit.data.annotators.to_pylist(),
        fit.data.labels_per_annotator.tolist(),
        reliability,
        low,
        high,
        fit.behavior or [""] * n,
        verdicts(fit)[0].tolist(),
    )
    rows = (
        AnnotatorHistory(project.id, name, version, now, *others)
        for name, *others in zip(*columns, strict=True)
    )
    return [row for row in rows if _is_noticeable(row, last.get(row.annotator))]


def _is_noticeable(row: AnnotatorHistory, last: AnnotatorHistory | None) -> bool:
    if last is None or row.n_labels >= 2 * last.n_labels:
        return True
    if (row.verdict, row.behavior) != (last.verdict, last.behavior):
        return True
    return any(
        (now is None) != (before is None)
        or (now is not None and before is not None and abs(now - before) >= LEAST_MOVE)
        for now, before in (
            (row.reliability, last.reliability),
            (row.low, last.low),
            (row.high, last.high),
        )
    )
