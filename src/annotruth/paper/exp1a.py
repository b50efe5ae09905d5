"""Exp1-a: whether a uniform distribution captures every irregular behavior."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annotruth.paper.base import (
    Claim,
    Condition,
    Experiment,
    Measure,
    Record,
    Results,
    Setting,
    Settings,
)
from annotruth.paper.crowds import ABOVE_HALF, FITTING, MIXING, SHAPE, SIZES, crowd
from annotruth.paper.findings import above, difference, least, negative, verdict
from annotruth.paper.measuring import gpm, of_reliability
from annotruth.paper.tables import Figure, figure

BEHAVIORS = ("random", "repeated", "inverted", "mixed")
F1_KINDS = ("spammer", "serious", "macro", "weighted")

PRINTED = {
    "random": {"f1": 0.9949, "plcc": 0.9228, "srocc": 0.9011, "rmse": 0.2071},
    "repeated": {"f1": 0.9121, "plcc": 0.5835, "srocc": 0.5398, "rmse": 0.3388},
    "inverted": {"f1": 0.9458, "plcc": 0.7297, "srocc": 0.7567, "rmse": 0.3296},
    "mixed": {"f1": 0.9335, "plcc": 0.6922, "srocc": 0.7305, "rmse": 0.3539},
}
PLACE = "Exp1-a"


def conditions(settings: Settings) -> list[Condition]:
    """One behavior each."""
    return [{"behavior": behavior} for behavior in BEHAVIORS]


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Simulate a crowd of one behavior and compare the reliabilities found with the true ones."""
    made = crowd(settings, rng, behavior=condition["behavior"])
    answer = gpm(made.labels, settings)
    found = of_reliability(made.reliability, answer.reliability)
    return {"gpm": {**found, "converged": float(answer.converged)}}


def measures(settings: Settings) -> list[Measure]:
    """F1 as the settings count it, and the measures of reliability."""
    return [
        Measure(f"f1_{settings['f1']}", "F1", "higher"),
        Measure("plcc", "PLCC", "higher"),
        Measure("srocc", "SROCC", "higher"),
        Measure("rmse", "RMSE", "lower"),
    ]


def claims(records: Sequence[Record], settings: Settings) -> list[Claim]:
    """Judge what the paper says of this experiment."""

    def by_behavior(measure: str) -> dict[str, Figure]:
        return {
            behavior: figure(
                [r.results["gpm"][measure] for r in records if r.condition["behavior"] == behavior]
            )
            for behavior in BEHAVIORS
        }

    def told(figures: dict[str, Figure]) -> str:
        return ", ".join(f"{behavior} {found}" for behavior, found in figures.items())

    counted = by_behavior(f"f1_{settings['f1']}")
    spammer, plcc, rmse = (by_behavior(measure) for measure in ("f1_spammer", "plcc", "rmse"))
    serious_share = (
        1 - round(settings["spammers"] * settings["annotators"]) / settings["annotators"]
    )
    nobody = 2 * serious_share / (1 + serious_share)
    best_other = negative(least(negative(plcc[behavior]) for behavior in BEHAVIORS[1:]))
    return [
        Claim(
            f"F1 is above 0.9 for all four behaviors (F1 counted as {settings['f1']})",
            PLACE,
            f"{told(counted)}; calling nobody a spammer scores {nobody:.4f} for the serious and 0 "
            "for the spammers",
            verdict(above(least(counted.values()), 0.9)),
        ),
        Claim(
            "F1 is above 0.9 for all four behaviors (F1 of the spammers, whom it is to find)",
            PLACE,
            told(spammer),
            verdict(above(least(spammer.values()), 0.9)),
        ),
        Claim(
            "uniform irregular labels capture the random behavior effectively, in classification "
            "and in scale (F1 of the spammers and PLCC above 0.9)",
            PLACE,
            f"F1 {spammer['random']}, PLCC {plcc['random']}, RMSE {rmse['random']}",
            verdict(above(least([spammer["random"], plcc["random"]]), 0.9)),
        ),
        Claim(
            "the reliability's value is found less well for the other behaviors",
            PLACE,
            f"PLCC: {told(plcc)}",
            verdict(difference(plcc["random"], best_other)),
        ),
    ]


EXPERIMENT = Experiment(
    name="exp1a",
    title="Exp1-a: detection of irregular annotators",
    about=(
        "Simulated crowds in which a fifth of the annotators are spammers (reliability below "
        "0.5). GPM's reliabilities are compared with the true ones, for each behavior that an "
        "annotator may have when not serious."
    ),
    settings={
        **SIZES,
        "shape": SHAPE,
        "mixing": MIXING,
        "reliable_above_half": ABOVE_HALF,
        "f1": Setting("serious", "the class that F1 counts", choices=F1_KINDS),
        **FITTING,
    },
    conditions=conditions,
    run=run,
    measures=measures,
    models={"gpm": "GPM"},
    paper={
        (behavior, "gpm"): {
            **{f"f1_{kind}": row["f1"] for kind in F1_KINDS},
            **{key: row[key] for key in ("plcc", "srocc", "rmse")},
        }
        for behavior, row in PRINTED.items()
    },
    claims=claims,
)
