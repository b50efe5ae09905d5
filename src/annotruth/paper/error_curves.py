"""Exp1-b and Exp1-c: the error of distributions over the share of spammers and over labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.paper.experiment import (
    Claim,
    Condition,
    Experiment,
    ExperimentRun,
    Measure,
    Results,
    Settings,
)
from annotruth.paper.measures import fit_model, measure_distributions
from annotruth.paper.simulated import MAX_ITER, MIXING, SIZES, simulate_crowd
from annotruth.paper.tables import (
    MeanWithError,
    combine_verdicts,
    find_crossing,
    mean_with_error,
    paired_difference,
    values_of,
    verdict_of,
)
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.panels import LineAxes, line_chart

MODELS = {"gpm": "GPM", "observed": "observed shares"}
PANELS = {"rmse": "RMSE", "hellinger": "Hellinger distance"}


@dataclass(frozen=True)
class CurveAxis:
    """What an experiment varies: the setting, its values, and the option it sets."""

    setting: str
    option: str
    values: tuple[float, ...]

    def conditions(self, settings: Settings) -> list[Condition]:
        """Return one condition per value."""
        return [{self.setting: value} for value in self.values]

    def run(
        self,
        condition: Condition,
        settings: Settings,
        rng: np.random.Generator,
        data: Path | None,
    ) -> Results:
        """Simulate a mixed crowd; compare GPM's and the observed distributions with the truth."""
        option = {self.option: condition[self.setting]}
        simulation = simulate_crowd(settings, rng, behavior="mixed", **option)
        truth = simulation.distribution
        assert truth is not None
        labels = simulation.labels
        fit = fit_model(labels, "gpm", max_iter=settings["max_iter"])
        assert fit.distribution is not None
        measured = measure_distributions(truth, fit.distribution.dense(labels.n_categories))
        return {
            "gpm": {**measured, "converged": float(fit.converged)},
            "observed": measure_distributions(truth, labels.observed_shares()),
        }

    def curve(self, runs: Sequence[ExperimentRun], model: str, measure: str) -> list[Floats]:
        """Return the runs' values of a measure, one array per value of the axis."""
        return [
            np.array(
                [
                    value
                    for run in runs
                    if run.condition[self.setting] == x
                    and (value := run.results[model].get(measure)) is not None
                ],
                dtype=np.float64,
            )
            for x in self.values
        ]

    def chart(
        self,
        runs: Sequence[ExperimentRun],
        settings: Settings,
        *,
        name: str,
        title: str,
        caption: str,
        x_title: str,
        percent: bool = False,
    ) -> Chart:
        """Return a chart of both measures over the axis, with bands of two standard errors."""
        points = []
        for (measure, panel), (model, label) in product(PANELS.items(), MODELS.items()):
            for x, values in zip(self.values, self.curve(runs, model, measure), strict=True):
                point = mean_with_error(values.tolist())
                margin = 2 * (point.error or 0.0)
                assert point.mean is not None
                ends = {"low": point.mean - margin, "high": point.mean + margin}
                points.append({"panel": panel, "series": label, "x": x, "y": point.mean} | ends)
        y_title = "distance from the truth (lower is better)"
        axes = LineAxes(x_title, y_title, self.values, percent=percent)
        text = f"{caption.format(**settings)}, mixed behavior; bands: ±2 standard errors; axes "
        return line_chart(name, title, f"{text}do not start at 0.", points, axes)


SPAMMERS = CurveAxis("spammers", "spammer_share", (0.05, 0.10, 0.15, 0.20, 0.25))
ANNOTATORS = CurveAxis("annotators", "n_annotators", (10, 15, 20, 25, 30, 35, 40))


MEASURES = (
    *(Measure(key, name, "lower") for key, name in PANELS.items()),
    Measure("difficulty", "PLCC of entropy", "higher"),
)


def spammer_notes(runs: Sequence[ExperimentRun], settings: Settings) -> list[str]:
    """Return the shares as numbers of annotators."""
    counts = ", ".join(str(round(share * settings["annotators"])) for share in SPAMMERS.values)
    return [f"With {settings['annotators']} annotators the shares are {counts} spammers."]


