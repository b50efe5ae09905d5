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
from annotruth.analyses.groups.model import GroupModel, fit_group_model, id_order
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.selection.heldout import HeldOut, assign_folds, log_p_of_folds, score_folds
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
        found = _score_groups(traits, name.partition(",")[0], fold)
        gains = [found.ahead_of(other) for other in (plain, opinions)]
        rows.append(
            [name, f"{found.score:.4f}", *(f"{gain:+.4f} ± {error:.4f}" for gain, error in gains)]
        )
    header = ["groups by", "log-likelihood per label", "above default", "above truth=opinions"]
    return markdown("groups-offensiveness, held-out labels in 5 folds", header, rows)


def _score_groups(labels: Labels, by: str, fold: Codes) -> HeldOut:
    """Return the score of fits with groups."""
    item = labels.item_of_label()
    fitted: dict[str, Any] = {}

    def fit(held_out: int, _: Any) -> bool:
        some = labels.subset(fold != held_out)
        groups = AnnotatorGroups.of(some, by)
        model = at.RobustGPM(truth="opinions")
        fitted["model"] = fit_group_model(model, some, groups.group, len(groups.names))
        fitted["order"] = id_order(some)
        return True

    def predict(rows: Codes) -> Floats:
        model: GroupModel = fitted["model"]
        items, annotators = (np.argsort(fitted["order"][k]) for k in (0, 1))
        return model.predict_proba(items[item[rows]], annotators[labels.annotator[rows]])

    label = labels.category_of_label()
    log_p, converged = log_p_of_folds(
        "groups", fit, predict, label, labels.n_categories, fold, None
    )
    scored = fold >= 0
    return HeldOut(
        "groups", log_p, item[scored], labels.annotator[scored], int((~scored).sum()), converged
    )


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
