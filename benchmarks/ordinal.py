"""Scores from few votes, scores on long scales, and coverage of subject-bias intervals."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import annotruth as at
from annotruth.io.readers import read_labels
from annotruth.kernels.arrays import Floats
from annotruth.paper.tables import markdown_table
from benchmarks.panel.spammers import inject_spammers, mean_scores, votes_of

VIDEOS = ("ftv", "vqeg-hd", "uhd4u")
VOTES_PER_ITEM = (4, 5, 6)
SLIDERS = ("uniform", "equal", "quiet", "pile-up", "difference", "difference, quiet", "clickers")
BINS = (20, 40, None)
PANELS = ((10, 5, None), (50, 5, None), (10, 40, None), (200, 40, None), (60, 20, 4), (200, 40, 3))

Matrix = Floats
"""Votes, items x annotators, nan where there is none."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ordinal", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="seeds per figure (default: 5)")
    parser.add_argument("--data-dir", type=Path, help="folder of video votes, to include them")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.data_dir:
        print("## Few votes\n\nRMSE to the mean of all votes of all annotators.\n")
        print(few_votes(options.data_dir, options.runs), "\n", flush=True)
    print("## Long scales\n\nRMSE to the true score; robust-gpm by the number of bins.\n")
    print(long_scales(options.runs), "\n", flush=True)
    print("## Coverage\n\nShare of true scores in the 95% intervals of subject-bias.\n")
    print(coverage(options.runs))
    return 0


def few_votes(data: Path, runs: int) -> str:
    methods = ("mean", "BT.500", "P.913", "subject-bias", "robust-gpm")
    rows = []
    for name in VIDEOS:
        labels = read_labels(data / name / "labels.csv", scale="ordinal")
        truth = mean_scores(labels)
        for per_item in VOTES_PER_ITEM:
            errors = []
            for seed in range(runs):
                rng = np.random.default_rng(seed)
                few = inject_spammers(labels, "random", rng, share=0.0, per_item=per_item).labels
                item, annotator, category = votes_of(few)
                votes = np.full((few.n_items, few.n_annotators), np.nan)
                votes[item, annotator] = few.scale.values[category]
                scores = (
                    np.nanmean(votes, axis=1),
                    bt500(votes),
                    p913(votes),
                    *(_scores(at.fit(few, model)) for model in methods[3:]),
                )
                errors.append([at.metrics.rmse(truth, score) for score in scores])
            mean = np.mean(errors, axis=0)
            rows.append([name, str(per_item), *(f"{e:.3f}" for e in mean)])
    return markdown_table(["votes", "per item", *methods], rows, n_left=1)


def _scores(fit: at.Fit) -> Floats:
    assert fit.expectation is not None
    return fit.expectation


def bt500(votes: Matrix) -> Floats:
    """Return mean votes without the observers that ITU-R BT.500 rejects."""
    mean, deviation = np.nanmean(votes, axis=1), np.nanstd(votes, axis=1, ddof=1)
    residual = votes - mean[:, np.newaxis]
    squares = np.nanmean(residual**2, axis=1)
    kurtosis = np.nanmean(residual**4, axis=1) / np.maximum(squares, 1e-12) ** 2
    factor = np.where((kurtosis >= 2) & (kurtosis <= 4), 2.0, np.sqrt(20.0))
    limit = (factor * deviation)[:, np.newaxis]
    above = ((residual >= limit) & (limit > 0)).sum(axis=0)
    below = ((residual <= -limit) & (limit > 0)).sum(axis=0)
    outside = above + below
    share = outside / (~np.isnan(votes)).sum(axis=0)
    rejected = (share > 0.05) & (np.abs(above - below) < 0.3 * outside)
    kept: Floats = np.nanmean(np.where(rejected, np.nan, votes), axis=1)
    return np.asarray(np.where(np.isnan(kept), mean, kept))


def p913(votes: Matrix) -> Floats:
    """Return the scores of ITU-T P.913 12.4: bias and inconsistency by alternating projection."""
    bias = np.zeros(votes.shape[1])
    score = np.nanmean(votes, axis=1)
    for _ in range(1000):
        before = score
        bias = np.nanmean(votes - score[:, np.newaxis], axis=0)
        residual = votes - score[:, np.newaxis] - bias
        variance = np.maximum(np.nanvar(residual, axis=0), 1e-8)
        weight = np.where(np.isnan(votes), 0.0, 1.0 / variance)
        score = np.nansum(weight * (votes - bias), axis=1) / weight.sum(axis=1)
        if np.linalg.norm(score - before) < 1e-8:
            break
    scores: Floats = score + bias.mean()
    return scores


