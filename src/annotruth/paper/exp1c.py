"""Exp1-c: how many labels an item are enough."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annotruth.paper import curves
from annotruth.paper.base import (
    Chart,
    Claim,
    Condition,
    Experiment,
    Record,
    Results,
    Settings,
)
from annotruth.paper.crowds import ABOVE_HALF, FITTING, MIXING, SHAPE, SIZES
from annotruth.paper.findings import crossing
from annotruth.paper.tables import figure

AXIS = "annotators"
COUNTS = (10, 15, 20, 25, 30, 35, 40)
PLACE = "Exp1-c"


def conditions(settings: Settings) -> list[Condition]:
    """One number of annotators each; everybody labels every item."""
    return [{AXIS: count} for count in COUNTS]


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Simulate a mixed crowd and compare the distributions with the true ones."""
    return curves.compared(settings, rng, n_annotators=condition[AXIS])


def claims(records: Sequence[Record], settings: Settings) -> list[Claim]:
    """Judge what the paper says of this experiment."""
    found = []
    for measure, name in curves.PANELS.items():
        level = curves.values_at(records, "observed", measure, AXIS, COUNTS[-1])
        runs = [curves.values_at(records, "gpm", measure, AXIS, count) for count in COUNTS]
        where = crossing(COUNTS, runs, level)
        at_20 = figure(runs[COUNTS.index(20)].tolist())
        found.append(
            Claim(
                "20 or even fewer labels an item with GPM are as accurate as 40 without it "
                f"({name})",
                PLACE,
                f"observed shares of 40 labels: {figure(level.tolist())}; GPM with 20: {at_20}; "
                f"GPM reaches it at {where.in_words(' labels', COUNTS[0], COUNTS[-1])}",
                "holds" if where.low <= 20 else "does not hold",
            )
        )
        found.append(
            Claim(
                f"fewer labels are needed with GPM than without it ({name})",
                PLACE,
                f"{where.in_words('', COUNTS[0], COUNTS[-1])} instead of {COUNTS[-1]} labels",
                "holds" if where.high < COUNTS[-1] else "does not hold",
            )
        )
    return found


def chart(records: Sequence[Record], settings: Settings) -> Chart:
    """Draw the paper's figure."""
    words = {
        "title": "Error of the recovered distributions as labels increase",
        "subtitle": f"Exp1-c: {settings['items']} items, {settings['spammers']:.0%} spammers, mixed "
        "behavior; bands: ±2 standard errors; axes do not start at 0",
        "x_title": "Labels per item (count)",
        "x_format": "d",
    }
    return curves.chart(records, AXIS, COUNTS, words)


EXPERIMENT = Experiment(
    name="exp1c",
    title="Exp1-c: prediction accuracy over the number of labels",
    about=(
        "Mixed crowds of 10 to 40 annotators who all label every item, a fifth of them spammers. "
        "The distributions found by GPM and the plain shares of the observed labels are compared "
        "with the true distributions."
    ),
    settings={
        **{name: setting for name, setting in SIZES.items() if name != AXIS},
        "shape": SHAPE,
        "mixing": MIXING,
        "reliable_above_half": ABOVE_HALF,
        **FITTING,
    },
    conditions=conditions,
    run=run,
    measures=curves.measures,
    models=curves.MODELS,
    claims=claims,
    chart=chart,
)
