"""The report on several questions: an overview, annotators across questions, and each question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.analyses.advice.annotators import has_flags
from annotruth.coefficients import suitable_metrics
from annotruth.errors import counted, shorten
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.fits.tables import readout_line
from annotruth.models.result import Fit
from annotruth.observations.encode import match_ids
from annotruth.questions.fitting import split_by_question
from annotruth.questions.result import QuestionFits, agreement_of
from annotruth.report.labels import LOWEST
from annotruth.report.page import Page
from annotruth.report.render import (
    DASH,
    DataTable,
    Fact,
    Facts,
    Link,
    Part,
    Section,
    SmallTable,
    Text,
    as_sentence,
    figure,
)
from annotruth.report.sections import Trust, convergence_notice, rows_left_out
from annotruth.report.tables import (
    MAX_ANNOTATORS,
    STYLE,
    PageTable,
    amend,
    number_cells,
)
from annotruth.report.truth import compare_with_truth
from annotruth.report.verdict import trust_of


def content(fits: QuestionFits, *, truth: Any = None, arguments: str | None = None) -> Page:
    """Return what is in the report on several questions; ``truth`` has a column ``question``.

    There is no advice on all of them, for ``arguments``.
    """
    truths = {} if truth is None else split_by_question(truth, fits.questions, "truth", None)
    trust: dict[str, Trust] = {}
    sections, notices = [], []
    for number, (name, fit) in enumerate(fits.questions.items(), start=1):
        measured, advice = compare_with_truth(fit, truths.get(name)).measured, advise(fit)
        trust[name] = trust_of(fit, advice, measured)
        sections.append(_question_section(number, name, fit, advice, trust[name]))
        if notice := convergence_notice(fit):
            notices.append(f"{shorten(name)}: {notice}")
    return Page(
        kind="Report on several questions",
        heading="Labels",
        described=fits.describe(),
        notice=" ".join(notices),
        sections=[_overview(fits, trust), _annotators(fits), *sections],
        footer="Numbers are rounded; `annotruth fit --question all --out DIR` writes them in full.",
    )


def _median(fit: Fit, name: str) -> float | None:
    values = getattr(fit, name)
    return None if values is None or fit.withholds_figures else float(np.median(values))


def _estimate(fits: QuestionFits) -> str:
    """Return by what annotators are assessed first: accuracy where every question has it."""
    assessed = [fit for fit in fits.questions.values() if not fit.is_void]
    has_accuracy = bool(assessed) and all(fit.accuracy is not None for fit in assessed)
    return "accuracy" if has_accuracy else "reliability"


def _overview(fits: QuestionFits, trust: Mapping[str, Trust]) -> Section:
    """Return the questions side by side."""
    estimate = _estimate(fits)
    rows: list[list[Part]] = [
        [
            Link(shorten(name), f"q{number}"),
            trust[name].word,
            f"{fit.data.n_items:,}",
            f"{fit.data.n_labels:,}",
            f"{fit.data.n_categories} {fit.data.scale.kind}",
            figure(agreement_of(fit)),
            figure(_median(fit, estimate)),
            DASH if fit.n_spammers is None or fit.is_void else f"{fit.n_spammers:,}",
        ]
        for number, (name, fit) in enumerate(fits.questions.items(), start=1)
    ]
    header = [
        *("Question", "Trusted?", "Items", "Labels", "Categories"),
        *("Alpha", f"Median {estimate}", "Spammers"),
    ]
    spammers = f"have a reliability below {SPAMMER_BELOW}"
    if any(has_flags(fit) for fit in fits.questions.values()):
        spammers = "are careless or consistently wrong"
    rules = (
        "Alpha is Krippendorff's: 1 is full agreement, 0 is agreement by chance. Spammers "
        f"{spammers}. The question's section says what the verdict follows from."
    )
    lead = Text(as_sentence(fits.sharing.why), "lead")
    return Section("overview", "Overview", [lead, SmallTable(header, rows), Text(rules, "quiet")])


def _annotators(fits: QuestionFits) -> Section:
    """Return the annotators' accuracy or reliability in every question."""
    estimate = _estimate(fits)
    values = estimates(fits, estimate)
    answered = np.isfinite(values).sum(axis=1)
    lead = (
        f"{int((answered > 1).sum()):,} of {counted(len(answered), 'annotator')} answered more than "
        "one question."
    )
    correlation = mean_correlation(values)
    # Reliabilities that were shared correlate by construction.
    if fits.sharing.strength == 0.0 and np.isfinite(correlation):
        plural = {"accuracy": "Accuracies", "reliability": "Reliabilities"}[estimate]
        lead += f" {plural} in two questions correlate by {correlation:.2f} on average."
    table, title = estimate_table(fits), "Annotators across questions"
    parts = [
        Text(lead, "lead"),
        rows_left_out(table, "annotators", LOWEST[estimate]),
        DataTable("annotators", title, table),
    ]
    return Section("annotators", title, parts, link="Annotators", long=True)


