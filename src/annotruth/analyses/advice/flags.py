"""Verdicts on annotators by a model that flags them, each with its evidence and example items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import counted
from annotruth.models.base_fit import (
    FLAGGED,
    LOW_ACCURACY,
    NO_VERDICT,
    OTHER_OPINION,
    PARTLY_CARELESS,
    TOO_FEW,
    UNCLEAR,
)
from annotruth.models.result import Fit

RULES = {
    "keep": "labels follow the items",
    "drop": "labels are careless or consistently wrong, by strong evidence that plain counts support",
    "unsure": "accuracy clearly below the crowd's, careless in part, or another opinion",
    "too few labels": f"{TOO_FEW}, or labels that follow the items too weakly: more would tell",
}
"""The rule for each verdict."""

N_EXAMPLES = 3
"""How many items a verdict names."""

_NOTICED = {
    LOW_ACCURACY: "accuracy clearly below that of most annotators",
    PARTLY_CARELESS: "a part of the labels does not depend on the items",
    OTHER_OPINION: "agrees with others who differ from the crowd",
    UNCLEAR: "labels follow the items too weakly to tell",
    NO_VERDICT: "labels are too few to tell them from chance",
}
_CAMPS = "it is open which of two sides is right"
_MOST_SHOWN = 24  # characters of an item's name


def has_flags(fit: Fit[Any]) -> bool:
    """Whether the fit's model flags annotators."""
    return FLAGGED in fit.annotator_columns


def verdicts_by_flags(fit: Fit[Any]) -> tuple[NDArray[np.str_], list[str]]:
    """Return the verdict on every annotator of a fit whose model flags them, and the reasons."""
    assert fit.behavior is not None
    flagged = np.asarray(fit.annotator_columns[FLAGGED], dtype=np.bool_)
    behavior = np.array(fit.behavior, dtype=object)
    noticed = np.isin(behavior, list(_NOTICED))
    needs_more = np.isin(behavior, [TOO_FEW, UNCLEAR])
    noticed &= ~needs_more
    verdict = np.select(
        [flagged, needs_more, noticed], ["drop", "too few labels", "unsure"], "keep"
    )
    examples = example_items(fit, flagged | noticed) if fit.kind == "labels" else {}
    reasons = [
        _reason(fit, s, word) + examples.get(s, "") for s, word in enumerate(verdict.tolist())
    ]
    return verdict, reasons


def _reason(fit: Fit[Any], s: int, verdict: str) -> str:
    """Return the evidence for a verdict in one sentence."""
    assert fit.behavior is not None
    columns, behavior = fit.annotator_columns, fit.behavior[s]
    n_labels = counted(int(fit.data.labels_per_annotator[s]), fit.unit)
    said = f"on {n_labels}"
    if "accuracy" in columns:
        low, high = columns["accuracy_low"][s], columns["accuracy_high"][s]
        said = f"accuracy {columns['accuracy'][s]:.2f} ({low:.2f} to {high:.2f}) on {n_labels}"
    if verdict == "drop":
        odds = f"{10 ** min(float(columns['evidence'][s]), 9):,.0f}"
        return (
            f"{said}: {behavior}; {odds} times likelier if labels do not follow the items, agreement with "
            f"others {columns['agreement'][s]:+.2f} (0: own labels shuffled)"
        )
    if verdict == "too few labels":
        return f"{said}: {_NOTICED.get(behavior, TOO_FEW)}"
    if verdict == "unsure":
        noticed = _CAMPS if fit.verdict == "camps" else _NOTICED[behavior]
        return f"{said}: {behavior}, {noticed}"
    return f"{said}: {behavior}"


def example_items(fit: Fit, which: NDArray[np.bool_]) -> dict[int, str]:
    """Return, for some annotators, the labels that most contradict what was recovered, in words.

    Only items that others labelled, too.
    """
    data, theta = fit.data, fit.distribution
    if theta is None or fit.label is None or not which.any():
        return {}
    cell = data.cell_of_label()
    item = data.item_of_cell()[cell]
    chosen = np.flatnonzero(which[data.annotator] & (data.labels_per_item[item] > 1))
    p_own = theta.of_each_cell(data)[cell[chosen]]
    order = np.lexsort((chosen, p_own, data.annotator[chosen]))
    annotator = data.annotator[chosen][order]
    first = np.flatnonzero(np.diff(annotator, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    kept = order[(rank < N_EXAMPLES) & (p_own[order] < 0.5)]
    found: dict[int, list[str]] = {}
    names: Sequence[str] = data.scale.names
    for place in chosen[kept].tolist():
        e = int(item[place])
        name = str(data.items[e].as_py())
        short = name if len(name) <= _MOST_SHOWN else f"{name[: _MOST_SHOWN - 3]}..."
        given = names[data.cell_category[cell[place]]]
        text = f"{short}: {given} instead of {names[fit.label[e]]}"
        found.setdefault(int(data.annotator[place]), []).append(text)
    return {s: f"; for example {', '.join(texts)}" for s, texts in found.items()}
