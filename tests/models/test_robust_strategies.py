"""Response strategies of RobustGPM, and the list of irregular behaviors."""

import warnings

import numpy as np
import pytest

import annotruth as at
from annotruth import simulate
from annotruth.models.robust_gpm import strategies as strategies_module
from annotruth.models.robust_gpm.strategies import (
    IRREGULAR_BEHAVIORS,
    Behavior,
    LabelTable,
    find_repeated_labels,
    tabulate_strategies,
)


def random_serious(n_shifts=3, n_categories=4, n_classes=6):
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(n_categories), (n_shifts, n_classes)).transpose(0, 2, 1)


def test_labels_of_a_strategy_are_distributions():
    strategies = tabulate_strategies(random_serious(), np.array([0.2, 0.5, 0.3]), ordinal=True)
    other, repeated = strategies.probability
    # Over all labels, the second of which is the repeated one.
    total = other.sum(axis=1) - other[:, 1] + repeated[:, 1]
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)
    assert np.exp(strategies.log_prior(0.4)).sum() == pytest.approx(1.0)


def test_a_label_of_an_annotator_with_unknown_strategy_is_serious_by_bayes_rule():
    strategies = tabulate_strategies(random_serious(1), np.ones(1), ordinal=False)
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(strategies.n_strategies), size=3)
    repeated_label = np.array([1, 3, 0])
    found = strategies.label_is_serious(weights, repeated_label)
    for s, n, z in np.ndindex(found.shape):
        probability, p_serious = (
            (table.repeated if n == repeated_label[s] else table.other)[:, n, z]
            for table in (strategies.probability, strategies.p_serious)
        )
        after_label = weights[s] * probability / (weights[s] @ probability)  # of the strategies
        assert found[s, n, z] == pytest.approx(after_label @ p_serious)


def test_strategies_combine_levels_behaviors_and_shifts():
    strategies = tabulate_strategies(random_serious(5), np.full(5, 0.2), ordinal=True)
    n_behaviors, (levels, is_level) = len(strategies.behaviors), strategies.by_reliability()
    # Levels up to 0.5 have no shifts, those above have five, and the always serious one behavior.
    expected = np.where(levels < 0.5, n_behaviors, 5 * n_behaviors)
    expected[-1] = strategies.always_serious.sum()
    assert is_level.sum(axis=0).tolist() == expected.tolist()
    assert expected[-1] == 5
    assert set(strategies.shift[strategies.reliability < 0.5]) == {2}
    nominal = tabulate_strategies(random_serious(1), np.ones(1), ordinal=False)
    assert [behavior.name for behavior in nominal.behaviors] == ["random", "repeated"]


@pytest.mark.parametrize("behavior", IRREGULAR_BEHAVIORS, ids=lambda behavior: behavior.name)
def test_behaviors_are_distributions(behavior):
    serious = random_serious()[0]
    other = behavior.distribution(serious)
    repeated = (behavior.repeated_label or behavior.distribution)(serious)
    for label in range(4):
        total = other.sum(axis=0) - other[label] + repeated[label]
        np.testing.assert_allclose(total, 1.0)


def test_the_prior_weight_of_a_repeated_label_is_shared_by_all_labels():
    strategies = tabulate_strategies(random_serious(1), np.ones(1), ordinal=True)
    level = strategies.reliability == strategies.reliability.min()
    prior = np.exp(strategies.log_prior(0.5))[level]
    expected = np.array(
        [b.prior_weight / (1 if b.repeated_label is None else 4) for b in strategies.behaviors]
    )
    np.testing.assert_allclose(prior / prior.sum(), expected / expected.sum())


def test_tables_use_the_repeated_label_of_each_annotator():
    rng = np.random.default_rng(1)
    table = LabelTable(rng.random((5, 3, 2)), rng.random((5, 3, 2)))
    repeated_label = np.array([2, 0])
    weights, counts = rng.random((2, 5)), rng.random((2, 3, 2))
    mean, total = table.average(weights, repeated_label), table.total(counts, repeated_label)
    for s, label in enumerate(repeated_label):
        own = table.other.copy()
        own[:, label] = table.repeated[:, label]
        np.testing.assert_allclose(mean[s], np.einsum("g,gnk->nk", weights[s], own))
        np.testing.assert_allclose(total[s], np.einsum("nk,gnk->g", counts[s], own))


def test_the_repeated_label_is_the_one_most_above_the_crowd():
    counts = np.array([[50, 50], [70, 30], [95, 5]])
    for break_ties in (True, False):
        repeated = find_repeated_labels(counts, break_ties=break_ties)
        np.testing.assert_array_equal(repeated, [1, 1, 0])


def test_labels_that_are_repeated_alike_are_not_decided_by_their_order():
    counts = np.array([[4, 4, 1], [1, 1, 4]])
    np.testing.assert_array_equal(find_repeated_labels(counts, break_ties=True), [0, 2])
    np.testing.assert_array_equal(find_repeated_labels(counts, break_ties=False), [-1, 2])


def test_irregular_behaviors_are_named():
    crowd = simulate.crowd(behavior="mixed", mixing="annotator", spammer_share=0.4, seed=2)
    fit = at.fit(crowd.labels, "robust-gpm")
    spammers = np.flatnonzero(fit.spammer)
    assert len(spammers) >= 4
    assert (crowd.reliability[spammers] < 0.6).all()
    n_right = 0
    for s in spammers:
        behavior = crowd.behavior[s]
        label = f" {crowd.repeated_label[s] + 1}" if behavior == "repeated" else ""
        n_right += fit.behavior[s] == behavior + label
    assert n_right >= len(spammers) - 1
    serious = [fit.behavior[s] for s in np.flatnonzero(crowd.reliability >= 0.95)]
    assert len(serious) > 1
    assert set(serious) <= {"serious", "generous", "harsh"}


def extremes(serious):
    ends = np.zeros_like(serious)
    ends[[0, -1]] = 0.5
    return ends


def test_a_behavior_is_added_by_adding_one_object(monkeypatch):
    crowd = simulate.crowd(n_items=100, n_annotators=12, behavior="random", seed=1)
    rng = np.random.default_rng(0)
    rows = [*crowd.labels.to_arrow().select(["item", "annotator", "label"]).to_pylist()]
    rows = [(row["item"], str(row["annotator"]), row["label"]) for row in rows]
    rows += [(item, "clicker", int(rng.choice([1, 5]))) for item in range(1, 101)]
    added = Behavior("extremes", 0.05, extremes, ordinal_only=True)
    monkeypatch.setattr(strategies_module, "IRREGULAR_BEHAVIORS", (*IRREGULAR_BEHAVIORS, added))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        table = at.fit(rows, "robust-gpm", truth="opinions").annotators()
    assert table.set_index("annotator").behavior["clicker"] == "extremes"
