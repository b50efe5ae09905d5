"""Bradley and Terry's model: closed forms, recovery, coverage, symmetries, and hard cases."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.models.pairs.crowds import comparisons, draw_votes
from tests.models.pairs.prompts import prompt_crowd

from annotruth import simulate
from annotruth.models.pairs import graph
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.registry import PAIR_MODELS, make_pair_estimator
from annotruth.models.pairs.score_model import PRIOR_SD, ScoreSteps

MODELS = [model for model in PAIR_MODELS if model in ("bradley-terry", "thurstone")]
TIE = {"bradley-terry": np.log(0.5), "thurstone": 0.3}


def fit(model, votes, **options):
    return make_pair_estimator(model, options).fit(votes).result_


def model_class(model):
    return type(make_pair_estimator(model, {}))


def test_many_votes_on_one_pair_give_their_log_odds():
    votes = comparisons([0] * 10_000, [1] * 10_000, [0] * 7500 + [1] * 2500, sides_known=False)
    score = fit("bradley-terry", votes).scores
    assert score.mean[0] - score.mean[1] == pytest.approx(np.log(3), abs=2e-3)
    difference = np.array([1.0, -1.0])
    variance = difference @ score.covariance @ difference
    assert variance == pytest.approx(1 / (10_000 * 0.75 * 0.25), rel=5e-3)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("has_ties", "sides_known"), [(True, True), (False, False)])
def test_the_fit_is_the_mode_of_the_posterior(model, has_ties, sides_known):
    cls, rng = model_class(model), np.random.default_rng(0)
    _, votes = draw_votes(cls, rng, n_items=5, n_votes=60, tie=TIE[model] if has_ties else None)
    votes = comparisons(votes.left, votes.right, votes.outcome, sides_known=sides_known)
    result = fit(model, votes, tol=1e-12)

    def minus_log_posterior(x):
        scores, side_bias, tie = x[:5], x[5], x[6]
        d = scores[votes.left] - scores[votes.right] + side_bias * sides_known
        p = cls.probabilities(d, tie if has_ties else None)[np.arange(len(d)), votes.outcome]
        prior = (scores**2).sum() / result.parameters["score_variance"][0]
        return (prior + (side_bias**2 + tie**2) / PRIOR_SD**2) / 2 - np.log(p).sum()

    start = np.r_[np.zeros(6), 0.1]
    best = minimize(minus_log_posterior, start, method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(result.scores.mean, best[:5], atol=1e-5)
    if sides_known:
        assert result.side_bias[0] == pytest.approx(best[5], abs=1e-5)
    if has_ties:
        assert result.parameters["tie"][0] == pytest.approx(best[6], abs=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_scores_side_bias_and_ties_are_recovered(model):
    cls, rng = model_class(model), np.random.default_rng(1)
    scores, votes = draw_votes(cls, rng, n_votes=20_000, side_bias=0.4, tie=TIE[model])
    result = fit(model, votes)
    assert np.abs(result.scores.mean - scores).max() < 0.1
    assert result.side_bias[0] == pytest.approx(0.4, abs=0.06)
    assert result.parameters["tie"][0] == pytest.approx(TIE[model], abs=0.06)
    assert result.history.converged


@pytest.mark.parametrize("model", MODELS)
def test_95_percent_intervals_cover_95_percent_of_scores(model):
    cls, rng = model_class(model), np.random.default_rng(2)
    covered = []
    for _ in range(60):
        scores, votes = draw_votes(cls, rng, n_items=20, side_bias=0.3, tie=TIE[model])
        low, high = fit(model, votes).scores.interval.T
        covered.extend((low <= scores) & (scores <= high))
    assert 0.93 < np.mean(covered) < 0.97


def test_one_vote_per_item_is_enough_to_converge():
    rng = np.random.default_rng(0)
    left = rng.integers(200, size=200)
    right = (left + rng.integers(1, 200, size=200)) % 200
    result = fit("bradley-terry", comparisons(left, right, rng.integers(2, size=200)), max_iter=100)
    assert result.converged
    assert np.abs(result.scores.mean).max() < 3.0


@pytest.mark.parametrize("model", MODELS)
def test_an_unbeaten_item_has_a_finite_score(model):
    votes = comparisons([0, 0, 0, 1, 2], [1, 2, 1, 2, 1], [0, 0, 0, 0, 0], sides_known=False)
    result = fit(model, votes)
    assert result.history.converged
    assert result.scores.rank[0] == 1
    assert 0.2 < result.scores.mean[0] < 5
    assert np.isfinite(result.scores.interval).all()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("outcome", [0, 1, 2])
def test_one_outcome_only_has_a_finite_fit(model, outcome):
    rng = np.random.default_rng(3)
    left = rng.integers(6, size=300)
    votes = comparisons(left, (left + rng.integers(1, 6, size=300)) % 6, np.full(300, outcome))
    result = fit(model, votes)
    assert result.history.converged
    assert np.isfinite(result.scores.interval).all()
    side_bias = result.side_bias
    assert np.isfinite(side_bias).all()
    assert np.sign(side_bias[0].round(6)) == {0: 1, 1: -1, 2: 0}[outcome]


@pytest.mark.parametrize("model", MODELS)
def test_parts_of_the_graph_are_fitted_as_if_alone(model):
    left, right = np.array([0, 0, 1, 3, 3, 4] * 30), np.array([1, 2, 2, 4, 5, 5] * 30)
    outcome = np.random.default_rng(4).integers(2, size=len(left))
    outcome[left == 0] = 0
    both = fit(model, comparisons(left, right, outcome, n_items=7, sides_known=False), tol=1e-10)
    assert both.part.tolist() == [0, 0, 0, 1, 1, 1, 2]
    for members in ([0, 1, 2], [3, 4, 5]):
        assert both.scores.mean[members].sum() == pytest.approx(0.0, abs=1e-9)
    # Only the uncertainty of the prior, which the parts share, relates them.
    across = both.scores.covariance[:3, 3:6]
    assert np.linalg.matrix_rank(across, tol=1e-9) <= 1
    never_compared = both.scores.sd[6]
    assert never_compared**2 == pytest.approx(both.parameters["score_variance"][0])


@pytest.mark.parametrize("model", MODELS)
def test_many_items_are_fitted_without_a_matrix(model, monkeypatch):
    _, votes = draw_votes(model_class(model), np.random.default_rng(7), tie=TIE[model])
    dense = fit(model, votes).scores
    monkeypatch.setattr(graph, "MAX_DENSE_ITEMS", 0)
    sparse = fit(model, votes).scores
    np.testing.assert_allclose(sparse.mean, dense.mean, atol=5e-3)
    np.testing.assert_allclose(sparse.sd, dense.sd, rtol=0.15)


@pytest.mark.parametrize("model", MODELS)
def test_every_step_raises_the_posterior_of_the_same_prior(model):
    cls, rng = model_class(model), np.random.default_rng(8)
    _, votes = draw_votes(cls, rng, n_items=30, n_votes=100, side_bias=3.0, tie=TIE[model])
    steps = ScoreSteps(cls(), graph.count_pairs(votes), has_sides=True)
    parameters = steps.start()
    for _ in range(20):
        before = steps.log_posterior(parameters)
        parameters, monitor = steps.step(parameters)
        assert monitor.objective >= before - 1e-9


@pytest.mark.parametrize("model", MODELS)
def test_predictions_are_probabilities_and_the_same_for_everybody(model):
    _, votes = draw_votes(model_class(model), np.random.default_rng(9), tie=TIE[model])
    estimator = make_pair_estimator(model, {}).fit(votes)
    zeros = np.zeros(3, np.int64)
    p = estimator.predict_proba(zeros, np.array([1, 1, 2]), np.array([-1, 0, 5]))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p[0], p[1])


def test_intervals_are_clustered_by_context():
    """Fewer contexts that matter make wider intervals; the model of independent votes does not know."""
    few, many = (
        BradleyTerry().fit(prompt_crowd(n_contexts=n, n_annotators=30, seed=2).comparisons).result_
        for n in (12, 300)
    )
    assert few.scores.sd.mean() > 1.5 * many.scores.sd.mean()
    data = many.data
    alone = BradleyTerry().fit(replace(data, contexts=None, context=None)).result_
    np.testing.assert_array_equal(many.scores.mean, alone.scores.mean)


def test_items_of_one_context_each_are_not_clustered():
    made = simulate.comparers(n_items=60, n_annotators=20, n_contexts=20, seed=1).comparisons
    alone = BradleyTerry().fit(replace(made, contexts=None, context=None)).result_
    np.testing.assert_array_equal(BradleyTerry().fit(made).result_.scores.sd, alone.scores.sd)