def remove_bias(votes: pd.DataFrame) -> Floats:
    """Return mean votes less each annotator's mean deviation from the mean votes."""
    deviation = votes.label - votes.groupby("item").label.transform("mean")
    bias = deviation.groupby(votes.annotator).transform("mean")
    scores: Floats = (votes.label - bias).groupby(votes.item).mean().to_numpy()
    return scores


def slider_votes(kind: str, seed: int) -> tuple[pd.DataFrame, Floats]:
    """Return votes on a scale of 0 to 100, or -100 to 100, with biases and noise; true scores."""
    rng = np.random.default_rng(seed)
    n_items, n_annotators, per_item = 150, 25, 6
    low, high = (-100, 100) if kind.startswith("difference") else (0, 100)
    width = high - low
    if kind == "pile-up":
        score = low + width * rng.beta(0.5, 1.2, n_items)
    elif kind.startswith("difference"):
        score = np.clip(rng.normal(0, 0.12 * width, n_items), low, high)
    else:
        score = low + width * rng.uniform(0.1, 0.9, n_items)
    bias = rng.normal(0, 0.06 * width, n_annotators)
    noise = width * (
        rng.uniform(0.02, 0.08, n_annotators)
        if kind.endswith("quiet")
        else np.full(n_annotators, 0.12)
        if kind == "equal"
        else rng.uniform(0.04, 0.2, n_annotators)
    )
    item = np.repeat(np.arange(n_items), per_item)
    who = np.concatenate([rng.permutation(n_annotators)[:per_item] for _ in range(n_items)])
    vote = score[item] + (bias - bias.mean())[who] + noise[who] * rng.normal(size=len(item))
    if kind == "clickers":
        vote = np.where(who < n_annotators // 5, rng.uniform(low, high, len(item)), vote)
    label = np.clip(np.round(vote), low, high).astype(int)
    return pd.DataFrame({"item": item, "annotator": who, "label": label}), score


def long_scales(runs: int) -> str:
    head = ["votes", "mean", "bias removed", "subject-bias"]
    head += [f"{bins} bins" if bins else "as they are" for bins in BINS]
    rows = []
    for kind in SLIDERS:
        errors = []
        for seed in range(runs):
            votes, truth = slider_votes(kind, seed)
            scores = [
                votes.groupby("item").label.mean().to_numpy(),
                remove_bias(votes),
                _scores(at.fit(votes, "subject-bias", scale="ordinal")),
            ]
            for bins in BINS:
                # More numbers than robust-gpm takes as they are.
                bins = 100 if bins is None and kind.startswith("difference") else bins
                scores.append(_scores(at.fit(votes, "robust-gpm", scale="ordinal", bins=bins)))
            errors.append([at.metrics.rmse(truth, score) for score in scores])
        rows.append([kind, *(f"{e:.2f}" for e in np.mean(errors, axis=0))])
    return markdown_table(head, rows, n_left=1)


def panel_votes(
    size: tuple[int, int, int | None], seed: int
) -> tuple[pd.DataFrame, Floats, Callable[[Floats], Floats]]:
    """Return votes without limits, their true scores, and how to round them to 1..5."""
    n_items, n_annotators, per_item = size
    rng = np.random.default_rng(seed)
    score = rng.uniform(1.5, 4.5, n_items)
    bias = rng.normal(0, 0.4, n_annotators)
    noise = rng.uniform(0.3, 1.1, n_annotators)
    per_item = per_item or n_annotators
    item = np.repeat(np.arange(n_items), per_item)
    who = np.concatenate([rng.permutation(n_annotators)[:per_item] for _ in range(n_items)])
    vote = score[item] + (bias - bias.mean())[who] + noise[who] * rng.normal(size=len(item))
    frame = pd.DataFrame({"item": item, "annotator": who, "label": vote})
    return frame, score, lambda votes: np.clip(np.round(votes), 1, 5)


def coverage(runs: int) -> str:
    rows = []
    for size in PANELS:
        shares = []
        for seed in range(runs * max(1, 200 // size[0])):
            votes, truth, rounded = panel_votes(size, seed)
            inside = []
            given = votes.label.to_numpy()
            for label in (given, rounded(given)):
                fit = at.fit(votes.assign(label=label), "subject-bias", scale="ordinal")
                low, high = (fit.item_columns[f"score_{end}"] for end in ("low", "high"))
                inside.append(np.mean((low <= truth) & (truth <= high)))
            shares.append(inside)
        per_item = "all" if size[2] is None else str(size[2])
        figures = (f"{share:.3f}" for share in np.mean(shares, axis=0))
        rows.append([f"{size[0]} x {size[1]}", per_item, *figures])
    return markdown_table(["items x annotators", "per item", "continuous", "1..5"], rows, n_left=2)


if __name__ == "__main__":
    sys.exit(main())
