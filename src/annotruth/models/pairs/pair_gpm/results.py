"""The fit of PairGPM: intervals, named behaviors and the evidence for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.kernels.pairs.levels import SHARPNESS_SD
from annotruth.models.base_fit import SPAMMER_BELOW, Column, Verdict, now
from annotruth.models.distribution import Z_95
from annotruth.models.em import History
from annotruth.models.fits.notes import CHANCE
from annotruth.models.pairs.pair_gpm.posterior import (
    StatePosterior,
    annotator_posterior,
    chance_posterior,
    side_biases,
)
from annotruth.models.pairs.pair_gpm.state_shares import estimate_state_shares
from annotruth.models.pairs.pair_gpm.states import (
    ALWAYS_TIE,
    FAVOURS,
    INVERTED,
    SERIOUS,
    SIDES,
    States,
)
from annotruth.models.pairs.posterior import ScorePosterior, with_interval
from annotruth.models.pairs.result import GROUP_SCORES, GROUP_SD, TOO_FEW_VOTES, RankFit

if TYPE_CHECKING:
    from annotruth.models.pairs.pair_gpm.covariance import ScoreCovariance
    from annotruth.models.pairs.pair_gpm.model import PairGPM
    from annotruth.models.pairs.pair_gpm.parameters import PairGPMParameters
    from annotruth.models.pairs.pair_gpm.steps import PairGPMSteps

MIN_VOTES = 5
"""The number of comparisons below which nothing is said about an annotator's behavior."""

_DECIDED = 0.6  # the probability of an annotator's kind below which it is too early to tell
_DECIDED_INVERTED = 0.9  # more where votes are turned round: such annotators are left out


def make_fit(
    model: PairGPM,
    steps: PairGPMSteps,
    parameters: PairGPMParameters,
    history: History,
    covariance: ScoreCovariance,
    verdict: Verdict | None,
) -> RankFit:
    """Return the results of the final parameters."""
    data, states = steps.data, steps.states
    posterior = _posterior(steps, parameters, model.seed, verdict)
    scale = _common_scale(posterior, states, data.annotator_weight)
    low, high = _reliability_interval(posterior.given_scores, states.eps)
    behavior = _named_twice(steps, posterior)
    side_bias = side_biases(steps, parameters, posterior)
    offsets = _offset_intervals(parameters, covariance)
    return RankFit(
        model=model.name,
        settings=model.settings(),
        data=data,
        history=history,
        scores=_consensus(parameters, covariance, steps, scale),
        part=steps.part,
        reliability=posterior.given_scores @ states.eps,
        low=low,
        high=high,
        behavior=behavior,
        annotator_columns={
            **_annotator_columns(steps, posterior, side_bias, scale),
            "evidence": pa.array(_evidence(steps, behavior, posterior.evidence, verdict)),
        },
        p_serious=posterior.p_serious,
        side_bias=offsets[0] if data.sides_known else None,
        coefficients={
            name: offsets[c + 1] / steps.covariate_scale[c]
            for c, name in enumerate(data.covariates)
        },
        parameters={
            **parameters._asdict(),
            **_group_results(parameters, covariance, posterior, scale),
            **_saved_with_parameters(steps, side_bias),
        },
        verdict=verdict,
        fitted_at=now(),
    )


def _posterior(
    steps: PairGPMSteps, parameters: PairGPMParameters, seed: int, verdict: Verdict | None
) -> StatePosterior:
    """Return the posterior of annotators, with states estimated once more, given the scores."""
    if verdict == "chance":
        return chance_posterior(annotator_posterior(steps, parameters), steps.states, steps.data)
    return annotator_posterior(steps, parameters, estimate_state_shares(steps, parameters, seed))


def _saved_with_parameters(steps: PairGPMSteps, side_bias: Floats) -> dict[str, NDArray[Any]]:
    """Return what predictions and warm starts need besides the parameters."""
    return {
        "precision": np.array([steps.precision, steps.n_determined]),
        "covariate_scale": steps.covariate_scale,
        "own_side_bias": side_bias[:, 0],
        "favoured": steps.session.collect("favoured"),
        "active": steps.session.collect("active"),
    }


