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
from annotruth.advice.annotators import verdicts
from annotruth.errors import counted, shorten
from annotruth.io.reading.file_errors import file_named_in_errors
from annotruth.io.reading.tables import load_table
from annotruth.kernels.arrays import Codes
from annotruth.labels.frames import as_arrow
from annotruth.labels.truth import MatchedTruth, match_truth
from annotruth.models.baselines import MajorityVote
from annotruth.models.result import Fit
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import escaped
from annotruth.report.charts.truth_charts import (
    calibration_chart,
    confusion_chart,
    gold_chart,
    score_chart,
)
from annotruth.report.consensus import category_bins
from annotruth.report.html import Cell, facts, figure, plain_table, section, side_by_side
from annotruth.report.tables import leading_estimate
from annotruth.report.verdict import MeasuredAccuracy
from annotruth.selection.evaluate import compute_metrics

_MAX_CELLS = 10
_MAX_ROWS = 12


@dataclass(frozen=True, eq=False)
class TruthFindings:
    """How a fit does against known truths.

    Attributes
    ----------
    section
        The section of the report, as HTML.
    charts
        Its charts by name.
    measured
        The accuracy of the items; None where no item could be measured.

    Examples
    --------
    >>> import annotruth as at
    >>> made = at.simulate.crowd(n_items=40, n_annotators=12, seed=1)
    >>> fit = at.fit(made.labels)
    >>> list(compare_with_truth(fit, {1: 2, 2: 3}).charts)
    ['confusion', 'true-scores']
    """

    section: str
    charts: dict[str, Chart]
    measured: MeasuredAccuracy | None


def compare_with_truth(fit: Fit, truth: Any) -> TruthFindings:
    """Return how a fit does against truths, as `annotruth.evaluate` takes them, and against gold."""
    parts: list[str] = []
    charts: dict[str, Chart] = {}
    measured = None
    if truth is not None:
        with file_named_in_errors(truth):
            matched = match_truth(load_table(truth), fit.data, role="truth")
            given = fit.data.known[matched.item] >= 0
            if given.any():
                parts.append(_left_out(int(given.sum()), len(given)))
                matched = _some(matched, np.flatnonzero(~given))
            if len(matched.item):
                measured = _measure(fit, matched, parts, charts)
    if (fit.data.known >= 0).any():
        _measure_annotators(fit, parts, charts)
    return TruthFindings(section("truth", "Against the truth", *parts, long=True), charts, measured)


def _left_out(n_given: int, n: int) -> str:
    text = (
        f"Left out: {counted(n_given, 'truth')} of {n:,} that the fit was given as gold; measuring "
        "the fit on them would be circular."
    )
    return f'<p class="note">{escaped(text)}</p>'


def _some(truth: MatchedTruth, places: Codes) -> MatchedTruth:
    return replace(truth, item=truth.item[places], values=truth.values.take(as_arrow(places)))


def _measure(
    fit: Fit, truth: MatchedTruth, parts: list[str], charts: dict[str, Chart]
) -> MeasuredAccuracy:
    """Add the figures of the items, and return the main one."""
    data, n = fit.data, len(truth.item)
    votes = MajorityVote().fit(data).result_
    by_fit, by_votes = (compute_metrics(one, truth, scores=True) for one in (fit, votes))
    of = f"{counted(n, 'item')} with known truth"
    parts.append(f'<p class="lead">{escaped(f"Measured on {of}.")}</p>')
    parts.append(facts(_figures(by_fit, by_votes, n)))
    shown: dict[str, Chart] = {}
    if "accuracy" in by_fit and fit.label is not None and fit.distribution is not None:
        true, recovered = truth.categories(), fit.label[truth.item]
        shown["confusion"] = confusion_chart(category_bins(data, _MAX_CELLS), true, recovered)
        if fit.readout == "right":
            confidence, right = fit.distribution.confidence()[truth.item], true == recovered
            error = metrics.calibration_error(confidence, right)
            shown["calibration"] = calibration_chart(confidence, right, error)
    if "plcc" in by_fit and fit.expectation is not None:
        names = [shorten(str(one)) for one in data.items.take(as_arrow(truth.item)).to_pylist()]
        shown["true-scores"] = score_chart(names, truth.scores(), fit.expectation[truth.item])
    charts.update(shown)
    worst = f'<div class="beside">{_worst(fit, truth, labels="accuracy" in by_fit)}</div>'
    parts.append(side_by_side(*map(figure, shown.values()), worst))
    if "accuracy" not in by_fit:
        sentence = f"On {of}, scores correlate with the truth by {by_fit['plcc']:.2f} (PLCC)."
        return MeasuredAccuracy(sentence, n, None)
    share, baseline = (one["accuracy"] for one in (by_fit, by_votes))
    sentence = (
        f"On {of}, {share:.1%} of the recovered labels are right (majority vote {baseline:.1%})."
    )
    return MeasuredAccuracy(sentence, n, share)


