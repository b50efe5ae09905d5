"""GLAD beside crowd-kit's: the time to the same log-posterior, in one run on one machine."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pandas as pd
from crowdkit import aggregation as crowdkit
from scipy.special import logsumexp
from scipy.stats import norm

from annotruth import simulate
from annotruth.errors import ConvergenceWarning
from annotruth.models.glad import GLAD
from benchmarks import machine
from benchmarks.crowds import peer_frame

TARGET = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.glad", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder with dog/ and rte/, to add them")
    options = parser.parse_args()

    warnings.simplefilter("ignore", ConvergenceWarning)  # fits are stopped on purpose
    made = simulate.crowd(n_items=2_000, n_annotators=100, labels_per_item=5, seed=0)
    frames = {"simulated": peer_frame(made.labels)}
    for name in ("dog", "rte") if options.data_dir else ():
        table = pd.read_csv(options.data_dir / name / "labels.csv")
        frames[name] = table.rename(columns={"item": "task", "annotator": "worker"})

    print(f"{machine.describe()}\n")
    print("| labels | crowd-kit s | annotruth ms to the same | ratio | annotruth ms to its end |")
    print("|---|--:|--:|--:|--:|")
    slowest = min(compare(name, frame) for name, frame in frames.items())
    print(f"\nTarget: at least {TARGET}x. {'Met' if slowest >= TARGET else 'NOT met'}.")
    return 0


def compare(name: str, frame: pd.DataFrame) -> float:
    """Print a row, and return how many times faster we reach the peer's log-posterior."""
    began = perf_counter()
    peer = crowdkit.GLAD().fit(frame)
    theirs = perf_counter() - began
    goal = log_posterior(frame, peer.alphas_, peer.betas_)

    reached = GLAD().fit(frame).result_.history.objective >= goal
    assert reached.any(), "we did not reach the peer's log-posterior"
    steps = int(np.argmax(reached)) + 1
    to_the_same = timed(lambda: GLAD(max_iter=steps).fit(frame))
    to_its_end = timed(lambda: GLAD().fit(frame))
    print(
        f"| {name}, {len(frame):,} | {theirs:.2f} | {1e3 * to_the_same:.1f} "
        f"| {theirs / to_the_same:,.0f} | {1e3 * to_its_end:.1f} |"
    )
    return theirs / to_the_same


def log_posterior(frame: pd.DataFrame, alphas: pd.Series, betas: pd.Series) -> float:
    """GLAD's log-posterior at the given abilities and log inverse difficulties."""
    item, items = pd.factorize(frame["task"])
    category, categories = pd.factorize(frame["label"])
    k = len(categories)
    x = alphas.loc[frame["worker"]].to_numpy() * np.exp(betas.loc[items].to_numpy())[item]
    joint = np.zeros((len(items), k))
    np.add.at(joint, (item, category), x + np.log(k - 1))
    fit = (logsumexp(joint, axis=1) - np.log(k)).sum()
    fit -= (np.logaddexp(0, x) + np.log(k - 1)).sum()
    return float(fit + norm.logpdf(alphas, 1).sum() + norm.logpdf(betas, 1).sum())


def timed(fit: Callable[[], object], rounds: int = 7) -> float:
    """Median seconds of a fit, reading the frame included."""
    seconds = []
    for _ in range(rounds):
        began = perf_counter()
        fit()
        seconds.append(perf_counter() - began)
    return median(seconds)


if __name__ == "__main__":
    sys.exit(main())
