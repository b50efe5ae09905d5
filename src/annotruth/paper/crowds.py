"""Settings and generators shared by the simulated experiments."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth import simulate
from annotruth.paper.experiment import ExperimentSetting, Settings
from annotruth.simulate import Simulation

SIZES = {
    "items": ExperimentSetting(150, "number of items", minimum=2),
    "annotators": ExperimentSetting(25, "number of annotators", minimum=2),
    "categories": ExperimentSetting(5, "number of categories", minimum=2),
    "spammers": ExperimentSetting(
        0.2, "share of annotators with a reliability below 0.5", maximum=1.0
    ),
}

# Choices that the paper leaves open; the defaults come closest to its tables
# (`annotruth reproduce settings`).
MIXING = ExperimentSetting(
    "annotator",
    "whether 'mixed' draws a behavior for every label or for every annotator",
    choices=("label", "annotator"),
)
ABOVE_HALF = ExperimentSetting(
    True,
    "whether the reliability of annotators who are not spammers is from 0.5 to 1, or from 0 to 1",
    choices=(True, False),
)
SHAPE = ExperimentSetting(
    "bins",
    "how a Beta becomes categories: its mass in equal bins, of the rounded value, or its density",
    choices=("bins", "rounded", "density"),
)
PRECISION = ExperimentSetting(
    "item",
    "what the precision belongs to: an item, an annotator or a label",
    choices=("item", "annotator", "label"),
)
GAMMA = ExperimentSetting(
    "rate", "whether the 5 in Gamma(10, 5) is a rate or a scale", choices=("rate", "scale")
)

# How the crowd of Exp1-a to Exp1-c is generated.
CROWD_CHOICES = {"shape": SHAPE, "mixing": MIXING, "reliable_above_half": ABOVE_HALF}

# How the crowd of Exp1-d is generated.
SCORE_CHOICES = {
    "precision": PRECISION,
    "gamma": GAMMA,
    "mixing": MIXING,
    "reliable_above_half": ABOVE_HALF,
}

# How GPM is fitted.
FITTING = {
    "iteration": ExperimentSetting(
        "paper",
        "GPM by the paper's equations, or as the authors' published program iterates",
        choices=("paper", "program"),
    ),
    "max_iter": ExperimentSetting(1000, "maximum number of GPM's iterations", minimum=1),
}


def simulate_crowd(settings: Settings, rng: np.random.Generator, **condition: Any) -> Simulation:
    """Simulate a crowd with categorical truth (Exp1-a to Exp1-c)."""
    options = {
        "n_items": settings["items"],
        "n_annotators": settings.get("annotators"),  # one of the two may be the condition
        "n_categories": settings["categories"],
        "spammer_share": settings.get("spammers"),
        "shape": settings["shape"],
        "mixing": settings["mixing"],
        "reliable_above_half": settings["reliable_above_half"],
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
        precision=settings["precision"],
        gamma=settings["gamma"],
        mixing=settings["mixing"],
        reliable_above_half=settings["reliable_above_half"],
        seed=rng,
    )
