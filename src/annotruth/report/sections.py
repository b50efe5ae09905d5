"""The sections of the report: the first screen, and the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from annotruth.advice.advice import Advice
from annotruth.advice.annotators import ASK_FROM, verdict_rules, why_void
from annotruth.advice.flags import has_flags
from annotruth.advice.items import ITEM_STATUS, LEAST_GAIN, MAX_PER_ROUND
from annotruth.errors import counted, shorten
from annotruth.kernels.arrays import Codes
from annotruth.models.base_fit import NO_VERDICT, READOUTS, SPAMMER_BELOW
from annotruth.models.fits.notes import DISPUTED_RULE
from annotruth.models.result import Fit
from annotruth.report.charts.chart import Chart, drawable
from annotruth.report.charts.drawing import escaped
from annotruth.report.charts.fit_charts import FitCharts
from annotruth.report.consensus import AgreementRow
from annotruth.report.headings import ACCURACY_TIPS
from annotruth.report.html import (
    as_sentence,
    facts,
    figure,
    plain_table,
    section,
    side_by_side,
    table_placeholder,
    with_code,
)
from annotruth.report.tables import DoubtfulLabels, PageTable, leading_estimate
from annotruth.report.verdict import ReportVerdict, Trust

_N_DROPPED, _N_ITEMS = 4, 4
LOWEST = {"accuracy": "least accurate", "reliability": "least reliable", "matches": "first"}
_MAX_LETTERS = 48  # of a list of names


def charts_of(plot: FitCharts, fit: Fit) -> dict[str, Chart]:
    """Return the charts of the report that the model has data for, by name."""
    annotators = getattr(plot, leading_estimate(fit))
    wanted = (
        *(plot.categories, plot.workload, plot.history, annotators),
        *(plot.items, plot.scores, plot.agreement),
    )
    return drawable(wanted)


def verdict_section(fit: Fit, advice: Advice, verdict: ReportVerdict, *, arguments: str) -> str:
    """Return the first screen as HTML; ``arguments`` are those of ``annotruth next``."""
    blocks = (
        _people(fit, advice, verdict),
        _items(fit, advice, verdict),
        _cost(fit, verdict, arguments),
    )
    return first_screen(
        "Can these labels be trusted?",
        verdict.trust,
        _trust_facts(fit, verdict),
        blocks,
        _rules(fit),
    )


def first_screen(
    question: str,
    trust: Trust,
    rows: Sequence[tuple[str, object, str]],
    blocks: Sequence[str],
    rules: Sequence[tuple[str, str]],
) -> str:
    """Return the first screen: whether to trust the results, facts, what to do, and the rules."""
    rule = f'<p class="quiet">{escaped(trust.rule)}</p>' if trust.rule else ""
    listed = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(text)}</dd>" for name, text in rules)
    return (
        f'<section id="verdict" class="verdict"><div class="trust"><h2>{escaped(question)}</h2>'
        f'<p class="answer"><b class="{trust.tone}">{escaped(trust.word)}.</b> '
        f"{escaped(trust.sentence)}</p>{rule}{facts(rows)}</div>"
        f'<div class="answers">{"".join(blocks)}</div>'
        f'<details class="rules"><summary>How this is decided</summary><dl>{listed}</dl></details>'
        "</section>"
    )


def annotator_section(
    fit: Fit, charts: Mapping[str, Chart], table: PageTable, advice: Advice
) -> str:
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
    verdicts = verdict_counts("Verdicts", advice.of_annotators.count(), verdict_rules(fit))
    return section(
        "annotators",
        "Annotators",
        f'<p class="lead">{escaped(lead)}</p>',
        side_by_side(figure(charts[estimate]), verdicts),
        rows_left_out(table, "annotators", LOWEST[estimate]),
        table_placeholder("annotators", "Annotators"),
        long=True,
    )


def item_section(
    fit: Fit, charts: Mapping[str, Chart], table: PageTable, advice: Advice, n_opened: int
) -> str:
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
    if n_disputed := _n_disputed(fit):
        lead += f" {counted(n_disputed, 'label is', 'labels are')} disputed: {DISPUTED_RULE}."
    if fit.expectation is not None and not fit.withholds_figures:
        low, middle, high = np.quantile(fit.expectation, [0.0, 0.5, 1.0])
        lead += f" Scores range from {low:.2f} to {high:.2f}, with a median of {middle:.2f}."
    return section(
        "items",
        "Items",
        f'<p class="lead">{escaped(lead)}</p>',
        side_by_side(
            figure(charts["items"]), verdict_counts("Status", advice.of_items.count(), ITEM_STATUS)
        ),
        figure(charts["scores"]) if "scores" in charts else "",
        rows_left_out(table, "items", "most difficult"),
        _labels_left_out(table, n_opened),
        table_placeholder("items", "Items"),
        long=True,
    )


def label_section(fit: Fit, doubtful: DoubtfulLabels | None) -> str:
    """Return the labels that are probably not serious, by person."""
    if doubtful is None:
        text = (
            f"{fit.model} does not say which labels are serious: gpm, robust-gpm and "
            "ordinal-mixture do."
        )
        return section("labels", "Doubtful labels", f"<p>{escaped(text)}</p>")
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
    body = [
        rows_left_out(
            doubtful.table, "annotators with doubtful labels", LOWEST[leading_estimate(fit)]
        ),
        table_placeholder("labels", "Doubtful labels by person"),
    ]
    return section(
        "labels",
        "Doubtful labels",
        f'<p class="lead">{escaped(lead)}</p>',
        *(body if doubtful.table.total else []),
        long=True,
    )


def agreement_section(charts: Mapping[str, Chart], rows: Sequence[AgreementRow]) -> str:
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


def verdict_counts(title: str, counts: Mapping[str, int], rules: Mapping[str, str]) -> str:
    """Return how many have each status or verdict, with the rule for it."""
    rows = [
        (word.capitalize(), f"{counts[word]:,}", rule)
        for word, rule in rules.items()
        if counts[word] or word != "known truth"
    ]
    return f'<div class="beside"><h3>{title}</h3>{facts(rows)}</div>'


def rows_left_out(table: PageTable, what: str, which: str, command: str = "fit") -> str:
    """Return a note that rows were left out, if any were; ``command`` writes all of them."""
    if table.rows == table.total:
        return ""
    text = (
        f"This page holds the {table.rows:,} {which} of {table.total:,} {what}; "
        f"{table.total - table.rows:,} are left out to keep it small. "
        f"`annotruth {command} --out DIR` writes all of them."
    )
    return f'<p class="note">{with_code(text)}</p>'


def _labels_left_out(table: PageTable, n_opened: int) -> str:
    """Return a note that the page does not say who said what of some items, if so."""
    if n_opened >= table.rows:
        return ""
    text = (
        f"Who said what is in this page for the {n_opened:,} most difficult of these items; the "
        "other labels are left out to keep it small."
    )
    return f'<p class="note">{escaped(text)}</p>'


def _coefficient(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.3f}"


def _trust_facts(fit: Fit, verdict: ReportVerdict) -> list[tuple[str, object, str]]:
    dash = "\N{EN DASH}"
    alpha = dash if math.isnan(verdict.alpha) else f"{verdict.alpha:.2f}"
    above, equal = dash, "no item has two labels"
    if not math.isnan(verdict.same):
        above = f"{100 * (verdict.same - verdict.same_by_chance):+.0f} points"
        equal = (
            f"two labels of an item are equal {_percent(verdict.same)} of the time; by chance "
            f"{_percent(verdict.same_by_chance)}"
        )
    counts = verdict.annotators
    rest = [
        f"{counts[word]:,} {text}"
        for word, text in (("drop", "to drop"), ("unsure", "unsure"), ("too few labels", "with too few labels to tell"))
        if counts[word]
    ]  # fmt: skip
    keep = dash if fit.withholds_figures else f"{counts['keep']:,} of {fit.data.n_annotators:,}"
    return [
        ("Agreement", alpha, f"Krippendorff's alpha ({verdict.metric}): 0 is chance, 1 is full agreement"),
        ("Above chance", above, equal),
        ("Annotators to keep" if fit.reliability is None or has_flags(fit) else "Reliable annotators",
         keep, "not known" if fit.is_void else ", ".join(rest)),
        ("Labels per item", f"{fit.data.n_labels / fit.data.n_items:.1f}",
         f"{fit.data.n_labels / fit.data.n_annotators:,.0f} per annotator, on average"),
    ]  # fmt: skip


def _people(fit: Fit, advice: Advice, verdict: ReportVerdict) -> str:
    if fit.is_void:
        nobody = f"<li>Nobody to drop or to ask: {escaped(why_void(fit))}.</li>"
        return answer_block("Whom to act on?", [nobody])
    people, counts = advice.of_annotators, verdict.annotators
    dropped = np.flatnonzero(people.verdict == "drop")
    if (name := leading_estimate(fit)) != "matches":
        dropped = dropped[np.argsort(getattr(fit, name)[dropped], kind="stable")]
    unsure = np.flatnonzero(people.verdict == "unsure")
    order = np.argsort(-people.information, kind="stable")
    ask = order[people.ask[order]]
    ids, n_labels = fit.data.annotators, fit.data.labels_per_annotator
    about = named_rows((short_id(ids, s), _about(fit, s)) for s in dropped[:_N_DROPPED].tolist())
    share = f"{_percent(n_labels[dropped].sum() / fit.data.n_labels)} of the labels"
    lines = [
        count_line("annotators|verdict|drop", len(dropped), f"to drop, with {share}", about)
        or f"<li>Nobody to drop{escaped(_why_nobody(fit, counts['keep']))}.</li>",
        count_line("annotators|verdict|unsure", len(unsure), "unsure: watch them", name_list(ids, unsure)),
        count_line("annotators|verdict|too few labels", counts["too few labels"], "with too few labels to tell"),
    ]  # fmt: skip
    if "dependent_annotators" in fit.further:
        lines.append(_matching_pairs(fit.further["dependent_annotators"].facts["n_dependent"]))
    if verdict.n_add:
        lines.append(
            count_line(
                "annotators|ask|yes", len(ask), "to ask for more, best first", name_list(ids, ask)
            )
        )
    return answer_block("Whom to act on?", lines)


def _matching_pairs(n_pairs: int) -> str:
    """Return how many pairs of annotators depend on one another, with a link to them; empty if 0."""
    if not n_pairs:
        return ""
    pairs = "pair" if n_pairs == 1 else "pairs"
    return (
        f"<li><b>{n_pairs:,}</b> {pairs} of annotators whose "
        '<a href="#dependent_annotators">labels match</a> more often than their items explain</li>'
    )


def _why_nobody(fit: Fit, n_reliable: int) -> str:
    """Return why nobody has the verdict drop."""
    if NO_VERDICT in (fit.behavior or ()):
        sides = "it is open which of two sides is right"
        return f": {sides if fit.verdict == 'camps' else 'there are no verdicts on people'}"
    if has_flags(fit):
        return ": nobody is flagged as careless or consistently wrong"
    if "drop" in verdict_rules(fit):
        everybody = f": all {fit.data.n_annotators:,} annotators are reliable"
        return everybody if n_reliable == fit.data.n_annotators else ""
    return f": {fit.model} cannot tell spam from mistakes"


def _items(fit: Fit, advice: Advice, verdict: ReportVerdict) -> str:
    items, counts = advice.of_items, verdict.items
    if fit.is_void:
        return answer_block("Which items to relabel?", ["<li>Not known.</li>"])
    by_gain = np.argsort(-items.gain, kind="stable")
    needed = by_gain[items.needs_labels[by_gain]][:_N_ITEMS].tolist()
    rows = named_rows((short_id(fit.data.items, e), shorten(items.why[e].as_py())) for e in needed)
    texts = {
        "divided": "divided: more labels would not decide them",
        "needs no more labels": f"{_need(counts['needs no more labels'])} no more labels",
        "known truth": "with known truth",
    }
    need = f"of {fit.data.n_items:,} {_need(counts['needs labels'])} labels"
    need += ", first those that gain most" if counts["needs labels"] > 1 else ""
    lines = [
        count_line("items|status|needs labels", counts["needs labels"], need, rows)
        or "<li>None: no item needs more labels.</li>"
    ]
    lines += [
        count_line(f"items|status|{word}", counts[word], text) for word, text in texts.items()
    ]
    lines.append(count_line("items|disputed|yes", _n_disputed(fit), f"disputed: {DISPUTED_RULE}"))
    return answer_block("Which items to relabel?", lines)


def _n_disputed(fit: Fit) -> int:
    return 0 if fit.disputed is None else int(np.count_nonzero(fit.disputed))


def _need(count: int) -> str:
    return "needs" if count == 1 else "need"


def _cost(fit: Fit, verdict: ReportVerdict, arguments: str) -> str:
    if fit.is_void:
        check = "<li>Nothing yet: check the task and its instructions before you buy labels.</li>"
        return answer_block("What would it cost?", [check])
    if not verdict.n_add:
        return answer_block("What would it cost?", ["<li>Nothing.</li>"])
    whom = "new annotators" if verdict.n_ask == 0 else "1 annotator"
    if verdict.n_ask > 1:
        each = math.ceil(verdict.n_add / verdict.n_ask)
        whom = f"{counted(verdict.n_ask, 'annotator')}, about {each:,} each"
    labels = "label" if verdict.n_add == 1 else "labels"
    more = f"{_percent(verdict.share_added)} more than the {fit.data.n_labels:,} so far"
    removed = f"{'It' if verdict.n_add == 1 else 'They'} would remove about <b>{_percent(verdict.removed)}</b> of the uncertainty"
    if verdict.n_first:
        removed += (
            f"; a quarter of them ({verdict.n_first:,}), where they gain most, "
            f"{_percent(verdict.removed_first)}"
        )
    lines = [
        f"<li><b>{verdict.n_add:,}</b> {labels} in this round, {more}; from {whom}</li>",
        f"<li>{removed}</li>",
        f"<li>Next: {next_command(arguments)}</li>",
    ]
    return answer_block("What would it cost?", lines)


def _rules(fit: Fit) -> list[tuple[str, str]]:
    """Return the rules behind the first screen."""
    gain = (
        "An item needs labels if one more label is expected to lower its squared Hellinger "
        f"distance from the truth by at least {LEAST_GAIN:g}; it gets at most {MAX_PER_ROUND} per "
        "round. Uncertainty is the sum of these distances."
    )
    ask = (
        "Annotators are asked for more labels unless they are dropped or their labels have low "
        f"information: less than {ASK_FROM:g} of the best tenth's."
    )
    return [
        *((f"Annotators: {word}", rule) for word, rule in verdict_rules(fit).items()),
        ("Annotators: ask", ask),
        *((f"Items: {status}", rule) for status, rule in ITEM_STATUS.items()),
        ("Labels to add", gain),
    ]


def answer_block(question: str, lines: Sequence[str]) -> str:
    """Return a question of the first screen with its answer in lines."""
    return f"<div><h2>{question}</h2><ul>{''.join(lines)}</ul></div>"


def next_command(arguments: str) -> str:
    """Return the command that lists what to ask next, given what to type after ``annotruth next``."""
    return f"<code>{escaped(f'annotruth next {arguments} --assign assignments.csv')}</code>"


def count_line(show: str, count: int, text: str, rest: str = "") -> str:
    """Return a count with a button that shows its rows, and the first of them; empty if 0."""
    if not count:
        return ""
    button = f'<button type="button" class="show" data-show="{show}">Show</button>'
    return f"<li>{button}<b>{count:,}</b> {escaped(text)}{rest}</li>"


def named_rows(rows: Iterable[tuple[str, str]]) -> str:
    """Return names, one per line, with what is to be said of each."""
    lines = [f"<div><b>{escaped(name)}</b> {escaped(text)}</div>" for name, text in rows]
    return f'<div class="named">{"".join(lines)}</div>' if lines else ""


def name_list(ids: Any, which: Codes) -> str:
    """Return the first names on one line."""
    names: list[str] = []
    for s in which.tolist():
        names.append(short_id(ids, s))
        if len(", ".join(names)) > _MAX_LETTERS:
            break
    more = ", …" if len(which) > len(names) else ""
    return f'<div class="named">{escaped(", ".join(names))}{more}</div>'


def short_id(ids: Any, place: int) -> str:
    """Return an id as text, shortened."""
    return shorten(str(ids[place].as_py()), 40)


def _about(fit: Fit, annotator: int) -> str:
    """Return each annotator's behavior and accuracy or reliability."""
    known: list[str] = [] if fit.behavior is None else [fit.behavior[annotator]]
    if (name := leading_estimate(fit)) != "matches":
        known.append(f"{name} {getattr(fit, name)[annotator]:.2f}")
    return ", ".join(known)


def _percent(share: float) -> str:
    return "\N{EN DASH}" if math.isnan(share) else f"{share:.0%}"