def _named_twice(steps: PairGPMSteps, posterior: StatePosterior) -> list[str]:
    """Return the behaviors given the scores; "inverted" only where estimation found so, too.

    Only the votes of those who were inverted while scores were estimated are left out of them.
    """
    n_votes = steps.data.comparisons_per_annotator
    named, while_estimated = (
        name_behaviors(each, steps.states, n_votes)
        for each in (posterior.given_scores, posterior.behavior)
    )
    return [
        TOO_FEW_VOTES if name == INVERTED != before else name
        for name, before in zip(named, while_estimated, strict=True)
    ]


def _offset_intervals(parameters: PairGPMParameters, covariance: ScoreCovariance) -> Floats:
    """Return each offset with the ends of its 95% interval: offsets x 3."""
    sd = np.sqrt(np.diag(covariance.offsets))
    return np.stack([with_interval(*each) for each in zip(parameters.offsets, sd, strict=True)])


def name_behaviors(probability: Floats, states: States, n_votes: NDArray[np.int64]) -> list[str]:
    """Return the behavior of each annotator: serious, that of a spammer, or too few votes to tell."""
    names = np.array(states.behavior)
    below = states.eps < SPAMMER_BELOW
    of_spammers = sorted(set(names[below]))
    mass = np.stack([probability[:, below & (names == each)].sum(axis=1) for each in of_spammers])
    p_spammer = mass.sum(axis=0)
    reliability = probability @ states.eps
    likeliest = np.array(of_spammers)[mass.argmax(axis=0)]
    is_spammer = reliability < SPAMMER_BELOW
    undecided = np.where(is_spammer, p_spammer, 1.0 - p_spammer) < _DECIDED
    undecided |= is_spammer & (likeliest == INVERTED) & (mass.max(axis=0) < _DECIDED_INVERTED)
    undecided |= n_votes < MIN_VOTES
    named = np.where(is_spammer, likeliest, SERIOUS)
    return [str(name) for name in np.where(undecided, TOO_FEW_VOTES, named)]


def _reliability_interval(probability: Floats, eps: Floats) -> tuple[Floats, Floats]:
    """Return the 2.5% and 97.5% quantiles of the reliability.

    The probability of a level is spread evenly between the midpoints to its neighbours.
    """
    levels, level = np.unique(eps, return_inverse=True)
    mass = np.zeros((len(probability), len(levels)))
    np.add.at(mass.T, level, probability.T)
    inner_bounds = (levels[1:] + levels[:-1]) / 2.0
    bounds = np.concatenate([[0.0], inner_bounds, [1.0]])
    cumulative = np.concatenate([np.zeros((len(mass), 1)), mass.cumsum(axis=1)], axis=1)
    return _interpolated(0.025, cumulative, bounds), _interpolated(0.975, cumulative, bounds)


def _interpolated(x: float, x_points: Floats, y_points: Floats) -> Floats:
    """Return ``np.interp(x, row, y_points)`` of every row of ``x_points``."""
    place = np.clip((x_points <= x).sum(axis=1) - 1, 0, len(y_points) - 2)
    rows = np.arange(len(x_points))
    x0, x1 = x_points[rows, place], x_points[rows, place + 1]
    y0, y1 = y_points[place], y_points[place + 1]
    y: Floats = y0 + (y1 - y0) * np.clip((x - x0) / (x1 - x0), 0.0, 1.0)
    return y


class _Scale(NamedTuple):
    """The factor of all scores, and the variance of its logarithm."""

    factor: float
    log_variance: float


def _annotator_columns(
    steps: PairGPMSteps, posterior: StatePosterior, side_bias: Floats, scale: _Scale
) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    if steps.data.has_ties:
        columns["tie_rate"] = posterior.nu @ steps.states.nu
    if steps.data.sides_known:
        bias, sd = side_bias.T
        columns["side_bias"] = bias
        columns["side_bias_low"], columns["side_bias_high"] = bias - Z_95 * sd, bias + Z_95 * sd
    if posterior.group.shape[1] > 1:
        columns["group"] = pa.array(posterior.group.argmax(axis=1) + 1)
        columns["p_group"] = posterior.group.max(axis=1)
    columns["sharpness"] = posterior.beta @ steps.states.beta / scale.factor
    return columns


