"""`fit.plot`: the charts of a fit, the same in a notebook, in a file and in the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from annotruth.analyses.advice.annotators import has_flags, verdicts
from annotruth.errors import AnnotruthError, InputError
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import READOUTS, SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.report.charts import matrices, shapes
from annotruth.report.charts.chart import Chart, category_colors, color_indices
from annotruth.report.charts.shapes import Intervals
from annotruth.report.consensus import CategoryBins, Consensus, category_bins

FULL_WIDTH = 1060.0
_MAX_NAMED = 30
_MAX_BARS = 12
_MAX_CELLS = 8
_N_BINS = 20
_OTHER_CHARTS = "see plot.matches(), or fit gpm or robust-gpm"

AnyFit = TypeVar("AnyFit", bound=Fit[Any])


class PlotMethods(Generic[AnyFit]):
    """Charts of one fit; each public method returns a `Chart`."""

    def __init__(self, fit: AnyFit) -> None:
        self._fit = fit

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(dir(self))})"

    def __dir__(self) -> list[str]:
        methods = (name for name in super().__dir__() if callable(getattr(type(self), name, None)))
        return sorted(name for name in methods if not name.startswith("_"))

    def reliability(self) -> Chart:
        """Chart each annotator's reliability with its interval, least reliable first."""
        return reliability_chart(self._fit)

    def history(self) -> Chart:
        """Chart the log-likelihood of all labels or comparisons by iteration."""
        return history_chart(self._fit)


