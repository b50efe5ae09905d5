"""Parts on simulated labels: behaviors, few annotators, continuous scores."""

from __future__ import annotations

from functools import partial

from annotruth import metrics, simulate
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.paper.experiment import Measure
from annotruth.paper.measures import Measured, finite_or_none
from benchmarks.panel.parts import Case, Part, Trial, trial_on

BEHAVIORS = ("random", "repeated", "inverted", "mixed")
FEW = (10, 11, 12)
MANY = 40


def parts() -> list[Part]:
    return [behaviors(), few_annotators(), scores()]


def behaviors() -> Part:
    return Part(
        title="(a) Behaviors",
        about=(
            "Simulated crowds: 150 items, 25 annotators, 20% of them spammers; in mixed crowds "
            "every annotator has one of the three behaviors. PLCC and RMSE of reliability, F1 on "
            "spammers, mean Hellinger distance of distributions. RMSE and F1 only of models whose "
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
    made = simulate.crowd(
        n_items=150,
        n_annotators=25,
        spammer_share=0.2,
        behavior=behavior,
        mixing="annotator",
        seed=seed,
    )
    assert made.distribution is not None
    truth = made.distribution

    def measure(fit: Fit) -> Measured:
        return {
            **_of_reliability(made.reliability, fit),
            "hellinger": _of_distribution(truth, fit).get("hellinger"),
        }

    return trial_on(made.labels, measure)


def few_annotators() -> Part:
    cases = [Case((str(n),), partial(_few, n)) for n in FEW]
    return Part(
        title="(b) Few annotators",
        about=(
            "Simulated mixed crowds of few annotators, all else as `simulate.crowd` has it: "
            f"distributions against the true ones. Last, the raw shares of {MANY} annotators."
        ),
        heads=("annotators",),
        measures=(
            Measure("rmse", "RMSE", "lower"),
            Measure("hellinger", "Hellinger", "lower"),
        ),
        cases=(*cases, Case((str(MANY),), _many, models=("raw shares",))),
    )


def _few(n_annotators: int, seed: int) -> Trial:
    made = simulate.crowd(behavior="mixed", n_annotators=n_annotators, seed=seed)
    assert made.distribution is not None
    return trial_on(made.labels, partial(_of_distribution, made.distribution))


def _many(seed: int) -> Trial:
    made = simulate.crowd(behavior="mixed", n_annotators=MANY, seed=seed)
    assert made.distribution is not None
    found = _of_shares(made.distribution, made.labels.observed_shares())
    return lambda model: found


def scores() -> Part:
    return Part(
        title="(c) Continuous scores",
        about="Items with one score and noisy votes, `simulate.gaussian` with its defaults.",
        heads=(),
        measures=(Measure("plcc", "PLCC", "higher"), Measure("rmse", "RMSE", "lower")),
        cases=(Case((), _gaussian),),
    )


def _gaussian(seed: int) -> Trial:
    made = simulate.gaussian(seed=seed)
    return trial_on(made.labels, partial(of_score, made.score))


def of_score(truth: Floats, fit: Fit) -> Measured:
    """Compare scores, where the model gives them."""
    if fit.expectation is None:
        return {}
    return {
        "plcc": finite_or_none(metrics.plcc(truth, fit.expectation)),
        "rmse": metrics.rmse(truth, fit.expectation),
    }


def _of_reliability(truth: Floats, fit: Fit) -> Measured:
    if fit.reliability is None:
        return {}
    found: Measured = {"plcc": finite_or_none(metrics.plcc(truth, fit.reliability))}
    if fit.spammer is not None:
        found["rmse"] = metrics.rmse(truth, fit.reliability)
        found["f1"] = metrics.f1_binary(truth < SPAMMER_BELOW, fit.spammer, True)
    return found


def _of_distribution(truth: Floats, fit: Fit) -> Measured:
    if fit.distribution is None:
        return {}
    return _of_shares(truth, fit.distribution.dense(truth.shape[1]))


def _of_shares(truth: Floats, found: Floats) -> Measured:
    return {
        "rmse": metrics.rmse(truth, found),
        "hellinger": float(metrics.hellinger(truth, found).mean()),
    }
