"""The published program's iteration, compared with the paper's equations."""

import numpy as np

from annotruth import simulate
from annotruth.observations import Labels
from annotruth.paper.measures import fit_gpm, run_published_program

# Two items, two annotators: item 1 has labels a and b, item 2 has a twice.
LABELS = [(1, "x", "a"), (1, "y", "b"), (2, "x", "a"), (2, "y", "a")]


def test_both_iterations_have_the_same_fixed_point_with_many_labels():
    labels = simulate.crowd(n_items=60, n_annotators=60, seed=4).labels
    ours = fit_gpm(labels, {"iteration": "paper", "max_iter": 1000})
    theirs = run_published_program(labels, max_iter=5000, tol=1e-7)
    assert theirs.converged
    np.testing.assert_allclose(theirs.reliability, ours.reliability, atol=0.02)
    np.testing.assert_allclose(theirs.distribution.sum(axis=1), 1.0)


def test_first_step_by_hand():
    estimate = run_published_program(Labels.of(LABELS), max_iter=1)
    # Shares are 1/2 on item 1 and 1 on item 2, so mu = .25/(.25+.25) and .5/(.5+.25).
    np.testing.assert_allclose(estimate.reliability, [(1 / 2 + 2 / 3) / 2] * 2)
    np.testing.assert_allclose(estimate.distribution, [[0.5, 0.5], [1.0, 0.0]])
    assert not estimate.converged


def test_divisor_is_that_of_the_previous_step():
    # The second step sees theta = 1/2 and 4/3 of item 1 and 2: sums of mu, divided by 1.
    estimate = run_published_program(Labels.of(LABELS), max_iter=2)
    eps = (1 / 2 + 2 / 3) / 2
    mu = [eps * theta / (eps * theta + (1 - eps) / 2) for theta in (1 / 2, 4 / 3)]
    np.testing.assert_allclose(estimate.reliability, [sum(mu) / 2] * 2)