class FitCharts(PlotMethods[Fit]):
    """The charts of one fit; each method returns a `Chart`."""

    @cached_property
    def _consensus(self) -> Consensus:
        return Consensus(self._fit)

    def categories(self) -> Chart:
        """Chart how often each category was given, and how often it was recovered."""
        fit, bins = self._fit, category_bins(self._fit.data, _MAX_BARS)
        counts = np.bincount(fit.data.cell_category, np.diff(fit.data.cell_ptr))
        given = _binned(bins, counts / fit.data.n_labels)
        recovered, caption = None, "Share of all labels."
        if fit.distribution is not None:
            theta = fit.distribution
            mean = np.bincount(theta.category, theta.probability) / len(theta)
            recovered = _binned(bins, mean)
            caption = (
                "Share of all labels, and mean of the items' recovered distributions: "
                f"{READOUTS[fit.readout]}."
            )
        return self._bars("categories", "Labels by category", caption, bins, given, recovered)

    def accuracy(self) -> Chart:
        """Chart each annotator's accuracy with its interval, lowest first."""
        fit = self._fit
        if fit.accuracy is None:
            raise AnnotruthError(
                f"this fit of {fit.model} has no accuracy of annotators: see plot.reliability() or "
                "plot.matches()"
            )
        rule = "flagged as careless or consistently wrong"
        low, high = (fit.annotator_columns[f"accuracy_{end}"] for end in ("low", "high"))
        return annotator_chart(
            fit, "accuracy", "Accuracy of annotators", fit.accuracy,
            np.asarray(low), np.asarray(high), rule,
        )  # fmt: skip

    def matches(self) -> Chart:
        """Chart how often each annotator gave the recovered label."""
        title = "Annotators: share of labels that are the recovered one"
        return annotator_chart(self._fit, "matches", title, self._consensus.match_rate)

    def past_fits(self) -> Chart:
        """Chart the reliability over all past fits of the annotators whose reliability changed most."""
        from annotruth.report.over_time import past_fits_chart

        return past_fits_chart(self._fit)

    def items(self) -> Chart:
        """Chart how difficult items are: how evenly their distributions are spread."""
        fit, difficulty = self._fit, self._consensus.relative_difficulty
        counts, edges = np.histogram(difficulty, _N_BINS, (0.0, 1.0))
        of = "labels are" if fit.distribution is None else "recovered distribution is"
        caption = (
            f"How evenly each item's {of} spread (entropy): 0% when one category has it all, 100% "
            "when all are equally likely."
        )
        tips = [
            f"difficulty {low:.0%} to {high:.0%}: {n:,} items ({n / len(difficulty):.1%})"
            for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
        titles, label = ("difficulty", "items"), "{:.0%}".format
        return Chart(
            "items",
            "Difficulty of items",
            caption,
            {"from": edges[:-1].tolist(), "to": edges[1:].tolist(), "items": counts.tolist()},
            lambda width: shapes.bars(
                edges, counts, width, titles, tips, integers="y", label=label
            ),
        )

    def scores(self) -> Chart:
        """Chart each item's score, with its interval where the model gives one, lowest first."""
        fit = self._fit
        if fit.expectation is None or fit.data.n_categories < 2:
            raise AnnotruthError("there are no scores: they need an ordinal scale")
        values, columns = fit.data.scale.values, fit.item_columns
        low, high = (
            np.asarray(columns[end], dtype=np.float64) if end in columns else None
            for end in ("score_low", "score_high")
        )
        intervals = Intervals(
            as_text(fit.data.items), fit.expectation, low, high, None,
            (float(values[0]), float(values[-1])), "score",
        ).sorted()  # fmt: skip
        return interval_chart(
            "scores", "Scores of items", "", "item", intervals, "items, lowest first", max_named=0
        )

    def annotator(self, annotator: Any) -> Chart:
        """Chart the confusion matrix of one annotator: labels given against labels recovered."""
        index = _index_of(annotator, self._fit.data.annotators, "annotator")
        bins = category_bins(self._fit.data, _MAX_CELLS)
        return matrices.matrix_chart(
            "annotator",
            f"Labels of {annotator}",
            "Confusion matrix: rows are recovered labels, columns the labels given. "
            "A stronger color is a larger share of the row.",
            bins.names,
            self._consensus.confusion(bins)[index],
            ("recovered", "given", "labels"),
            ("recovered ↓", "label given →"),
            width=400.0,
        )

    def item(self, item: Any) -> Chart:
        """Chart one item's labels as given, and its recovered distribution."""
        fit = self._fit
        index = _index_of(item, fit.data.items, "item")
        bins = category_bins(fit.data, _MAX_BARS)
        cells = slice(fit.data.item_ptr[index], fit.data.item_ptr[index + 1])
        counts = np.diff(fit.data.cell_ptr)[cells]
        given = _binned(bins, counts / counts.sum(), fit.data.cell_category[cells])
        recovered, theta = None, fit.distribution
        if theta is not None:
            entries = slice(theta.ptr[index], theta.ptr[index + 1])
            recovered = _binned(bins, theta.probability[entries], theta.category[entries])
        caption = f"{counts.sum():,} labels."
        if theta is not None:
            caption += f" Recovered: {READOUTS[fit.readout]}."
        return self._bars("item", f"Item {item}", caption, bins, given, recovered)

    def calibration(self, truth: Any) -> Chart:
        """Chart how often labels of about the same confidence are right.

        ``truth`` is as in `annotruth.evaluate`, here and in the charts below.
        """
        return self._against(truth, "calibration")

    def confusion(self, truth: Any) -> Chart:
        """Chart the confusion matrix of the items: true labels against labels recovered."""
        return self._against(truth, "confusion")

    def true_scores(self, truth: Any) -> Chart:
        """Chart the scores of items against their true scores."""
        return self._against(truth, "true-scores")

    def _against(self, truth: Any, name: str) -> Chart:
        from annotruth.report.truth import compare_with_truth

        charts = compare_with_truth(self._fit, truth).charts
        if name not in charts:
            raise AnnotruthError(
                f"there is no {name} of {self._fit.model} against this truth: choose "
                f"{', '.join(charts).replace('-', '_')}"
            )
        return charts[name]

    def _bars(
        self, name: str, title: str, caption: str, bins: CategoryBins, given: Floats,
        recovered: Floats | None,
    ) -> Chart:  # fmt: skip
        data: dict[str, Sequence[Any]] = {"category": bins.names, "given": given.tolist()}
        tips = [f"{bins.names[k]}: given {given[k]:.1%}" for k in range(len(bins))]
        if recovered is not None:
            data["recovered"] = recovered.tolist()
            tips = [f"{tip}, recovered {recovered[k]:.1%}" for k, tip in enumerate(tips)]
        colors = color_indices(self._fit.data.scale)
        css_classes = [f"at-k{colors[n]}" for n in bins.first]
        return Chart(
            name=name,
            title=title,
            caption=caption,
            data=data,
            draw=lambda width: shapes.paired_bars(
                bins.names, given, recovered, css_classes, width, tips
            ),
            colors=category_colors(self._fit.data.scale),
        )


def reliability_chart(fit: Fit[Any], caption: str = "") -> Chart:
    """Chart the reliability of each annotator with its interval, lowest first."""
    if fit.reliability is None:
        other = "rank with pair-gpm" if fit.kind == "comparisons" else _OTHER_CHARTS
        raise AnnotruthError(f"{fit.model} gives no reliability: {other}")
    rule, limit = "flagged as careless or consistently wrong", None
    if fit.spammer is not None and not has_flags(fit):
        limit, rule = SPAMMER_BELOW, f"with the whole interval below {SPAMMER_BELOW} (dashed)"
    title, value = "Reliability of annotators", fit.reliability
    chart = annotator_chart(fit, "reliability", title, value, fit.low, fit.high, rule, limit)
    return replace(chart, caption=f"{caption} {chart.caption}".strip())


def annotator_chart(
    fit: Fit[Any], name: str, title: str, value: Floats, low: Floats | None = None,
    high: Floats | None = None, rule: str = "", limit: float | None = None,
) -> Chart:  # fmt: skip
    """Chart a value of each annotator with its interval, lowest first, those to drop in orange.

    ``rule``: whom to drop; without it, nobody is marked. Those to drop or unsure are named.
    """
    words = verdicts(fit)[0] if rule else None
    dropped, named = (None, None) if words is None else (words == "drop", words == "unsure")
    if dropped is not None and dropped.any():
        named = dropped
    intervals = Intervals(
        as_text(fit.data.annotators), value, low, high, dropped,
        (min(0.0, float(value.min())), max(1.0, float(value.max()))), name, limit, named=named,
    ).sorted()  # fmt: skip
    caption = f"Orange: to drop, {rule}." if dropped is not None and dropped.any() else ""
    return interval_chart(name, title, caption, "annotator", intervals, "annotators, lowest first")


def history_chart(fit: Fit[Any]) -> Chart:
    """Chart the log-likelihood of all labels, comparisons or answers by iteration."""
    history = fit.history.log_likelihood
    if len(history) < 2:
        raise AnnotruthError("this model makes no iterations: it has no history")
    steps = np.arange(float(len(history)))
    unit = "answers" if fit.kind == "sets" else fit.kind
    return Chart(
        name="history",
        title="Log-likelihood by iteration",
        caption=f"Of all {unit}, at the start and after every iteration.",
        data={"iteration": steps.astype(int).tolist(), "log_likelihood": history.tolist()},
        draw=lambda width: shapes.line(steps, history, width, ("iteration", "log-likelihood")),
    )


def interval_chart(
    name: str, title: str, caption: str, who: str, intervals: Intervals, ranks: str,
    *, max_named: int = _MAX_NAMED,
) -> Chart:  # fmt: skip
    """Chart values with intervals in their order: in rows with names, or side by side if many.

    ``who`` is the heading of the names in the data, ``ranks`` the title of the axis of the latter.
    """
    data, n = intervals.columns(who), len(intervals.names)
    caption += "" if intervals.low is None else " Lines are 95% intervals."
    if n <= max_named:
        draw = partial(shapes.interval_rows, intervals)
        return Chart(name, title, caption.strip(), data, draw)
    drawn = shapes.thinned(n, FULL_WIDTH)
    if len(drawn) < n:
        caption += f" {n:,} are too many to draw: at most {len(drawn):,} are, evenly by rank."
    return Chart(
        name,
        title,
        caption.strip(),
        {key: [column[k] for k in drawn] for key, column in data.items()},
        lambda width: shapes.ranked_intervals(intervals, width, ranks),
        width=FULL_WIDTH,
    )


def _binned(bins: CategoryBins, share: Floats, category: Any = None) -> Floats:
    category = np.arange(len(share)) if category is None else category
    binned: Floats = np.bincount(bins.of[category], share, len(bins)).astype(float)
    return binned


def as_text(ids: pa.Array) -> list[str]:
    """Return ids as text."""
    return [str(each) for each in ids.to_pylist()]


def _index_of(wanted: Any, ids: pa.Array, role: str) -> int:
    """Return the place of an id, which may be given as text."""
    listed: list[Any] = ids.to_pylist()
    if wanted in listed:
        return listed.index(wanted)
    texts = as_text(ids)
    if str(wanted) in texts:
        return texts.index(str(wanted))
    raise InputError(f"no {role} {wanted!r}: the first is {listed[0]!r}")
