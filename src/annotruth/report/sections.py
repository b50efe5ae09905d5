"""The sections of the report that show the evidence: annotators, items, labels, agreement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.advice.advice import Advice
from annotruth.advice.annotators import verdict_rules
from annotruth.advice.items import ITEM_STATUS
from annotruth.errors import AnnotruthError, counted, shorten
from annotruth.models.base_fit import READOUTS, SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.report.charts.chart import Chart, color_indices
from annotruth.report.charts.drawing import escaped
from annotruth.report.charts.fit_charts import FitCharts
from annotruth.report.consensus import AgreementRow
from annotruth.report.html import (
    chips,
    facts,
    figure,
    plain_table,
    section,
    settings,
    side_by_side,
    table_placeholder,
)
from annotruth.report.tables import PageTable


def charts_of(plot: FitCharts, fit: Fit) -> dict[str, Chart]:
    """Return the charts of the report that the model has data for, by name."""
    reliability = plot.matches if fit.reliability is None else plot.reliability
    wanted: Sequence[Callable[[], Chart]] = (
        *(plot.categories, plot.workload, plot.history, reliability),
        *(plot.items, plot.scores, plot.agreement),
    )
    charts = {}
    for make in wanted:
        try:
            chart = make()
        except AnnotruthError:  # the model gives no data for it
            continue
        charts[chart.name] = chart
    return charts


def notice(fit: Fit) -> str:
    """Return the warning at the top of the report; empty if there is none."""
    if fit.converged or not fit.n_iter:
        return ""
    return (
        f"Not converged after {counted(fit.n_iter, 'iteration')}: the numbers on this page may "
        "still change. Raise max_iter, or tol."
    )


def appendix_section(fit: Fit, charts: Mapping[str, Chart]) -> str:
    """Return what was read and how the fit ended."""
    return section(
        "appendix", "Appendix", *_what_was_read(fit, charts), *_how_it_ended(fit, charts)
    )


def _what_was_read(fit: Fit, charts: Mapping[str, Chart]) -> list[str]:
    """Return what was read and what was dropped."""
    data = fit.data
    known = int((data.known >= 0).sum())
    rows: list[tuple[str, object, str]] = [
        ("Labels", f"{data.n_labels:,}", ""),
        ("Items", f"{data.n_items:,}", _range_of(data.labels_per_item)),
        ("Annotators", f"{data.n_annotators:,}", _range_of(data.labels_per_annotator)),
        ("Categories", f"{data.n_categories:,}", _scale(fit)),
        (
            "Rows dropped",
            f"{data.n_dropped:,}" if data.n_dropped else "none",
            "rows without a label",
        ),
    ]
    if known:
        rows.append(("Known truths", f"{known:,}", "items whose truth was given"))
    return [
        "<h3>What was read</h3>",
        facts(rows),
        chips(data.scale.names, color_indices(data.scale)),
        side_by_side(figure(charts["categories"]), figure(charts["workload"])),
    ]


def _how_it_ended(fit: Fit, charts: Mapping[str, Chart]) -> list[str]:
    """Return how the fit ended."""
    if not fit.n_iter:
        css_class, status, rest = (
            "good",
            "Computed directly",
            f" by {fit.model}, without iterations.",
        )
    else:
        css_class, status = ("good", "Converged") if fit.converged else ("bad", "Not converged")
        rest = f" after {counted(fit.n_iter, 'iteration')}: {fit.stop_reason}."
    status = f'<p class="note {css_class}"><span class="status">{status}</span> {escaped(rest)}</p>'
    likelihood = ""
    if fit.log_likelihood is not None:
        per_label = fit.log_likelihood / fit.data.n_labels
        text = f"Log-likelihood {fit.log_likelihood:,.2f}, {per_label:.4f} per label."
        likelihood = f'<p class="quiet">{text}</p>'
    parts = [status, likelihood, settings({"model": fit.model, **fit.settings})]
    if "history" in charts:
        beside = f'<div class="beside">{"".join(parts)}</div>'
        parts = [side_by_side(figure(charts["history"]), beside)]
    return ["<h3>How the fit ended</h3>", *parts]


def annotator_section(
    fit: Fit, charts: Mapping[str, Chart], table: PageTable, advice: Advice
) -> str:
    """Return how reliable annotators are."""
    if fit.reliability is None:
        lead = (
            f"{fit.model} gives no reliability. Below is how often each annotator's labels are the "
            "recovered ones, which their own labels helped to recover."
        )
    else:
        lead = f"The median reliability is {np.median(fit.reliability):.2f}."
    verdicts = _counts("Verdicts", advice.of_annotators.count(), verdict_rules(fit))
    chart = charts["matches" if fit.reliability is None else "reliability"]
    return section(
        "annotators",
        "Annotators",
        f'<p class="lead">{escaped(lead)}</p>',
        side_by_side(figure(chart), verdicts),
        _left_out(
            table, "annotators", "least reliable" if fit.reliability is not None else "first"
        ),
        table_placeholder("annotators", "Annotators"),
        long=True,
    )


def item_section(fit: Fit, charts: Mapping[str, Chart], table: PageTable, advice: Advice) -> str:
    """Return the items' labels and how certain they are."""
    lead = ""
    if fit.distribution is not None:
        n = int(np.count_nonzero(fit.distribution.confidence() > 0.9))
        of = "probability" if fit.readout == "right" else "of opinion"
        lead = (
            f"{n:,} of {fit.data.n_items:,} items have a top label above 90% {of}. Distributions "
            f"and confidence are {READOUTS[fit.readout]}."
        )
    if fit.expectation is not None:
        low, middle, high = np.quantile(fit.expectation, [0.0, 0.5, 1.0])
        lead += f" Scores range from {low:.2f} to {high:.2f}, with a median of {middle:.2f}."
    return section(
        "items",
        "Items",
        f'<p class="lead">{escaped(lead)}</p>',
        side_by_side(
            figure(charts["items"]), _counts("Status", advice.of_items.count(), ITEM_STATUS)
        ),
        figure(charts["scores"]) if "scores" in charts else "",
        _left_out(table, "items", "most difficult"),
        table_placeholder("items", "Items"),
        long=True,
    )


