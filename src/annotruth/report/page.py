"""The report of a fit: one HTML file.

Texts and charts stand in the page; the rows of tables are compressed JSON, which the page's script
unpacks and shows one screen at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.errors import counted, shorten
from annotruth.models import base_fit
from annotruth.models.result import Fit
from annotruth.report import sections
from annotruth.report.charts.chart import Chart, category_colors, color_indices
from annotruth.report.charts.fit_charts import FitCharts
from annotruth.report.consensus import Consensus, ItemVotes, category_bins
from annotruth.report.render import (
    Beside,
    Chips,
    Fact,
    Facts,
    Heading,
    Part,
    Section,
    Settings,
    SideBySide,
    Status,
    Text,
    as_sentence,
    charts_and_tables,
    make_page,
    pack,
    plain_json,
    write_page,
)
from annotruth.report.tables import (
    PageTable,
    annotator_rows,
    annotator_table,
    doubtful_labels,
    item_rows,
    item_table,
)
from annotruth.report.verdict import verdict_of

if TYPE_CHECKING:
    from annotruth.analyses.advice.changes import Changes
    from annotruth.report.content import ItemContent
    from annotruth.report.truth import TruthFindings

MAX_BYTES = 5_500_000
"""How much of the file tables and labels may take; of too many items, the most difficult stay."""

_LEAST_SHARE = 0.2  # of that, for labels

_MAX_CELLS = 8


def write_report(
    fit: Fit,
    path: str | Path,
    *,
    source: str | None = None,
    truth: Any = None,
    command: str | None = None,
    arguments: str | None = None,
    embed: bool = False,
    changes: Changes | None = None,
) -> None:
    """Write the report of a fit, as `report_page` makes it; ``embed`` puts files into it."""
    page = report_page(
        fit,
        source=source,
        truth=truth,
        command=command,
        arguments=arguments,
        embed=Path(path).parent if embed else None,
        changes=changes,
    )
    write_page(page, path)


def report_page(
    fit: Fit,
    *,
    source: str | None = None,
    truth: Any = None,
    command: str | None = None,
    arguments: str | None = None,
    changes: Changes | None = None,
    day: date | None = None,
    embed: Path | None = None,
    max_bytes: int = MAX_BYTES,
) -> str:
    """Return the report of a fit, as HTML.

    ``source``: the name of the labels, such as their file.
    ``truth``: the truths of some or all items, as `annotruth.evaluate` takes them.
    ``command``: the command that makes the report, for its heading.
    ``arguments``: what to type after ``annotruth next`` for advice on this fit, for the first
      screen.
    ``changes``: what is different from the fit before.
    ``day``: the date in the heading; today if not given.
    ``embed``: the folder of files to put into the page: items' images, audio and video by path.
    ``max_bytes``: how much of the file tables may take.
    """
    against = against_truth(fit, truth)
    consensus, advice, scale = Consensus(fit), advise(fit), fit.data.scale
    bins = category_bins(fit.data, _MAX_CELLS)
    fit_charts = FitCharts(fit)
    charts = sections.charts_of(fit_charts, fit)
    measured = against.measured if against else None
    verdict = verdict_of(fit, advice, fit_charts.agreement_rows[0], measured)
    annotators = annotator_table(fit, consensus, advice, bins)
    before = [
        sections.verdict_section(fit, advice, verdict, arguments=arguments or "LABELS"),
        *_since_last_fit(fit, changes),
        *([against.section] if against else []),
        sections.annotator_section(fit, charts, annotators, advice),
    ]
    after = [
        sections.label_section(fit, doubtful_labels(fit, consensus, advice)),
        *_further_sections(fit),
        sections.agreement_section(charts, fit_charts.agreement_rows),
        _appendix(fit, charts),
    ]
    data: dict[str, Any] = {
        "categories": scale.names,
        "colors": color_indices(scale),
        "bins": bins.names,
    }
    data |= charts_and_tables([*before, *after], charts.values())
    packed = _pack(fit, consensus, advice, data, max_bytes, embed)
    items = sections.item_section(fit, charts, packed.items, advice, packed.n_opened)
    return make_page(
        kind="Annotation report",
        heading=source or "Labels",
        subheading=subheading(fit.model, fit.data.describe(), day),
        command=command or "",
        notice=convergence_notice(fit),
        sections=[*before, items, *after],
        data=packed.data,
        sources=packed.sources,
        footer="Numbers in the tables are rounded; `annotruth fit --out DIR` writes them in full. "
        "This page works offline.",
        colors=category_colors(scale),
    )


def subheading(model: str, described: str, day: date | None = None) -> str:
    """Return the line under the heading of a report: the model, the date, and what was read."""
    day = day or base_fit.now().date()
    return f"{model} · {day.day} {day:%B %Y} · {described}"


class PackedTables(NamedTuple):
    """The rows of the tables and the labels, packed."""

    data: str  # the tables, the labels and embedded files, one per line
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
    embed: Path | None,
) -> PackedTables:
    """Return the data of the page.

    What is too much is left out: first the labels of the least difficult items, then these items.
    """
    votes, people, content = ItemVotes(fit), annotator_rows(fit, consensus), _content(fit)
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
    files = {} if content is None or embed is None else content.embedded(rows, embed)
    sources = {} if content is None else content.sources(rows, files)
    parts = [packed, labels, *([plain_json(files)] if files else [])]
    return PackedTables("\n".join(parts), items, n_opened, sources)


def _content(fit: Fit) -> ItemContent | None:
    """Return what the items are; None if the labels came without."""
    if not fit.data.covariates.items:
        return None
    from annotruth.report.content import ItemContent  # most reports do not need it

    return ItemContent(fit.data.covariates.items)


def against_truth(fit: Fit, truth: Any) -> TruthFindings | None:
    """Return how the fit does against known truths, from outside or given to it; None without."""
    if truth is None and not (fit.data.known >= 0).any():
        return None
    from annotruth.report.truth import compare_with_truth  # most reports do not need it

    return compare_with_truth(fit, truth)


def _since_last_fit(fit: Fit, changes: Changes | None) -> list[Section]:
    """Return the section on what is different from the fit before; nothing if there is none."""
    if fit.earlier_fits is None:
        return []
    from annotruth.report.history import compare_with_last_fit  # only after an update

    return [compare_with_last_fit(fit, changes)]


def _further_sections(fit: Fit) -> list[Section]:
    """Return the sections on further results, where the fit has such."""
    if not fit.further:
        return []
    from annotruth.report.further import make_sections  # most reports do not need it

    return make_sections(fit)


def convergence_notice(fit: Fit[Any]) -> str:
    """Return the warning at the top of the report; empty if there is none."""
    if fit.converged or not fit.n_iter:
        return ""
    return (
        f"Not converged after {counted(fit.n_iter, 'iteration')}: the numbers on this page may "
        "still change. Raise max_iter, or tol."
    )


def _appendix(fit: Fit, charts: Mapping[str, Chart]) -> Section:
    """Return what was read and how the fit ended."""
    parts = [*_what_was_read(fit, charts), *how_it_ended(fit, charts, "label")]
    return Section("appendix", "Appendix", parts)


def _what_was_read(fit: Fit, charts: Mapping[str, Chart]) -> list[Part]:
    """Return what was read and what was dropped."""
    data, reason = fit.data, fit.data.scale.reason
    known = int((data.known >= 0).sum())
    rows: list[Fact] = [
        ("Labels", f"{data.n_labels:,}", ""),
        ("Items", f"{data.n_items:,}", range_of(data.labels_per_item, "label")),
        ("Annotators", f"{data.n_annotators:,}", range_of(data.labels_per_annotator, "label")),
        ("Categories", f"{data.n_categories:,}", _scale(fit)),
        (
            "Rows dropped",
            f"{data.n_dropped:,}" if data.n_dropped else "none",
            "rows without a label",
        ),
    ]
    if data.n_repeated:
        rows.append(("Repeated rows", f"{data.n_repeated:,}", "identical to an earlier row"))
    if known:
        rows.append(("Known truths", f"{known:,}", "items whose truth was given"))
    if data.classifier is not None:
        from annotruth.models.evidence.classifier import (
            judge_classifier,  # most reports do not need it
        )

        finding = judge_classifier(fit)
        rows.append(("Classifier", f"{finding.n_items:,} items", finding.describe()))
    return [
        Heading("What was read"),
        Facts(rows),
        Chips(data.scale.names, color_indices(data.scale)),
        Text(as_sentence(reason), "quiet") if reason else "",
        SideBySide([charts["categories"], charts["workload"]]),
    ]


def how_it_ended(fit: Fit[Any], charts: Mapping[str, Chart], unit: str) -> list[Part]:
    """Return how the fit ended; ``unit`` is a label or a comparison."""
    if not fit.n_iter:
        status = Status("good", "Computed directly", f" by {fit.model}, without iterations.")
    else:
        rest = f" after {counted(fit.n_iter, 'iteration')}: {fit.stop_reason}."
        tone, word = ("good", "Converged") if fit.converged else ("bad", "Not converged")
        status = Status(tone, word, rest)
    parts: list[Part] = [status]
    if fit.log_likelihood is not None:
        per_label = fit.log_likelihood / fit.data.n_labels
        text = f"Log-likelihood {fit.log_likelihood:,.2f}, {per_label:.4f} per {unit}."
        parts.append(Text(text, "quiet"))
    parts.append(Settings({"model": fit.model, **fit.settings}))
    if "history" in charts:
        parts = [SideBySide([charts["history"], Beside(parts)])]
    return [Heading("How the fit ended"), *parts]


def range_of(counts: NDArray[Any], unit: str) -> str:
    """Return the least, largest and median count of units."""
    low, high = int(counts.min()), int(counts.max())
    if low == high:
        return f"{counted(low, unit)} each"
    return f"{low:,} to {high:,} {unit}s each, median {np.median(counts):,.0f}"


def _scale(fit: Fit) -> str:
    scale = fit.data.scale
    if not scale.is_ordinal:
        return "nominal: without an order"
    return f"ordinal: {shorten(scale.names[0])} lowest, {shorten(scale.names[-1])} highest"
