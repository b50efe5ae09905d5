"""Tests of items and groups: false discoveries, power, and the parts by hand."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control

import annotruth as at
from annotruth.analyses.groups.differences import (
    Evidence,
    LikelihoodRatios,
    find_differences,
    group_values,
    item_values,
)


def test_values_of_groups_are_ranks_of_the_largest_statistic():
    rng = np.random.default_rng(0)
    level, opinions = rng.normal(size=(2, 40, 3))
    opinions[0, 1] = 100.0  # the second group stands out, in one respect
    p_value, q_value = group_values(level, opinions)
    assert (p_value[1], q_value[1]) == (1 / 40, 2 / 40)
    assert (q_value[[0, 2]] > 0.1).all()
    standardised = [(each - each.mean(axis=0)) / each.std(axis=0) for each in (level, opinions)]
    largest = np.maximum(*standardised)
    of_any = (largest.max(axis=1)[:, np.newaxis] >= largest[0]).mean(axis=0)
    np.testing.assert_allclose(q_value, np.minimum(2 * of_any, 1.0))
    np.testing.assert_allclose(p_value, (largest >= largest[0]).mean(axis=0))


def test_the_first_of_equal_statistics_is_no_discovery():
    p_value, q_value = group_values(np.ones((40, 2)), np.zeros((40, 2)))
    assert (p_value == 1.0).all()
    assert (q_value == 1.0).all()


def test_p_values_are_ranks_among_all_permutations():
    permuted = [np.array([0.0, 1.0, -np.inf]), np.array([2.0, 3.0, 4.0])]
    p_value, _ = item_values(np.array([3.0, 10.0]), permuted)
    # 3, 10 and the five finite ones
    np.testing.assert_allclose(p_value, [4 / 7, 1 / 7])


def test_no_q_value_is_below_the_share_of_permutations_with_one_as_small():
    rng = np.random.default_rng(0)
    permuted = [rng.normal(size=50) for _ in range(39)]
    _, usual = item_values(rng.normal(size=50), permuted)
    assert (usual > 0.05).all()
    _, unusual = item_values(np.append(rng.normal(size=45), np.full(5, 12.0)), permuted)
    assert unusual.min() == pytest.approx(2 / 40)
    # Four of 40 data sets are as unusual, each in a manner of its own: Benjamini and Hochberg's
    # procedure alone finds discoveries in all of them.
    for place, (level, n) in enumerate([(13.0, 5), (14.0, 2), (15.0, 1)]):
        permuted[place][:n] = level
    observed = np.append(rng.normal(size=40), np.full(10, 12.0))
    p_value, q_value = item_values(observed, permuted)
    assert false_discovery_control(p_value).min() < 0.05
    assert q_value.min() == pytest.approx(2 * 4 / 40)


def test_ratios_are_high_on_items_that_differ_and_ignore_who_has_no_group():
    simulated = at.simulate.groups(n_items=60, differing_share=0.5, seed=2)
    labels = simulated.labels
    ratios = LikelihoodRatios(labels, Evidence.of(at.fit(labels)), n_groups=2)
    found = ratios.of(simulated.group)
    differs = simulated.differs
    assert found.items[differs].mean() > found.items[~differs].mean() + 1.0
    swapped = ratios.of(1 - simulated.group)
    np.testing.assert_allclose(swapped.items, found.items, rtol=1e-4)
    np.testing.assert_allclose(swapped.groups, found.groups[::-1], rtol=1e-4)
    nobody = ratios.of(np.where(simulated.group == 0, -1, simulated.group))
    assert np.isneginf(nobody.items).all()


@pytest.fixture(scope="module")
def shifted():
    """A group that is generous on all items, and differs on some."""
    return at.simulate.groups(
        n_items=120,
        sizes={"x": 25, "y": 25},
        differing_share=0.3,
        labels_per_item=24,
        spammer_share=0.0,
        least_reliability=0.9,
        shift=0.7,
        seed=4,
    )


def test_items_and_groups_that_differ_are_found(shifted):
    labels = shifted.labels
    found = find_differences(at.fit(labels), shifted.group, n_groups=2)
    differs = shifted.differs[found.items]
    discovered = found.q_value <= 0.05
    assert discovered.sum() >= 8
    assert (discovered & ~differs).sum() <= 0.15 * discovered.sum()
    assert (found.group_q_value <= 0.05).all()
    scores = shifted.distributions.mean(axis=1) @ labels.scale.values
    assert np.sign(found.level[0]) == np.sign(scores[0] - scores[1])


def test_permuted_groups_are_not_found_to_differ(shifted):
    labels = shifted.labels
    evidence = Evidence.of(at.fit(labels, truth="opinions"))
    ratios = LikelihoodRatios(labels, evidence, n_groups=2)
    rng = np.random.default_rng(0)
    n_any, n_sets = 0, 40
    pool = [ratios.of(rng.permutation(shifted.group)).items for _ in range(n_sets + 60)]
    for k in range(n_sets):
        _, q_value = item_values(pool[k], pool[n_sets:])
        n_any += (q_value <= 0.05).any()
    assert n_any <= 5  # of 40, with 2 expected
