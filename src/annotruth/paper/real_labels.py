"""Experiments on real labels: classes of dogs and faces with a known truth, and scores of movies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.io.parse import read_table
from annotruth.io.readers import read_labels
from annotruth.observations import Labels
from annotruth.observations.truth import match_truth
from annotruth.paper.experiment import (
    SCORE_MEASURES,
    Claim,
    Condition,
    Experiment,
    ExperimentRun,
    ExperimentSetting,
    Measure,
    RequiredFiles,
    Results,
    Settings,
    Verdict,
)
from annotruth.paper.measures import (
    fit_model,
    label_values,
    measure_classes,
    measure_scores,
    spammer_share,
)
from annotruth.paper.tables import MeanWithError, lead_claims, mean_with_error, rmse_lead, values_of

CLASS_MODELS = {
    "ordinal-binary": "Ord-bin",
    "dawid-skene": "D&S",
    "glad": "GLAD",
    "gpm": "GPM",
    "majority": "Majority",
}
_AVERAGES = ("macro", "micro", "weighted")
_SOURCE = (
    "the repository crowd_truth_infer of the VLDB'17 benchmark of truth inference "
    "(github.com/zhydhkcws/crowd_truth_infer)"
)

# Statements, models, and the others that each of them is said to be ahead of in accuracy.
_ORDERS = {
    "dog": (
        (
            "GLAD performs best (on other images)",
            ("glad",),
            ("ordinal-binary", "dawid-skene", "gpm"),
        ),
        (
            "Ord-bin performs worst (on other images)",
            ("glad", "gpm", "dawid-skene"),
            ("ordinal-binary",),
        ),
        ("GPM performs second, ahead of D&S (on other images)", ("gpm",), ("dawid-skene",)),
    ),
    "face": (
        ("Ord-bin performs best", ("ordinal-binary",), ("gpm", "dawid-skene", "glad")),
        ("GLAD performs worst", ("ordinal-binary", "gpm", "dawid-skene"), ("glad",)),
        ("GPM performs second, D&S third", ("gpm",), ("dawid-skene",)),
    ),
}


def compare_classes(
    dataset: str,
    condition: Condition,
    settings: Settings,
    rng: np.random.Generator,
    data: Path | None,
) -> Results:
    """Fit every model to a dataset and compare its classes with the truth.

    For every pair of models, the results have the difference in accuracy with its standard error
    over items, because an accuracy alone does not show how much of a lead is chance.
    """
    assert data is not None
    labels = read_labels(data / dataset / "labels.csv")
    known = match_truth(read_table(data / dataset / "truth.csv"), labels, role="truth")
    truth = known.categories()
    results: Results = {}
    is_correct = {}
    for model in CLASS_MODELS:
        fit = fit_model(labels, model)
        assert fit.label is not None
        classes = fit.label[known.item]
        is_correct[model] = (classes == truth).astype(np.float64)
        results[model] = {**measure_classes(truth, classes), "converged": float(fit.converged)}
        if model == "gpm":
            results[model]["spammers"] = spammer_share(fit)
    for model, other in permutations(results, 2):
        lead = is_correct[model] - is_correct[other]
        results[model][f"ahead of {other}"] = float(lead.mean())
        results[model][f"error of {other}"] = float(lead.std(ddof=1) / math.sqrt(lead.size))
    return results


def accuracy_lead(runs: Sequence[ExperimentRun], model: str, other: str) -> MeanWithError:
    """Return the difference in accuracy of two models, with its standard error over items."""
    results = runs[0].results.get(model, {})
    return MeanWithError(results.get(f"ahead of {other}"), results.get(f"error of {other}"), 1)


def _dog_notes(runs: Sequence[ExperimentRun], settings: Settings) -> list[str]:
    return [
        (
            "The paper's dataset, 250 images with 17 labels each, is not available. These are the 807 "
            "images of the VLDB'17 benchmark with 10 labels each, on which every model does better: "
            "the order of the models can be compared, the figures cannot."
        )
    ]


def _face_notes(runs: Sequence[ExperimentRun], settings: Settings) -> list[str]:
    f1_macro = runs[0].results["gpm"]["f1_macro"]
    return [
        (
            "Every class has the same number of images, so macro and weighted F1 are equal: "
            f"{f1_macro:.4f} for GPM; micro F1 is the accuracy. None is the printed 0.5431."
        )
    ]


def _class_claims(
    dataset: str, source: str, runs: Sequence[ExperimentRun], settings: Settings
) -> list[Claim]:
    """Return the claims on the order of the models and on the share of spammers."""
    spammers = runs[0].results["gpm"]["spammers"]
    evidence = f"share of spammers {spammers:.4f}"
    verdict: Verdict = "cannot be tested"
    if dataset == "dog":
        statement = "26.21% of the annotators are spammers"
        evidence += ", among other annotators"
    else:
        statement = "no annotator is a spammer"
        verdict = "holds" if spammers == 0 else "does not hold"
    orders = _ORDERS[dataset]
    return [
        *lead_claims(runs, orders, source, "accuracy", accuracy_lead, CLASS_MODELS),
        Claim(statement, source, evidence, verdict),
    ]


def _of_classes(
    name: str,
    title: str,
    description: str,
    printed: Mapping[str, tuple[float, float]],
    spammers: float,
    notes: Callable[[Sequence[ExperimentRun], Settings], Sequence[str]],
    source: str,
) -> Experiment:
    """Return an experiment on classes; ``printed`` are accuracy and F1 of each model.

    The paper does not state how its F1 is averaged, so that it is printed beside every average.
    """
    figures = {
        (model,): {"accuracy": accuracy, **{f"f1_{kind}": f1 for kind in _AVERAGES}}
        for model, (accuracy, f1) in printed.items()
    }
    figures["gpm",]["spammers"] = spammers
    return Experiment(
        name=name,
        title=title,
        description=f"{description} Accuracy and F1 of the class from each model. There is no "
        "randomness, so there is one run.",
        settings={
            "f1": ExperimentSetting("macro", "how F1 averages over the classes", choices=_AVERAGES)
        },
        run=partial(compare_classes, name),
        measures=(
            Measure("accuracy", "C_o", "higher"),
            Measure("f1_{f1}", "F1", "higher"),
            Measure("spammers", "spammers"),
        ),
        models=CLASS_MODELS,
        printed=figures,
        notes=notes,
        claims=partial(_class_claims, name, source),
        required_files=RequiredFiles((f"{name}/labels.csv", f"{name}/truth.csv"), _SOURCE),
        is_random=False,
    )


DOG = _of_classes(
    "dog",
    "Crowd dog classification",
    "807 images of dogs in four breeds, 8,070 labels by 109 annotators.",
    {
        "ordinal-binary": (0.6280, 0.4862),
        "dawid-skene": (0.6320, 0.5000),
        "glad": (0.6480, 0.5368),
        "gpm": (0.6480, 0.5217),
    },
    0.2621,
    _dog_notes,
    "Crowd Dog Classification",
)

FACE = _of_classes(
    "face",
    "Face emotion identification",
    "584 images of faces in four classes, 5,242 labels by 27 annotators.",
    {
        "glad": (0.5976, 0.5155),
        "dawid-skene": (0.6318, 0.5356),
        "ordinal-binary": (0.6490, 0.5514),
        "gpm": (0.6370, 0.5431),
    },
    0.0,
    _face_notes,
    "Face Emotion Identification",
)


MOVIE_MODELS = {
    "dawid-skene": "D&S",
    "glad": "GLAD",
    "ordinal-binary": "Ord-bin",
    "ordinal-mixture": "Ord-dis-mix",
    "subject-bias": "Li",
    "gpm": "GPM",
    "mean": "Mean",
}
DISCRETE = ("dawid-skene", "glad", "ordinal-binary")
_CONTINUOUS = ("ordinal-mixture", "subject-bias")
_PRINTED = {
    "dawid-skene": {"plcc": 0.4073, "srocc": 0.4957, "rmse": 1.2287},
    "glad": {"plcc": 0.5347, "srocc": 0.6029, "rmse": 0.6361},
    "ordinal-binary": {"plcc": 0.7122, "srocc": 0.7166, "rmse": 0.5849},
    "ordinal-mixture": {"plcc": 0.7066, "srocc": 0.7282, "rmse": 0.4292},
    "subject-bias": {"plcc": 0.8369, "srocc": 0.8219, "rmse": 0.2483},
    "gpm": {"plcc": 0.8620, "srocc": 0.8420, "rmse": 0.2228, "spammers": 0.01},
}
_LEADS = (
    (
        "GPM performs best of the paper's six models",
        ("gpm",),
        ("dawid-skene", "glad", "ordinal-binary", "ordinal-mixture", "subject-bias"),
    ),
    ("GPM is ahead of the mean (not in the paper)", ("gpm",), ("mean",)),
    (
        "D&S, GLAD and Ord-bin, made for classes, are generally worse than Ord-dis-mix and Li",
        _CONTINUOUS,
        DISCRETE,
    ),
)
RATINGS = "movielens-100k/labels.csv"
"""The file of the movies' ratings, in the folder of real labels."""


