"""The report's sections, in the order in which a labelling lead asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from annotruth.advice.advice import Advice
from annotruth.advice.annotators import ASK_FROM, verdict_rules
from annotruth.advice.items import ITEM_STATUS, LEAST_GAIN, MAX_PER_ROUND
from annotruth.errors import AnnotruthError
from annotruth.labels.formatting import counted, cut
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.report.agreement import AgreementRow
from annotruth.report.drawing import escaped
from annotruth.report.markup import (
    charts,
    chips,
    facts,
    figure,
    plain_table,
    section,
    settings,
    table_place,
)
from annotruth.report.palette import colour_of
from annotruth.report.picture import Picture
from annotruth.report.plots import Plots
from annotruth.report.tables import Table

_MOST_NAMED = 12


def pictures(plot: Plots, fit: Fit) -> dict[str, Picture]:
    """Draw what the model gives, by name."""
    reliability = plot.matches if fit.reliability is None else plot.reliability
    wanted: Sequence[Callable[[], Picture]] = (
        *(plot.categories, plot.workload, plot.history, reliability),
        *(plot.items, plot.scores, plot.agreement),
    )
    drawn = {}
    for draw in wanted:
        try:
            picture = draw()
        except AnnotruthError:  # the model has no such thing
            continue
        drawn[picture.name] = picture
    return drawn


def read_section(fit: Fit, drawn: dict[str, Picture]) -> str:
    """Tell what was read and what was dropped."""
    data = fit.data
    dropped = "none" if not data.n_dropped else f"{data.n_dropped:,}"
    known = int((data.known >= 0).sum())
    rows: list[tuple[str, object, str]] = [
        ("Labels", f"{data.n_labels:,}", ""),
        ("Items", f"{data.n_items:,}", _spread(data.labels_per_item)),
        ("Annotators", f"{data.n_annotators:,}", _spread(data.labels_per_annotator)),
        ("Categories", f"{data.n_categories:,}", _scale(fit)),
        ("Rows dropped", dropped, "rows without a label"),
    ]
    if known:
        rows.append(("Known truths", f"{known:,}", "items whose truth was given"))
    return section(
        "read",
        "What was read",
        facts(rows),
        chips(data.scale.names, colour_of(data.scale)),
        charts(figure(drawn["categories"]), figure(drawn["workload"])),
    )


def fit_section(fit: Fit, drawn: dict[str, Picture]) -> str:
    """Tell how the fit ended."""
    if not fit.n_iter:
        kind, status, rest = "good", "Computed directly", f" by {fit.model}; nothing had to settle."
    else:
        kind, status = ("good", "Settled") if fit.converged else ("bad", "Not settled")
        rest = f" after {counted(fit.n_iter, 'iteration')}: {fit.stop_reason}."
        if not fit.converged:
            rest += " The numbers below may still move: raise max_iter, or tol."
    told = f'<p class="note {kind}"><span class="status">{status}</span> {escaped(rest)}</p>'
    likelihood = ""
    if fit.log_likelihood is not None:
        each = fit.log_likelihood / fit.data.n_labels
        said = f"Log-likelihood {fit.log_likelihood:,.2f}, {each:.4f} a label."
        likelihood = f'<p class="quiet">{said}</p>'
    options = settings({"model": fit.model, **fit.settings})
    parts = [told, likelihood, options]
    if "history" in drawn:
        parts = [charts(figure(drawn["history"]), f'<div class="beside">{"".join(parts)}</div>')]
    return section("fit", "How the fit ended", *parts)


def annotator_section(fit: Fit, drawn: dict[str, Picture], table: Table, advice: Advice) -> str:
    """Tell of annotators."""
    if fit.reliability is None:
        lead = (
            f"{fit.model} gives no reliability. Below is how often each annotator's labels are the "
            "recovered ones, which their own labels helped to recover."
        )
    else:
        lead = f"The median reliability is {np.median(fit.reliability):.2f}."
        if fit.n_spammers is not None:
            lead = (
                f"{fit.n_spammers:,} of {fit.data.n_annotators:,} annotators are spammers "
                f"(reliability below {SPAMMER_BELOW}). {lead}"
            )
    beside = [_counts("Verdicts", advice.of_annotators.count(), verdict_rules(fit))]
    chart = drawn["matches" if fit.reliability is None else "reliability"]
    return section(
        "annotators",
        "Annotators",
        f'<p class="lead">{escaped(lead)}</p>',
        charts(figure(chart), *beside),
        _cut(table, "annotators", "least reliable" if fit.reliability is not None else "first"),
        table_place("annotators", "Annotators"),
        long=True,
    )


def item_section(fit: Fit, drawn: dict[str, Picture], table: Table, advice: Advice) -> str:
    """Tell of items."""
    lead = ""
    if fit.distribution is not None:
        sure = int(np.count_nonzero(fit.distribution.confidence() > 0.9))
        lead = f"{sure:,} of {fit.data.n_items:,} items have a label of more than 90%."
    if fit.expectation is not None:
        low, middle, high = np.quantile(fit.expectation, [0.0, 0.5, 1.0])
        lead += f" Scores go from {low:.2f} to {high:.2f}, with a median of {middle:.2f}."
    return section(
        "items",
        "Items",
        f'<p class="lead">{escaped(lead)}</p>',
        charts(figure(drawn["items"]), _counts("Status", advice.of_items.count(), ITEM_STATUS)),
        figure(drawn["scores"]) if "scores" in drawn else "",
        _cut(table, "items", "most disputed"),
        table_place("items", "Items"),
        long=True,
    )


def label_section(fit: Fit, table: Table | None) -> str:
    """Tell of single labels."""
    if table is None:
        told = (
            f"{fit.model} does not tell serious labels from others: gpm, robust-gpm and "
            "ordinal-mixture do."
        )
        return section("labels", "Doubtful labels", f"<p>{escaped(told)}</p>")
    lead = (
        f"{table.total:,} of {fit.data.n_labels:,} labels ({table.total / fit.data.n_labels:.1%}) "
        f"are probably not serious: p serious is below {SPAMMER_BELOW}."
    )
    body = [_cut(table, "labels", "least serious"), table_place("labels", "Labels")]
    return section(
        "labels",
        "Doubtful labels",
        f'<p class="lead">{escaped(lead)}</p>',
        *(body if table.total else []),
        long=True,
    )


def agreement_section(fit: Fit, drawn: dict[str, Picture], rows: Sequence[AgreementRow]) -> str:
    """Tell how far annotators agree, before and after."""
    lines = [
        ["labels", *(f"{row.n_labels:,}" for row in rows)],
        *([name, *(_coefficient(row.values[name]) for row in rows)] for name in rows[0].values),
    ]
    meaning = (
        "Krippendorff's alpha and Fleiss' kappa: 1 is full agreement and 0 what chance would give; alpha of 0.8 and more is commonly taken "
        "as good, from 0.67 as tolerable. Low agreement is no fault where opinions rightly differ."
    )
    lead, parts = (
        f"<p>{escaped(meaning)}</p>",
        [plain_table(["", *(row.name for row in rows)], lines)],
    )
    if len(rows) > 1:
        after = (
            "Weighted: a pair of labels counts by the product of their p serious, as likely as both "
            "are serious; kappa has no weights. Labels far from the others are the ones called "
            "doubtful, so some rise comes by construction."
        )
        if fit.n_spammers:
            after = (
                "Without spammers: labels of annotators with a reliability below "
                f"{SPAMMER_BELOW} are left out. {after}"
            )
        parts.append(f'<p class="quiet">{escaped(after)}</p>')
    if "agreement" in drawn:
        parts = [charts(f'<div class="beside">{"".join(parts)}</div>', figure(drawn["agreement"]))]
    return section("agreement", "Agreement", lead, *parts)


def next_section(fit: Fit, advice: Advice) -> str:
    """Return what to do next: whom to drop and to ask, which items need labels."""
    data, people, items = fit.data, advice.of_annotators, advice.of_items
    verdicts = [
        _group("annotators", "verdict", verdict, data.annotators, people.verdict == verdict)
        for verdict in ("drop", "unsure", "too few labels")
        if verdict in verdict_rules(fit)
    ]
    asked = np.argsort(-people.information, kind="stable")
    verdicts.append(
        _group(
            "annotators", "ask", "yes", data.annotators, people.ask, asked, "ask for more labels"
        )
    )
    by_gain = np.argsort(-items.gain, kind="stable")
    cost = f"add {counted(advice.n_add, 'label')}" if advice.n_add else ""
    statuses = [
        _group("items", "status", status, data.items, items.status == status, by_gain,
               note=cost if status == "needs labels" else "")
        for status in ITEM_STATUS
        if status != "known truth"
    ]  # fmt: skip
    rule = (
        f"An item needs labels if one more label is expected to lower its squared Hellinger "
        f"distance from the truth by at least {LEAST_GAIN:g}; it gets at most {MAX_PER_ROUND} per "
        "round. Annotators are asked for more labels unless they are dropped or their labels have "
        f"low information, less than {ASK_FROM:g} of the best tenth's."
    )
    return section(
        "next",
        "What to do next",
        f'<div class="steps"><div><h3>Annotators</h3><ul>{"".join(verdicts)}</ul></div>'
        f"<div><h3>Items</h3><ul>{''.join(statuses)}</ul></div></div>",
        f'<p class="quiet">{escaped(rule)}</p>',
    )


def _counts(title: str, counts: dict[str, int], rules: dict[str, str]) -> str:
    """List how many there are of each, with the rule."""
    rows = [
        (word.capitalize(), f"{counts[word]:,}", rule)
        for word, rule in rules.items()
        if counts[word] or word != "known truth"
    ]
    return f'<div class="beside"><h3>{title}</h3>{facts(rows)}</div>'


def _group(
    table: str, column: str, word: str, ids: Any, member: Any, order: Any = None,
    title: str = "", note: str = "",
) -> str:  # fmt: skip
    """Return how many have a word in a column, the first of them, and a button to show them."""
    chosen = np.flatnonzero(member) if order is None else order[member[order]]
    title = title or word
    if not len(chosen):
        return f"<li><p><b>0</b> · {escaped(title)}</p></li>"
    named = [cut(str(ids[int(k)].as_py())) for k in chosen[:_MOST_NAMED]]
    more = f", and {len(chosen) - len(named):,} more" if len(chosen) > len(named) else ""
    button = f'<button type="button" class="show" data-show="{table}|{column}|{word}">Show</button>'
    extra = f" · {escaped(note)}" if note else ""
    names = "" if word == "needs no more labels" else (
        f'<p class="quiet names">{escaped(", ".join(named))}{more}</p>'
    )  # fmt: skip
    return f"<li>{button}<p><b>{len(chosen):,}</b> · {escaped(title)}{extra}</p>{names}</li>"


def _cut(table: Table, what: str, which: str) -> str:
    """Say that rows were left out, if any were."""
    if table.rows == table.total:
        return ""
    told = (
        f"This page holds the {table.rows:,} {which} of {table.total:,} {what}; "
        f"{table.total - table.rows:,} are left out to keep it small. "
        "The command's --out DIR writes all of them."
    )
    return f'<p class="note">{escaped(told)}</p>'


def _spread(counts: Any) -> str:
    low, high = int(counts.min()), int(counts.max())
    if low == high:
        return f"{counted(low, 'label')} each"
    return f"{low:,} to {high:,} labels each, median {np.median(counts):,.0f}"


def _scale(fit: Fit) -> str:
    scale = fit.data.scale
    if not scale.is_ordinal:
        return "nominal: without an order"
    return f"ordinal: {cut(scale.names[0])} lowest, {cut(scale.names[-1])} highest"


def _coefficient(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.3f}"
