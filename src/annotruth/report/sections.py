"""The sections of the report: the first screen, and the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from annotruth.analyses.advice.advice import Advice
from annotruth.analyses.advice.annotators import ASK_FROM, has_flags, verdict_rules, why_void
from annotruth.analyses.advice.items import ITEM_STATUS, LEAST_GAIN, MAX_PER_ROUND
from annotruth.errors import counted, shorten
from annotruth.kernels.arrays import Codes
from annotruth.models.base_fit import NO_VERDICT, READOUTS, SPAMMER_BELOW
from annotruth.models.fits.notes import DISPUTED_RULE
from annotruth.models.result import Fit
from annotruth.report.charts.chart import Chart, drawable
from annotruth.report.charts.fit_charts import FitCharts
from annotruth.report.consensus import AgreementRow
from annotruth.report.headings import ACCURACY_TIPS
from annotruth.report.render import (
    Answer,
    Beside,
    CodeText,
    CountLine,
    DataTable,
    Fact,
    Facts,
    FirstScreen,
    Heading,
    Link,
    NamedRows,
    NameList,
    Part,
    Section,
    SideBySide,
    SmallTable,
    Strong,
    Text,
    as_sentence,
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


def verdict_section(fit: Fit, advice: Advice, verdict: ReportVerdict, *, arguments: str) -> Section:
    """Return the first screen; ``arguments`` are those of ``annotruth next``."""
    blocks = (
        _people(fit, advice, verdict),
        _items(fit, advice, verdict),
        _cost(fit, verdict, arguments),
    )
    question = "Can these labels be trusted?"
    return first_screen(question, verdict.trust, _trust_facts(fit, verdict), blocks, _rules(fit))


def first_screen(
    question: str,
    trust: Trust,
    rows: Sequence[Fact],
    blocks: Sequence[Answer],
    rules: Sequence[tuple[str, str]],
) -> Section:
    """Return the first screen: whether to trust the results, facts, what to do, and the rules."""
    screen = FirstScreen(question, trust.conclusion, trust.rule, Facts(rows), blocks, rules)
    return Section("verdict", "", [screen], link="Verdict")


def annotator_section(
    fit: Fit, charts: Mapping[str, Chart], table: PageTable, advice: Advice
) -> Section:
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
    parts = [
        Text(lead, "lead"),
        SideBySide([charts[estimate], verdicts]),
        rows_left_out(table, "annotators", LOWEST[estimate]),
        DataTable("annotators", "Annotators", table),
    ]
    return Section("annotators", "Annotators", parts, long=True)


def item_section(
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
    if n_disputed := _n_disputed(fit):
        lead += f" {counted(n_disputed, 'label is', 'labels are')} disputed: {DISPUTED_RULE}."
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


def label_section(fit: Fit, doubtful: DoubtfulLabels | None) -> Section:
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


def agreement_section(charts: Mapping[str, Chart], rows: Sequence[AgreementRow]) -> Section:
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
    parts: list[Part] = [SmallTable(["", *(row.name for row in rows)], lines)]
    if len(rows) > 1:
        after = (
            "Weighted: a pair of labels counts by the product of their p serious; kappa has no "
            "weights. Labels far from the others are the ones called doubtful, so part of the "
            "increase comes by construction."
        )
        parts.append(Text(after, "quiet"))
    if "agreement" in charts:
        parts = [SideBySide([Beside(parts), charts["agreement"]])]
    return Section("agreement", "Agreement", [Text(meaning), *parts])


def verdict_counts(title: str, counts: Mapping[str, int], rules: Mapping[str, str]) -> Beside:
    """Return how many have each status or verdict, with the rule for it."""
    rows = [
        (word.capitalize(), f"{counts[word]:,}", rule)
        for word, rule in rules.items()
        if counts[word] or word != "known truth"
    ]
    return Beside([Heading(title), Facts(rows)])


def rows_left_out(table: PageTable, what: str, which: str, command: str = "fit") -> Part:
    """Return a note that rows were left out, if any were; ``command`` writes all of them."""
    if table.rows == table.total:
        return ""
    text = (
        f"This page holds the {table.rows:,} {which} of {table.total:,} {what}; "
        f"{table.total - table.rows:,} are left out to keep it small. "
    )
    return Text([text, CodeText(f"annotruth {command} --out DIR"), " writes all of them."], "note")


def _labels_left_out(table: PageTable, n_opened: int) -> Part:
    """Return a note that the page does not say who said what of some items, if so."""
    if n_opened >= table.rows:
        return ""
    text = (
        f"Who said what is in this page for the {n_opened:,} most difficult of these items; the "
        "other labels are left out to keep it small."
    )
    return Text(text, "note")


def _coefficient(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.3f}"


def _trust_facts(fit: Fit, verdict: ReportVerdict) -> list[Fact]:
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


def _people(fit: Fit, advice: Advice, verdict: ReportVerdict) -> Answer:
    if fit.is_void:
        return Answer("Whom to act on?", [f"Nobody to drop or to ask: {why_void(fit)}."])
    people, counts = advice.of_annotators, verdict.annotators
    dropped = np.flatnonzero(people.verdict == "drop")
    if (name := leading_estimate(fit)) != "matches":
        dropped = dropped[np.argsort(getattr(fit, name)[dropped], kind="stable")]
    unsure = np.flatnonzero(people.verdict == "unsure")
    order = np.argsort(-people.information, kind="stable")
    ask = order[people.ask[order]]
    ids, n_labels = fit.data.annotators, fit.data.labels_per_annotator
    about = [(short_id(ids, s), _about(fit, s)) for s in dropped[:_N_DROPPED].tolist()]
    share = f"{_percent(n_labels[dropped].sum() / fit.data.n_labels)} of the labels"
    lines = [
        count_line("annotators|verdict|drop", len(dropped), f"to drop, with {share}", NamedRows(about))
        or f"Nobody to drop{_why_nobody(fit, counts['keep'])}.",
        count_line("annotators|verdict|unsure", len(unsure), "unsure: watch them", name_list(ids, unsure)),
        count_line("annotators|verdict|too few labels", counts["too few labels"], "with too few labels to tell"),
    ]  # fmt: skip
    if "dependent_annotators" in fit.further:
        lines.append(_matching_pairs(fit.further["dependent_annotators"].facts["n_dependent"]))
    if verdict.n_add:
        who = name_list(ids, ask)
        lines.append(count_line("annotators|ask|yes", len(ask), "to ask for more, best first", who))
    return Answer("Whom to act on?", lines)


def _matching_pairs(n_pairs: int) -> Part:
    """Return how many pairs of annotators depend on one another, with a link to them; empty if 0."""
    if not n_pairs:
        return ""
    pairs = f" {'pair' if n_pairs == 1 else 'pairs'} of annotators whose "
    link = Link("labels match", "dependent_annotators")
    return [Strong(f"{n_pairs:,}"), pairs, link, " more often than their items explain"]


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


def _items(fit: Fit, advice: Advice, verdict: ReportVerdict) -> Answer:
    items, counts = advice.of_items, verdict.items
    if fit.is_void:
        return Answer("Which items to relabel?", ["Not known."])
    by_gain = np.argsort(-items.gain, kind="stable")
    needed = by_gain[items.needs_labels[by_gain]][:_N_ITEMS].tolist()
    rows = [(short_id(fit.data.items, e), shorten(items.why[e].as_py())) for e in needed]
    texts = {
        "divided": "divided: more labels would not decide them",
        "needs no more labels": f"{_need(counts['needs no more labels'])} no more labels",
        "known truth": "with known truth",
    }
    need = f"of {fit.data.n_items:,} {_need(counts['needs labels'])} labels"
    need += ", first those that gain most" if counts["needs labels"] > 1 else ""
    lines = [
        count_line("items|status|needs labels", counts["needs labels"], need, NamedRows(rows))
        or "None: no item needs more labels."
    ]
    lines += [
        count_line(f"items|status|{word}", counts[word], text) for word, text in texts.items()
    ]
    lines.append(count_line("items|disputed|yes", _n_disputed(fit), f"disputed: {DISPUTED_RULE}"))
    return Answer("Which items to relabel?", lines)


def _n_disputed(fit: Fit) -> int:
    return 0 if fit.disputed is None else int(np.count_nonzero(fit.disputed))


def _need(count: int) -> str:
    return "needs" if count == 1 else "need"


def _cost(fit: Fit, verdict: ReportVerdict, arguments: str) -> Answer:
    question = "What would it cost?"
    if fit.is_void:
        return Answer(
            question, ["Nothing yet: check the task and its instructions before you buy labels."]
        )
    if not verdict.n_add:
        return Answer(question, ["Nothing."])
    whom = "new annotators" if verdict.n_ask == 0 else "1 annotator"
    if verdict.n_ask > 1:
        each = math.ceil(verdict.n_add / verdict.n_ask)
        whom = f"{counted(verdict.n_ask, 'annotator')}, about {each:,} each"
    labels = "label" if verdict.n_add == 1 else "labels"
    more = f"{_percent(verdict.share_added)} more than the {fit.data.n_labels:,} so far"
    first = ""
    if verdict.n_first:
        first = (
            f"; a quarter of them ({verdict.n_first:,}), where they gain most, "
            f"{_percent(verdict.removed_first)}"
        )
    they = "It" if verdict.n_add == 1 else "They"
    removed = Strong(_percent(verdict.removed))
    lines = [
        [Strong(f"{verdict.n_add:,}"), f" {labels} in this round, {more}; from {whom}"],
        [f"{they} would remove about ", removed, f" of the uncertainty{first}"],
        ["Next: ", next_command(arguments)],
    ]
    return Answer(question, lines)


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


def next_command(arguments: str) -> CodeText:
    """Return the command that lists what to ask next, given what to type after ``annotruth next``."""
    return CodeText(f"annotruth next {arguments} --assign assignments.csv")


def count_line(show: str, count: int, text: str, rest: Part = "") -> Part:
    """Return a count with a button that shows its rows, and the first of them; empty if 0."""
    return CountLine(show, count, [text, rest]) if count else ""


def name_list(ids: Any, which: Codes) -> NameList:
    """Return the first names on one line."""
    names: list[str] = []
    for s in which.tolist():
        names.append(short_id(ids, s))
        if len(", ".join(names)) > _MAX_LETTERS:
            break
    more = ", …" if len(which) > len(names) else ""
    return NameList(f"{', '.join(names)}{more}")


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
