"""A fall of agreement is found once, and chance fluctuations are not taken for one."""

import numpy as np
import pytest

from annotruth.observations import Labels
from annotruth.observations.scale import Scale
from annotruth.serve.worker.alerting import AgreementState, find_agreement_change


def labels_in_order(seed, *, n_items=300, n_annotators=20, per_item=5, fall_at=None, shifts=False):
    """Item, annotator and label codes of a crowd; from some label on, all are less accurate."""
    rng = np.random.default_rng(seed)
    accuracy = rng.beta(8.0, 3.0, n_annotators)
    item = np.repeat(np.arange(n_items), per_item)
    annotator = np.concatenate(
        [rng.choice(n_annotators, per_item, replace=False) for _ in range(n_items)]
    )
    order = rng.permutation(len(item))
    if shifts:  # the most accurate half works first
        order = np.lexsort((order, accuracy[annotator] < np.median(accuracy)))
    item, annotator = item[order], annotator[order]
    right = accuracy[annotator]
    if fall_at is not None:
        right = right - 0.4 * (np.arange(len(item)) >= fall_at)
    truth = rng.integers(4, size=n_items)[item]
    label = np.where(rng.random(len(item)) < right, truth, rng.integers(4, size=len(item)))
    return item, annotator, label


def changes_found(codes, n_looks=25):
    state, found = AgreementState(), []
    for n in np.linspace(100, len(codes[0]), n_looks).astype(int):
        item, annotator, label = (column[:n] for column in codes)
        _, item = np.unique(item, return_inverse=True)
        _, annotator = np.unique(annotator, return_inverse=True)
        labels = Labels.from_codes(
            item,
            annotator,
            label,
            items=np.arange(item.max() + 1),
            annotators=np.arange(annotator.max() + 1),
            scale=Scale.nominal(list("abcd")),
        )
        state, change = find_agreement_change(labels, np.arange(1, n + 1), state)
        if change is not None:
            found.append((n, change))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_fall_is_found_once(seed):
    ((n, change),) = changes_found(labels_in_order(seed, fall_at=800))
    assert 800 < n < 1300
    assert change.fell
    assert change.high < 0.0


def test_chance_is_rarely_taken_for_a_change():
    assert sum(bool(changes_found(labels_in_order(seed))) for seed in range(100, 130)) <= 3


def test_a_change_of_shifts_is_no_change():
    found = [changes_found(labels_in_order(seed, shifts=True)) for seed in range(200, 212)]
    assert sum(any(change.fell for _, change in each) for each in found) <= 1


def test_few_labels_are_not_compared():
    labels = Labels.of([("a", "x", 1), ("a", "y", 2), ("b", "x", 1)])
    state, change = find_agreement_change(labels, np.arange(3), AgreementState())
    assert state == AgreementState()
    assert change is None