class RatingSample(NamedTuple):
    """A few ratings of some movies, and the movies' true scores."""

    labels: Labels
    score: NDArray[np.float64]


class RatingTable(NamedTuple):
    """All ratings as a table of movies x users of category codes from 1, 0 where there is none."""

    codes: NDArray[np.int64]
    labels: Labels


def compare_scores(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Draw movies and users, and compare every model's scores with the movies' true ones."""
    assert data is not None
    sample = draw_ratings(read_ratings(data / RATINGS), settings, rng)
    labels = sample.labels
    results: Results = {}
    for model in MOVIE_MODELS:
        fit = fit_model(labels, model)
        score = label_values(fit) if fit.expectation is None else fit.expectation
        results[model] = {**measure_scores(sample.score, score), "converged": float(fit.converged)}
        if model == "gpm":
            results[model]["spammers"] = spammer_share(fit)
            results[model]["labels_per_item"] = labels.n_labels / labels.n_items
    return results


def draw_ratings(
    ratings: RatingTable, settings: Settings, rng: np.random.Generator
) -> RatingSample:
    """Draw movies with many raters and users who rated many of them, as in the paper."""
    is_rated = ratings.codes > 0
    films = np.flatnonzero(is_rated.sum(axis=1) >= settings["film_raters"])
    users = np.flatnonzero(is_rated[films].sum(axis=0) >= settings["user_films"])
    for name, eligible in (("films", films), ("users", users)):
        if eligible.size < settings[name]:
            raise InputError(
                f"{name} is {settings[name]}, but only {eligible.size} have enough ratings: "
                f"draw fewer, or lower film_raters or user_films"
            )
    films = rng.choice(films, settings["films"], replace=False)
    users = rng.choice(users, settings["users"], replace=False)

    codes = ratings.codes[np.ix_(films, users)]
    # Movies and users without any rating in the sample cannot be labels' items or annotators.
    films, codes = films[codes.any(axis=1)], codes[codes.any(axis=1)]
    users, codes = users[codes.any(axis=0)], codes[:, codes.any(axis=0)]
    item, annotator = np.nonzero(codes)
    counts_for_truth = is_rated[films]
    if settings["truth"] == "others":
        counts_for_truth[:, users] = False
    true_codes = ratings.codes[films] * counts_for_truth
    labels = Labels.from_codes(
        item,
        annotator,
        codes[item, annotator] - 1,
        items=ratings.labels.items.take(films),
        annotators=ratings.labels.annotators.take(users),
        scale=ratings.labels.scale,
    )
    values = np.concatenate([[0.0], ratings.labels.scale.values])
    return RatingSample(labels, values[true_codes].sum(axis=1) / counts_for_truth.sum(axis=1))


@lru_cache(maxsize=1)
def read_ratings(path: Path) -> RatingTable:
    """Read all ratings, once per process."""
    labels = read_labels(path, scale="ordinal")
    codes = np.zeros((labels.n_items, labels.n_annotators), dtype=np.int64)
    codes[labels.item_of_label(), labels.annotator] = labels.category_of_label() + 1
    return RatingTable(codes, labels)


def _movie_notes(runs: Sequence[ExperimentRun], settings: Settings) -> list[str]:
    per_item = mean_with_error(values_of(runs, "gpm", "labels_per_item")).mean
    raters = "all users" if settings["truth"] == "everybody" else "all users not drawn"
    data = (
        "MovieLens-100k replaces MovieLens 20M, of which the paper does not state which movies "
        f"and users it drew. Movies with at least {settings['film_raters']} raters, users who "
        f"rated at least {settings['user_films']} of them; {settings['films']} movies and "
        f"{settings['users']} users are drawn anew in every run, with {per_item:.1f} ratings per "
        f"movie (paper: 16). A movie's true score is the mean rating of {raters}."
    )
    return [data, "The mean is not in the paper's table."]


def _movie_claims(runs: Sequence[ExperimentRun], settings: Settings) -> list[Claim]:
    section, spammers = "Movie Review", mean_with_error(values_of(runs, "gpm", "spammers"))
    share = Claim(
        "the share of spammers is only 1%",
        section,
        f"share of spammers {spammers}",
        "holds" if (spammers.mean or 0.0) < 0.02 else "does not hold",
    )
    return [*lead_claims(runs, _LEADS, section, "RMSE", rmse_lead, MOVIE_MODELS), share]


MOVIE = Experiment(
    name="movie",
    title="Movie review",
    description=(
        "Ratings of few users: every model's score of a movie is compared with the mean rating "
        "of all users."
    ),
    settings={
        "films": ExperimentSetting(174, "number of movies drawn", minimum=2),
        "users": ExperimentSetting(69, "number of users drawn", minimum=2),
        "film_raters": ExperimentSetting(100, "raters a drawn movie has at least", minimum=1),
        "user_films": ExperimentSetting(
            30, "such movies a drawn user has rated at least", minimum=1
        ),
        "truth": ExperimentSetting(
            "everybody",
            "whose mean rating is the truth: everybody's (as in the paper), or that of others "
            "than the users drawn",
            choices=("everybody", "others"),
        ),
    },
    run=compare_scores,
    measures=(*SCORE_MEASURES, Measure("spammers", "spammers")),
    models=MOVIE_MODELS,
    printed={(model,): row for model, row in _PRINTED.items()},
    notes=_movie_notes,
    claims=_movie_claims,
    required_files=RequiredFiles((RATINGS,), "GroupLens (grouplens.org/datasets/movielens/100k)"),
)
