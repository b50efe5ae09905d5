"""The report of a fit of labels: its sections and its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.analyses.advice.items import ITEM_STATUS
from annotruth.errors import counted, shorten
from annotruth.models.base_fit import READOUTS, SPAMMER_BELOW
from annotruth.models.evidence.classifier import judge_classifier
from annotruth.models.fits.notes import DISPUTED_RULE
from annotruth.models.result import Fit
from annotruth.report.charts.chart import Chart, category_colors, color_indices, drawable
from annotruth.report.charts.fit_charts import FitCharts
from annotruth.report.consensus import (
    AgreementRow,
    Consensus,
    ItemVotes,
    agreement_rows,
    category_bins,
)
from annotruth.report.content import ItemContent
from annotruth.report.further import make_sections
from annotruth.report.headings import ACCURACY_TIPS
from annotruth.report.over_time import since_last_fit
from annotruth.report.page import Page, pack, tables_of
from annotruth.report.render import (
    Chips,
    DataTable,
    Fact,
    Part,
    Section,
    SideBySide,
    SmallTable,
    Text,
    as_sentence,
    figure,
)
from annotruth.report.sections import (
    annotator_section,
    appendix,
    convergence_notice,
    range_of,
    rows_dropped,
    rows_left_out,
    verdict_counts,
)
from annotruth.report.tables import (
    DoubtfulLabels,
    PageTable,
    annotator_rows,
    annotator_table,
    doubtful_labels,
    item_rows,
    item_table,
    leading_estimate,
)
from annotruth.report.truth import compare_with_truth
from annotruth.report.verdict import n_disputed, trust_of, verdict_section

if TYPE_CHECKING:
    from annotruth.analyses.advice.changes import Changes

MAX_BYTES = 5_500_000
"""How much of the file tables and labels may take; of too many items, the most difficult stay."""

LOWEST = {"accuracy": "least accurate", "reliability": "least reliable", "matches": "first"}
_LEAST_SHARE = 0.2  # of the bytes, for labels
_MAX_CELLS = 8


def content(
    fit: Fit,
    *,
    truth: Any = None,
    arguments: str | None = None,
    changes: Changes | None = None,
    max_bytes: int = MAX_BYTES,
) -> Page:
    """Return what is in the report of a fit of labels.

    ``arguments``: what to type after ``annotruth next`` for advice on this fit, for the first
      screen.
    ``changes``: what is different from the fit before.
    ``max_bytes``: how much of the file tables may take.
    """
    has_truth = truth is not None or bool((fit.data.known >= 0).any())
    against = compare_with_truth(fit, truth) if has_truth else None
    consensus, advice, scale = Consensus(fit), advise(fit), fit.data.scale
    bins = category_bins(fit.data, _MAX_CELLS)
    charts, agreement = charts_of(fit), agreement_rows(fit)
    trust = trust_of(fit, advice, against.measured if against else None)
    before = [
        verdict_section(fit, advice, trust, agreement[0], arguments or "LABELS"),
        *([] if fit.earlier_fits is None else [since_last_fit(fit, changes)]),
        *([against.section] if against else []),
        _annotators(fit, charts, annotator_table(fit, consensus, advice, bins)),
    ]
    after = [
        _label_section(fit, doubtful_labels(fit, consensus, advice)),
        *(make_sections(fit) if fit.further else []),
        _agreement_section(agreement),
        _appendix(fit, charts),
    ]
    data: dict[str, Any] = {
        "categories": scale.names,
        "colors": color_indices(scale),
        "bins": bins.names,
        "tables": tables_of([*before, *after]),
    }
    packed = _pack(fit, consensus, advice, data, max_bytes)
    items = _item_section(fit, charts, packed.items, advice, packed.n_opened)
    return Page(
        kind="Annotation report",
        heading="Labels",
        described=fit.data.describe(),
        notice=convergence_notice(fit),
        sections=[*before, items, *after],
        footer="Numbers in the tables are rounded; `annotruth fit --out DIR` writes them in full.",
        data=packed.data,
        colors=category_colors(scale),
        sources=packed.sources,
    )


def charts_of(fit: Fit) -> dict[str, Chart]:
    """Return the charts of the report that the model has data for, by name."""
    plot = FitCharts(fit)
    annotators = getattr(plot, leading_estimate(fit))
    return drawable((plot.categories, plot.history, annotators, plot.items, plot.scores))


class _PackedTables(NamedTuple):
    """The rows of the tables and the labels, packed."""

    data: str  # the tables and the labels, one per line
    items: PageTable  # the table of items
    n_opened: int  # of how many items the page has the labels
    # what the page may load, by directive of its Content-Security-Policy
    sources: Mapping[str, str]


def _pack(
    fit: Fit,
    consensus: Consensus,
    advice: Advice,
    data: Mapping[str, Any],
    max_bytes: int,
) -> _PackedTables:
    """Return the data of the page.

    What is too much is left out: first the labels of the least difficult items, then these items.
    """
    votes, people = ItemVotes(fit), annotator_rows(fit, consensus)
    covariates = fit.data.covariates.items
    content = ItemContent(covariates) if covariates else None
    max_rows = n_opened = fit.data.n_items
    while True:
        rows = item_rows(consensus, max_rows)
        items = item_table(fit, consensus, advice, max_rows)
        if content is not None:
            items.columns[1:1] = content.columns(rows)
        packed = pack({**data, "tables": {**data["tables"], "items": vars(items)}})
        room = max_bytes - len(packed)
        labels = pack(votes.of_page(item_rows(consensus, n_opened), rows, people))
        while len(labels) > room >= max_bytes * _LEAST_SHARE and n_opened > 1:
            n_opened = max(int(0.95 * n_opened * room / len(labels)), 1)
            labels = pack(votes.of_page(item_rows(consensus, n_opened), rows, people))
        if len(labels) <= room or n_opened <= 1:
            break
        max_rows = max(int(0.95 * max_rows * (1 - _LEAST_SHARE) * max_bytes / len(packed)), 1)
        n_opened = min(n_opened, max_rows)
    sources = {} if content is None else content.sources(rows)
    return _PackedTables(f"{packed}\n{labels}", items, n_opened, sources)


def _annotators(fit: Fit, charts: Mapping[str, Chart], table: PageTable) -> Section:
    """Return how accurate or reliable annotators are."""
    estimate = leading_estimate(fit)
    if fit.reliability is None:
        lead = (
            f"{fit.model} gives no reliability. Below is how often each annotator's labels are the "
            "recovered ones, which their own labels helped to recover."
        )
    elif fit.withholds_figures:
        lead = as_sentence(fit.notice())
    else:
        lead = f"The median {estimate} is {np.median(getattr(fit, estimate)):.2f}."
    if estimate == "accuracy" and not fit.withholds_figures:
        lead += (
            f" Accuracy is the {ACCURACY_TIPS[fit.readout]}; reliability is the probability that a "
            "label is serious."
        )
    return annotator_section(
        Text(lead, "lead"),
        charts[estimate],
        fit,
        DataTable("annotators", "Annotators", table),
        LOWEST[estimate],
    )


def _item_section(
    fit: Fit, charts: Mapping[str, Chart], table: PageTable, advice: Advice, n_opened: int
) -> Section:
    """Return the items' labels and how certain they are.

    ``n_opened`` is of how many items the page has who said what.
    """
    lead = ""
    if fit.withholds_figures:
        lead = as_sentence(fit.notice())
    elif fit.distribution is not None:
        n = int(np.count_nonzero(fit.distribution.confidence() > 0.9))
        of = "probability" if fit.readout == "right" else "of opinion"
        lead = (
            f"{n:,} of {fit.data.n_items:,} items have a top label above 90% {of}. Distributions "
            f"and confidence are {READOUTS[fit.readout]}."
        )
    if n := n_disputed(fit):
        lead += f" {counted(n, 'label is', 'labels are')} disputed: {DISPUTED_RULE}."
    if fit.expectation is not None and not fit.withholds_figures:
        low, middle, high = np.quantile(fit.expectation, [0.0, 0.5, 1.0])
        lead += f" Scores range from {low:.2f} to {high:.2f}, with a median of {middle:.2f}."
    counts = verdict_counts("Status", advice.of_items.count(), ITEM_STATUS)
    parts = [
        Text(lead, "lead"),
        SideBySide([charts["items"], counts]),
        charts.get("scores", ""),
        rows_left_out(table, "items", "most difficult"),
        _labels_left_out(table, n_opened),
        DataTable("items", "Items", table),
    ]
    return Section("items", "Items", parts, long=True)


def _labels_left_out(table: PageTable, n_opened: int) -> Part:
    """Return a note that the page does not say who said what of some items, if so."""
    if n_opened >= table.rows:
        return ""
    text = (
        f"Who said what is in this page for the {n_opened:,} most difficult of these items; the "
        "other labels are left out to keep it small."
    )
    return Text(text, "note")


def _label_section(fit: Fit, doubtful: DoubtfulLabels | None) -> Section:
    """Return the labels that are probably not serious, by person."""
    if doubtful is None:
        text = (
            f"{fit.model} does not say which labels are serious: gpm, robust-gpm and "
            "ordinal-mixture do."
        )
        return Section("labels", "Doubtful labels", [Text(text)])
    n = doubtful.n_labels
    lead = (
        f"{n:,} of {fit.data.n_labels:,} labels ({n / fit.data.n_labels:.1%}) are probably not "
        f"serious: p serious is below {SPAMMER_BELOW}."
    )
    if doubtful.n_dropped:
        lead += (
            f" {doubtful.n_dropped_labels:,} of them are by "
            f"{counted(doubtful.n_dropped, 'annotator')} with verdict drop: these labels go with "
            "their annotators and are left out below."
        )
    parts: list[Part] = [Text(lead, "lead")]
    if doubtful.table.total:
        lowest = LOWEST[leading_estimate(fit)]
        parts.append(rows_left_out(doubtful.table, "annotators with doubtful labels", lowest))
        parts.append(DataTable("labels", "Doubtful labels by person", doubtful.table))
    return Section("labels", "Doubtful labels", parts, long=True)


def _agreement_section(rows: Sequence[AgreementRow]) -> Section:
    """Return how far annotators agree, with and without doubtful labels."""
    lines = [
        ["labels", *(f"{row.n_labels:,}" for row in rows)],
        *([name, *(figure(row.values[name], 3) for row in rows)] for name in rows[0].values),
    ]
    meaning = (
        "Krippendorff's alpha and Fleiss' kappa: 1 is full agreement, 0 is agreement by chance; an "
        "alpha of 0.8 and more is commonly taken as good, from 0.67 as tolerable. Low agreement is "
        "not an error where opinions differ."
    )
    parts: list[Part] = [SmallTable(["", *(row.name for row in rows)], lines)]
    if len(rows) > 1:
        after = (
            "Weighted: a pair of labels counts by the product of their p serious; kappa has no "
            "weights. Labels far from the others are the ones called doubtful, so part of the "
            "increase comes by construction."
        )
        parts.append(Text(after, "quiet"))
    return Section("agreement", "Agreement", [Text(meaning), *parts])


def _appendix(fit: Fit, charts: Mapping[str, Chart]) -> Section:
    """Return what was read and dropped, and how the fit ended."""
    data, scale = fit.data, fit.data.scale
    order = "nominal: without an order"
    if scale.is_ordinal:
        lowest, highest = shorten(scale.names[0]), shorten(scale.names[-1])
        order = f"ordinal: {lowest} lowest, {highest} highest"
    rows: list[Fact] = [
        ("Labels", f"{data.n_labels:,}", ""),
        ("Items", f"{data.n_items:,}", range_of(data.labels_per_item, "label")),
        ("Annotators", f"{data.n_annotators:,}", range_of(data.labels_per_annotator, "label")),
        ("Categories", f"{data.n_categories:,}", order),
        *rows_dropped(data, "rows without a label"),
    ]
    if data.n_repeated:
        rows.append(("Repeated rows", f"{data.n_repeated:,}", "identical to an earlier row"))
    if known := int((data.known >= 0).sum()):
        rows.append(("Known truths", f"{known:,}", "items whose truth was given"))
    if data.classifier is not None:
        finding = judge_classifier(fit)
        rows.append(("Classifier", f"{finding.n_items:,} items", finding.describe()))
    read = [
        Chips(scale.names, color_indices(scale)),
        Text(as_sentence(scale.reason), "quiet"),
        charts["categories"],
    ]
    return appendix(rows, fit, charts, "label", read)
