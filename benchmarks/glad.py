"""GLAD compared with crowd-kit's: time to the same log-posterior."""

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
from annotruth.models.confusion.glad import GLAD
from benchmarks import machine
from benchmarks.crowds import peer_frame

TARGET = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.glad", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder with dog/ and rte/, to include them")
    options = parser.parse_args()

    warnings.simplefilter("ignore", ConvergenceWarning)  # fits are stopped early on purpose
    simulation = simulate.crowd(n_items=2_000, n_annotators=100, labels_per_item=5, seed=0)
    frames = {"simulated": peer_frame(simulation.labels)}
    for name in ("dog", "rte") if options.data_dir else ():
        table = pd.read_csv(options.data_dir / name / "labels.csv")
        frames[name] = table.rename(columns={"item": "task", "annotator": "worker"})

    print(f"{machine.describe()}\n")
    print(
        "| labels | crowd-kit s | annotruth ms to the same | ratio | annotruth ms to convergence |"
    )
    print("|---|--:|--:|--:|--:|")
    smallest_ratio = min(compare(name, frame) for name, frame in frames.items())
    print(f"\nTarget: at least {TARGET}x. {'Met' if smallest_ratio >= TARGET else 'NOT met'}.")
    return 0


def compare(name: str, frame: pd.DataFrame) -> float:
    """Print a row; return how many times faster annotruth reaches crowd-kit's log-posterior."""
    start = perf_counter()
    peer = crowdkit.GLAD().fit(frame)
    peer_seconds = perf_counter() - start
    goal = log_posterior(frame, peer.alphas_, peer.betas_)

    is_reached = GLAD().fit(frame).result_.history.objective >= goal
    assert is_reached.any(), "crowd-kit's log-posterior is not reached"
    n_steps = int(np.argmax(is_reached)) + 1
    to_goal = median_seconds(lambda: GLAD(max_iter=n_steps).fit(frame))
    to_convergence = median_seconds(lambda: GLAD().fit(frame))
    print(
        f"| {name}, {len(frame):,} | {peer_seconds:.2f} | {1e3 * to_goal:.1f} "
        f"| {peer_seconds / to_goal:,.0f} | {1e3 * to_convergence:.1f} |"
    )
    return peer_seconds / to_goal


def log_posterior(frame: pd.DataFrame, alphas: pd.Series, betas: pd.Series) -> float:
    """Return GLAD's log-posterior at the given abilities and log inverse difficulties."""
    item, items = pd.factorize(frame["task"])
    category, categories = pd.factorize(frame["label"])
    k = len(categories)
    x = alphas.loc[frame["worker"]].to_numpy() * np.exp(betas.loc[items].to_numpy())[item]
    joint = np.zeros((len(items), k))
    np.add.at(joint, (item, category), x + np.log(k - 1))
    log_likelihood = (logsumexp(joint, axis=1) - np.log(k)).sum()
    log_likelihood -= (np.logaddexp(0, x) + np.log(k - 1)).sum()
    return float(log_likelihood + norm.logpdf(alphas, 1).sum() + norm.logpdf(betas, 1).sum())


def median_seconds(fit: Callable[[], object], rounds: int = 7) -> float:
    """Return the median seconds of a fit, reading the frame included."""
    seconds = []
    for _ in range(rounds):
        start = perf_counter()
        fit()
        seconds.append(perf_counter() - start)
    return median(seconds)


if __name__ == "__main__":
    sys.exit(main())
