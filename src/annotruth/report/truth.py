"""The section "Against the truth": accuracy, confusion, calibration and the worst items.

Items whose truth was given to the fit (gold) have that truth: measuring them would be circular. So
they are left out, and annotators are measured on them instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from annotruth import metrics
from annotruth.analyses.advice.annotators import verdicts
from annotruth.errors import counted, shorten
from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.kernels.arrays import Codes
from annotruth.models.baselines import MajorityVote
from annotruth.models.result import Fit
from annotruth.observations.frames import as_arrow
from annotruth.observations.truth import MatchedTruth, match_truth
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.truth_charts import (
    calibration_chart,
    confusion_chart,
    gold_chart,
    score_chart,
)
from annotruth.report.consensus import category_bins
from annotruth.report.render import (
    Beside,
    Fact,
    Facts,
    Heading,
    Opener,
    Part,
    Section,
    SideBySide,
    SmallTable,
    Text,
)
from annotruth.report.tables import leading_estimate
from annotruth.report.verdict import MeasuredAccuracy
from annotruth.selection.evaluate import compute_metrics

_MAX_CELLS = 10
_MAX_ROWS = 12


@dataclass(frozen=True, eq=False)
class TruthFindings:
    """How a fit does against known truths."""

    section: Section  # the section of the report
    # the accuracy of the items; None where no item could be measured
    measured: MeasuredAccuracy | None

    @property
    def charts(self) -> dict[str, Chart]:
        """The charts of the section by name."""
        return {chart.name: chart for chart in self.section.find(Chart)}


def compare_with_truth(fit: Fit, truth: Any) -> TruthFindings:
    """Return how a fit does against truths, as `annotruth.evaluate` takes them, and against gold."""
    parts: list[Part] = []
    measured = None
    if truth is not None:
        with file_named_in_errors(truth):
            matched = match_truth(load_table(truth), fit.data, role="truth")
            given = fit.data.known[matched.item] >= 0
            if given.any():
                parts.append(_left_out(int(given.sum()), len(given)))
                matched = _some(matched, np.flatnonzero(~given))
            if len(matched.item):
                measured = _measure(fit, matched, parts)
    if (fit.data.known >= 0).any():
        parts += _measure_annotators(fit)
    return TruthFindings(Section("truth", "Against the truth", parts, long=True), measured)


def _left_out(n_given: int, n: int) -> Text:
    text = (
        f"Left out: {counted(n_given, 'truth')} of {n:,} that the fit was given as gold; measuring "
        "the fit on them would be circular."
    )
    return Text(text, "note")


def _some(truth: MatchedTruth, places: Codes) -> MatchedTruth:
    return replace(truth, item=truth.item[places], values=truth.values.take(as_arrow(places)))


def _measure(fit: Fit, truth: MatchedTruth, parts: list[Part]) -> MeasuredAccuracy:
    """Add the figures of the items, and return the main one."""
    data, n = fit.data, len(truth.item)
    votes = MajorityVote().fit(data).result_
    by_fit, by_votes = (compute_metrics(one, truth, scores=True) for one in (fit, votes))
    of = f"{counted(n, 'item')} with known truth"
    parts += [Text(f"Measured on {of}.", "lead"), Facts(_figures(by_fit, by_votes, n))]
    shown: list[Part] = []
    if "accuracy" in by_fit and fit.label is not None and fit.distribution is not None:
        true, recovered = truth.categories(), fit.label[truth.item]
        shown.append(confusion_chart(category_bins(data, _MAX_CELLS), true, recovered))
        if fit.readout == "right":
            confidence, right = fit.distribution.confidence()[truth.item], true == recovered
            error = metrics.calibration_error(confidence, right)
            shown.append(calibration_chart(confidence, right, error))
    if "plcc" in by_fit and fit.expectation is not None:
        names = [shorten(str(one)) for one in data.items.take(as_arrow(truth.item)).to_pylist()]
        shown.append(score_chart(names, truth.scores(), fit.expectation[truth.item]))
    worst = Beside(_worst(fit, truth, labels="accuracy" in by_fit))
    parts.append(SideBySide([*shown, worst]))
    if "accuracy" not in by_fit:
        sentence = f"On {of}, scores correlate with the truth by {by_fit['plcc']:.2f} (PLCC)."
        return MeasuredAccuracy(sentence, n, None)
    share, baseline = (one["accuracy"] for one in (by_fit, by_votes))
    sentence = (
        f"On {of}, {share:.1%} of the recovered labels are right (majority vote {baseline:.1%})."
    )
    return MeasuredAccuracy(sentence, n, share)


def _figures(by_fit: Mapping[str, float], by_votes: Mapping[str, float], n: int) -> list[Fact]:
    """Return the metrics, those of the votes beside them."""
    rows: list[Fact] = []
    if "accuracy" in by_fit:
        for name, share in (
            ("Accuracy", by_fit["accuracy"]),
            ("Majority vote", by_votes["accuracy"]),
        ):
            low, high = metrics.accuracy_interval(share * n, n)
            rows.append(
                (
                    name,
                    f"{share:.1%}",
                    f"of {n:,}; 95% interval {low:.1%} to {high:.1%}",
                )
            )
        rows.append(
            ("F1, macro", f"{by_fit['f1_macro']:.3f}", f"majority vote {by_votes['f1_macro']:.3f}")
        )
    titles = {"plcc": "PLCC", "srocc": "SROCC", "rmse": "RMSE"}
    rows += [
        (
            title,
            _number(by_fit[name]),
            f"mean of the labels {_number(by_votes[name])}",
        )
        for name, title in titles.items()
        if name in by_fit
    ]
    return rows


def _worst(fit: Fit, truth: MatchedTruth, *, labels: bool) -> list[Part]:
    """Return the items that are wrong though the fit is certain, or whose scores are farthest off."""
    data = fit.data
    if labels:
        assert fit.label is not None
        assert fit.distribution is not None
        true, recovered = truth.categories(), fit.label[truth.item]
        confidence = fit.distribution.confidence()[truth.item]
        wrong = np.flatnonzero(true != recovered)
        order = wrong[np.argsort(-confidence[wrong], kind="stable")]
        names = data.scale.names
        header = ["Item", "True", "Recovered", "Confidence", "Labels as given"]
        cells = [
            [shorten(names[true[k]], 30), shorten(names[recovered[k]], 30), f"{confidence[k]:.0%}"]
            for k in order[:_MAX_ROWS].tolist()
        ]
        title = f"{len(order):,} wrong, the most confident first"
    else:
        assert fit.expectation is not None
        scores, expected = truth.scores(), fit.expectation[truth.item]
        order = np.argsort(-np.abs(expected - scores), kind="stable")
        header = ["Item", "True score", "Recovered", "Labels as given"]
        cells = [[f"{scores[k]:.2f}", f"{expected[k]:.2f}"] for k in order[:_MAX_ROWS].tolist()]
        title = "Largest errors first"
    if not cells:
        return [Text("No item is wrong.")]
    rows: list[list[str | Opener]] = [
        [
            _opens("items", data.items[int(truth.item[k])].as_py()),
            *row,
            _given(fit, int(truth.item[k])),
        ]
        for k, row in zip(order[:_MAX_ROWS].tolist(), cells, strict=True)
    ]
    return [Heading(f"Worst items: {title}"), SmallTable(header, rows)]


def _given(fit: Fit, item: int) -> str:
    """Return the labels of an item as given, such as "3 (2), 4 (2)"."""
    data = fit.data
    cells = slice(data.item_ptr[item], data.item_ptr[item + 1])
    counts = np.diff(data.cell_ptr)[cells]
    pairs = zip(data.cell_category[cells].tolist(), counts.tolist(), strict=True)
    return ", ".join(f"{shorten(data.scale.names[k], 20)} ({n})" for k, n in pairs)


def _measure_annotators(fit: Fit) -> list[Part]:
    """Return how often each annotator is right on gold items, beside the accuracy or reliability."""
    data, estimate = fit.data, leading_estimate(fit)
    truth = data.known[data.item_of_label()]
    gold = truth >= 0
    right = data.category_of_label()[gold] == truth[gold]
    n = np.bincount(data.annotator[gold], minlength=data.n_annotators)
    n_right = np.bincount(data.annotator[gold], right, data.n_annotators)
    who = np.flatnonzero(n)
    low, high = metrics.accuracy_interval(n_right[who], n[who])
    # Those first who are surely wrong most often.
    order = np.lexsort((low, high))[:_MAX_ROWS]
    text = (
        f"{counted(int((data.known >= 0).sum()), 'item')} had known truths (gold), with "
        f"{counted(int(n.sum()), 'label')} by {counted(len(who), 'annotator')}: "
        f"{right.mean():.1%} of these labels are right. The fit's accuracy on gold items would be "
        "circular, because it was given their truths; so this measures annotators."
    )
    if estimate != "matches":
        text += f" {estimate.capitalize()} is estimated from all items, gold and others."
    chart = None
    header = ["Annotator", "Gold labels", "Right", "95% interval", "Verdict"]
    if estimate != "matches":
        header.insert(4, estimate.capitalize())
        if len(who) > 1:
            names = [shorten(str(data.annotators[int(s)].as_py())) for s in who]
            share = n_right[who] / n[who]
            chart = gold_chart(names, estimate, getattr(fit, estimate)[who], share, n[who])
    verdict = verdicts(fit)[0]
    rows: list[list[str | Opener]] = []
    for k in order.tolist():
        s = int(who[k])
        row: list[str | Opener] = [
            _opens("annotators", data.annotators[s].as_py()),
            f"{n[s]:,}",
            f"{n_right[s] / n[s]:.0%}",
            f"{low[k]:.0%} to {high[k]:.0%}",
            str(verdict[s]),
        ]
        if estimate != "matches":
            row.insert(4, f"{getattr(fit, estimate)[s]:.2f}")
        rows.append(row)
    parts: list[Part] = [SmallTable(header, rows)]
    if len(who) > len(rows):
        parts.append(Text(f"The {len(rows)} lowest of {len(who):,}.", "quiet"))
    beside = Beside(parts)
    shown = beside if chart is None else SideBySide([chart, beside])
    return [Heading("Annotators on gold items"), Text(text), shown]


def _opens(table: str, one: object) -> Opener:
    return Opener(shorten(str(one), 40), table, str(one))


def _number(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.3f}"
