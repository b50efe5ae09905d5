"""Charts of a fit of sets of labels."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.report.charts import shapes
from annotruth.report.charts.chart import CLASS_COLORS, Chart
from annotruth.report.charts.fit_charts import as_text, interval_chart, sorted_intervals
from annotruth.sets.fit import given_sets, label_names

_MAX_BARS = 24
_MAX_TOGETHER = 12


def label_chart(fit: Fit) -> Chart:
    """Chart the share of items that have each label, and of answers that give it."""
    prevalence, given = fit.probability.mean(axis=0), given_sets(fit.data).mean(axis=0)
    order = np.argsort(-prevalence, kind="stable")[:_MAX_BARS]
    names = [label_names(fit.data)[n] for n in order]
    tips = [
        f"{name}: {prevalence[n]:.1%} of items have it, {given[n]:.1%} of answers give it"
        for name, n in zip(names, order, strict=True)
    ]
    more = (
        f" The {len(order)} most frequent of {len(label_names(fit.data)):,}."
        if len(order) < len(label_names(fit.data))
        else ""
    )
    return Chart(
        name="labels",
        title="Share of items with each label",
        caption=f"Recovered, and as given in answers.{more}",
        data={
            "label": names,
            "recovered": prevalence[order].tolist(),
            "given": given[order].tolist(),
        },
        draw=lambda width: shapes.paired_bars(
            names, given[order], prevalence[order], ["at-k0"] * len(names), width, tips
        ),
        colors=CLASS_COLORS,
    )


def reliability_chart(fit: Fit) -> Chart:
    """Chart the reliability of annotators with their intervals."""
    names = as_text(fit.data.annotators)
    intervals = sorted_intervals(
        names, np.asarray(fit.reliability), fit.low, fit.high, fit.spammer, (0.0, 1.0), "reliability",
        SPAMMER_BELOW,
    )  # fmt: skip
    caption = "What answers say relative to a typical serious annotator, with 95% intervals."
    return interval_chart(
        "reliability",
        "Reliability of annotators",
        caption,
        "annotator",
        intervals,
        "annotators by rank",
    )


def together_chart(fit: Fit) -> Chart | None:
    """Chart which labels go together; None where types of items do not say that they do."""
    share = shares_together(fit)
    if share is None:
        return None
    order = np.argsort(-fit.probability.mean(axis=0), kind="stable")[:_MAX_TOGETHER]
    names = [label_names(fit.data)[n] for n in order]
    shown = share[np.ix_(order, order)]
    drawn = np.where(np.eye(len(order), dtype=np.bool_), np.nan, np.clip(shown, 0.0, 1.0))
    tips = [
        f"{column}: {shown[k, g]:.0%} of items with {row}"
        for k, row in enumerate(names)
        for g, column in enumerate(names)
    ]
    texts = [f"{value:.0%}" if len(order) <= 8 else "" for value in shown.ravel()]
    return Chart(
        name="together",
        title="Labels that go together",
        caption="Of the items with the label of the row, the share that has that of the column.",
        data={
            "label": [row for row in names for _ in names],
            "other": names * len(names),
            "share": shown.ravel().tolist(),
        },
        draw=lambda width: shapes.heatmap(
            names, names, drawn, width, tips, ("with ↓", "also →"), texts
        ),
    )


def shares_together(fit: Fit) -> Floats | None:
    """Return the share of items with one label that have another, labels x labels."""
    theta, types = fit.parameters["theta"], fit.parameters["types"]
    if len(types) == 1:
        return None
    both = np.einsum("k,ka,kb->ab", types, theta, theta)
    share: Floats = both / (types @ theta)[:, np.newaxis]
    return share
