"""Parts on real labels: injected spammers, classes with a known truth, films."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annotruth import metrics
from annotruth.io.readers import read_labels, read_table
from annotruth.kernels.arrays import Floats
from annotruth.labels import DuplicatePolicy, Labels
from annotruth.labels.truth import match_truth
from annotruth.models.result import Fit
from annotruth.paper import movie
from annotruth.paper.experiment import Measure
from annotruth.paper.measures import Measured, spammer_share
from benchmarks.panel.parts import Case, Part, Trial, answer, trial_on
from benchmarks.panel.simulated import BEHAVIORS, of_score
from benchmarks.panel.spammers import inject, mean_scores

VIDEOS = ("vqeg-hd", "ftv", "uhd4u")
CLASSES = ("face", "dog", "duck", "product", "rte", "web", "adult")
VOTES_PER_ITEM = 4
SPAMMER_SHARE = 0.25


def parts(data: Path) -> list[Part]:
    return [injected_spammers(data), classes(data), films(data)]


def injected_spammers(data: Path) -> Part:
    return Part(
        title="(d) Injected spammers",
        about=(
            f"Video quality, thinned to {VOTES_PER_ITEM} votes an item, {SPAMMER_SHARE:.0%} of "
            "the annotators replaced by spammers; then thinned alone, and all votes as they are "
            "(one run). Recall and false alarms are the shares of spammers and of others called "
            "spammers; the score's RMSE is against the mean of all the votes as they are."
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
    nobody = np.zeros(labels.n_annotators, dtype=np.bool_)
    clean = trial_on(labels, partial(_of_spammers, nobody, mean_scores(labels)))
    return [
        *(
            Case((name, behavior), partial(_spoiled, labels, behavior, SPAMMER_SHARE))
            for behavior in BEHAVIORS
        ),
        Case((name, "none"), partial(_spoiled, labels, "random", 0.0)),
        Case((name, "none, all votes"), lambda seed: clean, seeded=False),
    ]


def _spoiled(labels: Labels, behavior: str, share: float, seed: int) -> Trial:
    rng = np.random.default_rng(seed)
    spoiled = inject(labels, behavior, rng, share=share, per_item=VOTES_PER_ITEM)
    measure = partial(_of_spammers, spoiled.spammer, mean_scores(labels))
    return trial_on(spoiled.labels, measure)


def _of_spammers(is_spammer: NDArray[np.bool_], score: Floats, fit: Fit) -> Measured:
    found = of_score(score, fit)
    if fit.spammer is not None:
        found["false_alarms"] = float(fit.spammer[~is_spammer].mean())
        if is_spammer.any():
            found["recall"] = float(fit.spammer[is_spammer].mean())
    return found


def classes(data: Path) -> Part:
    return Part(
        title="(e) Classes",
        about=(
            "Accuracy on labels with a known truth, and its mean over the sets. There is nothing "
            "to draw, so every figure is of one fit."
        ),
        heads=(),
        measures=tuple(Measure(name, name, "higher") for name in (*CLASSES, "mean")),
        cases=(Case((), lambda seed: partial(_accuracies, data), seeded=False),),
    )


def _accuracies(data: Path, model: str) -> Measured:
    found: Measured = {name: _accuracy(data / name, model) for name in CLASSES}
    known = [value for value in found.values() if value is not None]
    if len(known) == len(CLASSES):
        found["mean"] = float(np.mean(known))
    return found


def _accuracy(folder: Path, model: str) -> float | None:
    # In adult some annotators labelled an item again; elsewhere nobody should have.
    duplicates: DuplicatePolicy = "last" if folder.name == "adult" else "refuse"
    labels = read_labels(folder / "labels.csv", duplicates=duplicates)
    fit = answer(labels, model)
    if fit is None or fit.label is None:
        return None
    truth = match_truth(read_table(folder / "truth.csv")[0], labels, role="truth")
    return metrics.accuracy(truth.categories(), fit.label[truth.item])


def films(data: Path) -> Part:
    return Part(
        title="(f) Films",
        about=(
            "Film scores from the ratings of a few users against everybody's mean rating, drawn "
            "as in `annotruth reproduce movie`."
        ),
        heads=(),
        measures=(
            Measure("plcc", "PLCC", "higher"),
            Measure("rmse", "RMSE", "lower"),
            Measure("spammers", "spammers"),
        ),
        cases=(Case((), partial(_film_draw, data / movie.FILE)),),
    )


def _film_draw(path: Path, seed: int) -> Trial:
    settings = movie.EXPERIMENT.resolve({})
    drawn = movie.draw_ratings(movie.read_ratings(path), settings, np.random.default_rng(seed))

    def measure(fit: Fit) -> Measured:
        share = None if fit.spammer is None else spammer_share(fit)
        return {**of_score(drawn.score, fit), "spammers": share}

    return trial_on(drawn.labels, measure)
