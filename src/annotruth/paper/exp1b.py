"""Exp1-b: how far the error grows with the share of spammers."""

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
from annotruth.paper.findings import all_of, crossing, lead, negative, verdict
from annotruth.paper.tables import figure, values_of

AXIS = "spammers"
SHARES = (0.05, 0.10, 0.15, 0.20, 0.25)
PLACE = "Exp1-b"


def conditions(settings: Settings) -> list[Condition]:
    """One share of spammers each."""
    return [{AXIS: share} for share in SHARES]


def run(
    condition: Condition, settings: Settings, rng: np.random.Generator, data: Path | None
) -> Results:
    """Simulate a mixed crowd and compare the distributions with the true ones."""
    return curves.compared(settings, rng, spammer_share=condition[AXIS])


def notes(records: Sequence[Record], settings: Settings) -> list[str]:
    """Say what the shares are in people."""
    people = ", ".join(str(round(share * settings["annotators"])) for share in SHARES)
    return [f"With {settings['annotators']} annotators the shares are {people} spammers."]


def claims(records: Sequence[Record], settings: Settings) -> list[Claim]:
    """Judge what the paper says of this experiment."""
    curve = {
        (model, measure): [curves.values_at(records, model, measure, AXIS, x) for x in SHARES]
        for model in curves.MODELS
        for measure in curves.PANELS
    }
    found = []
    for measure, name in curves.PANELS.items():
        level = curve["observed", measure][0]
        where = crossing(SHARES, curve["gpm", measure], level)
        found.append(
            Claim(
                f"observed shares at 5% spammers are as good as GPM at 16% ({name})",
                PLACE,
                f"GPM reaches the {level.mean():.4f} of the observed shares at "
                + where.in_words("%", SHARES[0], SHARES[-1], 100.0),
                "holds" if where.high >= 0.16 else "does not hold",
            )
        )

    grows = {
        model: curves.change(curve[model, "rmse"][-1], curve[model, "rmse"][0])
        for model in curves.MODELS
    }
    dip = {
        model: curves.change(curve[model, "rmse"][2], curve[model, "rmse"][1])
        for model in curves.MODELS
    }
    leads = [
        lead(records, "rmse", "observed", "gpm", lambda c, share=share: c[AXIS] == share)  # type: ignore[misc]
        for share in SHARES
    ]
    difficulty = {model: figure(values_of(records, model, "difficulty")) for model in curves.MODELS}
    gain = lead(records, "difficulty", "gpm", "observed")
    return [
        *found,
        Claim(
            "the error grows with the share of spammers",
            PLACE,
            f"RMSE from 5% to 25%: GPM {grows['gpm']}, observed shares {grows['observed']} more",
            all_of(*map(verdict, grows.values())),
        ),
        Claim(
            "from 10% to 15% spammers GPM's error even falls; that of the observed shares does not",
            PLACE,
            f"change of RMSE: GPM {dip['gpm']}, observed shares {dip['observed']}",
            all_of(verdict(negative(dip["gpm"])), verdict(dip["observed"])),
        ),
        Claim(
            "GPM is more robust to irregular labels than the observed shares",
            PLACE,
            "RMSE lower by "
            + ", ".join(f"{gap} at {share:.0%}" for share, gap in zip(SHARES, leads, strict=True)),
            all_of(*map(verdict, leads)),
        ),
        Claim(
            "the entropy of the distribution gives the item's difficulty (better than that of the "
            "observed shares)",
            "Introduction",
            f"correlation with the true entropy: GPM {difficulty['gpm']}, observed shares "
            f"{difficulty['observed']}, difference {gain}",
            verdict(gain),
        ),
    ]


def chart(records: Sequence[Record], settings: Settings) -> Chart:
    """Draw the paper's figure."""
    words = {
        "title": "Error of the recovered distributions as spammers increase",
        "subtitle": _subtitle(settings),
        "x_title": "Share of spammers among annotators (%)",
        "x_format": "%",
    }
    return curves.chart(records, AXIS, SHARES, words)


def _subtitle(settings: Settings) -> str:
    return (
        f"Exp1-b: {settings['items']} items, {settings['annotators']} annotators, mixed behavior; "
        "bands: ±2 standard errors; axes do not start at 0"
    )


EXPERIMENT = Experiment(
    name="exp1b",
    title="Exp1-b: influence of the share of spammers",
    about=(
        "Mixed crowds with more and more spammers. The distributions found by GPM and the plain "
        "shares of the observed labels are compared with the true distributions."
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
    notes=notes,
    claims=claims,
    chart=chart,
)