def estimates(fits: QuestionFits, name: str) -> Floats:
    """Return an estimate of every annotator in every question; nan where there is none."""
    values = np.full((len(fits.annotator_ids), len(fits)), np.nan)
    for k, fit in enumerate(fits.questions.values()):
        estimate = fit.annotator_values().get(name)
        if estimate is not None:
            values[match_ids(fit.data.annotators, fits.annotator_ids), k] = estimate
    return values


def mean_correlation(values: Floats) -> float:
    """Return the mean correlation of the columns, over pairs with ten common rows or more."""
    found = []
    for k in range(values.shape[1]):
        for other in range(k):
            both = np.isfinite(values[:, k]) & np.isfinite(values[:, other])
            one, two = values[both, k], values[both, other]
            if both.sum() >= 10 and one.std() > 0 and two.std() > 0:
                found.append(np.corrcoef(one, two)[0, 1])
    return float(np.mean(found)) if found else float("nan")


def estimate_table(fits: QuestionFits) -> PageTable:
    """Return the table of annotators with a column per question, the lowest first."""
    estimate = _estimate(fits)
    values = estimates(fits, estimate)
    known = np.isfinite(values)
    mean = np.where(known, values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    mean[~known.any(axis=1)] = np.nan
    rows = np.sort(np.argsort(mean, kind="stable")[:MAX_ANNOTATORS])
    n_labels = np.zeros(len(fits.annotator_ids), dtype=np.int64)
    table = {"annotator": fits.annotator_ids, "mean": mean}
    columns = STYLE.columns(table, rows)
    amend(columns, "annotator", help="")
    amend(columns, "mean", help=f"mean {estimate} over questions")
    for k, (name, fit) in enumerate(fits.questions.items()):
        place = match_ids(fit.data.annotators, fits.annotator_ids)
        n_labels[place] += fit.data.labels_per_annotator
        shown = {
            "title": shorten(name, 24),
            "help": f"{estimate} in the question {shorten(name)}",
            "rank": 2 + k,
        }
        columns.append(STYLE.heading(f"q{k + 1}") | number_cells(values[rows, k]) | shown)
    columns += STYLE.columns({"n_labels": n_labels}, rows)
    return PageTable(columns, len(rows), len(fits.annotator_ids), "mean")


def _question_section(number: int, name: str, fit: Fit, advice: Advice, trust: Trust) -> Section:
    """Return the main findings on a question."""
    metric = suitable_metrics(fit.data.scale)[0]
    rows: list[Fact] = [
        ("Agreement", figure(agreement_of(fit)), f"Krippendorff's alpha ({metric})")
    ]
    people, items = advice.of_annotators.count(), advice.of_items.count()
    if fit.reliability is not None and not fit.withholds_figures:
        counts = (f"{people.get(word, 0):,} {word}" for word in ("keep", "drop"))
        median = f"{np.median(fit.reliability):.2f}"
        rows.append(("Median reliability", median, f"annotators: {', '.join(counts)}"))
    needed = f"{items['needs labels']:,} of {fit.data.n_items:,}"
    to_add = f"{counted(advice.n_add, 'label')} to add in this round"
    rows.append(("Items that need labels", needed, to_add))
    about = Text(f"{fit.data.describe()}; {readout_line(fit)}.", "quiet")
    parts: list[Part] = [about, trust, Facts(rows)]
    return Section(f"q{number}", shorten(name), parts, link=shorten(name, 24))
