"""What the face and dog experiments share: classes found on real labels against a known truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations, product
from pathlib import Path

import numpy as np

from annotruth.io.readers import read_labels, read_table
from annotruth.labels.truth import match_truth
from annotruth.paper.base import Claim, Measure, Record, Results, Setting, Settings
from annotruth.paper.findings import all_of, verdict
from annotruth.paper.measuring import fitted, of_classes, spammer_share
from annotruth.paper.tables import Figure

MODELS = {
    "ordinal-binary": "Ord-bin",
    "dawid-skene": "D&S",
    "glad": "GLAD",
    "gpm": "GPM",
    "majority": "Majority",
}
SETTINGS = {
    "f1": Setting(
        "macro", "how F1 averages over the classes", choices=("macro", "micro", "weighted")
    )
}
SOURCE = (
    "the repository crowd_truth_infer of the VLDB'17 benchmark of truth inference "
    "(github.com/zhydhkcws/crowd_truth_infer)"
)


def run_on(folder: Path) -> Results:
    """Fit every model and compare its classes with the truth.

    For every pair of models, by what share of the items the one is ahead of the other, with the
    standard error over items: an accuracy alone does not say how much of a lead is chance.
    """
    labels = read_labels(folder / "labels.csv")
    answers = match_truth(read_table(folder / "truth.csv")[0], labels, role="truth")
    truth = answers.categories()
    found: Results = {}
    right = {}
    for model in MODELS:
        fit = fitted(labels, model)
        assert fit.label is not None
        classes = fit.label[answers.item]
        right[model] = (classes == truth).astype(np.float64)
        found[model] = {**of_classes(truth, classes), "converged": float(fit.converged)}
        if model == "gpm":
            found[model]["spammers"] = spammer_share(fit)
    for model, other in permutations(found, 2):
        ahead = right[model] - right[other]
        found[model][f"ahead of {other}"] = float(ahead.mean())
        found[model][f"error of {other}"] = float(ahead.std(ddof=1) / math.sqrt(ahead.size))
    return found


def measures(settings: Settings) -> list[Measure]:
    """Accuracy, F1 as the settings average it, and the share of spammers."""
    return [
        Measure("accuracy", "C_o", "higher"),
        Measure(f"f1_{settings['f1']}", "F1", "higher"),
        Measure("spammers", "spammers"),
    ]


def printed(
    rows: Mapping[str, tuple[float, float]], spammers: float
) -> dict[tuple[str], dict[str, float]]:
    """Lay out the paper's accuracy and F1 of every model, and its share of spammers."""
    kinds = SETTINGS["f1"].choices
    table = {
        (model,): {"accuracy": accuracy, **{f"f1_{kind}": f1 for kind in kinds}}
        for model, (accuracy, f1) in rows.items()
    }
    table["gpm",]["spammers"] = spammers
    return table


def ahead(records: Sequence[Record], model: str, other: str) -> Figure:
    """Return by what share of the items a model is ahead of another."""
    found = records[0].results.get(model, {})
    mean = found.get(f"ahead of {other}")
    return Figure(mean, found.get(f"error of {other}"), 1)


def order_claim(
    records: Sequence[Record],
    text: str,
    place: str,
    models: Sequence[str],
    others: Sequence[str],
) -> Claim:
    """Judge whether models are ahead of others, beyond the chance of which items there are."""
    leads = {pair: ahead(records, *pair) for pair in product(models, others)}
    told = ", ".join(
        f"{MODELS[model]} over {MODELS[other]} {gap}" for (model, other), gap in leads.items()
    )
    return Claim(text, place, f"lead in accuracy: {told}", all_of(*map(verdict, leads.values())))
