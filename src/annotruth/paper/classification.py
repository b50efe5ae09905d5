"""Dog and face: classes from real labels, compared with a known truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import permutations, product
from pathlib import Path

import numpy as np

from annotruth.io.parse import read_table
from annotruth.io.readers import read_labels
from annotruth.observations.truth import match_truth
from annotruth.paper.claim_tests import lead_claim
from annotruth.paper.experiment import (
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
from annotruth.paper.measures import fit_model, measure_classes, spammer_share
from annotruth.paper.tables import MeanWithError

MODELS = {
    "ordinal-binary": "Ord-bin",
    "dawid-skene": "D&S",
    "glad": "GLAD",
    "gpm": "GPM",
    "majority": "Majority",
}
SETTINGS = {
    "f1": ExperimentSetting(
        "macro", "how F1 averages over the classes", choices=("macro", "micro", "weighted")
    )
}
SOURCE = (
    "the repository crowd_truth_infer of the VLDB'17 benchmark of truth inference "
    "(github.com/zhydhkcws/crowd_truth_infer)"
)
DOG_SECTION = "Crowd Dog Classification"
FACE_SECTION = "Face Emotion Identification"


def run_models(
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
    for model in MODELS:
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


def measures(settings: Settings) -> list[Measure]:
    """Return accuracy, F1 with the average in the settings, and the share of spammers."""
    return [
        Measure("accuracy", "C_o", "higher"),
        Measure(f"f1_{settings['f1']}", "F1", "higher"),
        Measure("spammers", "spammers"),
    ]


def dog_notes(runs: Sequence[ExperimentRun], settings: Settings) -> list[str]:
    """Return the note that these are other images than the paper's."""
    note = (
        "The paper's dataset, 250 images with 17 labels each, is not available. These are the 807 "
        "images of the VLDB'17 benchmark with 10 labels each, on which every model does better: "
        "the order of the models can be compared, the figures cannot."
    )
    return [note]


def face_notes(runs: Sequence[ExperimentRun], settings: Settings) -> list[str]:
    """Return the note that no average of F1 gives the printed figure."""
    f1_macro = runs[0].results["gpm"]["f1_macro"]
    note = (
        "Every class has the same number of images, so macro and weighted F1 are equal: "
        f"{f1_macro:.4f} for GPM; micro F1 is the accuracy. None is the printed 0.5431."
    )
    return [note]


def dog_claims(runs: Sequence[ExperimentRun], settings: Settings) -> list[Claim]:
    """Return the paper's claims on dogs, tested as far as other images allow."""
    spammers = runs[0].results["gpm"]["spammers"]
    return [
        _order_claim(
            runs,
            "GLAD performs best (on other images)",
            DOG_SECTION,
            ["glad"],
            ["ordinal-binary", "dawid-skene", "gpm"],
        ),
        _order_claim(
            runs,
            "Ord-bin performs worst (on other images)",
            DOG_SECTION,
            ["glad", "gpm", "dawid-skene"],
            ["ordinal-binary"],
        ),
        _order_claim(
            runs,
            "GPM performs second, ahead of D&S (on other images)",
            DOG_SECTION,
            ["gpm"],
            ["dawid-skene"],
        ),
        Claim(
            "26.21% of the annotators are spammers",
            DOG_SECTION,
            f"share of spammers {spammers:.4f}, among other annotators",
            "cannot be tested",
        ),
    ]


def face_claims(runs: Sequence[ExperimentRun], settings: Settings) -> list[Claim]:
    """Return the paper's claims on faces, tested."""
    spammers = runs[0].results["gpm"]["spammers"]
    return [
        _order_claim(
            runs,
            "Ord-bin performs best",
            FACE_SECTION,
            ["ordinal-binary"],
            ["gpm", "dawid-skene", "glad"],
        ),
        _order_claim(
            runs,
            "GLAD performs worst",
            FACE_SECTION,
            ["ordinal-binary", "gpm", "dawid-skene"],
            ["glad"],
        ),
        _order_claim(
            runs, "GPM performs second, D&S third", FACE_SECTION, ["gpm"], ["dawid-skene"]
        ),
        Claim(
            "no annotator is a spammer",
            FACE_SECTION,
            f"share of spammers {spammers:.4f}",
            "holds" if spammers == 0 else "does not hold",
        ),
    ]


def _order_claim(
    runs: Sequence[ExperimentRun],
    statement: str,
    section: str,
    models: Sequence[str],
    others: Sequence[str],
) -> Claim:
    leads = {pair: accuracy_lead(runs, *pair) for pair in product(models, others)}
    return lead_claim(statement, section, "accuracy", leads, MODELS)


def _printed(
    accuracy_and_f1: Mapping[str, tuple[float, float]], spammers: float
) -> dict[tuple[str], dict[str, float]]:
    """Return the printed figures; the paper does not state how its F1 is averaged."""
    printed = {
        (model,): {"accuracy": accuracy, **{f"f1_{kind}": f1 for kind in SETTINGS["f1"].choices}}
        for model, (accuracy, f1) in accuracy_and_f1.items()
    }
    printed["gpm",]["spammers"] = spammers
    return printed


_on_real_labels = partial(
    Experiment, settings=SETTINGS, measures=measures, models=MODELS, is_random=False
)

DOG = _on_real_labels(
    name="dog",
    title="Crowd dog classification",
    description=(
        "807 images of dogs in four breeds, 8,070 labels by 109 annotators. Accuracy and F1 of "
        "the class from each model. There is no randomness, so there is one run."
    ),
    run=partial(run_models, "dog"),
    printed=_printed(
        {
            "ordinal-binary": (0.6280, 0.4862),
            "dawid-skene": (0.6320, 0.5000),
            "glad": (0.6480, 0.5368),
            "gpm": (0.6480, 0.5217),
        },
        spammers=0.2621,
    ),
    notes=dog_notes,
    claims=dog_claims,
    required_files=RequiredFiles(("dog/labels.csv", "dog/truth.csv"), SOURCE),
)

FACE = _on_real_labels(
    name="face",
    title="Face emotion identification",
    description=(
        "584 images of faces in four classes, 5,242 labels by 27 annotators. Accuracy and F1 of "
        "the class from each model. There is no randomness, so there is one run."
    ),
    run=partial(run_models, "face"),
    printed=_printed(
        {
            "glad": (0.5976, 0.5155),
            "dawid-skene": (0.6318, 0.5356),
            "ordinal-binary": (0.6490, 0.5514),
            "gpm": (0.6370, 0.5431),
        },
        spammers=0.0,
    ),
    notes=face_notes,
    claims=face_claims,
    required_files=RequiredFiles(("face/labels.csv", "face/truth.csv"), SOURCE),
)
