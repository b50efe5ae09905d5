"""BWA: the Bayesian weighted average."""

from contextlib import closing

import numpy as np
import pytest
from tests.models.fitting import CLASSES
from tests.models.fitting import WORDS as TABLE

import annotruth as at
from annotruth.engines import get_engine
from annotruth.observations import Labels


def scores(weight, mean):
    """Return z[item, class] by the equation."""
    found = {}
    for item in "abc":
        for k in CLASSES:
            given = [(weight[s, k], r == k) for e, s, r in TABLE if e == item]
            total = 1.0 + sum(v for v, _ in given)
            found[item, k] = (mean[k] + sum(v for v, right in given if right)) / total
    return found


def updated(z):
    """Return the weights and means that follow from scores, with the prior of the votes."""
    votes = {
        (item, k): np.mean([r == k for e, _, r in TABLE if e == item])
        for item in "abc"
        for k in CLASSES
    }
    z = votes if z is None else z
    weight = {}
    for k in CLASSES:
        variance = sum(((r == k) - votes[e, k]) ** 2 for e, _, r in TABLE) / len(TABLE)
        for s in "xyz":
            errors = [((r == k) - z[e, k]) ** 2 for e, by, r in TABLE if by == s]
            prior = 15.0 * 4.0 * (2.0 / 3.0) * variance
            weight[s, k] = (15.0 + len(errors)) / (prior + sum(errors))
    return weight, {k: sum(z[e, k] for e in "abc") / 3 for k in CLASSES}


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_two_steps_by_hand(engine):
    labels = Labels.of(TABLE, categories=list(CLASSES))
    with closing(get_engine(engine).open(labels)) as session:
        steps = at.BWA()._steps(labels, session)
        parameters = steps.start()
        expected = updated(None)
        for _ in range(2):
            for s, row in zip("xyz", parameters.weight, strict=True):
                assert row == pytest.approx([expected[0][s, k] for k in CLASSES])
            assert parameters.mean == pytest.approx([expected[1][k] for k in CLASSES])
            parameters, _ = steps.step(parameters)
            expected = updated(scores(*expected))


def test_the_distribution_is_the_scores_as_shares():
    labels = Labels.of(TABLE, categories=list(CLASSES))
    fit = at.BWA(tol=1e-12).fit(labels).result_
    weight = {
        (s, k): fit.parameters["weight"][i, j]
        for i, s in enumerate(fit.data.annotators.to_pylist())
        for j, k in enumerate(CLASSES)
    }
    z = scores(weight, dict(zip(CLASSES, fit.parameters["mean"], strict=True)))
    for row, e in zip(fit.distribution.dense(3), fit.data.items.to_pylist(), strict=True):
        total = sum(z[e, k] for k in CLASSES)
        assert row == pytest.approx([z[e, k] / total for k in CLASSES])


def test_weights_are_in_the_order_of_accuracies():
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=2000)
    accuracy = np.array([0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    rows = [
        (e, s, int(t if rng.random() < a else (t + rng.integers(1, 3)) % 3))
        for e, t in enumerate(truth)
        for s, a in enumerate(accuracy)
    ]
    fit = at.BWA().fit(Labels.of(rows, scale="nominal")).result_
    weight = fit.annotator_columns["weight"]
    assert (np.diff(weight) < 0).all()
    assert (np.diff(fit.reliability) < 0).all()
    votes = at.fit(Labels.of(rows, scale="nominal"), "majority")
    assert np.mean(fit.label == truth) > np.mean(votes.label == truth)


def test_annotators_who_all_agree_have_finite_weights():
    fit = at.BWA().fit([(e, s, e % 2) for e in range(6) for s in "ab"]).result_
    assert np.isfinite(fit.annotator_columns["weight"]).all()
    assert fit.label.tolist() == [0, 1, 0, 1, 0, 1]
    assert fit.reliability == pytest.approx(1.0, abs=1e-4)
