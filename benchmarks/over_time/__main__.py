"""Measure how well changes of annotators are found, and what times say; prints Markdown tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

import annotruth as at
from annotruth.kernels.arrays import Floats
from annotruth.observations.arrays import Covariates
from annotruth.simulate.changes import ChangingSimulation
from benchmarks.over_time.coverage import coverage, places

CROWDS: Mapping[str, dict[str, Any]] = {
    "opinions, all label all": {"n_items": 150, "n_annotators": 40},
    "opinions, repeated label": {"n_items": 150, "n_annotators": 40, "behavior": "repeated"},
    "opinions, 10 labels per item": {"n_items": 400, "n_annotators": 40, "labels_per_item": 10},
    "opinions, weaker change (0.7-1 to 0-0.4)": {
        "n_items": 150, "n_annotators": 40, "before": (0.7, 1.0), "after": (0.0, 0.4),
    },
    "4 classes, 5 labels per item": {
        "n_items": 600, "n_annotators": 40, "labels_per_item": 5, "n_categories": 4, "ordinal": False,
    },
    "4 classes, 10 labels per item": {
        "n_items": 400, "n_annotators": 40, "labels_per_item": 10, "n_categories": 4, "ordinal": False,
    },
    "2 classes, 10 labels per item": {
        "n_items": 400, "n_annotators": 40, "labels_per_item": 10, "n_categories": 2, "ordinal": False,
    },
}  # fmt: skip
COVERED = {
    name: options
    for name, options in CROWDS.items()
    if not {"behavior", "before"} & set(options) and name != "4 classes, 10 labels per item"
}
MIN_LABELS, NEAR = 60, 10


class Outcome(NamedTuple):
    """What was found in one crowd.

    Examples
    --------
    >>> Outcome(*(np.zeros(1) for _ in range(14))).near.tolist()
    [0.0]
    """

    detected: NDArray[Any]  # of those who change and have enough labels
    near: NDArray[Any]
    several: NDArray[Any]  # whether more than one change was found
    alarm: NDArray[Any]  # of those who do not change
    constant_auc_after: NDArray[Any]  # of p_serious of labels after changes alone
    auc_after: NDArray[Any]
    items_auc_after: NDArray[Any]  # with the true distributions, the same reliability for all
    oracle_auc_after: NDArray[Any]  # with the true distributions and reliabilities
    constant_auc_late: NDArray[Any]  # of everybody's labels in the second half
    auc_late: NDArray[Any]
    constant_auc_theirs: NDArray[Any]  # of all labels of those who change
    auc_theirs: NDArray[Any]
    constant_brier: NDArray[Any]  # of all labels of those who change
    brier: NDArray[Any]


def measure(made: ChangingSimulation) -> Outcome:
    """Fit a crowd and compare the changes that were found with the truth."""
    fit, constant = at.fit(made.labels), at.RobustGPM().fit(made.labels).result_
    ids = fit.data.annotators.to_pylist()
    found: dict[int, list[int]] = {}
    for row in fit.further_table("over_time", "changes_over_time").to_pylist():
        found.setdefault(ids.index(row["annotator"]), []).append(row["n_before"])
    n_labels, change = fit.data.labels_per_annotator, made.change
    turned = np.flatnonzero((change >= 0) & (n_labels >= MIN_LABELS)).tolist()
    near = [s in found and min(abs(n - change[s]) for n in found[s]) <= NEAR for s in turned]
    data = fit.data
    order = data.covariates.labels["order"].to_numpy()
    theirs = change[data.annotator] >= 0
    after = theirs & (order > change[data.annotator])
    late = order > n_labels[data.annotator] // 2
    scores = [
        np.array([auc(made.serious[some], p[some])] if some.any() else [])
        for some in (after, late, theirs)
        for p in (constant.p_serious, fit.p_serious)
        if p is not None
    ]
    scores += [
        np.square(p[theirs] - made.serious[theirs]).mean(keepdims=True)
        if theirs.any()
        else np.array([])
        for p in (constant.p_serious, fit.p_serious)
        if p is not None
    ]
    scores[2:2] = [
        np.array([auc(made.serious[after], p[after])] if after.any() else [])
        for p in oracle_p_serious(made, after)
    ]
    return Outcome(
        np.array([s in found for s in turned]),
        np.array(near),
        np.array([len(found.get(s, [])) > 1 for s in turned]),
        np.array([s in found for s in np.flatnonzero(change < 0)]),
        *scores,
    )


def oracle_p_serious(made: ChangingSimulation, after: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return p_serious by the truth with one reliability for all labels, and with the true ones."""
    data, n = made.labels, made.labels.n_categories
    label, annotator = data.category_of_label(), data.annotator
    irregular = np.full(data.n_labels, 1.0 / n)
    if made.repeated is not None:
        irregular = (label == made.repeated[annotator]) + 1e-12
    ratio = made.distribution[data.item_of_label(), label] / irregular
    reliability = np.where(after, made.later[annotator], made.reliability[annotator])
    return ratio, ratio * reliability / (1.0 - reliability)


