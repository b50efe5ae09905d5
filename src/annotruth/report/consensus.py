"""Labels beside the recovered labels: matches, confusion, agreement, and what each label did for its item."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.advice.advice import estimator_of
from annotruth.analyses.advice.annotators import match_rate, recovered_labels, verdicts
from annotruth.coefficients import fleiss_kappa, krippendorff_alpha, suitable_metrics
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import Column
from annotruth.models.result import Fit
from annotruth.observations import Labels

WeightKind: TypeAlias = Literal["odds", "serious", "weight", "vote", "none"]
"""What a label counts by: odds, its p serious, its annotator's weight, as one vote; or unknown."""

WEIGHTS: dict[WeightKind, str] = {
    "odds": "what this label does to the odds of the item's label against the runner-up: 4 times "
    "more makes it four times as likely, 4 times less a quarter as likely",
    "serious": "labels count by their p serious",
    "weight": "the annotator's weight, by which their labels count",
    "vote": "every label counts as one vote",
    "none": "this model does not weight labels one by one",
}
"""What the weights are, in words."""

_MAX_LOG10 = 9.99
_NOTHING = -1


@dataclass(frozen=True, eq=False)
class CategoryBins:
    """Categories in few enough bins to draw: neighbours, or rare ones, share a bin."""

    names: list[str]  # what each bin holds
    of: Codes  # the bin of each category
    first: Codes  # one category of each bin, whose color it has

    def __len__(self) -> int:
        return len(self.names)


def category_bins(labels: Labels, max_bins: int) -> CategoryBins:
    """Put categories into bins: neighbours if ordinal, else the rare ones together."""
    n, names = labels.n_categories, labels.scale.names
    if n <= max_bins:
        return CategoryBins(names, np.arange(n), np.arange(n))
    if labels.scale.is_ordinal:
        of = np.arange(n) * max_bins // n
        first = np.searchsorted(of, np.arange(max_bins))
        last = np.append(first[1:], n) - 1
        spans = [f"{names[a]} to {names[b]}" for a, b in zip(first, last, strict=True)]
        return CategoryBins(spans, of, first)
    counts = np.bincount(labels.cell_category, np.diff(labels.cell_ptr), n)
    common = np.sort(np.argsort(-counts, kind="stable")[: max_bins - 1])
    of = np.full(n, max_bins - 1)
    of[common] = np.arange(max_bins - 1)
    rare = int(np.flatnonzero(of == max_bins - 1)[0])
    named = [names[k] for k in common] + [f"{n - max_bins + 1:,} others"]
    return CategoryBins(named, of, np.append(common, rare))


@dataclass(frozen=True, eq=False)
class Consensus:
    """A fit's labels beside the recovered labels of their items."""

    fit: Fit

    @cached_property
    def recovered(self) -> Codes:
        """The code of each item's recovered label; of a score, the category nearest to it."""
        return recovered_labels(self.fit)

    @cached_property
    def item(self) -> Codes:
        """The item of each label."""
        return self.fit.data.item_of_label().astype(np.int64)

    @cached_property
    def category(self) -> NDArray[np.int32]:
        """The category of each label."""
        return self.fit.data.cell_category[self.fit.data.cell_of_label()]

    @cached_property
    def match_rate(self) -> Floats:
        """The share of each annotator's labels that are the recovered ones."""
        return match_rate(self.fit)

    def confusion(self, bins: CategoryBins) -> Codes:
        """Return counts of each annotator's labels: annotators x recovered bin x given bin."""
        data, n = self.fit.data, len(bins)
        recovered, given = bins.of[self.recovered[self.item]], bins.of[self.category]
        place = (data.annotator.astype(np.int64) * n + recovered) * n + given
        counts = np.bincount(place, minlength=data.n_annotators * n * n)
        return counts.reshape(data.n_annotators, n, n)

    @cached_property
    def difficulty(self) -> Floats:
        """Each item's entropy in nats: of its distribution, or of its labels where it has none."""
        data, theta = self.fit.data, self.fit.distribution
        if theta is not None:
            return theta.entropy()
        item = data.item_of_cell()
        share = np.diff(data.cell_ptr) / data.labels_per_item[item]
        # + 0.0 turns -0.0 into 0.0.
        return np.asarray(np.bincount(item, -share * np.log(share), data.n_items) + 0.0, float)

    @cached_property
    def relative_difficulty(self) -> Floats:
        """The difficulty as a share of the largest one, that of categories that are equally likely."""
        largest = np.log(max(self.fit.data.n_categories, 2))
        return np.asarray(np.clip(self.difficulty / largest, 0.0, 1.0), dtype=float)


@dataclass(frozen=True)
class AgreementRow:
    """The agreement of some of the labels."""

    # which labels, and how many
    name: str
    n_labels: int
    values: dict[str, float]  # the coefficients by name; nan where one is not defined


def agreement_rows(fit: Fit) -> list[AgreementRow]:
    """Return the agreement of all labels, without annotators to drop, and weighted by p serious."""
    data, dropped = fit.data, verdicts(fit)[0] == "drop"
    everything = np.ones(data.n_labels)
    rows = [_agreement(fit, "all labels", everything)]
    if dropped.any():
        kept = ~dropped[data.annotator]
        rows.append(_agreement(fit, "without annotators to drop", kept.astype(float)))
    if fit.p_serious is not None:
        rows.append(_agreement(fit, "weighted by p serious", fit.p_serious, weighted=True))
    return rows


