"""Exp1-d: whether GPM carries over to labels that are noisy scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from annotruth.paper.base import (
    Claim,
    Condition,
    Experiment,
    Measure,
    Record,
    Results,
    Settings,
)
from annotruth.paper.crowds import (
    ABOVE_HALF,
    FITTING,
    GAMMA,
    MIXING,
    PRECISION,
    SIZES,
    gaussian,
)
from annotruth.paper.findings import all_of, lead, negative, verdict
from annotruth.paper.measuring import fitted, gpm, label_scores, of_scores
from annotruth.paper.tables import Figure, figure, values_of

MODELS = {
    "mean": "Mean",
    "majority": "Majority",
    "subject-bias": "Li",
    "ordinal-mixture": "Ord-dis-mix",
    "gpm": "GPM",
}
PRINTED = {
    "mean": {"plcc": 0.8808, "srocc": 0.8997, "rmse": 0.6021},
    "majority": {"plcc": 0.8918, "srocc": 0.8805, "rmse": 0.7053},
    "subject-bias": {"plcc": 0.9138, "srocc": 0.9176, "rmse": 0.5792},
    "ordinal-mixture": {"plcc": 0.9699, "srocc": 0.9680, "rmse": 0.3050},
    "gpm": {"plcc": 0.9432, "srocc": 0.9453, "rmse": 0.4657},
}
PLACE = "Exp1-d"


def conditions(settings: Settings) -> list[Condition]:
    """One condition alone."""
    return [{}]


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Simulate scores and compare every model's scores with them."""
    made = gaussian(settings, rng)
    found: Results = {}
    for model in MODELS:
        if model == "gpm":
            answer = gpm(made.labels, settings)
            score, converged = answer.shares @ made.labels.scale.values, answer.converged
        else:
            fit = fitted(made.labels, model)
            expectation = fit.expectation
            score = label_scores(fit) if model == "majority" or expectation is None else expectation
            converged = fit.converged
        found[model] = {**of_scores(made.score, score), "converged": float(converged)}
    return found


def measures(settings: Settings) -> list[Measure]:
    """Return the measures of scores."""
    return [
        Measure("plcc", "PLCC", "higher"),
        Measure("srocc", "SROCC", "higher"),
        Measure("rmse", "RMSE", "lower"),
    ]


def claims(records: Sequence[Record], settings: Settings) -> list[Claim]:
    """Judge what the paper says of this experiment."""

    def ahead(model: str, over: str) -> tuple[Figure, Figure]:
        """By how much a model leads in PLCC and in RMSE."""
        return (
            lead(records, "plcc", model, over),
            negative(lead(records, "rmse", model, over)),
        )

    def claim(text: str, model: str, others: Sequence[str]) -> Claim:
        leads = {other: ahead(model, other) for other in others}
        told = "; ".join(
            f"over {MODELS[other]} by {plcc} in PLCC and {rmse} in RMSE"
            for other, (plcc, rmse) in leads.items()
        )
        verdicts = [verdict(gap) for pair in leads.values() for gap in pair]
        return Claim(text, PLACE, f"{MODELS[model]} leads {told}", all_of(*verdicts))

    rmse = {model: figure(values_of(records, model, "rmse")).mean or 0.0 for model in MODELS}
    order = sorted(MODELS, key=rmse.__getitem__)
    return [
        claim(
            "Ord-dis-mix, made for such scores, is best",
            "ordinal-mixture",
            [model for model in MODELS if model != "ordinal-mixture"],
        ),
        claim("GPM is ahead of Li's model, which assumes a Gaussian", "gpm", ["subject-bias"]),
        claim("GPM is ahead of Mean and Majority", "gpm", ["mean", "majority"]),
        Claim(
            "so GPM is second best",
            PLACE,
            "by RMSE: " + ", ".join(f"{MODELS[model]} {rmse[model]:.4f}" for model in order),
            "holds" if order[1] == "gpm" else "does not hold",
        ),
    ]


EXPERIMENT = Experiment(
    name="exp1d",
    title="Exp1-d: universality",
    about=(
        "The truth of an item is a score; a serious label is drawn from a Gaussian around it and "
        "rounded. The crowd is mixed and a quarter are spammers. Scores found are compared with "
        "the true ones: the expectation of the distribution, and for Majority the label."
    ),
    settings={
        **SIZES,
        "spammers": replace(SIZES["spammers"], default=0.25),
        "mixing": MIXING,
        "reliable_above_half": ABOVE_HALF,
        "precision": PRECISION,
        "gamma": GAMMA,
        **FITTING,
    },
    conditions=conditions,
    run=run,
    measures=measures,
    models=MODELS,
    paper={(model,): row for model, row in PRINTED.items()},
    claims=claims,
)
