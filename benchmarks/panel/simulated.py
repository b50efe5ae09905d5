"""Tables on simulated labels: behaviors, few annotators, continuous scores."""

from __future__ import annotations

from functools import partial

from annotruth import metrics, simulate
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.paper.experiment import Measure
from annotruth.paper.measures import Measured, finite_or_none
from benchmarks.panel.tables import Case, PanelTable, Trial, trial_on

BEHAVIORS = ("random", "repeated", "inverted", "mixed")
FEW_ANNOTATORS = (10, 11, 12)
MANY_ANNOTATORS = 40


def tables() -> list[PanelTable]:
    return [behaviors(), few_annotators(), scores()]


def behaviors() -> PanelTable:
    return PanelTable(
        title="(a) Behaviors",
        description=(
            "Simulated crowds: 150 items, 25 annotators, 20% of them spammers; in mixed crowds "
            "every annotator has one of the three behaviors. PLCC and RMSE of reliability, F1 on "
            "spammers, mean Hellinger distance of distributions. RMSE and F1 only for models whose "
            "reliability is the probability of a serious label."
        ),
        heads=("behavior",),
        measures=(
            Measure("plcc", "PLCC", "higher"),
            Measure("rmse", "RMSE", "lower"),
            Measure("f1", "F1", "higher"),
            Measure("hellinger", "Hellinger", "lower"),
        ),
        cases=tuple(Case((name,), partial(_crowd, name)) for name in BEHAVIORS),
    )


def _crowd(behavior: str, seed: int) -> Trial:
    simulation = simulate.crowd(
        n_items=150,
        n_annotators=25,
        spammer_share=0.2,
        behavior=behavior,
        mixing="annotator",
        seed=seed,
    )
    truth = simulation.distribution
    assert truth is not None

    def measure(fit: Fit) -> Measured:
        return {
            **_measure_reliability(simulation.reliability, fit),
            "hellinger": _measure_distribution(truth, fit).get("hellinger"),
        }

    return trial_on(simulation.labels, measure)


def few_annotators() -> PanelTable:
    cases = [Case((str(n),), partial(_few, n)) for n in FEW_ANNOTATORS]
    return PanelTable(
        title="(b) Few annotators",
        description=(
            "Simulated mixed crowds of few annotators, with the other defaults of "
            "`simulate.crowd`: distributions against the true ones. Last, the observed shares of "
            f"{MANY_ANNOTATORS} annotators."
        ),
        heads=("annotators",),
        measures=(
            Measure("rmse", "RMSE", "lower"),
            Measure("hellinger", "Hellinger", "lower"),
        ),
        cases=(*cases, Case((str(MANY_ANNOTATORS),), _many, models=("observed shares",))),
    )


def _few(n_annotators: int, seed: int) -> Trial:
    simulation = simulate.crowd(behavior="mixed", n_annotators=n_annotators, seed=seed)
    assert simulation.distribution is not None
    measure = partial(_measure_distribution, simulation.distribution)
    return trial_on(simulation.labels, measure)


def _many(seed: int) -> Trial:
    simulation = simulate.crowd(behavior="mixed", n_annotators=MANY_ANNOTATORS, seed=seed)
    assert simulation.distribution is not None
    shares = simulation.labels.observed_shares()
    measured = _compare_distributions(simulation.distribution, shares)
    return lambda model: measured


def scores() -> PanelTable:
    return PanelTable(
        title="(c) Continuous scores",
        description="Items with one score and noisy votes, `simulate.gaussian` with its defaults.",
        heads=(),
        measures=(Measure("plcc", "PLCC", "higher"), Measure("rmse", "RMSE", "lower")),
        cases=(Case((), _gaussian),),
    )


def _gaussian(seed: int) -> Trial:
    simulation = simulate.gaussian(seed=seed)
    return trial_on(simulation.labels, partial(measure_score, simulation.score))


def measure_score(truth: Floats, fit: Fit) -> Measured:
    """Compare scores, if the model has them."""
    if fit.expectation is None:
        return {}
    return {
        "plcc": finite_or_none(metrics.plcc(truth, fit.expectation)),
        "rmse": metrics.rmse(truth, fit.expectation),
    }


def _measure_reliability(truth: Floats, fit: Fit) -> Measured:
    if fit.reliability is None:
        return {}
    measured: Measured = {"plcc": finite_or_none(metrics.plcc(truth, fit.reliability))}
    if fit.spammer is not None:
        measured["rmse"] = metrics.rmse(truth, fit.reliability)
        measured["f1"] = metrics.f1_binary(truth < SPAMMER_BELOW, fit.spammer, True)
    return measured


def _measure_distribution(truth: Floats, fit: Fit) -> Measured:
    if fit.distribution is None:
        return {}
    return _compare_distributions(truth, fit.distribution.dense(truth.shape[1]))


def _compare_distributions(truth: Floats, distribution: Floats) -> Measured:
    return {
        "rmse": metrics.rmse(truth, distribution),
        "hellinger": float(metrics.hellinger(truth, distribution).mean()),
    }
