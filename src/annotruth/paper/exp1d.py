"""Exp1-d: whether GPM carries over to labels that are noisy scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from annotruth.paper.claim_tests import combine_verdicts, negate, paired_difference, verdict_of
from annotruth.paper.crowds import (
    ABOVE_HALF,
    FITTING,
    GAMMA,
    MIXING,
    PRECISION,
    SIZES,
    simulate_scores,
)
from annotruth.paper.experiment import (
    SCORE_MEASURES,
    Claim,
    Condition,
    Experiment,
    ExperimentRun,
    Measure,
    Results,
    Settings,
)
from annotruth.paper.measures import fit_gpm, fit_model, label_values, measure_scores
from annotruth.paper.tables import mean_with_error, values_of

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
SECTION = "Exp1-d"


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Simulate scores and compare every model's scores with them."""
    simulation = simulate_scores(settings, rng)
    labels = simulation.labels
    results: Results = {}
    for model in MODELS:
        if model == "gpm":
            estimate = fit_gpm(labels, settings)
            score, converged = estimate.distribution @ labels.scale.values, estimate.converged
        else:
            fit = fit_model(labels, model)
            expectation = None if model == "majority" else fit.expectation
            score = label_values(fit) if expectation is None else expectation
            converged = fit.converged
        measured = measure_scores(simulation.score, score)
        results[model] = {**measured, "converged": float(converged)}
    return results


def measures(settings: Settings) -> Sequence[Measure]:
    """Return the measures of scores."""
    return SCORE_MEASURES


def claims(runs: Sequence[ExperimentRun], settings: Settings) -> list[Claim]:
    """Return the paper's claims on this experiment, tested."""
    rmse = {model: mean_with_error(values_of(runs, model, "rmse")).mean or 0.0 for model in MODELS}
    order = sorted(MODELS, key=rmse.__getitem__)
    return [
        _lead_claim(
            runs,
            "Ord-dis-mix, made for such scores, is best",
            "ordinal-mixture",
            [model for model in MODELS if model != "ordinal-mixture"],
        ),
        _lead_claim(
            runs,
            "GPM is ahead of Li's model, which assumes a Gaussian",
            "gpm",
            ["subject-bias"],
        ),
        _lead_claim(runs, "GPM is ahead of Mean and Majority", "gpm", ["mean", "majority"]),
        Claim(
            "so GPM is second best",
            SECTION,
            "by RMSE: " + ", ".join(f"{MODELS[model]} {rmse[model]:.4f}" for model in order),
            "holds" if order[1] == "gpm" else "does not hold",
        ),
    ]


def _lead_claim(
    runs: Sequence[ExperimentRun], statement: str, model: str, others: Sequence[str]
) -> Claim:
    """Return the claim that a model is ahead of others in both PLCC and RMSE."""
    leads = {
        other: (
            paired_difference(runs, "plcc", model, other),
            negate(paired_difference(runs, "rmse", model, other)),
        )
        for other in others
    }
    listed = "; ".join(
        f"over {MODELS[other]} by {plcc} in PLCC and {rmse} in RMSE"
        for other, (plcc, rmse) in leads.items()
    )
    verdict = combine_verdicts(verdict_of(lead) for pair in leads.values() for lead in pair)
    return Claim(statement, SECTION, f"{MODELS[model]} leads {listed}", verdict)


EXPERIMENT = Experiment(
    name="exp1d",
    title="Exp1-d: universality",
    description=(
        "The truth of an item is a score; a serious label is drawn from a Gaussian around it and "
        "rounded. The crowd is mixed and a quarter are spammers. Estimated scores are compared "
        "with the true ones: the expectation of the distribution, and for Majority the label."
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
    run=run,
    measures=measures,
    models=MODELS,
    printed={(model,): row for model, row in PRINTED.items()},
    claims=claims,
)
