"""`fit.plot`: the charts of a fit, the same in a notebook, in a file and in the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.errors import AnnotruthError, InputError
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.report import shapes
from annotruth.report.agreement import AgreementRow, agreement_rows
from annotruth.report.consensus import Bins, Consensus, bins_of
from annotruth.report.palette import category_colours, colour_of
from annotruth.report.picture import Picture

FULL = 1060.0
_MOST_NAMED = 30
_MOST_BARS = 12
_MOST_CELLS = 8
_N_BINS = 20


class Plots:
    """Charts of one fit; each is a `Picture`."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit
        self._consensus = Consensus(fit)

    def __repr__(self) -> str:
        return f"Plots({', '.join(name for name in dir(self) if not name.startswith('_'))})"

    def categories(self) -> Picture:
        """Draw how often each category was given, and how often it was recovered."""
        fit, bins = self._fit, bins_of(self._fit.data, _MOST_BARS)
        votes = np.bincount(fit.data.cell_category, np.diff(fit.data.cell_ptr))
        given = _binned(bins, votes / fit.data.n_labels)
        recovered = None
        if fit.distribution is not None:
            theta = fit.distribution
            mean = np.bincount(theta.category, theta.probability) / len(theta)
            recovered = _binned(bins, mean)
        said = "Share of all labels" + (
            "." if recovered is None else ", and mean of the items' recovered distributions."
        )
        return self._bars("categories", "Labels by category", said, bins, given, recovered)

    def workload(self) -> Picture:
        """Draw how many labels annotators gave."""
        n = self._fit.data.labels_per_annotator
        step = max(math.ceil((int(n.max()) + 1) / _N_BINS), 1)
        edges = np.arange(0, int(n.max()) + step + 1, step)
        counts, _ = np.histogram(n, edges)
        return Picture(
            name="workload",
            title="Labels by annotator",
            caption=f"How many annotators gave how many labels; the most is {n.max():,}.",
            records={"from": edges[:-1].tolist(), "to": (edges[1:] - 1).tolist(),
                     "annotators": counts.tolist()},
            draw=lambda width: shapes.histogram(
                edges.astype(float), counts, width, title="labels", unit="annotators",
                of="annotators", whole=True,
            ),
        )  # fmt: skip

    def history(self) -> Picture:
        """Draw the log-likelihood of all labels, iteration by iteration."""
        history = self._fit.history.log_likelihood
        if len(history) < 2:
            raise AnnotruthError(f"{self._fit.model} makes no iterations: it has no history")
        steps = np.arange(float(len(history)))
        return Picture(
            name="history",
            title="Log-likelihood by iteration",
            caption="Of all labels, at the start and after every iteration.",
            records={"iteration": steps.astype(int).tolist(), "log_likelihood": history.tolist()},
            draw=lambda width: shapes.line(
                steps, history, width, x_title="iteration", y_title="log-likelihood"
            ),
        )

    def reliability(self) -> Picture:
        """Draw each annotator's reliability with its interval, least reliable first."""
        fit = self._fit
        if fit.reliability is None:
            raise AnnotruthError(
                f"{fit.model} gives no reliability: see plot.matches(), or fit gpm or robust-gpm"
            )
        limit = SPAMMER_BELOW if fit.spammer is not None else None
        below = f" Below {SPAMMER_BELOW} (dashed) is a spammer." if limit is not None else ""
        return self._annotators(
            "reliability", "Reliability of annotators", below, fit.reliability, fit.low, fit.high,
            limit,
        )  # fmt: skip

    def matches(self) -> Picture:
        """Draw how often each annotator gave the recovered label."""
        title = "Annotators: share of labels that are the recovered one"
        return self._annotators("matches", title, "", self._consensus.matches)

    def items(self) -> Picture:
        """Draw how difficult items are: the entropy of their distributions."""
        fit, entropy = self._fit, self._consensus.difficulty()
        most = math.log(max(fit.data.n_categories, 2))
        counts, edges = np.histogram(np.clip(entropy, 0.0, most), _N_BINS, (0.0, most))
        of = "votes" if fit.distribution is None else "recovered distribution"
        title = "difficulty (entropy)"
        return Picture(
            name="items",
            title="Difficulty of items",
            caption=f"Entropy of each item's {of}: 0 when one category has it all, "
            f"{most:.2f} when all are equally likely.",
            records={
                "from": edges[:-1].tolist(),
                "to": edges[1:].tolist(),
                "items": counts.tolist(),
            },
            draw=lambda width: shapes.histogram(
                edges, counts, width, title=title, unit="items", of="items"
            ),
        )

    def scores(self) -> Picture:
        """Draw each item's score, with its interval where the model gives one, lowest first."""
        fit = self._fit
        if fit.expectation is None or fit.data.n_categories < 2:
            raise AnnotruthError("there are no scores: they need an ordinal scale")
        values, columns = fit.data.scale.values, fit.item_columns
        low, high = (
            np.asarray(columns[end], dtype=np.float64) if end in columns else None
            for end in ("score_low", "score_high")
        )
        bounds = (float(values[0]), float(values[-1]))
        ranges, records = _ordered(
            "item", _text(fit.data.items), fit.expectation, low, high, None, bounds, "score"
        )
        return self._ranked("scores", "Scores of items", "", ranges, records, "items, lowest first")

    def agreement(self) -> Picture:
        """Draw the agreement of all labels, and of what is left without doubtful ones."""
        rows = self.agreement_rows
        names = list(rows[0].values)
        columns = [(row.name, np.array(list(row.values.values()))) for row in rows]
        every = np.concatenate([values for _, values in columns])
        if np.isnan(every).all():
            raise AnnotruthError("no item has two different labels: there is no agreement to draw")
        domain = (min(0.0, float(np.nanmin(every))), 1.0)
        return Picture(
            name="agreement",
            title="Agreement",
            caption="1 is full agreement, 0 is chance.",
            records={"coefficient": names} | {name: each.tolist() for name, each in columns},
            draw=lambda width: shapes.dumbbells(names, columns, domain, width, "agreement"),
        )

    def annotator(self, annotator: Any) -> Picture:
        """Draw one annotator's labels against the recovered ones, as a table of squares."""
        at = _place(annotator, self._fit.data.annotators, "annotator")
        bins = bins_of(self._fit.data, _MOST_CELLS)
        counts = self._consensus.confusion(bins)[at]
        recovered, given = (axis.ravel().tolist() for axis in np.indices(counts.shape))
        records = {
            "recovered": [bins.names[k] for k in recovered],
            "given": [bins.names[g] for g in given],
            "labels": counts.ravel().tolist(),
        }
        tips = [
            f"recovered {r}, given {g}: {n:,}" for r, g, n in zip(*records.values(), strict=True)
        ]
        return Picture(
            name="annotator",
            title=f"Labels of {annotator}",
            caption="Rows are what was recovered, columns what this annotator said; "
            "darker is a larger share of the row.",
            records=records,
            draw=lambda width: shapes.matrix(bins.names, counts, width, tips),
            width=400.0,
        )

    def item(self, item: Any) -> Picture:
        """Draw one item's labels as given, and its recovered distribution."""
        fit = self._fit
        at = _place(item, fit.data.items, "item")
        bins = bins_of(fit.data, _MOST_BARS)
        cells = slice(fit.data.item_ptr[at], fit.data.item_ptr[at + 1])
        votes = np.diff(fit.data.cell_ptr)[cells]
        given = _binned(bins, votes / votes.sum(), fit.data.cell_category[cells])
        recovered = None
        if fit.distribution is not None:
            own = slice(fit.distribution.ptr[at], fit.distribution.ptr[at + 1])
            recovered = _binned(
                bins, fit.distribution.probability[own], fit.distribution.category[own]
            )
        said = f"{votes.sum():,} labels."
        return self._bars("item", f"Item {item}", said, bins, given, recovered)

    @cached_property
    def agreement_rows(self) -> list[AgreementRow]:
        """The numbers behind `agreement`: a row for each choice of labels."""
        return agreement_rows(self._fit)

    @cached_property
    def _colours(self) -> list[str]:
        return category_colours(self._fit.data.scale)

    def _bars(
        self, name: str, title: str, caption: str, bins: Bins, given: Floats,
        recovered: Floats | None,
    ) -> Picture:  # fmt: skip
        records: dict[str, Sequence[Any]] = {"category": bins.names, "given": given.tolist()}
        if recovered is not None:
            records["recovered"] = recovered.tolist()
        tips = [
            f"{bins.names[k]}: given {given[k]:.1%}"
            + ("" if recovered is None else f", recovered {recovered[k]:.1%}")
            for k in range(len(bins))
        ]
        colour = colour_of(self._fit.data.scale)
        kinds = [f"at-k{colour[n]}" for n in bins.first]
        return Picture(
            name=name,
            title=title,
            caption=caption,
            records=records,
            draw=lambda width: shapes.paired_bars(bins.names, given, recovered, kinds, width, tips),
            colours=self._colours,
        )

    def _annotators(
        self, name: str, title: str, caption: str, value: Floats, low: Floats | None = None,
        high: Floats | None = None, limit: float | None = None,
    ) -> Picture:  # fmt: skip
        fit = self._fit
        bounds = (min(0.0, float(value.min())), max(1.0, float(value.max())))
        ranges, records = _ordered(
            "annotator",
            _text(fit.data.annotators),
            value,
            low,
            high,
            fit.spammer,
            bounds,
            name,
            limit,
        )
        lines = " Lines are 95% intervals." if low is not None else ""
        if len(value) > _MOST_NAMED:
            return self._ranked(
                name, title, caption + lines, ranges, records, "annotators, lowest first"
            )
        return Picture(
            name=name,
            title=title,
            caption=(caption + lines).strip(),
            records=records,
            draw=lambda width: shapes.named_ranges(ranges, width),
        )

    def _ranked(
        self, name: str, title: str, caption: str, ranges: shapes.Ranges,
        records: Mapping[str, Sequence[Any]], ranks: str,
    ) -> Picture:  # fmt: skip
        at = shapes.thinned(len(ranges.names), FULL)
        n, drawn = len(ranges.names), len(at)
        if ranges.low is not None and "interval" not in caption:
            caption += " Lines are 95% intervals."
        if drawn < n:
            caption += f" {n:,} are too many to draw: at most {drawn:,} are, evenly by rank."
        return Picture(
            name=name,
            title=title,
            caption=caption.strip(),
            records={key: [column[k] for k in at] for key, column in records.items()},
            draw=lambda width: shapes.ranked_ranges(ranges, width, ranks),
            width=FULL,
        )


