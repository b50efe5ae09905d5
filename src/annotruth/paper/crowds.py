"""What the simulated experiments share: their settings, and crowds made to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth import simulate
from annotruth.paper.base import Setting, Settings
from annotruth.simulate import Simulation

SIZES = {
    "items": Setting(150, "items", least=2),
    "annotators": Setting(25, "annotators", least=2),
    "categories": Setting(5, "categories", least=2),
    "spammers": Setting(0.2, "share of annotators with a reliability below 0.5", most=1.0),
}

# What the paper leaves open; the defaults are the nearest to its tables (`reproduce settings`).
MIXING = Setting(
    "annotator",
    "whether 'mixed' picks a behavior for every label or for every annotator",
    choices=("label", "annotator"),
)
ABOVE_HALF = Setting(
    True,
    "whether the reliability of those who are not spammers is from 0.5 to 1, or from 0 to 1",
    choices=(True, False),
)
SHAPE = Setting(
    "bins",
    "how a Beta becomes categories: its mass in equal bins, of the rounded value, or its density",
    choices=("bins", "rounded", "density"),
)
PRECISION = Setting(
    "item",
    "what has a precision of its own: an item, an annotator or a label",
    choices=("item", "annotator", "label"),
)
GAMMA = Setting(
    "rate", "whether the 5 in Gamma(10, 5) is a rate or a scale", choices=("rate", "scale")
)

# How GPM is fitted.
FITTING = {
    "iteration": Setting(
        "paper",
        "GPM by the paper's equations, or as the authors' published program iterates",
        choices=("paper", "program"),
    ),
    "max_iter": Setting(1000, "cap of GPM's iterations", least=1),
}


def crowd(settings: Settings, rng: np.random.Generator, **condition: Any) -> Simulation:
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


def gaussian(settings: Settings, rng: np.random.Generator) -> Simulation:
    """Simulate a crowd with scores as truth (Exp1-d)."""
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
