"""Dog breeds: classes on real labels, of another set of images than the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annotruth.paper import classes
from annotruth.paper.base import (
    Claim,
    Condition,
    DataFiles,
    Experiment,
    Record,
    Results,
    Settings,
)

PLACE = "Crowd Dog Classification"
NOTE = (
    "The paper's set, 250 images with 17 labels each, is not to be had. These are the 807 images "
    "of the VLDB'17 benchmark with 10 labels each, on which every model does better: the order of "
    "the models can be compared, the figures cannot."
)


def conditions(settings: Settings) -> list[Condition]:
    """One condition alone."""
    return [{}]


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Fit every model to the labels."""
    assert data is not None
    return classes.run_on(data / "dog")


def notes(records: Sequence[Record], settings: Settings) -> list[str]:
    """Say that these are other images."""
    return [NOTE]


def claims(records: Sequence[Record], settings: Settings) -> list[Claim]:
    """Judge what the paper says of dogs, as far as other images can."""
    gpm = records[0].results["gpm"]
    return [
        classes.order_claim(
            records,
            "GLAD performs best (on other images)",
            PLACE,
            ["glad"],
            ["ordinal-binary", "dawid-skene", "gpm"],
        ),
        classes.order_claim(
            records,
            "Ord-bin performs worst (on other images)",
            PLACE,
            ["glad", "gpm", "dawid-skene"],
            ["ordinal-binary"],
        ),
        classes.order_claim(
            records,
            "GPM performs second, ahead of D&S (on other images)",
            PLACE,
            ["gpm"],
            ["dawid-skene"],
        ),
        Claim(
            "26.21% of the annotators are spammers",
            PLACE,
            f"share of spammers {gpm['spammers']:.4f}, among other annotators",
            "cannot be tested",
        ),
    ]


EXPERIMENT = Experiment(
    name="dog",
    title="Crowd dog classification",
    about=(
        "807 images of dogs in four breeds, 8,070 labels by 109 annotators. Accuracy and F1 of "
        "the class each model finds. Nothing here is random, so there is one run."
    ),
    settings=classes.SETTINGS,
    conditions=conditions,
    run=run,
    measures=classes.measures,
    models=classes.MODELS,
    paper=classes.printed(
        {
            "ordinal-binary": (0.6280, 0.4862),
            "dawid-skene": (0.6320, 0.5000),
            "glad": (0.6480, 0.5368),
            "gpm": (0.6480, 0.5217),
        },
        spammers=0.2621,
    ),
    notes=notes,
    claims=claims,
    data=DataFiles(("dog/labels.csv", "dog/truth.csv"), classes.SOURCE),
    repeats=False,
)