def _figures(
    by_fit: Mapping[str, float], by_votes: Mapping[str, float], n: int
) -> list[tuple[str, object, str]]:
    """Return the metrics, those of the votes beside them."""
    rows: list[tuple[str, object, str]] = []
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


def _worst(fit: Fit, truth: MatchedTruth, *, labels: bool) -> str:
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
        return "<p>No item is wrong.</p>"
    rows: list[list[str | Cell]] = [
        [
            _opens("items", data.items[int(truth.item[k])].as_py()),
            *row,
            _given(fit, int(truth.item[k])),
        ]
        for k, row in zip(order[:_MAX_ROWS].tolist(), cells, strict=True)
    ]
    return f"<h3>Worst items: {title}</h3>{plain_table(header, rows)}"


def _given(fit: Fit, item: int) -> str:
    """Return the labels of an item as given, such as "3 (2), 4 (2)"."""
    data = fit.data
    cells = slice(data.item_ptr[item], data.item_ptr[item + 1])
    counts = np.diff(data.cell_ptr)[cells]
    pairs = zip(data.cell_category[cells].tolist(), counts.tolist(), strict=True)
    return ", ".join(f"{shorten(data.scale.names[k], 20)} ({n})" for k, n in pairs)


def _measure_annotators(fit: Fit, parts: list[str], charts: dict[str, Chart]) -> None:
    """Add how often each annotator is right on gold items, beside the accuracy or reliability."""
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
    parts.append(f"<h3>Annotators on gold items</h3><p>{escaped(text)}</p>")
    header = ["Annotator", "Gold labels", "Right", "95% interval", "Verdict"]
    if estimate != "matches":
        header.insert(4, estimate.capitalize())
        if len(who) > 1:
            names = [shorten(str(data.annotators[int(s)].as_py())) for s in who]
            share = n_right[who] / n[who]
            charts["gold"] = gold_chart(names, estimate, getattr(fit, estimate)[who], share, n[who])
    verdict = verdicts(fit)[0]
    rows: list[list[str | Cell]] = []
    for k in order.tolist():
        s = int(who[k])
        row: list[str | Cell] = [
            _opens("annotators", data.annotators[s].as_py()),
            f"{n[s]:,}",
            f"{n_right[s] / n[s]:.0%}",
            f"{low[k]:.0%} to {high[k]:.0%}",
            str(verdict[s]),
        ]
        if estimate != "matches":
            row.insert(4, f"{getattr(fit, estimate)[s]:.2f}")
        rows.append(row)
    table = plain_table(header, rows)
    if len(who) > len(rows):
        table += f'<p class="quiet">The {len(rows)} lowest of {len(who):,}.</p>'
    beside = f'<div class="beside">{table}</div>'
    parts.append(side_by_side(figure(charts["gold"]), beside) if "gold" in charts else beside)


def _opens(table: str, one: object) -> Cell:
    return Cell(shorten(str(one), 40), opens=table, row=str(one))


def _number(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.3f}"
