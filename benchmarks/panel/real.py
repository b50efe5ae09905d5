"""Tables on real labels: injected spammers, classes with a known truth, movies."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annotruth import metrics
from annotruth.io.parse import read_table
from annotruth.io.readers import read_labels
from annotruth.kernels.arrays import Floats
from annotruth.models.result import Fit
from annotruth.observations import DuplicatePolicy, Labels
from annotruth.observations.truth import match_truth
from annotruth.paper import real_labels
from annotruth.paper.experiment import Measure
from annotruth.paper.measures import Measured, spammer_share
from benchmarks.panel.simulated import BEHAVIORS, measure_score
from benchmarks.panel.spammers import inject_spammers, mean_scores
from benchmarks.panel.tables import Case, PanelTable, Trial, fit_if_supported, trial_on

VIDEOS = ("vqeg-hd", "ftv", "uhd4u")
CLASSES = ("face", "dog", "duck", "product", "rte", "web", "adult")
VOTES_PER_ITEM = 4
SPAMMER_SHARE = 0.25


def tables(data: Path) -> list[PanelTable]:
    return [injected_spammers(data), classes(data), movies(data)]


def injected_spammers(data: Path) -> PanelTable:
    return PanelTable(
        title="(d) Injected spammers",
        description=(
            f"Video quality, reduced to {VOTES_PER_ITEM} votes per item, with {SPAMMER_SHARE:.0%} "
            "of the annotators replaced by spammers; then reduced only, and all original votes "
            "(one run). Recall and false alarms are the shares of spammers and of others who are "
            "classified as spammers; RMSE is that of the score against the mean of all original "
            "votes."
        ),
        heads=("labels", "spammers"),
        measures=(
            Measure("recall", "recall", "higher"),
            Measure("false_alarms", "false alarms", "lower"),
            Measure("rmse", "RMSE", "lower"),
        ),
        cases=tuple(case for name in VIDEOS for case in _video_cases(name, data)),
    )


def _video_cases(name: str, data: Path) -> list[Case]:
    labels = read_labels(data / name / "labels.csv", scale="ordinal")
    no_spammers = np.zeros(labels.n_annotators, dtype=np.bool_)
    original = trial_on(labels, partial(_measure, no_spammers, mean_scores(labels)))
    return [
        *(
            Case((name, behavior), partial(_inject, labels, behavior, SPAMMER_SHARE))
            for behavior in BEHAVIORS
        ),
        Case((name, "none"), partial(_inject, labels, "random", 0.0)),
        Case((name, "none, all votes"), lambda seed: original, seeded=False),
    ]


def _inject(labels: Labels, behavior: str, share: float, seed: int) -> Trial:
    rng = np.random.default_rng(seed)
    injected = inject_spammers(labels, behavior, rng, share=share, per_item=VOTES_PER_ITEM)
    measure = partial(_measure, injected.is_spammer, mean_scores(labels))
    return trial_on(injected.labels, measure)


def _measure(is_spammer: NDArray[np.bool_], score: Floats, fit: Fit) -> Measured:
    measured = measure_score(score, fit)
    if fit.spammer is not None:
        measured["false_alarms"] = float(fit.spammer[~is_spammer].mean())
        if is_spammer.any():
            measured["recall"] = float(fit.spammer[is_spammer].mean())
    return measured


def classes(data: Path) -> PanelTable:
    return PanelTable(
        title="(e) Classes",
        description=(
            "Accuracy on labels with a known truth, and its mean over the datasets. There is no "
            "randomness, so every figure is of one fit."
        ),
        heads=(),
        measures=tuple(Measure(name, name, "higher") for name in (*CLASSES, "mean")),
        cases=(Case((), lambda seed: partial(_accuracies, data), seeded=False),),
    )


def _accuracies(data: Path, model: str) -> Measured:
    measured: Measured = {name: _accuracy(data / name, model) for name in CLASSES}
    known = [value for value in measured.values() if value is not None]
    if len(known) == len(CLASSES):
        measured["mean"] = float(np.mean(known))
    return measured


def _accuracy(folder: Path, model: str) -> float | None:
    # Only adult has repeated labels of one annotator on one item.
    duplicates: DuplicatePolicy = "last" if folder.name == "adult" else "refuse"
    labels = read_labels(folder / "labels.csv", duplicates=duplicates)
    fit = fit_if_supported(labels, model)
    if fit is None or fit.label is None:
        return None
    truth = match_truth(read_table(folder / "truth.csv"), labels, role="truth")
    return metrics.accuracy(truth.categories(), fit.label[truth.item])


def movies(data: Path) -> PanelTable:
    return PanelTable(
        title="(f) Movies",
        description=(
            "Movie scores from the ratings of a few users against the mean rating of all users, "
            "drawn as in `annotruth reproduce movie`."
        ),
        heads=(),
        measures=(
            Measure("plcc", "PLCC", "higher"),
            Measure("rmse", "RMSE", "lower"),
            Measure("spammers", "spammers"),
        ),
        cases=(Case((), partial(_draw_movies, data / real_labels.RATINGS)),),
    )


def _draw_movies(path: Path, seed: int) -> Trial:
    settings = real_labels.MOVIE.resolve({})
    sample = real_labels.draw_ratings(
        real_labels.read_ratings(path), settings, np.random.default_rng(seed)
    )

    def measure(fit: Fit) -> Measured:
        share = None if fit.spammer is None else spammer_share(fit)
        return {**measure_score(sample.score, fit), "spammers": share}

    return trial_on(sample.labels, measure)