def _common_scale(posterior: StatePosterior, states: States, counted: Floats | None) -> _Scale:
    """Return the scale by which scores are those of an annotator of average sharpness.

    That is the mean log sharpness of those who are serious. Posterior means are shrunk towards the
    prior's 0, each by the ratio of its posterior variance to that of the prior. ``counted`` is what
    each annotator counts, if not all count alike.
    """
    is_serious = posterior.behavior[:, states.eps >= SPAMMER_BELOW].sum(axis=1)
    if counted is not None:
        is_serious = counted * is_serious
    log_sharpness = np.log(states.beta)
    mean = posterior.beta @ log_sharpness
    variance = posterior.beta @ log_sharpness**2 - mean**2
    weight = float(is_serious @ np.clip(1.0 - variance / SHARPNESS_SD**2, 0.0, 1.0))
    n_serious = max(float(is_serious.sum()), 1.0)
    log_factor = float(is_serious @ mean) / max(weight, 0.3 * n_serious)
    return _Scale(float(np.exp(log_factor)), SHARPNESS_SD**2 / n_serious)


def _consensus(
    parameters: PairGPMParameters,
    covariance: ScoreCovariance,
    steps: PairGPMSteps,
    scale: _Scale,
) -> ScorePosterior:
    """Return the scores of the whole crowd: the mean of the groups', weighted by their sizes.

    An item that was never compared has the variance of the prior.
    """
    share, factor = parameters.group, scale.factor
    alone = np.bincount(steps.part)[steps.part] == 1
    mean = factor * (share @ parameters.theta)
    if covariance.scores.ndim == 2:
        variances = factor**2 * (share**2 @ covariance.scores) + scale.log_variance * mean**2
        return ScorePosterior(mean, np.where(alone, 1.0 / steps.precision, variances))
    matrix = factor**2 * np.einsum("g,h,gihj->ij", share, share, covariance.scores)
    matrix += scale.log_variance * np.outer(mean, mean)
    matrix[alone, alone] = 1.0 / steps.precision
    return ScorePosterior(mean, matrix)


def _group_results(
    parameters: PairGPMParameters,
    covariance: ScoreCovariance,
    posterior: StatePosterior,
    scale: _Scale,
) -> dict[str, NDArray[Any]]:
    """Return the groups' scores, on the scale of those of the whole crowd."""
    if len(parameters.group) == 1:
        return {}
    return {
        GROUP_SCORES: scale.factor * parameters.theta,
        GROUP_SD: scale.factor * np.sqrt(covariance.score_variances),
        "group_posterior": posterior.group,
    }


def _evidence(
    steps: PairGPMSteps, behavior: list[str], evidence: Floats, verdict: Verdict | None
) -> list[str]:
    """Return the evidence for each annotator's behavior, in numbers."""
    data, favoured = steps.data, steps.session.collect("favoured")
    lines = []
    for s, (name, n) in enumerate(zip(behavior, data.comparisons_per_annotator, strict=True)):
        left, expected_left, ties, expected_ties, agreed, expected = evidence[s, :6]
        if name in SIDES:
            right = n - left - ties
            side, count, expect = (
                ("left", left, expected_left)
                if name == SIDES[0]
                else ("right", right, n - expected_left - expected_ties)
            )
            line = f"voted {side} {count:.0f} of {n} times; expected {expect:.0f}"
        elif name == ALWAYS_TIE:
            line = f"{ties:.0f} ties in {n} votes; expected {expected_ties:.0f}"
        elif name == FAVOURS:
            item = data.items[int(favoured[s])].as_py()
            line = f"voted for {item} {evidence[s, 6]:.0f} of {evidence[s, 7]:.0f} times"
        elif name == INVERTED:
            line = (
                f"voted against the consensus {n - agreed - ties:.0f} of {n} times; "
                f"expected {n - expected - expected_ties:.0f}"
            )
        elif verdict == "chance":
            line = f"comparisons {CHANCE}"
        else:
            line = f"voted with the consensus {agreed:.0f} of {n} times; expected {expected:.0f}"
        lines.append(line)
    return lines
