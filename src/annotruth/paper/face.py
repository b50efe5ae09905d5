"""Face emotion: classes on real labels."""

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

PLACE = "Face Emotion Identification"


def conditions(settings: Settings) -> list[Condition]:
    """One condition alone."""
    return [{}]


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Fit every model to the labels."""
    assert data is not None
    return classes.run_on(data / "face")


def notes(records: Sequence[Record], settings: Settings) -> list[str]:
    """Say what the printed F1 is not."""
    found = records[0].results["gpm"]
    told = (
        "Every class has the same number of images, so macro and weighted F1 are equal: "
        f"{found['f1_macro']:.4f} for GPM; micro F1 is the accuracy. None is the printed 0.5431."
    )
    return [told]


def claims(records: Sequence[Record], settings: Settings) -> list[Claim]:
    """Judge what the paper says of these labels."""
    spammers = records[0].results["gpm"]["spammers"]
    return [
        classes.order_claim(
            records,
            "Ord-bin performs best",
            PLACE,
            ["ordinal-binary"],
            ["gpm", "dawid-skene", "glad"],
        ),
        classes.order_claim(
            records,
            "GLAD performs worst",
            PLACE,
            ["ordinal-binary", "gpm", "dawid-skene"],
            ["glad"],
        ),
        classes.order_claim(
            records, "GPM performs second, D&S third", PLACE, ["gpm"], ["dawid-skene"]
        ),
        Claim(
            "no annotator is a spammer",
            PLACE,
            f"share of spammers {spammers:.4f}",
            "holds" if spammers == 0 else "does not hold",
        ),
    ]


EXPERIMENT = Experiment(
    name="face",
    title="Face emotion identification",
    about=(
        "584 images of faces in four classes, 5,242 labels by 27 annotators. Accuracy and F1 of "
        "the class each model finds. Nothing here is random, so there is one run."
    ),
    settings=classes.SETTINGS,
    conditions=conditions,
    run=run,
    measures=classes.measures,
    models=classes.MODELS,
    paper=classes.printed(
        {
            "glad": (0.5976, 0.5155),
            "dawid-skene": (0.6318, 0.5356),
            "ordinal-binary": (0.6490, 0.5514),
            "gpm": (0.6370, 0.5431),
        },
        spammers=0.0,
    ),
    notes=notes,
    claims=claims,
    data=DataFiles(("face/labels.csv", "face/truth.csv"), classes.SOURCE),
    repeats=False,
)
