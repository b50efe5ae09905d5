"""Whom to keep: a verdict on every annotator, with the reason in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from annotruth.errors import AnnotruthError

if TYPE_CHECKING:
    from annotruth.models.result import Fit

FEW_LABELS = 5
"""With fewer labels nobody is judged where the model gives no interval."""


def verdict_table(fit: Fit, line: float, unclear: str) -> pa.Table:
    """Judge every annotator by their reliability, held against the line under which one spams.

    Where the model gives an interval, it decides: all of it on or above the line is keep, all of
    it below is drop, and across the line is unsure. Without one the reliability itself decides,
    and annotators of few labels are unsure; so are those of whom the model says itself that it
    is ``unclear``. Nobody is dropped by a model that does not know spam from mistakes.
    """
    reliability = fit.reliability
    if reliability is None:
        raise AnnotruthError(f"{fit.model} says nothing of annotators: fit another model, say gpm")
    low = reliability if fit.low is None else fit.low
    high = reliability if fit.high is None else fit.high
    has_interval = fit.low is not None and fit.high is not None
    behavior = fit.behavior or ["serious"] * len(reliability)
    verdicts, reasons = [], []
    for s, (estimate, least, most, count) in enumerate(
        zip(reliability, low, high, fit.data.labels_per_annotator, strict=True)
    ):
        few = behavior[s] == unclear or (not has_interval and count < FEW_LABELS)
        if few or least < line <= most:
            verdict, because = "unsure", unclear if few else f"may be on either side of {line:g}"
        elif least >= line:
            verdict, because = "keep", f"not below {line:g}"
        elif fit.p_serious is None:
            verdict, because = "unsure", f"below {line:g}, but {fit.model} cannot tell why"
        else:
            verdict, because = "drop", f"below {line:g}"
        told = f"reliability {estimate:.2f}"
        told += f" ({least:.2f} to {most:.2f})" if has_interval else ""
        told += f" on {count:,} label{'s' if count != 1 else ''}"
        told += f", {behavior[s]}" if behavior[s] not in ("serious", unclear) else ""
        verdicts.append(verdict)
        reasons.append(f"{told}: {because}")
    return pa.table(
        {
            "annotator": fit.data.annotators,
            "verdict": pa.array(verdicts, pa.string()),
            "reason": pa.array(reasons, pa.string()),
        }
    )
