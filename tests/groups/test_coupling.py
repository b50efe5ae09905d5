"""Inference about items and groups: equal to a sum over all states, one by one."""

from itertools import product

import numpy as np
import pytest

from annotruth.analyses.groups.coupling import (
    Coupling,
    GroupItems,
    Messages,
    class_kernels,
    opinion_kernels,
)
from annotruth.models.robust_gpm.opinions import OpinionShapes
from annotruth.observations import Labels

N_STATES = 3


@pytest.fixture
def problem():
    """Two items: three groups label the first, one group and somebody without one the second."""
    labels = Labels.of(
        [
            *[("a", "ann", 1), ("a", "bob", 2), ("a", "eve", 2), ("a", "dan", 1)],
            *[("b", "ann", 2), ("b", "kim", 1)],
        ]
    )
    group = np.array([0, 1, 2, 0, -1])
    pairs = GroupItems.of(labels, group, n_groups=3)
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(N_STATES))
    kernels = np.stack([np.eye(N_STATES), np.tile(prior, (N_STATES, 1))])
    coupling = Coupling(np.array([[0.3, 0.7], [0.6, 0.4], [0.5, 0.5]]), agreed_share=0.4)
    likelihood = rng.uniform(size=(len(pairs.item), N_STATES))
    messages = Messages.of(pairs, coupling, kernels, likelihood, np.log(np.tile(prior, (2, 1))))
    return pairs, prior, coupling, kernels, likelihood, messages


def enumerate_item(item, pairs, prior, coupling, kernels, likelihood):
    """Return the joint probability of agreement, state of the item, states of its pairs, kernels."""
    rows = np.flatnonzero(pairs.item == item)
    n_kernels = len(kernels)
    found = []
    for agreed, z in product((True, False), range(N_STATES)):
        for states in product(range(N_STATES), repeat=len(rows)):
            for used in product(range(n_kernels), repeat=len(rows)):
                p = prior[z] * (coupling.agreed_share if agreed else 1.0 - coupling.agreed_share)
                for row, state, kernel in zip(rows, states, used, strict=True):
                    group = pairs.group[row]
                    if agreed or group < 0:
                        p *= float(kernel == 0) * float(state == z)
                    else:
                        p *= coupling.kernel_weights[group, kernel] * kernels[kernel, z, state]
                    p *= likelihood[row, state]
                found.append((agreed, z, states, used, p))
    return rows, found


def test_pairs_are_items_with_the_groups_that_labelled_them(problem):
    pairs = problem[0]
    assert list(zip(pairs.item.tolist(), pairs.group.tolist(), strict=True)) == [
        *[(0, 0), (0, 1), (0, 2)],
        *[(1, -1), (1, 0)],
    ]
    assert pairs.labels.labels_per_item.tolist() == [2, 1, 1, 1, 1]
    assert pairs.n_groups_of_item.tolist() == [3, 1]


def test_posteriors_and_evidence_are_sums_over_all_states(problem):
    pairs, prior, coupling, kernels, likelihood, messages = problem
    posterior, items = messages.posterior(), messages.item_posterior()
    for item in (0, 1):
        rows, found = enumerate_item(item, pairs, prior, coupling, kernels, likelihood)
        total = sum(p for *_, p in found)
        assert messages.log_evidence[item] == pytest.approx(np.log(total))
        differing = sum(p for agreed, *_, p in found if not agreed)
        assert messages.p_differing()[item] == pytest.approx(differing / total)
        for z in range(N_STATES):
            assert items[item, z] == pytest.approx(
                sum(p for _, s, *_, p in found if s == z) / total
            )
            for place, row in enumerate(rows):
                share = sum(p for *_, states, _, p in found if states[place] == z) / total
                assert posterior[row, z] == pytest.approx(share)


def test_kernel_counts_are_sums_over_all_states(problem):
    pairs, prior, coupling, kernels, likelihood, messages = problem
    expected = np.zeros_like(coupling.kernel_weights)
    for item in (0, 1):
        rows, found = enumerate_item(item, pairs, prior, coupling, kernels, likelihood)
        total = sum(p for *_, p in found)
        for agreed, _, _, used, p in found:
            for row, kernel in zip(rows, used, strict=True):
                if pairs.group[row] >= 0 and not agreed:
                    expected[pairs.group[row], kernel] += p / total
    np.testing.assert_allclose(messages.kernel_counts(kernels, coupling.kernel_weights), expected)


def test_kernels_are_distributions_and_narrow_ones_stay_near():
    labels = Labels.of([("a", f"x{n}", n) for n in (1, 2, 3, 4, 5)])
    shapes = OpinionShapes(labels)
    prior = np.full(shapes.n_classes, 1.0 / shapes.n_classes)
    kernels = opinion_kernels(prior, shapes)
    np.testing.assert_allclose(kernels.sum(axis=2), 1.0)
    far = np.abs(shapes.positions - shapes.positions[:, np.newaxis])
    distances = [(kernel * far).sum(axis=1).mean() for kernel in kernels]
    assert distances == sorted(distances)
    assert distances[0] == 0.0

    classes = class_kernels(np.full(4, 0.25), np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(classes.sum(axis=2), 1.0)
    np.testing.assert_allclose(classes[1, 0], [0.5, 0.5, 0.0, 0.0])
