"""Film ratings: scores from few ratings against the mean of very many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.io.readers import read_labels
from annotruth.labels import Labels
from annotruth.paper.base import (
    Claim,
    Condition,
    DataFiles,
    Experiment,
    Measure,
    Record,
    Results,
    Setting,
    Settings,
)
from annotruth.paper.findings import all_of, lead, negative, verdict
from annotruth.paper.measuring import (
    fitted,
    label_scores,
    of_scores,
    spammer_share,
)
from annotruth.paper.tables import figure, values_of

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
PLACE = "Movie Review"
FILE = "movielens-100k/labels.csv"


class Draw(NamedTuple):
    """A few ratings of some films, and the films' true scores."""

    labels: Labels
    score: NDArray[np.float64]


class Ratings(NamedTuple):
    """All ratings as a table of films x users, 0 where there is none."""

    stars: NDArray[np.int64]
    labels: Labels


def conditions(settings: Settings) -> list[Condition]:
    """One condition alone."""
    return [{}]


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Draw films and users, and compare every model's scores with the films' true ones."""
    assert data is not None
    drawn = draw(ratings_of(data / FILE), settings, rng)
    found: Results = {}
    for model in MODELS:
        fit = fitted(drawn.labels, model)
        by_label = model in DISCRETE and settings["class_score"] == "label"
        score = label_scores(fit) if by_label or fit.expectation is None else fit.expectation
        found[model] = {**of_scores(drawn.score, score), "converged": float(fit.converged)}
        if model == "gpm":
            found[model]["spammers"] = spammer_share(fit)
            found[model]["labels_per_item"] = drawn.labels.n_labels / drawn.labels.n_items
    return found


def draw(ratings: Ratings, settings: Settings, rng: np.random.Generator) -> Draw:
    """Draw films of many raters and users of many such films, as the paper did."""
    rated = ratings.stars > 0
    films = np.flatnonzero(rated.sum(axis=1) >= settings["film_raters"])
    users = np.flatnonzero(rated[films].sum(axis=0) >= settings["user_films"])
    for name, there in (("films", films), ("users", users)):
        if there.size < settings[name]:
            raise InputError(
                f"{name} is {settings[name]}, but only {there.size} have enough ratings: "
                f"draw fewer, or lower film_raters or user_films"
            )
    films = rng.choice(films, settings["films"], replace=False)
    users = rng.choice(users, settings["users"], replace=False)

    table = ratings.stars[np.ix_(films, users)]
    # A film or user without any rating in the draw has nothing to be judged by.
    films, table = films[table.any(axis=1)], table[table.any(axis=1)]
    users, table = users[table.any(axis=0)], table[:, table.any(axis=0)]
    item, annotator = np.nonzero(table)
    judges = rated[films]
    if settings["truth"] == "others":
        judges[:, users] = False
    stars = ratings.stars[films] * judges
    labels = Labels.from_codes(
        item,
        annotator,
        table[item, annotator] - 1,
        items=ratings.labels.items.take(films),
        annotators=ratings.labels.annotators.take(users),
        scale=ratings.labels.scale,
    )
    values = np.concatenate([[0.0], ratings.labels.scale.values])
    return Draw(labels, values[stars].sum(axis=1) / judges.sum(axis=1))


@lru_cache(maxsize=1)
def ratings_of(path: Path) -> Ratings:
    """Read all ratings, once a process."""
    labels = read_labels(path, scale="ordinal")
    cell = labels.cell_of_label()
    stars = np.zeros((labels.n_items, labels.n_annotators), dtype=np.int64)
    stars[labels.item_of_cell()[cell], labels.annotator] = labels.cell_category[cell] + 1
    return Ratings(stars, labels)


def measures(settings: Settings) -> list[Measure]:
    """Return the measures of scores, and the share of spammers."""
    return [
        Measure("plcc", "PLCC", "higher"),
        Measure("srocc", "SROCC", "higher"),
        Measure("rmse", "RMSE", "lower"),
        Measure("spammers", "spammers"),
    ]


def notes(records: Sequence[Record], settings: Settings) -> list[str]:
    """Say what differs from the paper's data."""
    per_item = figure(values_of(records, "gpm", "labels_per_item")).mean
    truth = "everybody" if settings["truth"] == "everybody" else "everybody who was not drawn"
    data = (
        "MovieLens-100k stands in for MovieLens 20M, of which the paper does not say which films "
        f"and users it drew. Films with at least {settings['film_raters']} raters, users who rated "
        f"at least {settings['user_films']} of them; {settings['films']} films and "
        f"{settings['users']} users are drawn anew in every run, with {per_item:.1f} ratings a film "
        f"(paper: 16). A film's true score is the mean rating of {truth}."
    )
    return [data, "The plain mean is not in the paper's table."]


def claims(records: Sequence[Record], settings: Settings) -> list[Claim]:
    """Judge what the paper says of films."""
    others = [model for model in MODELS if model not in ("gpm", "mean")]
    spammers = figure(values_of(records, "gpm", "spammers"))
    return [
        _ahead(records, "GPM performs best of the paper's six models", ["gpm"], others),
        _ahead(records, "GPM is ahead of the plain mean (not in the paper)", ["gpm"], ["mean"]),
        _ahead(
            records,
            "D&S, GLAD and Ord-bin, made for classes, are generally worse than Ord-dis-mix and Li",
            CONTINUOUS,
            DISCRETE,
        ),
        Claim(
            "the share of spammers is only 1%",
            PLACE,
            f"share of spammers {spammers}",
            "holds" if (spammers.mean or 0.0) < 0.02 else "does not hold",
        ),
    ]


def _ahead(
    records: Sequence[Record], text: str, models: Sequence[str], others: Sequence[str]
) -> Claim:
    leads = {
        (model, other): negative(lead(records, "rmse", model, other))
        for model in models
        for other in others
    }
    told = ", ".join(
        f"{MODELS[model]} over {MODELS[other]} {gap}" for (model, other), gap in leads.items()
    )
    return Claim(text, PLACE, f"lead in RMSE: {told}", all_of(*map(verdict, leads.values())))


EXPERIMENT = Experiment(
    name="movie",
    title="Movie review",
    about=(
        "Ratings of few users against the mean rating of all: every model's score of a film is "
        "compared with it."
    ),
    settings={
        "films": Setting(174, "films drawn", least=2),
        "users": Setting(69, "users drawn", least=2),
        "film_raters": Setting(100, "raters a film must have to be drawn", least=1),
        "user_films": Setting(30, "such films a user must have rated to be drawn", least=1),
        "truth": Setting(
            "everybody",
            "whose mean rating is the truth: everybody's (as in the paper), or that of others "
            "than the users drawn",
            choices=("everybody", "others"),
        ),
        "class_score": Setting(
            "expectation",
            "the score of D&S, GLAD and Ord-bin: the expectation of their distribution, or the "
            "value of their label",
            choices=("expectation", "label"),
        ),
    },
    conditions=conditions,
    run=run,
    measures=measures,
    models=MODELS,
    paper={(model,): row for model, row in PRINTED.items()},
    notes=notes,
    claims=claims,
    data=DataFiles((FILE,), "GroupLens (grouplens.org/datasets/movielens/100k)"),
)