def auc(truth: NDArray[np.bool_], score: Floats) -> float:
    """Return the probability that a serious label has a higher score than another."""
    n, m = truth.sum(), (~truth).sum()
    return float((rankdata(score)[truth].sum() - n * (n + 1) / 2) / (n * m))


def changes(runs: int, first_seed: int) -> Iterator[str]:
    """Return a table of how well changes are found, in crowds with and without them."""
    yield (
        "| crowd | found | within 10 labels | more than one | false alarms | AUC, labels after changes | "
        "oracle: items, and reliabilities | AUC, everybody's second half | "
        "AUC, all labels of those who change | Brier score of them |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name, options in CROWDS.items():
        for share in (0.2, 0.0):
            outcomes = [
                measure(at.simulate.changing(**options, changing_share=share, seed=seed))
                for seed in range(first_seed, first_seed + runs)
            ]
            each = Outcome(*map(np.concatenate, zip(*outcomes, strict=True)))
            alarms = f"{each.alarm.mean():.1%} of {len(each.alarm)}"
            if not share:
                yield f"| {name}, nobody changes | | | | {alarms} | | | | | |"
                continue
            yield (
                f"| {name} | {each.detected.mean():.0%} of {len(each.detected)} | "
                f"{each.near.mean():.0%} | {each.several.mean():.0%} | {alarms} | "
                f"{each.constant_auc_after.mean():.3f} → {each.auc_after.mean():.3f} | "
                f"{each.items_auc_after.mean():.3f}, {each.oracle_auc_after.mean():.3f} | "
                f"{each.constant_auc_late.mean():.3f} → {each.auc_late.mean():.3f} | "
                f"{each.constant_auc_theirs.mean():.3f} → {each.auc_theirs.mean():.3f} | "
                f"{each.constant_brier.mean():.3f} → {each.brier.mean():.3f} |"
            )


def real_times(folder: Path) -> Iterator[str]:
    """Return what order and seconds say in a public set, with held-out log-likelihoods."""
    path = folder / "times-dogs" / "labels.csv"
    if not path.is_file():
        yield f"(no {path})"
        return
    facts = at.fit(path).further["over_time"].facts
    yield "| times-dogs | gain per held-out label | standard error | informative |"
    yield "|---|---|---|---|"
    for name in ("order", "seconds"):
        one = facts[name]
        yield (
            f"| {name} | {one['gain_per_label']:+.5f} | {one['standard_error']:.5f} | "
            f"{'yes' if one['informative'] else 'no'} |"
        )
    yield f"\ntrend over annotators' labels: p = {facts['trend']['p_value']:.2f}"
    ratios = ", ".join(f"{np.exp(ratio):.2f}" for ratio in facts["seconds"]["log_ratio"])
    yield f"odds of a serious label by fifth of the seconds, fastest first: {ratios}"


def speed() -> Iterator[str]:
    """Return the time of a fit of a million labels with times, relative to one without."""
    yield "| 1,000,000 labels | without times | with times |"
    yield "|---|---|---|"
    for name, ordinal, n_categories in (("opinions", True, 5), ("4 classes", False, 4)):
        for share in (0.0, 0.1):
            made = at.simulate.changing(
                n_items=100_000,
                n_annotators=5_000,
                labels_per_item=10,
                n_categories=n_categories,
                ordinal=ordinal,
                changing_share=share,
            )
            times = []
            for labels in (replace(made.labels, covariates=Covariates()), made.labels):
                at.fit(labels)  # compiles what it needs
                wall, cpu = perf_counter(), process_time()
                at.fit(labels)
                times.append(f"{perf_counter() - wall:.1f} s ({process_time() - cpu:.1f} s of CPU)")
            yield f"| {name}, {share:.0%} change | {times[0]} | {times[1]} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.over_time", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="the folder of public label sets")
    parser.add_argument("--runs", type=int, default=10, help="crowds per row (default: 10)")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only-coverage", action="store_true", help="of intervals in windows")
    parser.add_argument("--speed", action="store_true", help="measure a million labels, too")
    options = parser.parse_args()
    if not options.only_coverage:
        for line in changes(options.runs, options.first_seed):
            print(line, flush=True)
        print()
        for line in places(COVERED, options.runs, options.first_seed):
            print(line, flush=True)
        print()
    for line in coverage(COVERED, options.runs, options.first_seed):
        print(line, flush=True)
    if options.only_coverage:
        return 0
    if options.data_dir is not None:
        print("", *real_times(options.data_dir), sep="\n", flush=True)
    if options.speed:
        print("", *speed(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
