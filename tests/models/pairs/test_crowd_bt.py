"""CrowdBT: the optimum of its objective, recovery of reliabilities, and symmetries."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from tests.models.pairs.crowds import comparisons, draw_votes

from annotruth.errors import InputError
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.crowd_bt import CrowdBT


def crowd(seed, n_inverted=0, **options):
    """Return true scores, and votes of which the first annotators' are turned around."""
    scores, votes = draw_votes(BradleyTerry, np.random.default_rng(seed), **options)
    annotator = votes.annotator_of_comparison()
    turned = (annotator < n_inverted) & (votes.outcome < 2)
    outcome = np.where(turned, 1 - votes.outcome, votes.outcome)
    return scores, comparisons(votes.left, votes.right, outcome, annotator)


def test_the_fit_is_the_mode_of_the_published_objective():
    _, votes = crowd(0, n_inverted=2, n_items=5, n_votes=200, n_annotators=6)
    fit = CrowdBT(tol=1e-12, reliability_prior_b=2.0, max_iter=10_000).fit(votes).result_
    annotator = votes.annotator_of_comparison()
    sign = np.where(votes.outcome == 0, 1.0, -1.0)

    def loss(x):
        scores, eta = x[:5], expit(x[5:])
        p = expit(sign * (scores[votes.left] - scores[votes.right]))
        votes_part = np.log(eta[annotator] * p + (1 - eta[annotator]) * (1 - p)).sum()
        virtual = (np.log(expit(scores)) + np.log(expit(-scores))).sum()
        return -votes_part - virtual - (9 * np.log(eta) + np.log(1 - eta)).sum()

    best = minimize(loss, np.r_[fit.scores.mean, np.full(6, 1.0)], options={"gtol": 1e-8}).x
    np.testing.assert_allclose(fit.scores.mean, best[:5] - best[:5].mean(), atol=1e-4)
    np.testing.assert_allclose(fit.reliability, expit(best[5:]), atol=1e-4)


def test_the_objective_rises_at_every_step():
    _, votes = crowd(1, n_inverted=4, tie=0.0)
    objective = CrowdBT().fit(votes).result_.history.objective
    assert (np.diff(objective) > -1e-9).all()


@pytest.mark.parametrize("tie", [None, -0.5])
def test_inverted_annotators_have_a_low_reliability_and_do_no_harm(tie):
    scores, votes = crowd(2, n_inverted=6, n_votes=4000, tie=tie)
    fit = CrowdBT().fit(votes).result_
    assert fit.spammer.tolist() == [True] * 6 + [False] * 14
    assert np.corrcoef(fit.scores.mean, scores)[0, 1] > 0.98
    assert (
        np.corrcoef(fit.scores.mean, scores)[0, 1]
        > np.corrcoef(BradleyTerry().fit(votes).result_.scores.mean, scores)[0, 1]
    )


def test_intervals_cover_most_scores():
    covered = []
    for seed in range(40):
        scores, votes = crowd(seed, n_items=15, n_votes=3000, n_annotators=10, n_inverted=2)
        low, high = CrowdBT().fit(votes).result_.scores.interval.T
        covered.extend((low <= scores) & (scores <= high))
    assert 0.85 < np.mean(covered) < 0.97  # the uncertainty of eta is left out


def test_predictions_depend_on_the_annotator():
    _, votes = crowd(5, n_inverted=1, tie=0.0)
    model = CrowdBT().fit(votes)
    best, worst = np.argmax(model.result_.scores.mean), np.argmin(model.result_.scores.mean)
    p = model.predict_proba(np.full(3, best), np.full(3, worst), np.array([0, 1, -1]))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p[0, 0] < 0.5 < p[2, 0] < p[1, 0]
    assert p[0, 2] == pytest.approx(p[1, 2])


def test_bad_options_are_refused():
    _, votes = crowd(6)
    for options, message in (
        ({"regularization": 0.0}, "regularization must be above 0"),
        ({"reliability_prior_b": 0.5}, "reliability_prior_b must be 1 or more"),
        ({"reliability_prior_a": np.inf}, "reliability_prior_a must be 1 or more, and finite"),
    ):
        with pytest.raises(InputError, match=message):
            CrowdBT(**options).fit(votes)
