"""Exp1-a and Exp1-d, with the settings and crowds of all simulated experiments.

Exp1-a: whether uniform irregular labels capture every irregular behavior. Exp1-d: whether GPM carries over to
labels that are noisy scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from annotruth import simulate
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
from annotruth.paper.measures import (
    fit_model,
    label_values,
    measure_reliability,
    measure_scores,
)
from annotruth.paper.tables import (
    MeanWithError,
    combine_verdicts,
    mean_with_error,
    paired_difference,
    rmse_lead,
    smallest,
    values_of,
    verdict_of,
)
from annotruth.simulate import Simulation

SIZES = {
    "items": ExperimentSetting(150, "number of items", minimum=2),
    "annotators": ExperimentSetting(25, "number of annotators", minimum=2),
    "categories": ExperimentSetting(5, "number of categories", minimum=2),
    "spammers": ExperimentSetting(
        0.2, "share of annotators with a reliability below 0.5", maximum=1.0
    ),
}

# The paper leaves open what "mixed" mixes; the default comes closest to its tables.
MIXING = ExperimentSetting(
    "annotator",
    "whether 'mixed' draws a behavior for every label or for every annotator",
    choices=("label", "annotator"),
)
MAX_ITER = ExperimentSetting(1000, "maximum number of GPM's iterations", minimum=1)


def simulate_crowd(settings: Settings, rng: np.random.Generator, **condition: Any) -> Simulation:
    """Simulate a crowd with categorical truth (Exp1-a to Exp1-c)."""
    options = {
        "n_items": settings["items"],
        "n_annotators": settings.get("annotators"),  # one of the two may be the condition
        "n_categories": settings["categories"],
        "spammer_share": settings.get("spammers"),
        "mixing": settings["mixing"],
    }
    return simulate.crowd(**(options | condition), seed=rng)


def simulate_scores(settings: Settings, rng: np.random.Generator) -> Simulation:
    """Simulate a mixed crowd whose truth is a score per item (Exp1-d)."""
    return simulate.gaussian(
        n_items=settings["items"],
        n_annotators=settings["annotators"],
        n_categories=settings["categories"],
        behavior="mixed",
        spammer_share=settings["spammers"],
        mixing=settings["mixing"],
        seed=rng,
    )


BEHAVIORS = ("random", "repeated", "inverted", "mixed")
F1_KINDS = ("spammer", "serious", "macro", "weighted")
PRINTED_1A = {
    "random": {"f1": 0.9949, "plcc": 0.9228, "srocc": 0.9011, "rmse": 0.2071},
    "repeated": {"f1": 0.9121, "plcc": 0.5835, "srocc": 0.5398, "rmse": 0.3388},
    "inverted": {"f1": 0.9458, "plcc": 0.7297, "srocc": 0.7567, "rmse": 0.3296},
    "mixed": {"f1": 0.9335, "plcc": 0.6922, "srocc": 0.7305, "rmse": 0.3539},
}


def _behaviors(settings: Settings) -> list[Condition]:
    return [{"behavior": behavior} for behavior in BEHAVIORS]


def _run_1a(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Simulate a crowd of one behavior and compare GPM's reliabilities with the true ones."""
    simulation = simulate_crowd(settings, rng, behavior=condition["behavior"])
    fit = fit_model(simulation.labels, "gpm", max_iter=settings["max_iter"])
    assert fit.reliability is not None
    measured = measure_reliability(simulation.reliability, fit.reliability)
    return {"gpm": {**measured, "converged": float(fit.converged)}}


def _claims_1a(runs: Sequence[ExperimentRun], settings: Settings) -> list[Claim]:
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
    best_other = -smallest(-plcc[behavior] for behavior in BEHAVIORS[1:])
    found = (
        (
            f"F1 is above 0.9 for all four behaviors (F1 counted as {settings['f1']})",
            (
                f"{listed(f1)}; calling nobody a spammer scores {f1_of_no_spammers:.4f} for the "
                "serious and 0 for the spammers"
            ),
            smallest(f1.values()) - 0.9,
        ),
        (
            "F1 is above 0.9 for all four behaviors (F1 of the spammers, who are to be detected)",
            listed(spammer),
            smallest(spammer.values()) - 0.9,
        ),
        (
            (
                "uniform irregular labels capture the random behavior effectively, in classification "
                "and in scale (F1 of the spammers and PLCC above 0.9)"
            ),
            f"F1 {spammer['random']}, PLCC {plcc['random']}, RMSE {rmse['random']}",
            smallest([spammer["random"], plcc["random"]]) - 0.9,
        ),
        (
            "reliabilities are estimated less accurately for the other behaviors",
            f"PLCC: {listed(plcc)}",
            plcc["random"] - best_other,
        ),
    )
    return [
        Claim(statement, "Exp1-a", evidence, verdict_of(lead))
        for statement, evidence, lead in found
    ]


