"""The sections of the report, in the order of the questions of a labelling lead."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.advice.advice import Advice
from annotruth.advice.annotators import ASK_FROM, verdict_rules
from annotruth.advice.items import ITEM_STATUS, LEAST_GAIN, MAX_PER_ROUND
from annotruth.errors import AnnotruthError, counted, shorten
from annotruth.kernels.arrays import Codes
from annotruth.models.base_fit import CHANCE_LINE, READOUTS, SPAMMER_BELOW
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

_MAX_NAMED = 12


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
    return f"Warning: {CHANCE_LINE}." if fit.verdict == "chance" else ""


def read_section(fit: Fit, charts: Mapping[str, Chart]) -> str:
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
    return section(
        "read",
        "What was read",
        facts(rows),
        chips(data.scale.names, color_indices(data.scale)),
        side_by_side(figure(charts["categories"]), figure(charts["workload"])),
    )


def fit_section(fit: Fit, charts: Mapping[str, Chart]) -> str:
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
        if not fit.converged:
            rest += " The numbers below may still change: raise max_iter, or tol."
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
    return section("fit", "How the fit ended", *parts)


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
        if fit.n_spammers is not None:
            dropped = advice.of_annotators.count()["drop"]
            lead += (
                f" {fit.n_spammers:,} of {fit.data.n_annotators:,} annotators have a reliability "
                f"below {SPAMMER_BELOW} (spammers); for {dropped:,} of them the whole interval is "
                "below: verdict drop."
            )
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
        if fit.n_spammers:
            after = (
                "Without spammers: labels of annotators with a reliability below "
                f"{SPAMMER_BELOW} are left out. {after}"
            )
        parts.append(f'<p class="quiet">{escaped(after)}</p>')
    if "agreement" in charts:
        beside = f'<div class="beside">{"".join(parts)}</div>'
        parts = [side_by_side(beside, figure(charts["agreement"]))]
    return section("agreement", "Agreement", f"<p>{escaped(meaning)}</p>", *parts)


def next_section(fit: Fit, advice: Advice) -> str:
    """Return what to do next: whom to drop and to ask, which items need labels."""
    data, people, items = fit.data, advice.of_annotators, advice.of_items
    verdicts = [
        _group("annotators", "verdict", verdict, data.annotators, people.verdict == verdict)
        for verdict in ("drop", "unsure", "too few labels")
        if verdict in verdict_rules(fit)
    ]
    by_information = np.argsort(-people.information, kind="stable")
    verdicts.append(
        _group("annotators", "ask", "yes", data.annotators, people.ask, by_information,
               title="ask for more labels, most informative annotators first")
    )  # fmt: skip
    by_gain = np.argsort(-items.gain, kind="stable")
    notes = {"needs labels": f"add {counted(advice.n_add, 'label')}"}
    statuses = [
        _group("items", "status", status, data.items, items.status == status, by_gain,
               note=notes.get(status, ""))
        for status in ITEM_STATUS
        if status != "known truth"
    ]  # fmt: skip
    rule = (
        "An item needs labels if one more label is expected to lower its squared Hellinger "
        f"distance from the truth by at least {LEAST_GAIN:g}; it gets at most {MAX_PER_ROUND} per "
        "round. Annotators are asked for more labels unless they are dropped or their labels have "
        f"low information: less than {ASK_FROM:g} of the best tenth's."
    )
    return section(
        "next",
        "What to do next",
        f'<div class="steps"><div><h3>Annotators</h3><ul>{"".join(verdicts)}</ul></div>'
        f"<div><h3>Items</h3><ul>{''.join(statuses)}</ul></div></div>",
        f'<p class="quiet">{escaped(rule)}</p>',
    )


def _counts(title: str, counts: Mapping[str, int], rules: Mapping[str, str]) -> str:
    """Return how many have each status or verdict, with the rule for it."""
    rows = [
        (word.capitalize(), f"{counts[word]:,}", rule)
        for word, rule in rules.items()
        if counts[word] or word != "known truth"
    ]
    return f'<div class="beside"><h3>{title}</h3>{facts(rows)}</div>'


def _group(
    table: str, column: str, word: str, ids: Any, member: NDArray[np.bool_],
    order: Codes | None = None, *, title: str = "", note: str = "",
) -> str:  # fmt: skip
    """Return how many rows have a word in a column, the first of them, and a button to show them."""
    chosen = np.flatnonzero(member) if order is None else order[member[order]]
    text = escaped(title or word)
    if not len(chosen):
        return f"<li><p><b>0</b> · {text}</p></li>"
    named = [shorten(str(ids[int(k)].as_py())) for k in chosen[:_MAX_NAMED]]
    more = f", and {len(chosen) - len(named):,} more" if len(chosen) > len(named) else ""
    button = f'<button type="button" class="show" data-show="{table}|{column}|{word}">Show</button>'
    text += f" · {escaped(note)}" if note else ""
    names = f'<p class="quiet names">{escaped(", ".join(named))}{more}</p>'
    if word == "needs no more labels":
        names = ""
    return f"<li>{button}<p><b>{len(chosen):,}</b> · {text}</p>{names}</li>"


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
