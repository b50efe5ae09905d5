"""The prior of PairGPM's scores, whose mean depends on the number of comparisons."""

from contextlib import closing

import numpy as np
import pytest
from scipy.special import expit

from annotruth.comparisons import Comparisons
from annotruth.engines import get_engine
from annotruth.models.pairs.pair_gpm import steps as steps_module
from annotruth.models.pairs.pair_gpm.model import PairGPM
from annotruth.models.pairs.pair_gpm.parameters import states_for
from annotruth.models.pairs.pair_gpm.score_prior import independent_scores, make_score_prior
from annotruth.models.pairs.pair_gpm.steps import PairGPMSteps


def test_matrix_is_the_inverse_of_the_covariance() -> None:
    n_comparisons = np.array([2, 40, 7, 300, 1, 25])
    x = np.log(n_comparisons)
    x = (x - x.mean()) / x.std()
    prior = make_score_prior(n_comparisons, np.zeros(6, dtype=np.int64))
    expected = np.linalg.inv(np.eye(6) + np.outer(x, x))
    np.testing.assert_allclose(prior.matrix(1), expected, atol=1e-12)
    theta = np.random.default_rng(0).standard_normal((2, 6))
    np.testing.assert_allclose(prior.times(theta), theta @ expected, atol=1e-12)
    assert prior.square(theta) == pytest.approx((theta @ expected * theta).sum())
    np.testing.assert_allclose(
        prior.matrix(2) @ theta.ravel(), prior.times(theta).ravel(), atol=1e-12
    )


def test_numbers_count_within_a_part_only() -> None:
    """Which part is compared more often says nothing: scores of parts are not comparable."""
    by_part = make_score_prior(np.array([3, 3, 90, 90]), np.array([0, 0, 1, 1]))
    np.testing.assert_array_equal(by_part.u, 0.0)
    never = make_score_prior(np.array([4, 8, 0]), np.array([0, 0, 1]))
    assert never.u[2] == 0.0
    assert never.u[1] == pytest.approx(-never.u[0])
    assert never.u[1] > 0.0


def test_step_has_the_gradient_of_the_log_posterior() -> None:
    data, _ = crowd(slope=0.7, n_votes=300)
    with closing(get_engine("memory").open(data)) as session:
        steps = PairGPMSteps(data, session, states_for(data))
        theta = 2.0 * np.log(np.maximum(data.comparisons_per_item, 1))[np.newaxis]
        at = steps.start_at(theta - theta.mean(), np.zeros(1))
        gradient = steps.sums(at)["gradient"] - steps.precision * steps.prior.times(at.theta)
        for place in (0, 5):
            values = []
            for move in (1e-4, -1e-4):
                moved = at.theta.copy()
                moved[0, place] += move
                there = at._replace(theta=moved)
                values.append(steps._log_posterior(there, steps.sums(there)))
            slope = (values[0] - values[1]) / 2e-4
            assert gradient[0, place] == pytest.approx(slope, abs=1e-3)
        independent = steps.sums(at)["gradient"] - steps.precision * at.theta
        assert np.abs(independent - gradient).max() > 0.5


def crowd(*, slope: float, n_votes: int = 900, seed: int = 0) -> tuple[Comparisons, np.ndarray]:
    """Return votes on pairs of which some are compared far more often, and the true scores."""
    rng = np.random.default_rng(seed)
    n_items, n_annotators = 60, 40
    x = rng.standard_normal(n_items)
    scores = slope * x + 0.5 * rng.standard_normal(n_items)
    share = np.exp(1.2 * x) / np.exp(1.2 * x).sum()
    left = np.concatenate([np.arange(n_items), rng.choice(n_items, n_votes, p=share)])
    right = rng.choice(n_items, len(left), p=share)
    left, right = left[left != right], right[left != right]
    outcome = rng.random(len(left)) > expit(scores[left] - scores[right])
    annotator = rng.integers(n_annotators, size=len(left))
    items, annotators = list(range(n_items)), list(range(n_annotators))
    data = Comparisons.from_codes(
        left, right, annotator, outcome.astype(int), items=items, annotators=annotators
    )
    return data, scores - scores.mean()


def errors_with_both_priors(monkeypatch: pytest.MonkeyPatch, slope: float) -> list[float]:
    """Return the root mean square errors of scores: with this prior, and with independent scores."""
    found = []
    for prior in (make_score_prior, lambda n_comparisons, part: independent_scores(len(part))):
        monkeypatch.setattr(steps_module, "make_score_prior", prior)
        squares = []
        for seed in range(4):
            data, scores = crowd(slope=slope, seed=seed)
            squares.append((PairGPM().fit(data).result_.scores.mean - scores) ** 2)
        found.append(float(np.sqrt(np.mean(squares))))
    return found


def test_items_that_are_compared_more_often_may_be_better(monkeypatch: pytest.MonkeyPatch) -> None:
    learned, independent = errors_with_both_priors(monkeypatch, slope=1.0)
    assert learned < 0.9 * independent


def test_where_they_are_not_little_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    learned, independent = errors_with_both_priors(monkeypatch, slope=0.0)
    assert learned < 1.05 * independent
