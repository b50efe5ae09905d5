"""Exp1-a: whether uniform irregular labels capture every irregular behavior."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annotruth.paper.claim_tests import difference, excess, negate, smallest, verdict_of
from annotruth.paper.crowds import CROWD_CHOICES, FITTING, SIZES, simulate_crowd
from annotruth.paper.experiment import (
    SCORE_MEASURES,
    Claim,
    Condition,
    Experiment,
    ExperimentRun,
    ExperimentSetting,
    Measure,
    Results,
    Settings,
)
from annotruth.paper.measures import fit_gpm, measure_reliability
from annotruth.paper.tables import MeanWithError, mean_with_error

BEHAVIORS = ("random", "repeated", "inverted", "mixed")
F1_KINDS = ("spammer", "serious", "macro", "weighted")

PRINTED = {
    "random": {"f1": 0.9949, "plcc": 0.9228, "srocc": 0.9011, "rmse": 0.2071},
    "repeated": {"f1": 0.9121, "plcc": 0.5835, "srocc": 0.5398, "rmse": 0.3388},
    "inverted": {"f1": 0.9458, "plcc": 0.7297, "srocc": 0.7567, "rmse": 0.3296},
    "mixed": {"f1": 0.9335, "plcc": 0.6922, "srocc": 0.7305, "rmse": 0.3539},
}
SECTION = "Exp1-a"


def conditions(settings: Settings) -> list[Condition]:
    """Return one condition per behavior."""
    return [{"behavior": behavior} for behavior in BEHAVIORS]


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Simulate a crowd of one behavior and compare GPM's reliabilities with the true ones."""
    simulation = simulate_crowd(settings, rng, behavior=condition["behavior"])
    estimate = fit_gpm(simulation.labels, settings)
    measured = measure_reliability(simulation.reliability, estimate.reliability)
    return {"gpm": {**measured, "converged": float(estimate.converged)}}


def measures(settings: Settings) -> list[Measure]:
    """Return F1 of the class in the settings, and the measures of reliability."""
    return [Measure(f"f1_{settings['f1']}", "F1", "higher"), *SCORE_MEASURES]


def claims(runs: Sequence[ExperimentRun], settings: Settings) -> list[Claim]:
    """Return the paper's claims on this experiment, tested."""

    def by_behavior(measure: str) -> dict[str, MeanWithError]:
        return {
            behavior: mean_with_error(
                [r.results["gpm"][measure] for r in runs if r.condition["behavior"] == behavior]
            )
            for behavior in BEHAVIORS
        }

    def listed(means: dict[str, MeanWithError]) -> str:
        return ", ".join(f"{behavior} {mean}" for behavior, mean in means.items())

    f1 = by_behavior(f"f1_{settings['f1']}")
    spammer, plcc, rmse = (by_behavior(measure) for measure in ("f1_spammer", "plcc", "rmse"))
    serious_share = (
        1 - round(settings["spammers"] * settings["annotators"]) / settings["annotators"]
    )
    f1_of_no_spammers = 2 * serious_share / (1 + serious_share)
    best_other = negate(smallest(negate(plcc[behavior]) for behavior in BEHAVIORS[1:]))
    return [
        Claim(
            f"F1 is above 0.9 for all four behaviors (F1 counted as {settings['f1']})",
            SECTION,
            f"{listed(f1)}; calling nobody a spammer scores {f1_of_no_spammers:.4f} for the "
            "serious and 0 for the spammers",
            verdict_of(excess(smallest(f1.values()), 0.9)),
        ),
        Claim(
            "F1 is above 0.9 for all four behaviors (F1 of the spammers, who are to be detected)",
            SECTION,
            listed(spammer),
            verdict_of(excess(smallest(spammer.values()), 0.9)),
        ),
        Claim(
            "uniform irregular labels capture the random behavior effectively, in classification "
            "and in scale (F1 of the spammers and PLCC above 0.9)",
            SECTION,
            f"F1 {spammer['random']}, PLCC {plcc['random']}, RMSE {rmse['random']}",
            verdict_of(excess(smallest([spammer["random"], plcc["random"]]), 0.9)),
        ),
        Claim(
            "reliabilities are estimated less accurately for the other behaviors",
            SECTION,
            f"PLCC: {listed(plcc)}",
            verdict_of(difference(plcc["random"], best_other)),
        ),
    ]


EXPERIMENT = Experiment(
    name="exp1a",
    title="Exp1-a: detection of irregular annotators",
    description=(
        "Simulated crowds in which a fifth of the annotators are spammers (reliability below "
        "0.5). GPM's reliabilities are compared with the true ones, for each behavior of an "
        "annotator who is not serious."
    ),
    settings={
        **SIZES,
        **CROWD_CHOICES,
        "f1": ExperimentSetting("serious", "the class that F1 counts", choices=F1_KINDS),
        **FITTING,
    },
    conditions=conditions,
    run=run,
    measures=measures,
    models={"gpm": "GPM"},
    printed={
        (behavior, "gpm"): {
            **{f"f1_{kind}": row["f1"] for kind in F1_KINDS},
            **{key: row[key] for key in ("plcc", "srocc", "rmse")},
        }
        for behavior, row in PRINTED.items()
    },
    claims=claims,
)