def label_section(fit: Fit, table: PageTable | None) -> str:
    """Return the labels that are probably not serious."""
    if table is None:
        text = (
            f"{fit.model} does not say which labels are serious: gpm, robust-gpm and "
            "ordinal-mixture do."
        )
        return section("labels", "Doubtful labels", f"<p>{escaped(text)}</p>")
    lead = (
        f"{table.total:,} of {fit.data.n_labels:,} labels ({table.total / fit.data.n_labels:.1%}) "
        f"are probably not serious: p serious is below {SPAMMER_BELOW}."
    )
    body = [_left_out(table, "labels", "least serious"), table_placeholder("labels", "Labels")]
    return section(
        "labels",
        "Doubtful labels",
        f'<p class="lead">{escaped(lead)}</p>',
        *(body if table.total else []),
        long=True,
    )


def agreement_section(fit: Fit, charts: Mapping[str, Chart], rows: Sequence[AgreementRow]) -> str:
    """Return how far annotators agree, with and without doubtful labels."""
    lines = [
        ["labels", *(f"{row.n_labels:,}" for row in rows)],
        *([name, *(_coefficient(row.values[name]) for row in rows)] for name in rows[0].values),
    ]
    meaning = (
        "Krippendorff's alpha and Fleiss' kappa: 1 is full agreement, 0 is agreement by chance; an "
        "alpha of 0.8 and more is commonly taken as good, from 0.67 as tolerable. Low agreement is "
        "not an error where opinions differ."
    )
    parts = [plain_table(["", *(row.name for row in rows)], lines)]
    if len(rows) > 1:
        after = (
            "Weighted: a pair of labels counts by the product of their p serious; kappa has no "
            "weights. Labels far from the others are the ones called doubtful, so part of the "
            "increase comes by construction."
        )
        parts.append(f'<p class="quiet">{escaped(after)}</p>')
    if "agreement" in charts:
        beside = f'<div class="beside">{"".join(parts)}</div>'
        parts = [side_by_side(beside, figure(charts["agreement"]))]
    return section("agreement", "Agreement", f"<p>{escaped(meaning)}</p>", *parts)


def _counts(title: str, counts: Mapping[str, int], rules: Mapping[str, str]) -> str:
    """Return how many have each status or verdict, with the rule for it."""
    rows = [
        (word.capitalize(), f"{counts[word]:,}", rule)
        for word, rule in rules.items()
        if counts[word] or word != "known truth"
    ]
    return f'<div class="beside"><h3>{title}</h3>{facts(rows)}</div>'


def _left_out(table: PageTable, what: str, which: str) -> str:
    """Return a note that rows were left out, if any were."""
    if table.rows == table.total:
        return ""
    text = (
        f"This page holds the {table.rows:,} {which} of {table.total:,} {what}; "
        f"{table.total - table.rows:,} are left out to keep it small. "
        "`annotruth fit --out DIR` writes all of them."
    )
    return f'<p class="note">{escaped(text)}</p>'


def _range_of(counts: NDArray[Any]) -> str:
    low, high = int(counts.min()), int(counts.max())
    if low == high:
        return f"{counted(low, 'label')} each"
    return f"{low:,} to {high:,} labels each, median {np.median(counts):,.0f}"


def _scale(fit: Fit) -> str:
    scale = fit.data.scale
    if not scale.is_ordinal:
        return "nominal: without an order"
    return f"ordinal: {shorten(scale.names[0])} lowest, {shorten(scale.names[-1])} highest"


def _coefficient(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.3f}"
