"""The correlation of two judges, and what their labels count."""

import numpy as np
import pytest
from tests.machines.crowds import class_labels, opinion_labels

import annotruth as at
from annotruth.analyses.machines.dependence import (
    Judge,
    holm,
    judge_model,
    judge_weights,
    label_kernel,
    measure_dependence,
)

MACHINES = ["m0", "m1", "m2"]


def judges(seed, correlation, n=4000):
    """Return two judges of items whose state is known, and the posterior."""
    rng = np.random.default_rng(seed)
    state = rng.integers(2, size=n)
    confusion = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]).T

    def draw():
        return (rng.random((n, 1)) >= confusion.T[state].cumsum(axis=1)[:, :-1]).sum(axis=1)

    shared = draw()
    labels = [np.where(rng.random(n) < np.sqrt(correlation), shared, draw()) for _ in range(2)]
    posterior, right = np.eye(2)[state], np.eye(3)[[0, 2]]
    models = [
        judge_model(Judge(np.arange(n), label), confusion, posterior, right) for label in labels
    ]
    return models, posterior


@pytest.mark.parametrize("scale", [at.Scale.nominal(["a", "b", "c"]), at.Scale.ordinal([1, 2, 3])])
@pytest.mark.parametrize("correlation", [0.0, 0.4])
def test_the_correlation_is_recovered_where_states_are_known(scale, correlation):
    models, posterior = judges(4, correlation)
    found = measure_dependence(*models, posterior, label_kernel(scale))
    assert found.correlation == pytest.approx(correlation, abs=0.05)
    assert found.low < correlation < found.high
    assert (found.p_value < 1e-6) == (correlation > 0)
    expected = np.mean([0.7**2 + 0.2**2 + 0.1**2, 0.1**2 + 0.3**2 + 0.6**2])
    assert found.expected == pytest.approx(expected, abs=0.01)


def test_copies_have_correlation_one_and_few_common_items_say_nothing():
    (first, second), posterior = judges(1, 0.0, n=60)
    kernel = np.eye(3)
    copy = measure_dependence(first, first, posterior, kernel)
    assert (copy.correlation, copy.low, copy.high, copy.p_value) == (1.0, 1.0, 1.0, 0.0)
    nine = judge_model(
        Judge(second.judge.item[:9], second.judge.label[:9]),
        second.confusion, posterior, np.eye(3)[[0, 2]],
    )  # fmt: skip
    nothing = measure_dependence(first, nine, posterior, kernel)
    assert (nothing.n_items, nothing.p_value) == (9, 1.0)


def test_weights_of_copies_partial_dependence_and_overlap():
    ones = np.ones((5, 5))
    np.testing.assert_allclose(judge_weights(ones, 80 * ones, np.full(5, 80.0)), 0.2)
    correlation = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    n_common = np.array([[100.0, 50.0, 9.0], [50.0, 50.0, 9.0], [9.0, 9.0, 9.0]])
    weights = judge_weights(correlation, n_common, np.array([100.0, 50.0, 9.0]))
    np.testing.assert_allclose(weights, [1 / 1.25, 1 / 1.5, 1.0])


def test_holm_is_a_step_down_procedure():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    assert len(holm([])) == 0


def _pairs(labels, machines):
    fit = at.fit(labels, machines=machines)
    return fit.further_table("machines", "dependence").to_pydict()


@pytest.mark.parametrize("make", [class_labels, opinion_labels])
def test_dependent_machines_are_found(make):
    labels = make(11, correlation=0.6)
    machines = MACHINES if make is class_labels else [f"machine-{k}" for k in (1, 2, 3)]
    table = _pairs(labels, machines)
    assert all(table["dependent"])
    assert np.mean(table["correlation"]) == pytest.approx(0.6, abs=0.15)
    assert max(table["weight"]) < 0.65


@pytest.mark.parametrize("make", [class_labels, opinion_labels])
def test_independent_machines_keep_their_weight(make):
    machines = MACHINES if make is class_labels else [f"machine-{k}" for k in (1, 2, 3)]
    flagged = [any(_pairs(make(100 + seed), machines)["dependent"]) for seed in range(6)]
    assert sum(flagged) <= 1
