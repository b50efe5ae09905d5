"""The shares of items in each shape of opinion."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import annotruth as at
from annotruth.models.robust_gpm.opinions import ShapeShares


@pytest.mark.parametrize("n_means", [[16, 16], [16, 16, 28]])
def test_the_estimate_has_the_highest_posterior(n_means):
    rng = np.random.default_rng(0)
    shares, n = ShapeShares(n_means), sum(n_means)
    counts = rng.gamma(0.3, 20.0, n)

    def loss(logs):
        normalised = logs - logsumexp(logs)
        return -(counts @ normalised) - shares.log_prior(np.exp(normalised))

    best = minimize(loss, np.zeros(n), method="BFGS", options={"gtol": 1e-6, "maxiter": 2_000})
    # From two starts, of which one is far away.
    for start in (np.full(n, 1 / n), np.where(np.arange(n) == 3, 1.0, 1e-12)):
        estimate = shares.estimate(counts, start / start.sum())
        assert estimate.sum() == pytest.approx(1.0)
        assert loss(np.log(estimate)) <= best.fun + 1e-6
        np.testing.assert_allclose(estimate, np.exp(best.x - logsumexp(best.x)), atol=1e-4)


def test_log_linear_shares_are_not_penalised():
    shares = ShapeShares([16, 16])
    rising = np.exp(0.3 * np.concatenate([np.arange(16), np.arange(16)[::-1]]))
    rising[16:] *= 5.0  # shares of a concentration are free
    counts = 1_000 * rising / rising.sum() - 0.2
    estimate = shares.estimate(counts, np.full(32, 1 / 32))
    np.testing.assert_allclose(estimate, rising / rising.sum(), rtol=1e-9)


def test_one_peak_is_spread_over_its_neighbours_unless_there_are_many_items():
    shares, start = ShapeShares([16]), np.full(16, 1 / 16)
    counts = np.where(np.arange(16) == 8, 1.0, 0.0)
    few, many = (shares.estimate(n * counts, start) for n in (20, 20_000))
    assert few[8] < 0.6
    assert few[[7, 9]].min() > 0.1
    assert many[8] > 0.98


def test_the_curvature_of_shares_does_not_depend_on_the_number_of_means():
    def log_prior(n):
        logs = -0.5 * (np.linspace(0, 1, n) - 0.5) ** 2 / 0.2**2
        shares = ShapeShares([n])
        logs -= logsumexp(logs)
        return shares.log_prior(np.exp(logs)) - 0.2 * logs.sum()

    assert log_prior(200) == pytest.approx(log_prior(100), rel=0.05)


def test_scores_of_annotators_with_few_labels_each():
    errors, inside = [], []
    for seed in range(6):
        simulated = at.simulate.crowd(
            behavior="mixed",
            mixing="annotator",
            n_items=300,
            n_annotators=300,
            labels_per_item=5,
            seed=seed,
        )
        fit = at.RobustGPM(truth="opinions").fit(simulated.labels).result_
        errors.append(((fit.expectation - simulated.score) ** 2).mean())
        low, high = (np.asarray(fit.item_columns[f"score_{end}"]) for end in ("low", "high"))
        inside.append(((low <= simulated.score) & (simulated.score <= high)).mean())
    # With 0.2 pseudo-items per shape alone 0.53, in intervals that cover less.
    assert np.mean(errors) < 0.48
    assert 0.94 < np.mean(inside) < 0.985
