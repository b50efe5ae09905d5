"""How GPM's sums follow a reliability: against the plain twin, and against EM itself."""

import numpy as np
import pytest

from annotruth.kernels import gpm, gpm_response
from annotruth.kernels.reference import gpm_response as reference


@pytest.mark.parametrize("learned", [False, True])
def test_response_equals_its_twin(make_labels, learned):
    rng = np.random.default_rng(1)
    labels = make_labels(rng, n_items=60, n_annotators=9, n_categories=4)
    labels.known[::7] = 1
    theta, eps = rng.random(labels.n_cells), rng.random(9)
    theta[::5] = 1e-5
    pi = rng.random((9, 4)) if learned else np.zeros((0, 0))
    results = []
    for response in (gpm_response.response, reference.response):
        sums = np.zeros(9), np.zeros(9), np.zeros(pi.shape)
        response(labels.block(), 0, 60, theta, eps, pi, 0.25, *sums)
        results.append(sums)
    for fast, plain in zip(*results, strict=True):
        np.testing.assert_allclose(fast, plain, rtol=1e-10)


def test_the_slope_is_that_of_em_with_the_items_following(make_labels):
    labels = make_labels(np.random.default_rng(2), n_items=40, n_annotators=12, n_categories=3)
    none = np.zeros((0, 0))

    def settled(eps):
        theta = np.zeros(labels.n_cells)
        gpm.start(labels.block(), 0, 40, theta)
        for _ in range(3_000):
            sums = np.zeros(12), none, np.zeros(2)
            gpm.step(labels.block(), 0, 40, theta, eps, none, 1 / 3, *sums)
        return theta, sums[0]

    eps = np.full(12, 0.5)
    theta, _ = settled(eps)
    serious, slope = np.zeros(12), np.zeros(12)
    gpm_response.response(labels.block(), 0, 40, theta, eps, none, 1 / 3, serious, slope, none)
    up, down = (settled(eps + sign * 1e-4 * (np.arange(12) == 5))[1][5] for sign in (1, -1))
    assert slope[5] == pytest.approx((up - down) / 2e-4, rel=1e-3)