def spammer_claims(runs: Sequence[ExperimentRun], settings: Settings) -> list[Claim]:
    """Return the paper's claims on Exp1-b, tested."""
    shares = SPAMMERS.values
    curves = {model: SPAMMERS.curve(runs, model, "rmse") for model in MODELS}
    increase = {model: _change(curve[-1], curve[0]) for model, curve in curves.items()}
    dip = {model: _change(curve[2], curve[1]) for model, curve in curves.items()}
    leads = [
        paired_difference(
            [run for run in runs if run.condition["spammers"] == share], "rmse", "observed", "gpm"
        )
        for share in shares
    ]
    difficulty = {model: mean_with_error(values_of(runs, model, "difficulty")) for model in MODELS}
    gain = paired_difference(runs, "difficulty", "gpm", "observed")
    return [
        *(_equal_error_claim(runs, measure) for measure in PANELS),
        Claim(
            "the error grows with the share of spammers",
            "Exp1-b",
            f"RMSE from 5% to 25%: GPM {increase['gpm']}, observed shares {increase['observed']} "
            "more",
            combine_verdicts(map(verdict_of, increase.values())),
        ),
        Claim(
            "from 10% to 15% spammers GPM's error even falls; that of the observed shares does not",
            "Exp1-b",
            f"change of RMSE: GPM {dip['gpm']}, observed shares {dip['observed']}",
            combine_verdicts([verdict_of(-dip["gpm"]), verdict_of(dip["observed"])]),
        ),
        Claim(
            "GPM is more robust to irregular labels than the observed shares",
            "Exp1-b",
            "RMSE lower by "
            + ", ".join(f"{gap} at {share:.0%}" for share, gap in zip(shares, leads, strict=True)),
            combine_verdicts(map(verdict_of, leads)),
        ),
        Claim(
            "the entropy of the distribution gives the item's difficulty (better than that of the "
            "observed shares)",
            "Introduction",
            f"correlation with the true entropy: GPM {difficulty['gpm']}, observed shares "
            f"{difficulty['observed']}, difference {gain}",
            verdict_of(gain),
        ),
    ]


def _equal_error_claim(runs: Sequence[ExperimentRun], measure: str) -> Claim:
    shares = SPAMMERS.values
    level = SPAMMERS.curve(runs, "observed", measure)[0]
    crossing = find_crossing(shares, SPAMMERS.curve(runs, "gpm", measure), level)
    return Claim(
        f"observed shares at 5% spammers are as good as GPM at 16% ({PANELS[measure]})",
        "Exp1-b",
        f"GPM reaches the {level.mean():.4f} of the observed shares at "
        + crossing.describe("%", shares[0], shares[-1], 100.0),
        "holds" if crossing.high >= 0.16 else "does not hold",
    )


def _change(later: Floats, earlier: Floats) -> MeanWithError:
    """Return the difference of the means at two values, whose crowds are not the same."""
    return mean_with_error(later.tolist()) - mean_with_error(earlier.tolist())


def annotator_claims(runs: Sequence[ExperimentRun], settings: Settings) -> list[Claim]:
    """Return the paper's claims on Exp1-c, tested."""
    counts = ANNOTATORS.values
    claims = []
    for measure, name in PANELS.items():
        level = ANNOTATORS.curve(runs, "observed", measure)[-1]
        curve = ANNOTATORS.curve(runs, "gpm", measure)
        crossing = find_crossing(counts, curve, level)
        with_20 = mean_with_error(curve[counts.index(20)].tolist())
        claims += [
            Claim(
                "20 or even fewer labels per item with GPM are as accurate as 40 without it "
                f"({name})",
                "Exp1-c",
                f"observed shares of 40 labels: {mean_with_error(level.tolist())}; "
                f"GPM with 20: {with_20}; "
                f"GPM reaches it at {crossing.describe(' labels', counts[0], counts[-1])}",
                "holds" if crossing.low <= 20 else "does not hold",
            ),
            Claim(
                f"fewer labels are needed with GPM than without it ({name})",
                "Exp1-c",
                f"{crossing.describe('', counts[0], counts[-1])} instead of {counts[-1]} labels",
                "holds" if crossing.high < counts[-1] else "does not hold",
            ),
        ]
    return claims


def _experiment(axis: CurveAxis, **options: Any) -> Experiment:
    sizes = {name: setting for name, setting in SIZES.items() if name != axis.setting}
    return Experiment(
        settings={**sizes, "mixing": MIXING, "max_iter": MAX_ITER},
        conditions=axis.conditions,
        run=axis.run,
        measures=MEASURES,
        models=MODELS,
        **options,
    )


EXP1B = _experiment(
    SPAMMERS,
    name="exp1b",
    title="Exp1-b: influence of the share of spammers",
    description=(
        "Mixed crowds with increasing shares of spammers. GPM's distributions and the observed "
        "shares of the labels are compared with the true distributions."
    ),
    notes=spammer_notes,
    claims=spammer_claims,
    chart=partial(
        SPAMMERS.chart,
        name="exp1b",
        title="Error of the recovered distributions as spammers increase",
        caption="Exp1-b: {items} items, {annotators} annotators",
        x_title="share of spammers (%)",
        percent=True,
    ),
)

EXP1C = _experiment(
    ANNOTATORS,
    name="exp1c",
    title="Exp1-c: prediction accuracy over the number of labels",
    description=(
        "Mixed crowds of 10 to 40 annotators who all label every item, a fifth of them spammers. "
        "GPM's distributions and the observed shares of the labels are compared with the true "
        "distributions."
    ),
    claims=annotator_claims,
    chart=partial(
        ANNOTATORS.chart,
        name="exp1c",
        title="Error of the recovered distributions as labels increase",
        caption="Exp1-c: {items} items, {spammers:.0%} spammers",
        x_title="labels per item",
    ),
)