def _ordered(
    who: str, names: Sequence[str], value: Floats, low: Floats | None, high: Floats | None,
    flagged: Any, domain: tuple[float, float], title: str, limit: float | None = None,
) -> tuple[shapes.Ranges, dict[str, Sequence[Any]]]:  # fmt: skip
    """Put values in order, and make the table behind them."""
    order = np.argsort(value, kind="stable")
    ends = {"low": low, "high": high}
    sorted_ends = {name: end[order] for name, end in ends.items() if end is not None}
    flags = np.zeros(len(order), bool) if flagged is None else flagged[order]
    ranges = shapes.Ranges(
        [names[k] for k in order], value[order], sorted_ends.get("low"), sorted_ends.get("high"),
        flags.tolist(), domain, title, limit,
    )  # fmt: skip
    records = {who: ranges.names, title: ranges.value.tolist()}
    return ranges, records | {name: end.tolist() for name, end in sorted_ends.items()}


def _binned(bins: Bins, share: Floats, category: Any = None) -> Floats:
    category = np.arange(len(share)) if category is None else category
    binned: Floats = np.bincount(bins.of[category], share, len(bins)).astype(float)
    return binned


def _text(ids: pa.Array) -> list[str]:
    return [str(one) for one in ids.to_pylist()]


def _place(one: Any, ids: pa.Array, what: str) -> int:
    listed: list[Any] = ids.to_pylist()
    if one in listed:
        return listed.index(one)
    spelled = _text(ids)
    if str(one) in spelled:
        return spelled.index(str(one))
    raise InputError(f"no {what} {one!r}: the first is {listed[0]!r}")
