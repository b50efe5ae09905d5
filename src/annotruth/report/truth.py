"""The section "Against the truth": accuracy, confusion, calibration and the worst items.

Items whose truth was given to the fit (gold) have that truth: measuring them would be circular. So
they are left out, and annotators are measured on them instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth import metrics
from annotruth.analyses.advice.annotators import verdicts
from annotruth.errors import counted, shorten
from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.kernels.arrays import Floats
from annotruth.models.baselines import MajorityVote
from annotruth.models.result import Fit
from annotruth.observations.frames import as_arrow
from annotruth.observations.truth import MatchedTruth, match_truth
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import Drawing, draw_axes
from annotruth.report.charts.matrices import matrix_chart
from annotruth.report.charts.shapes import scatter_chart
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
    figure,
)
from annotruth.report.sections import MeasuredAccuracy
from annotruth.report.tables import leading_estimate
from annotruth.selection.evaluate import compute_metrics

_MAX_CELLS = 10
_MAX_ROWS = 12
_N_BINS = 10


@dataclass(frozen=True, eq=False)
class TruthFindings:
    """How a fit does against known truths."""

    section: Section  # the section of the report; without known truths it is empty
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
                text = (
                    f"Left out: {counted(int(given.sum()), 'truth')} of {len(given):,} that the fit was "
                    "given as gold; measuring the fit on them would be circular."
                )
                parts.append(Text(text, "note"))
                kept = np.flatnonzero(~given)
                values = matched.values.take(as_arrow(kept))
                matched = replace(matched, item=matched.item[kept], values=values)
            if len(matched.item):
                measured = _measure(fit, matched, parts)
    if (fit.data.known >= 0).any():
        parts += _measure_annotators(fit)
    return TruthFindings(Section("truth", "Against the truth", parts, long=True), measured)


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
        bins = category_bins(data, _MAX_CELLS)
        place = bins.of[true] * len(bins) + bins.of[recovered]
        shown.append(
            matrix_chart(
                "confusion",
                "Confusion matrix",
                "Items by their true label (rows) and their recovered label (columns). A stronger color is "
                "a larger share of the row.",
                bins.names,
                np.bincount(place, minlength=len(bins) ** 2).reshape(len(bins), len(bins)),
                ("true", "recovered", "items"),
                ("true ↓", "recovered →"),
            )
        )
        if fit.readout == "right":
            confidence, right = fit.distribution.confidence()[truth.item], true == recovered
            shown.append(_calibration_chart(confidence, right))
    if "plcc" in by_fit and fit.expectation is not None:
        names = [shorten(str(one)) for one in data.items.take(as_arrow(truth.item)).to_pylist()]
        shown.append(_score_chart(names, truth.scores(), fit.expectation[truth.item]))
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
        for name, by in (("Accuracy", by_fit), ("Majority vote", by_votes)):
            low, high = metrics.accuracy_interval(by["accuracy"] * n, n)
            note = f"of {n:,}; 95% interval {low:.1%} to {high:.1%}"
            rows.append((name, f"{by['accuracy']:.1%}", note))
        note = f"majority vote {by_votes['f1_macro']:.3f}"
        rows.append(("F1, macro", f"{by_fit['f1_macro']:.3f}", note))
    for name in ("plcc", "srocc", "rmse"):
        if name in by_fit:
            note = f"mean of the labels {figure(by_votes[name], 3)}"
            rows.append((name.upper(), figure(by_fit[name], 3), note))
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
    items = truth.item[order[:_MAX_ROWS]].tolist()
    rows = [
        [_opens("items", data.items[item].as_py()), *row, _given(fit, item)]
        for item, row in zip(items, cells, strict=True)
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
    ids = data.annotators.take(as_arrow(who)).to_pylist()
    verdict, share = verdicts(fit)[0][who], n_right[who] / n[who]
    columns: dict[str, Sequence[Part]] = {
        "Annotator": [_opens("annotators", ids[k]) for k in order],
        "Gold labels": [f"{n[who[k]]:,}" for k in order],
        "Right": [f"{share[k]:.0%}" for k in order],
        "95% interval": [f"{low[k]:.0%} to {high[k]:.0%}" for k in order],
    }
    if estimate != "matches":
        text += f" {estimate.capitalize()} is estimated from all items, gold and others."
        value = getattr(fit, estimate)[who]
        columns[estimate.capitalize()] = [f"{value[k]:.2f}" for k in order]
    columns["Verdict"] = [str(verdict[k]) for k in order]
    rows = list(zip(*columns.values(), strict=True))
    more = f"The {len(rows)} lowest of {len(who):,}." if len(who) > len(rows) else ""
    table = SmallTable(list(columns), rows)
    return [Heading("Annotators on gold items"), Text(text), table, Text(more, "quiet")]


def _opens(table: str, one: object) -> Opener:
    return Opener(shorten(str(one), 40), table, str(one))


def _calibration_chart(confidence: Floats, right: NDArray[np.bool_]) -> Chart:
    """Return how often labels of about the same confidence are right: a reliability diagram."""
    place = np.minimum((confidence * _N_BINS).astype(np.int64), _N_BINS - 1)
    counts = np.bincount(place, minlength=_N_BINS)
    some = np.flatnonzero(counts)
    n, n_right = counts[some], np.bincount(place, right, _N_BINS)[some]
    expected, share = np.bincount(place, confidence, _N_BINS)[some] / n, n_right / n
    low, high = metrics.accuracy_interval(n_right, n)
    data = {
        "from": (some / _N_BINS).tolist(),
        "to": ((some + 1) / _N_BINS).tolist(),
        "items": n.tolist(),
        "confidence": expected.tolist(),
        "right": share.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
    }
    tips = [
        f"confidence {e:.0%} on average, {s:.0%} right (95% interval {a:.0%} to {b:.0%}), {m:,} items"
        for e, s, a, b, m in zip(expected, share, low, high, n, strict=True)
    ]

    def draw(width: float) -> Drawing:
        drawing = Drawing(width, 320)
        x, y = draw_axes(drawing, (0.0, 1.0), (0.0, 1.0), ("confidence", "share right"))
        drawing.line(x(0.0), y(0.0), x(1.0), y(1.0), "at-limit")
        for k, tip in enumerate(tips):
            with drawing.group(tip):
                a, b = x(data["from"][k]) + 1, x(data["to"][k]) - 1
                drawing.rect(a, y(share[k]), b - a, y(0.0) - y(share[k]), "at-bar")
                drawing.line(x(expected[k]), y(low[k]), x(expected[k]), y(high[k]), "at-range")
                drawing.circle(x(expected[k]), y(share[k]), 4, "at-mark")
                drawing.text((a + b) / 2, y(0.0) - 4, f"{n[k]:,}", "at-tick", "middle")
        return drawing

    return Chart(
        name="calibration",
        title="Calibration",
        caption="How often labels of about the same confidence are right, with 95% intervals and "
        "numbers of items; calibrated confidence is on the dashed line. The calibration error, the "
        f"mean distance from it, is {metrics.calibration_error(confidence, right):.3f}.",
        data=data,
        draw=draw,
    )


def _score_chart(names: Sequence[str], true: Floats, recovered: Floats) -> Chart:
    """Return the recovered scores against the true ones."""
    return scatter_chart(
        "true-scores",
        "Scores against the truth",
        "One dot per item; recovered without error on the dashed line.",
        {"item": names, "true": true.tolist(), "recovered": recovered.tolist()},
        [
            f"{name}: true {t:.2f}, recovered {r:.2f}"
            for name, t, r in zip(names, true, recovered, strict=True)
        ],
        ("true score", "recovered score"),
        diagonal=True,
    )
