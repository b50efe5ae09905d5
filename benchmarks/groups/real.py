"""groups-offensiveness: which items and groups differ, held-out labels, false discoveries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import annotruth as at
from annotruth.analyses.groups.differences import SIGNIFICANCE, find_differences
from annotruth.analyses.groups.fit import AnnotatorGroups
from annotruth.analyses.groups.model import fit_group_model, id_order
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import mixed_confusion
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.selection.heldout import assign_folds, score_folds
from benchmarks.groups.tables import markdown

_TRAITS = ("gender", "age", "race", "education")


def _read(folder: Path) -> Labels:
    labels = at.read_labels(folder / "labels.csv")
    return labels.with_annotator_covariates(csv.read_csv(folder / "annotators.csv"))


def real_groups(folder: Path) -> str:
    """Return which items and groups differ, by each trait."""
    rows = []
    for by in _TRAITS:
        fit = at.fit(_read(folder), by=by)
        facts = fit.further["groups"].facts
        summary = fit.further_table("groups", "group_summary").to_pylist()
        differ = ", ".join(facts["groups_differ"]) or "none"
        smallest = min(summary, key=lambda row: row["p_value"])
        differences = fit.further_table("groups", "group_differences")
        rows.append(
            [
                *(by, f"{facts['n_groups']}"),
                f"{facts['n_items_differ']} of {facts['n_items_compared']:,}",
                f"{differences['q_value'].to_numpy().min():.2f}",
                f"{facts['differing_share']:.1%}",
                differ,
                f"{smallest['group']} ({smallest['level']:+.2f}, p {smallest['p_value']:.3f}, q {smallest['q_value']:.2f})",
            ]
        )
    header = [
        *("by", "groups", "items that differ", "smallest q", "estimated share"),
        *("groups that differ", "smallest p-value of a group"),
    ]
    return markdown("groups-offensiveness, at a false-discovery rate of 5%", header, rows)


def held_out_labels(folder: Path) -> str:
    """Return the held-out log-likelihood per label with groups and without, on the same folds."""
    labels = _read(folder)
    fold = assign_folds(labels, 5, 0)
    plain = score_folds(at.RobustGPM(), labels, fold, None)
    opinions = score_folds(at.RobustGPM(truth="opinions"), labels, fold, None)
    rows = [
        ["without, default", f"{plain.score:.4f}", "", ""],
        ["without, truth=opinions", f"{opinions.score:.4f}", "", ""],
    ]
    for name, traits in {
        **dict.fromkeys(_TRAITS, labels),
        "age, permuted": _permuted(labels, "age", 0),
    }.items():
        estimator: Any = _Groups(name.partition(",")[0])
        found = score_folds(estimator, traits, fold, None)
        gains = [found.ahead_of(other) for other in (plain, opinions)]
        rows.append(
            [name, f"{found.score:.4f}", *(f"{gain:+.4f} ± {error:.4f}" for gain, error in gains)]
        )
    header = ["groups by", "log-likelihood per label", "above default", "above truth=opinions"]
    return markdown("groups-offensiveness, held-out labels in 5 folds", header, rows)


class _Groups:
    """An estimator of groups by a column of traits, for `score_folds`."""

    name = "groups"

    def __init__(self, by: str) -> None:
        self._by = by

    def fit(self, labels: Labels, *, progress: Any = None) -> _Groups:
        groups = AnnotatorGroups.of(labels, self._by)
        estimator = at.RobustGPM(truth="opinions")
        self._model = fit_group_model(estimator, labels, groups.group, len(groups.names))
        self._codes = [np.argsort(order) for order in id_order(labels)[:2]]
        self.result_ = self._model.fit
        return self

    def predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        """Return the probability of each category, one row per pair of item and annotator."""
        item, annotator = (
            codes[of] for codes, of in zip(self._codes, (item, annotator), strict=True)
        )
        model, messages = self._model, self._model.messages
        states = np.empty((len(item), model.confusion.shape[2]))
        group = model.group[annotator]
        for code in np.unique(group):
            of_items = messages.agreed + messages.differing @ messages.transitions[code]
            rows = messages.pairs.rows[code]
            of_items[messages.pairs.item[rows]] = model.posterior[rows]
            states[group == code] = of_items[item[group == code]]
        return mixed_confusion(states, model.confusion.transpose(2, 0, 1), annotator)


def _permuted(labels: Labels, by: str, seed: int) -> Labels:
    """Return the labels with one trait permuted among annotators."""
    values = labels.covariates.annotators[by]
    order = np.random.default_rng(seed).permutation(len(values))
    table = pa.table({"annotator": labels.annotators, by: values.take(pa.array(order))})
    return labels.with_annotator_covariates(table)


def false_discoveries(folder: Path, n: int, seed: int = 1) -> str:
    """Return how often permuted traits give any item or group that differs."""
    labels, rows = _read(folder), []
    crowd = at.fit(labels, truth="opinions")
    for by in ("gender", "age"):
        groups = AnnotatorGroups.of(labels, by)
        rng = np.random.default_rng(seed)
        found = np.array([_discoveries(crowd, rng.permutation(groups.group)) for _ in range(n)])
        items, of_groups = found.T
        rows.append(
            [
                *(by, f"{n}", f"{(items > 0).mean():.1%}", f"{(of_groups > 0).mean():.1%}"),
                *(f"{((items > 0) | (of_groups > 0)).mean():.1%}", f"{items.sum()}"),
            ]
        )
    header = [
        *("permuted", "data sets", "with an item that differs", "with a group that differs"),
        *("with either", "items in all"),
    ]
    return markdown("False discoveries at a nominal 5%", header, rows)


def _discoveries(crowd: Fit, group: Codes) -> tuple[int, int]:
    """Return the number of items and of groups that are found to differ."""
    found = find_differences(crowd, group, int(group.max()) + 1)
    return int((found.q_value <= SIGNIFICANCE).sum()), int(
        (found.group_q_value <= SIGNIFICANCE).sum()
    )
