"""Movie review: scores from few ratings against the mean of all ratings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.io.readers import read_labels
from annotruth.observations import Labels
from annotruth.paper.claim_tests import lead_claim, rmse_leads
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
)
from annotruth.paper.measures import fit_model, label_values, measure_scores, spammer_share
from annotruth.paper.tables import mean_with_error, values_of

MODELS = {
    "dawid-skene": "D&S",
    "glad": "GLAD",
    "ordinal-binary": "Ord-bin",
    "ordinal-mixture": "Ord-dis-mix",
    "subject-bias": "Li",
    "gpm": "GPM",
    "mean": "Mean",
}
DISCRETE = ("dawid-skene", "glad", "ordinal-binary")
CONTINUOUS = ("ordinal-mixture", "subject-bias")
PRINTED = {
    "dawid-skene": {"plcc": 0.4073, "srocc": 0.4957, "rmse": 1.2287},
    "glad": {"plcc": 0.5347, "srocc": 0.6029, "rmse": 0.6361},
    "ordinal-binary": {"plcc": 0.7122, "srocc": 0.7166, "rmse": 0.5849},
    "ordinal-mixture": {"plcc": 0.7066, "srocc": 0.7282, "rmse": 0.4292},
    "subject-bias": {"plcc": 0.8369, "srocc": 0.8219, "rmse": 0.2483},
    "gpm": {"plcc": 0.8620, "srocc": 0.8420, "rmse": 0.2228, "spammers": 0.01},
}
SECTION = "Movie Review"
FILE = "movielens-100k/labels.csv"


class RatingSample(NamedTuple):
    """A few ratings of some movies, and the movies' true scores."""

    labels: Labels
    score: NDArray[np.float64]


class RatingTable(NamedTuple):
    """All ratings as a table of movies x users of category codes from 1, 0 where there is none."""

    codes: NDArray[np.int64]
    labels: Labels


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Draw movies and users, and compare every model's scores with the movies' true ones."""
    assert data is not None
    sample = draw_ratings(read_ratings(data / FILE), settings, rng)
    labels = sample.labels
    results: Results = {}
    for model in MODELS:
        fit = fit_model(labels, model)
        by_label = model in DISCRETE and settings["class_score"] == "label"
        score = label_values(fit) if by_label or fit.expectation is None else fit.expectation
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
    cell = labels.cell_of_label()
    codes = np.zeros((labels.n_items, labels.n_annotators), dtype=np.int64)
    codes[labels.item_of_cell()[cell], labels.annotator] = labels.cell_category[cell] + 1
    return RatingTable(codes, labels)


def measures(settings: Settings) -> list[Measure]:
    """Return the measures of scores, and the share of spammers."""
    return [*SCORE_MEASURES, Measure("spammers", "spammers")]


def notes(runs: Sequence[ExperimentRun], settings: Settings) -> list[str]:
    """Return how the data differ from the paper's."""
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


def claims(runs: Sequence[ExperimentRun], settings: Settings) -> list[Claim]:
    """Return the paper's claims on movies, tested."""
    others = [model for model in MODELS if model not in ("gpm", "mean")]
    spammers = mean_with_error(values_of(runs, "gpm", "spammers"))

    def ahead(statement: str, models: Sequence[str], others: Sequence[str]) -> Claim:
        return lead_claim(statement, SECTION, "RMSE", rmse_leads(runs, models, others), MODELS)

    return [
        ahead("GPM performs best of the paper's six models", ["gpm"], others),
        ahead("GPM is ahead of the mean (not in the paper)", ["gpm"], ["mean"]),
        ahead(
            "D&S, GLAD and Ord-bin, made for classes, are generally worse than Ord-dis-mix and Li",
            CONTINUOUS,
            DISCRETE,
        ),
        Claim(
            "the share of spammers is only 1%",
            SECTION,
            f"share of spammers {spammers}",
            "holds" if (spammers.mean or 0.0) < 0.02 else "does not hold",
        ),
    ]


EXPERIMENT = Experiment(
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
        "class_score": ExperimentSetting(
            "expectation",
            "the score of D&S, GLAD and Ord-bin: the expectation of their distribution, or the "
            "value of their label",
            choices=("expectation", "label"),
        ),
    },
    run=run,
    measures=measures,
    models=MODELS,
    printed={(model,): row for model, row in PRINTED.items()},
    notes=notes,
    claims=claims,
    required_files=RequiredFiles((FILE,), "GroupLens (grouplens.org/datasets/movielens/100k)"),
)