EXP1A = Experiment(
    name="exp1a",
    title="Exp1-a: detection of irregular annotators",
    description=(
        "Simulated crowds in which a fifth of the annotators are spammers (reliability below "
        "0.5). GPM's reliabilities are compared with the true ones, for each behavior of an "
        "annotator who is not serious."
    ),
    settings={
        **SIZES,
        "mixing": MIXING,
        "f1": ExperimentSetting("serious", "the class that F1 counts", choices=F1_KINDS),
        "max_iter": MAX_ITER,
    },
    conditions=_behaviors,
    run=_run_1a,
    measures=(Measure("f1_{f1}", "F1", "higher"), *SCORE_MEASURES),
    models={"gpm": "GPM"},
    printed={
        (behavior, "gpm"): {
            **{f"f1_{kind}": row["f1"] for kind in F1_KINDS},
            **{key: row[key] for key in ("plcc", "srocc", "rmse")},
        }
        for behavior, row in PRINTED_1A.items()
    },
    claims=_claims_1a,
)


SCORE_MODELS = {
    "mean": "Mean",
    "majority": "Majority",
    "subject-bias": "Li",
    "ordinal-mixture": "Ord-dis-mix",
    "gpm": "GPM",
}
PRINTED_1D = {
    "mean": {"plcc": 0.8808, "srocc": 0.8997, "rmse": 0.6021},
    "majority": {"plcc": 0.8918, "srocc": 0.8805, "rmse": 0.7053},
    "subject-bias": {"plcc": 0.9138, "srocc": 0.9176, "rmse": 0.5792},
    "ordinal-mixture": {"plcc": 0.9699, "srocc": 0.9680, "rmse": 0.3050},
    "gpm": {"plcc": 0.9432, "srocc": 0.9453, "rmse": 0.4657},
}

# Statements, the model, and the others that it is said to be ahead of.
_LEADS_1D = (
    (
        "Ord-dis-mix, made for such scores, is best",
        "ordinal-mixture",
        ("mean", "majority", "subject-bias", "gpm"),
    ),
    ("GPM is ahead of Li's model, which assumes a Gaussian", "gpm", ("subject-bias",)),
    ("GPM is ahead of Mean and Majority", "gpm", ("mean", "majority")),
)


def _run_1d(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Simulate scores and compare every model's scores with them."""
    simulation = simulate_scores(settings, rng)
    labels = simulation.labels
    results: Results = {}
    for model in SCORE_MODELS:
        options = {"max_iter": settings["max_iter"]} if model == "gpm" else {}
        fit = fit_model(labels, model, **options)
        score = None if model == "majority" else fit.expectation
        measured = measure_scores(simulation.score, label_values(fit) if score is None else score)
        results[model] = {**measured, "converged": float(fit.converged)}
    return results


def _claims_1d(runs: Sequence[ExperimentRun], settings: Settings) -> list[Claim]:
    names, claims = SCORE_MODELS, []
    for statement, model, others in _LEADS_1D:
        leads = {
            other: (
                paired_difference(runs, "plcc", model, other),
                rmse_lead(runs, model, other),
            )
            for other in others
        }
        listed = "; ".join(
            f"over {names[other]} by {plcc} in PLCC and {rmse} in RMSE"
            for other, (plcc, rmse) in leads.items()
        )
        verdict = combine_verdicts(verdict_of(lead) for pair in leads.values() for lead in pair)
        claims.append(Claim(statement, "Exp1-d", f"{names[model]} leads {listed}", verdict))
    rmse = {model: mean_with_error(values_of(runs, model, "rmse")).mean or 0.0 for model in names}
    order = sorted(names, key=rmse.__getitem__)
    second = Claim(
        "so GPM is second best",
        "Exp1-d",
        "by RMSE: " + ", ".join(f"{names[model]} {rmse[model]:.4f}" for model in order),
        "holds" if order[1] == "gpm" else "does not hold",
    )
    return [*claims, second]


EXP1D = Experiment(
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
        "max_iter": MAX_ITER,
    },
    run=_run_1d,
    measures=SCORE_MEASURES,
    models=SCORE_MODELS,
    printed={(model,): row for model, row in PRINTED_1D.items()},
    claims=_claims_1d,
)