def _agreement(fit: Fit, name: str, weight: Floats, *, weighted: bool = False) -> AgreementRow:
    values = {
        f"alpha ({metric})": krippendorff_alpha(fit.data, metric, weight)
        for metric in suitable_metrics(fit.data.scale)
    }
    # Fleiss' kappa counts labels; it takes no weights.
    values["Fleiss' kappa"] = float("nan") if weighted else fleiss_kappa(fit.data, weight)
    return AgreementRow(name, int(np.count_nonzero(weight)), values)


@dataclass(frozen=True, eq=False)
class ItemVotes:
    """The labels of a fit, each with its weight for its item's label against the runner-up."""

    fit: Fit

    @cached_property
    def runner_up(self) -> Codes:
        """The most likely other category of each item among those that its labels name.

        Where no label names another one, it is the most likely of all others; -1 if there is none.
        """
        data, theta, label = self.fit.data, self.fit.distribution, self.fit.label
        runner_up = np.full(data.n_items, _NOTHING)
        if theta is None or label is None:
            return runner_up
        n = data.n_categories
        given = data.item_of_cell() * n + data.cell_category
        likely = theta.item() * n + theta.category
        keys = np.union1d(given, likely)
        probability = np.zeros(len(keys))
        probability[np.searchsorted(keys, likely)] = theta.probability
        is_given = np.isin(keys, given, assume_unique=True)
        item, category = np.divmod(keys, n)
        # The last of an item's entries in this order is the one to keep; of equals, the first.
        order = np.lexsort((-category, probability, is_given, item))
        order = order[category[order] != label[item[order]]]
        runner_up[item[order]] = category[order]
        return runner_up

    @cached_property
    def p_runner_up(self) -> Floats:
        """The probability of the runner-up of each item."""
        theta, n = self.fit.distribution, self.fit.data.n_categories
        if theta is None:
            return np.zeros(self.fit.data.n_items)
        keys = theta.item() * n + theta.category
        wanted = np.arange(self.fit.data.n_items) * n + self.runner_up
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(
            (keys[place] == wanted) & (self.runner_up >= 0), theta.probability[place], 0.0
        )

    @cached_property
    def log_odds(self) -> Floats | None:
        """What each label adds to the log-odds of its item's label over the runner-up.

        Their sum and the log-odds before the labels are the log-odds of the fit's probabilities.
        This holds exactly for models with one latent class per category, approximately for those
        with subtypes, and for robust-gpm except where it lowers the probability of a label that
        nobody gave. None for models without such odds.
        """
        estimator, label = estimator_of(self.fit), self.fit.label
        if estimator is None or label is None:
            return None
        top = label.astype(np.int64)
        return estimator.label_log_odds(
            top, np.where(self.runner_up == _NOTHING, top, self.runner_up)
        )

    @property
    def kind(self) -> WeightKind:
        """What labels count by."""
        fit = self.fit
        if self.log_odds is not None:
            return "odds"
        if fit.p_serious is not None:
            return "serious"
        if "weight" in fit.annotator_columns:
            return "weight"
        return "none" if fit.annotator_values() else "vote"

    def of_page(self, items: Codes, rows: Codes, annotators: Codes) -> dict[str, Any]:
        """Return the labels of some items, as the page's script reads them.

        Categories are not among them: the table of items has how often each was given, in the
        same order.

        ``items``: the codes of the items.
        ``rows``, ``annotators``: the codes of the rows of the page's tables of items and of
          annotators.
        """
        data, fit = self.fit.data, self.fit
        ends = data.cell_ptr[data.item_ptr]
        n = data.labels_per_item[items]
        labels = np.repeat(ends[items] - np.cumsum(n) + n, n) + np.arange(n.sum())
        row = np.full(data.n_annotators, _NOTHING)
        row[annotators] = np.arange(len(annotators))
        others = np.setdiff1d(data.annotator[labels], annotators)
        row[others] = len(annotators) + np.arange(len(others))
        page: dict[str, Any] = {
            "kind": self.kind,
            "help": WEIGHTS[self.kind],
            "rows": np.flatnonzero(np.isin(rows, items, assume_unique=True)).tolist(),
            "runner_up": self.runner_up[items].tolist(),
            "p_runner_up": np.round(1000.0 * self.p_runner_up[items]).astype(int).tolist(),
            "annotator": row[data.annotator[labels]].tolist(),
            "others": [str(data.annotators[int(s)].as_py()) for s in others],
        }
        if fit.p_serious is not None:
            page["p_serious"] = _hundredths(fit.p_serious[labels])
        if self.log_odds is not None:
            log10 = self.log_odds[labels] / np.log(10.0)
            page["weight"] = _hundredths(np.clip(log10, -_MAX_LOG10, _MAX_LOG10))
        elif self.kind == "weight":
            page["weight"] = _hundredths(
                _numbers(fit.annotator_columns["weight"])[data.annotator[labels]]
            )
        return page


def _hundredths(values: Floats) -> list[int]:
    """Return numbers in hundredths, which take less room than decimals."""
    rounded: list[int] = np.round(100.0 * values).astype(int).tolist()
    return rounded


def _numbers(column: Column) -> Floats:
    return np.asarray(column, dtype=float)
