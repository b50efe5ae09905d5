"""The posterior of each annotator's state, and the evidence for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.comparisons.table import Comparisons
from annotruth.engines import Input, Pass, Sum
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.pairs.pair_gpm.parameters import PairGPMParameters, make_model
from annotruth.models.pairs.pair_gpm.state_shares import StateShares
from annotruth.models.pairs.pair_gpm.states import ALWAYS_TIE, RANDOM, SERIOUS, SIDES, States
from annotruth.models.pairs.pair_gpm.steps import PairGPMSteps

_SIDE_PRECISION = 1.0  # of the prior of an annotator's side bias, around the crowd's


class StatePosterior(NamedTuple):
    """Posterior probabilities of the levels of annotators' states, one row per annotator.

    Examples
    --------
    >>> StatePosterior._fields[:4]
    ('group', 'beta', 'nu', 'behavior')
    """

    group: Floats
    beta: Floats
    nu: Floats
    behavior: Floats
    given_scores: Floats
    """Of behaviors, with the probabilities of states estimated given the scores; what follows, too."""
    evidence: Floats
    """Votes and expected votes, as `annotruth.kernels.pairs.gpm_results.posteriors` has them."""
    p_serious: Floats
    """One per comparison."""


def annotator_posterior(
    steps: PairGPMSteps, parameters: PairGPMParameters, given_scores: StateShares | None = None
) -> StatePosterior:
    """Return the posterior of every annotator; without other shares, those of the parameters."""
    session, states = steps.session, steps.states
    ratios = np.ones(len(states.beta)), np.ones(len(states.eps))
    if given_scores is not None:
        ratios = (
            given_scores.beta / np.exp(states.log_beta),
            given_scores.behavior / parameters.behavior,
        )
    widths = {
        "by_group": len(parameters.group),
        "by_beta": len(states.beta),
        "by_nu": len(states.nu),
        "by_behavior": len(states.eps),
        "given_scores": len(states.eps),
        "evidence": 8,
    }
    for name, width in widths.items():
        session.allocate(name, per="annotators", shape=(width,))
    session.allocate("p_serious", per="comparisons")
    one = Pass(
        "pairs.gpm_results.posteriors",
        state=("active", "favoured", "covariates", *widths, "p_serious"),
        inputs=(Input("model"), Input("beta_ratio"), Input("behavior_ratio")),
        sums=(Sum("totals", (1,)),),
    )
    beta_ratio, behavior_ratio = ratios
    session.run_pass(
        one,
        model=make_model(states, parameters),
        beta_ratio=beta_ratio,
        behavior_ratio=behavior_ratio,
    )
    return StatePosterior(*(session.collect(name) for name in (*widths, "p_serious")))


def chance_posterior(
    posterior: StatePosterior, states: States, data: Comparisons
) -> StatePosterior:
    """Return the posterior of annotators whose votes agree no better than chance.

    With equal scores, votes say who always votes for a side or a tie, but not who else is serious:
    there, probabilities of behaviors fall linearly with the reliability.
    """
    names = np.array(states.behavior)
    is_fixed = np.isin(names, [*SIDES, ALWAYS_TIE]) & (states.eps < SPAMMER_BELOW)
    prior = np.where(np.isin(names, [SERIOUS, RANDOM]), 1.0 - states.eps, 0.0)
    behavior = np.where(is_fixed, posterior.behavior, 0.0)
    rest = 1.0 - behavior.sum(axis=1, keepdims=True)
    behavior += rest * prior / prior.sum()
    p_serious = data.zeros(data.n_comparisons)  # on disk where the comparisons are
    for s, reliability in enumerate(behavior @ states.eps):
        p_serious[data.annotator_ptr[s] : data.annotator_ptr[s + 1]] = reliability
    return posterior._replace(given_scores=behavior, p_serious=p_serious)


def side_biases(
    steps: PairGPMSteps, parameters: PairGPMParameters, posterior: StatePosterior
) -> Floats:
    """Return each annotator's side bias and its standard deviation: annotators x 2.

    Where sides are not known, there is none: zeros.
    """
    if not steps.data.sides_known:
        return np.zeros((steps.data.n_annotators, 2))
    session, states = steps.session, steps.states
    session.allocate("bias", per="annotators", shape=(2,))
    session.put("sharpness", posterior.beta @ states.beta, per="annotators")
    session.put("tie", posterior.nu @ states.nu, per="annotators")
    session.put("group", posterior.group.argmax(axis=1), per="annotators")
    one = Pass(
        "pairs.gpm_results.side_bias",
        state=("bias", "sharpness", "tie", "group", "covariates"),
        inputs=(Input("model"), Input("precision")),
    )
    session.run_pass(one, model=make_model(states, parameters), precision=_SIDE_PRECISION)
    value, information = session.collect("bias").T
    return np.stack([value, 1.0 / np.sqrt(information)], axis=1)
