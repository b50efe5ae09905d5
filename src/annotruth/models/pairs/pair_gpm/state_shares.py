r"""The probabilities of annotators' states given the scores, from which behaviors are named.

Scores are estimated with the prior :math:`N(0, 0.6^2)` of the log of the sharpness. Fitted to the same votes, serious
annotators are sharper than that, so that random voters would pass for serious ones of low sharpness.
Here the mean of the log sharpness, and the shares of behaviors, are estimated with it by EM, for each of
some standard deviations. Those are averaged, weighted by the likelihood: a wide spread without random
voters and a narrow one with some are often about as likely.
"""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, get_engine
from annotruth.kernels.arrays import Floats, inner
from annotruth.kernels.pairs.levels import SHARPNESS_SD
from annotruth.models.pairs.pair_gpm.parameters import PairGPMParameters, make_model
from annotruth.models.pairs.pair_gpm.states import States
from annotruth.models.pairs.pair_gpm.steps import PairGPMSteps

_SDS = (0.2, 0.3, 0.4, 0.5, SHARPNESS_SD, 0.75)  # of the log of the sharpness
_PRIOR_ANNOTATORS = 1.0  # with a log sharpness of 0
_MAX_ANNOTATORS = 1_000  # with more, a sample: shares then have standard errors below 0.016
_MAX_COMPARISONS = 100_000
_MAX_ROUNDS = 100
_TOL = 1e-2  # of the log posterior


class StateShares(NamedTuple):
    """Probabilities of the levels of sharpness and of the behaviors.

    Examples
    --------
    >>> StateShares._fields
    ('beta', 'behavior')
    """

    beta: Floats
    behavior: Floats


class _Estimate(NamedTuple):
    """Probabilities of the levels of sharpness and of the behaviors, at one standard deviation."""

    beta: Floats
    behavior: Floats
    log_posterior: float


def estimate_state_shares(
    steps: PairGPMSteps, parameters: PairGPMParameters, seed: int
) -> StateShares:
    """Return the probabilities of sharpness and behaviors given the scores."""
    states = steps.states
    likelihood, weight = _likelihoods(steps, parameters, seed)
    found = [_estimate(states, likelihood, weight, sd) for sd in _SDS]
    log_posterior = np.array([each.log_posterior for each in found])
    share = np.exp(log_posterior - log_posterior.max())
    share /= share.sum()
    return StateShares(
        beta=share @ np.stack([each.beta for each in found]),
        behavior=share @ np.stack([each.behavior for each in found]),
    )


def _likelihoods(
    steps: PairGPMSteps, parameters: PairGPMParameters, seed: int
) -> tuple[Floats, Floats]:
    """Return annotators' likelihoods of sharpness and behavior, and what each annotator counts.

    The likelihoods are annotators x sharpness x behavior, up to a factor per annotator, and 0 at
    levels that are not active. Of many annotators, a sample.
    """
    data, states = steps.data, steps.states
    drawn = np.zeros(data.n_annotators, dtype=np.bool_)
    order = np.random.default_rng(seed).permutation(data.n_annotators)
    order = order[data.comparisons_per_annotator[order] > 0][:_MAX_ANNOTATORS]
    n_votes = data.comparisons_per_annotator[order].cumsum()
    drawn[order[: int(np.searchsorted(n_votes, _MAX_COMPARISONS)) + 1]] = True
    sample = data.of_annotators(drawn)
    shape = len(states.beta), len(states.eps)
    one = Pass(
        "pairs.gpm_results.joint_posteriors",
        state=("active", "favoured", "covariates", "joint"),
        inputs=(Input("model"),),
    )
    model = make_model(states, parameters)
    with closing(get_engine("memory").open(sample)) as session:
        for name in ("active", "favoured"):
            values = steps.session.collect(name)[drawn]
            session.put(name, np.ascontiguousarray(values), per="annotators")
        covariates = np.empty((sample.n_comparisons, 0))
        if data.covariates:
            covariates = steps.covariates[drawn[data.annotator_of_comparison()]]
        session.put("covariates", covariates, per="comparisons")
        session.allocate("joint", per="annotators", shape=shape)
        session.run_pass(one, model=model)
        posterior: Floats = session.collect("joint")
    prior = np.outer(np.exp(states.log_beta), parameters.behavior)
    weight = sample.annotator_weight
    return posterior / prior, np.ones(len(posterior)) if weight is None else weight


def _estimate(states: States, likelihood: Floats, weight: Floats, sd: float) -> _Estimate:
    """Return the mean log sharpness and the shares of behaviors with the largest posterior."""
    log_sharpness = np.log(states.beta)
    mean, behavior, before = 0.0, states.start, -np.inf
    # At these levels, votes depend on the sharpness.
    depends = (states.eps + states.flip > 0.0).astype(np.float64)
    for _ in range(_MAX_ROUNDS):
        normal = np.exp(-0.5 * ((log_sharpness - mean) / sd) ** 2)
        beta = normal / normal.sum()
        by_behavior = beta @ likelihood
        total = by_behavior @ behavior
        log_posterior = inner(weight, np.log(total)) + inner(states.prior, np.log(behavior))
        log_posterior -= 0.5 * _PRIOR_ANNOTATORS * (mean / sd) ** 2
        if log_posterior - before < _TOL:
            break
        before = log_posterior
        count = (weight / total) @ (likelihood @ (depends * behavior)) * beta
        mean = inner(count, log_sharpness) / (count.sum() + _PRIOR_ANNOTATORS)
        behavior = behavior * ((weight / total) @ by_behavior) + states.prior
        behavior /= behavior.sum()
    return _Estimate(beta, behavior, log_posterior)
