"""The published program's iteration beside the paper's equations."""

import numpy as np

from annotruth import simulate
from annotruth.paper import program
from annotruth.paper.measuring import gpm


def test_both_iterations_end_at_the_same_fixed_point_where_labels_are_many():
    labels = simulate.crowd(n_items=60, n_annotators=60, seed=4).labels
    ours = gpm(labels, {"iteration": "paper", "max_iter": 1000})
    theirs = program.iterate(labels, max_iter=5000, tol=1e-7)
    assert theirs.converged
    np.testing.assert_allclose(theirs.reliability, ours.reliability, atol=0.02)
    np.testing.assert_allclose(theirs.shares.sum(axis=1), 1.0)


def test_the_first_step_by_hand():
    # Two items, two people: item 1 gets a and b, item 2 gets a twice.
    from annotruth.labels import Labels

    labels = Labels.of([(1, "x", "a"), (1, "y", "b"), (2, "x", "a"), (2, "y", "a")])
    answer = program.iterate(labels, max_iter=1)
    # Shares are 1/2 on item 1 and 1 on item 2, so mu = .25/(.25+.25) and .5/(.5+.25).
    np.testing.assert_allclose(answer.reliability, [(1 / 2 + 2 / 3) / 2] * 2)
    np.testing.assert_allclose(answer.shares, [[0.5, 0.5], [1.0, 0.0]])
    assert not answer.converged


def test_its_divisor_is_the_one_of_the_step_before():
    # So the second step sees theta = 1/2 and 4/3 of item 1 and 2: sums of mu, divided by 1.
    from annotruth.labels import Labels

    labels = Labels.of([(1, "x", "a"), (1, "y", "b"), (2, "x", "a"), (2, "y", "a")])
    answer = program.iterate(labels, max_iter=2)
    eps = (1 / 2 + 2 / 3) / 2
    mu = [eps * theta / (eps * theta + (1 - eps) / 2) for theta in (1 / 2, 4 / 3)]
    np.testing.assert_allclose(answer.reliability, [sum(mu) / 2] * 2)
