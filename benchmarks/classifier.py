"""Labels with and without a classifier, on simulated crowds, beside cleanlab where it is installed.

    python -m benchmarks.classifier [--seeds 20] [--items 400]

Prints a table: the share of right labels and the Brier score of the confidence in them (lower is better).
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import annotruth as at
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels

N_ANNOTATORS = 25
N_CLASSES = 4
NAMES = "abcd"


class Task(NamedTuple):
    """True classes, and a matrix of labels, items x annotators, with NaN for none."""

    truth: Codes
    matrix: Floats


class Consensus(NamedTuple):
    """The label found for each item, and the confidence in it."""

    label: Codes
    confidence: Floats


def simulate(seed: int, n_items: int, labels_per_item: int) -> Task:
    """Draw annotators who are right 50 to 90% of the time, and three who guess."""
    rng = np.random.default_rng([seed, labels_per_item])
    truth = rng.choice(N_CLASSES, n_items, p=rng.dirichlet(np.full(N_CLASSES, 8.0)))
    accuracy = rng.uniform(0.5, 0.9, N_ANNOTATORS)
    accuracy[:3] = 1.0 / N_CLASSES
    matrix = np.full((n_items, N_ANNOTATORS), np.nan)
    for e, true in enumerate(truth):
        for s in rng.permutation(N_ANNOTATORS)[:labels_per_item]:
            wrong = (true + rng.integers(1, N_CLASSES)) % N_CLASSES
            matrix[e, s] = true if rng.random() < accuracy[s] else wrong
    return Task(truth, matrix)


def scores(seed: int, truth: Codes, strength: float, sharpness: float = 1.0) -> Floats:
    """Return probabilities by Gaussian scores, which are calibrated if the sharpness is 1."""
    logits = np.random.default_rng([seed, 99]).normal(size=(len(truth), N_CLASSES))
    logits[np.arange(len(truth)), truth] += strength
    logits *= sharpness * max(strength, 1.0)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Floats = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


CLASSIFIERS: dict[str, Callable[[int, Codes], Floats]] = {
    "good": lambda seed, truth: scores(seed, truth, 2.5),
    "mediocre": lambda seed, truth: scores(seed, truth, 1.2),
    "overconfident": lambda seed, truth: scores(seed, truth, 1.2, sharpness=6.0),
    "useless": lambda seed, truth: scores(seed, truth, 0.0, sharpness=3.0),
    "inverted": lambda seed, truth: np.roll(scores(seed, truth, 2.0), 1, axis=1),
}


def by_annotruth(task: Task, predictions: Floats | None, model: str) -> Consensus:
    """Return the consensus of a model of annotruth."""
    item, annotator = np.nonzero(~np.isnan(task.matrix))
    labels = Labels.from_codes(
        item,
        annotator,
        task.matrix[item, annotator].astype(np.int64),
        items=range(len(task.truth)),
        annotators=range(N_ANNOTATORS),
        scale=at.Scale.nominal(list(NAMES)),
    )
    fit = at.fit(labels, model, classifier=predictions)
    assert fit.label is not None
    assert fit.distribution is not None
    return Consensus(fit.label.astype(np.int64), fit.distribution.confidence())


def by_cleanlab(task: Task, predictions: Floats, *, calibrate: bool) -> Consensus:
    """Return cleanlab's consensus, by CROWDLAB."""
    import pandas as pd
    from cleanlab.multiannotator import get_label_quality_multiannotator

    used = ~np.isnan(task.matrix).all(axis=0)
    found: Any = get_label_quality_multiannotator(
        pd.DataFrame(task.matrix[:, used]),
        predictions,
        calibrate_probs=calibrate,
        verbose=False,
    )["label_quality"]
    return Consensus(
        found["consensus_label"].to_numpy(int), found["consensus_quality_score"].to_numpy(float)
    )


def measure(consensus: Consensus, truth: Codes) -> tuple[float, float]:
    """Return the accuracy, and the Brier score of the confidence."""
    is_right = consensus.label == truth
    return float(is_right.mean()), float(((consensus.confidence - is_right) ** 2).mean())


def main() -> None:
    """Print one row per number of labels and classifier."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=20)
    options.add_argument("--items", type=int, default=400)
    given = options.parse_args()
    methods: dict[str, Callable[[Task, Floats], Consensus]] = {
        "robust-gpm, labels only": lambda task, _: by_annotruth(task, None, "robust-gpm"),
        "robust-gpm": lambda task, f: by_annotruth(task, f, "robust-gpm"),
        "dawid-skene, labels only": lambda task, _: by_annotruth(task, None, "dawid-skene"),
        "dawid-skene": lambda task, f: by_annotruth(task, f, "dawid-skene"),
    }
    if importlib.util.find_spec("cleanlab"):
        methods["cleanlab"] = lambda task, f: by_cleanlab(task, f, calibrate=False)
        methods["cleanlab, calibrated"] = lambda task, f: by_cleanlab(task, f, calibrate=True)
    print("| labels per item | classifier | its accuracy |", " | ".join(methods), "|")
    print("|---|---|---|" + "---|" * len(methods))
    for labels_per_item in (1, 2, 3):
        for name, classify in CLASSIFIERS.items():
            own: list[float] = []
            found: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
            for seed in range(given.seeds):
                task = simulate(seed, given.items, labels_per_item)
                predictions = classify(seed, task.truth)
                own.append((predictions.argmax(axis=1) == task.truth).mean())
                for method, run in methods.items():
                    if "cleanlab" in method and labels_per_item == 1:
                        continue  # it refuses labels of which no item has two
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found[method].append(measure(run(task, predictions), task.truth))
            cells = []
            for values in found.values():
                accuracy, brier = np.mean(values, axis=0) if values else (np.nan, np.nan)
                cells.append(f"{accuracy:.3f} ({brier:.3f})" if values else "refused")
            row = " | ".join(cells)
            print(f"| {labels_per_item} | {name} | {np.mean(own):.3f} | {row} |", flush=True)


if __name__ == "__main__":
    main()
