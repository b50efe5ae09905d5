"""Probabilities of annotators' states given the scores: random voters do not pass for serious ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from annotruth import simulate
from annotruth.engines import Input, Pass, get_engine
from annotruth.models.pairs.pair_gpm import state_shares
from annotruth.models.pairs.pair_gpm.model import PairGPM
from annotruth.models.pairs.pair_gpm.parameters import make_model, states_for
from annotruth.models.pairs.pair_gpm.results import name_behaviors
from annotruth.models.pairs.pair_gpm.states import RANDOM, make_states
from annotruth.models.pairs.pair_gpm.steps import PairGPMSteps
from annotruth.models.pairs.result import TOO_FEW_VOTES


def crowd(**options: object) -> simulate.ComparisonSimulation:
    settings = {"n_annotators": 100, "behavior": "random", "spammer_share": 0.3, "seed": 8101}
    return simulate.comparers(**{**settings, **options})


def test_the_kernel_equals_its_twin() -> None:
    data = crowd(n_items=5, n_annotators=4, tie_rate=0.5, coefficients={"x": 0.7}).comparisons
    theta = np.random.default_rng(0).standard_normal((2, data.n_items))
    found = []
    for engine in ("memory", "reference"):
        states = states_for(data)
        steps = PairGPMSteps(data, get_engine(engine).open(data), states, n_groups=2)
        at = steps.start_at(theta, np.array([0.3, -0.4]))
        steps.sums(at, prune=1e-3)
        shape = len(states.beta), len(states.eps)
        steps.session.allocate("joint", per="annotators", shape=shape)
        one = Pass(
            "pairs.gpm_results.joint_posteriors",
            state=("active", "favoured", "covariates", "joint"),
            inputs=(Input("model"),),
        )
        steps.session.run_pass(one, model=make_model(states, at))
        found.append(steps.session.collect("joint"))
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found[0].sum(axis=(1, 2)), 1.0)
    assert (found[0] == 0.0).any()  # levels that are left out


def test_random_voters_are_found_among_annotators_of_like_sharpness() -> None:
    made = crowd()
    fit = PairGPM().fit(made.comparisons).result_
    found, true = np.asarray(fit.spammer), made.is_spammer
    assert 2.0 * (found & true).sum() / (found.sum() + true.sum()) >= 0.8
    assert (found & ~true).sum() <= 3


def test_nobody_is_a_spammer_in_a_crowd_without_spammers() -> None:
    made = crowd(spammer_share=0.0, sharpness_spread=0.3)
    assert not np.asarray(PairGPM().fit(made.comparisons).result_.spammer).any()


@pytest.mark.parametrize(("counted", "share"), [(1.0, 0.3), (0.25, 0.1)])
def test_shares_and_the_mean_sharpness_are_recovered(counted: float, share: float) -> None:
    """Of 700 serious annotators with a log sharpness of 0.4, and 300 random ones who count less."""
    states = make_states(n_items=10, sided=False, tie_share=0.0)
    rng = np.random.default_rng(0)
    is_random = np.arange(1000) < 300
    log_sharpness = 0.4 + 0.3 * rng.standard_normal(1000)
    off = (np.log(states.beta)[np.newaxis] - log_sharpness[:, np.newaxis]) / 0.1
    likelihood = np.full((1000, len(states.beta), len(states.eps)), 1e-6)
    likelihood[~is_random, :, 0] += np.exp(-0.5 * off**2)[~is_random]
    never = states.behavior.index(RANDOM, int(np.argmin(states.eps)))
    likelihood[is_random, :, never] += 1.0
    weight = np.where(is_random, counted, 1.0)
    right = state_shares._estimate(states, likelihood, weight, 0.3)
    other = state_shares._estimate(states, likelihood, weight, 0.6)
    assert right.beta @ np.log(states.beta) == pytest.approx(0.4, abs=0.03)
    assert right.behavior[never] == pytest.approx(share, abs=0.01)
    assert right.log_posterior > other.log_posterior + 10.0


def test_a_sample_of_many_annotators_has_nearly_the_same_shares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = crowd(n_annotators=150, coefficients={"x": 0.5})
    whole = PairGPM().fit(made.comparisons).result_
    monkeypatch.setattr(state_shares, "_MAX_ANNOTATORS", 100)
    sampled = PairGPM().fit(made.comparisons).result_
    np.testing.assert_array_equal(sampled.scores.mean, whole.scores.mean)
    assert (sampled.reliability != whole.reliability).any()
    np.testing.assert_allclose(sampled.reliability, whole.reliability, atol=0.1)


def test_predictions_have_the_shares_of_estimation() -> None:
    """Of votes that scores were not fitted to, nobody's sharpness is overestimated."""
    made = crowd()
    estimator = PairGPM().fit(made.comparisons)
    names = np.array(states_for(made.comparisons).behavior)
    share = estimator.result_.parameters["behavior"][names == RANDOM].sum()
    assert share < 0.15 < np.mean(np.array(estimator.result_.behavior) == RANDOM)


def test_annotators_without_votes_have_results() -> None:
    data = crowd(n_annotators=10).comparisons
    more = dataclasses.replace(
        data,
        annotators=simulate.comparers(n_annotators=11, n_items=3).comparisons.annotators,
        annotator_ptr=np.append(data.annotator_ptr, data.n_comparisons),
    )
    fit = PairGPM().fit(more).result_
    assert fit.reliability is not None
    assert len(fit.reliability) == 11
    assert np.isfinite(fit.reliability).all()


def test_inverted_is_said_only_if_both_posteriors_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Votes of annotators who are called inverted are not used for the scores."""
    made = crowd(n_annotators=30, behavior="inverted", spammer_share=0.2)
    named = PairGPM().fit(made.comparisons).result_.behavior
    assert named is not None
    assert "inverted" in named

    def never_inverted(*arguments: object) -> list[str]:
        found = name_behaviors(*arguments)
        calls.append(found)
        return ["serious"] * len(found) if len(calls) == 2 else found

    calls: list[list[str]] = []
    monkeypatch.setattr("annotruth.models.pairs.pair_gpm.results.name_behaviors", never_inverted)
    undecided = PairGPM().fit(made.comparisons).result_.behavior
    assert undecided is not None
    assert "inverted" not in undecided
    assert undecided.count(TOO_FEW_VOTES) >= named.count("inverted")
