"""Fit several questions with and without sharing what is known of annotators; prints Markdown tables.

Crowds are simulated with reliabilities that are the same in all questions, correlated, or independent. With
--data-dir, the set emotion-0-100 is also fitted: its blocks of 100 items are seven questions.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

import annotruth as at
from annotruth.kernels.arrays import Floats
from annotruth.models.registry import make_estimator
from annotruth.models.result import Fit
from annotruth.questions.sharing import SharedEvidence, choose_sharing
from annotruth.report.questions import estimates, mean_correlation
from annotruth.simulate import QuestionSimulation
from benchmarks import machine

_CORRELATIONS = (1.0, 0.7, 0.0)
_LABELS_PER_ITEM = 5


class Run(NamedTuple):
    """One simulated crowd: what was shared, the gain, and errors without and with it."""

    strength: float
    gain: float
    error_alone: float
    error_shared: float
    error_full: float
    accuracy_alone: float
    accuracy_shared: float


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="crowds of each sort")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=4, help="questions of each crowd")
    parser.add_argument("--annotators", type=int, default=40)
    parser.add_argument("--labels", type=int, nargs="+", default=[5, 10, 20],
                        help="labels per annotator and question")  # fmt: skip
    parser.add_argument("--scales", nargs="+", default=["nominal", "ordinal"])
    parser.add_argument("--data-dir", type=Path, help="folder of label sets")
    options = parser.parse_args(arguments)
    print(machine.describe())
    print(f"\n{options.questions} questions, {options.annotators} annotators, {options.runs} crowds "
          "per row\n")  # fmt: skip
    print("| scale | correlation | labels per annotator and question | shared in | gain per held-out "
          "label | error of reliabilities alone | as chosen | with strength 1 | accuracy alone | as "
          "chosen |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for scale in options.scales:
        for correlation in _CORRELATIONS:
            for n_labels in options.labels:
                runs = [
                    run(scale, correlation, n_labels, options.questions, options.annotators, seed)
                    for seed in range(options.first_seed, options.first_seed + options.runs)
                ]
                print(row(scale, correlation, n_labels, runs), flush=True)
    if options.data_dir is not None:
        emotions(options.data_dir / "emotion-0-100" / "labels.csv")
    return 0


def run(
    scale: str, correlation: float, n_labels: int, n_questions: int, n_annotators: int, seed: int
) -> Run:
    """Fit one simulated crowd."""
    made = at.simulate.questions(
        scales=[scale] * n_questions,
        n_items=max(n_labels * n_annotators // _LABELS_PER_ITEM, 1),
        n_annotators=n_annotators,
        labels_per_item=_LABELS_PER_ITEM,
        correlation=correlation,
        seed=seed,
    )
    alone = {name: at.fit(each.labels) for name, each in made.questions.items()}
    evidence = SharedEvidence(alone)
    estimators = {name: make_estimator(fit.model, {}) for name, fit in alone.items()}
    sharing = choose_sharing(alone, estimators, evidence)
    full = refit(alone, evidence, 1.0)
    shared = full if sharing.strength == 1.0 else refit(alone, evidence, sharing.strength)
    return Run(
        sharing.strength,
        sharing.gain if sharing.strength and sharing.gain is not None else 0.0,
        reliability_error(made, alone),
        reliability_error(made, shared),
        reliability_error(made, full),
        accuracy(made, alone),
        accuracy(made, shared),
    )


def refit(fits: Mapping[str, Fit], evidence: SharedEvidence, strength: float) -> dict[str, Fit]:
    """Fit all questions with priors from the others."""
    if strength == 0.0:
        return dict(fits)
    return {
        name: at.fit(evidence.with_prior(name, fit.data, strength)) for name, fit in fits.items()
    }


def _reliability(fit: Fit) -> Floats:
    assert fit.reliability is not None
    return fit.reliability


def reliability_error(made: QuestionSimulation, fits: Mapping[str, Fit]) -> float:
    """Return the root mean squared error of the reliabilities of all questions."""
    errors = [_reliability(fits[name]) - each.reliability for name, each in made.questions.items()]
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


def accuracy(made: QuestionSimulation, fits: Mapping[str, Fit]) -> float:
    """Return the share of items whose recovered label is the true one."""
    right = [fits[name].label == each.label for name, each in made.questions.items()]
    return float(np.concatenate(right).mean())


def row(scale: str, correlation: float, n_labels: int, runs: list[Run]) -> str:
    mean = Run(*np.mean(runs, axis=0))
    n_shared = sum(each.strength > 0 for each in runs)
    cells = [
        *(scale, f"{correlation:g}", str(n_labels), f"{n_shared} of {len(runs)}"),
        *(f"{mean.gain:.4f}", f"{mean.error_alone:.3f}", f"{mean.error_shared:.3f}"),
        *(f"{mean.error_full:.3f}", f"{mean.accuracy_alone:.3f}", f"{mean.accuracy_shared:.3f}"),
    ]
    return f"| {' | '.join(cells)} |"


def emotions(path: Path) -> None:
    """Fit the seven questions of emotion-0-100, which numbers its items block by block."""
    table = csv.read_csv(path)
    block = np.minimum((table["item"].to_numpy() + 1) // 100, 6) + 1
    names = pa.array([f"emotion {number}" for number in block])
    fits = at.fit(table.append_column("question", names), question="all", bins=10)
    print(f"\nemotion-0-100, 10 bins:\n\n{fits.summary()}")
    print(f"correlation of reliabilities: {mean_correlation(estimates(fits, 'reliability')):.2f}")


if __name__ == "__main__":
    raise SystemExit(main())
