"""Simulated groups: sizes, opinions that differ on some items, and refused options."""

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError


def test_groups_have_their_sizes_and_share_opinions_except_where_they_differ():
    simulated = at.simulate.groups(
        n_items=40, sizes={"x": 3, "y": 5, "z": 2}, differing_share=0.25, seed=1
    )
    assert np.bincount(simulated.group).tolist() == [3, 5, 2]
    assert simulated.differs.sum() == 10
    spread = np.ptp(simulated.distributions, axis=0).max(axis=1)
    assert (spread[simulated.differs] > 1e-6).all()
    assert (spread[~simulated.differs] < 1e-12).all()
    crowd = np.tensordot([0.3, 0.5, 0.2], simulated.distributions, axes=1)
    np.testing.assert_allclose(simulated.crowd.distribution, crowd)
    assert simulated.annotators["group"].to_pylist() == ["x"] * 3 + ["y"] * 5 + ["z"] * 2
    assert simulated.labels.covariates.annotators["group"].to_pylist()[-1] == "z"


def test_serious_labels_follow_the_opinion_of_the_group():
    simulated = at.simulate.groups(
        n_items=200,
        sizes={"x": 30, "y": 30},
        differing_share=1.0,
        spammer_share=0.0,
        least_reliability=1.0,
        seed=0,
    )
    labels = simulated.crowd.labels
    value = labels.scale.values[labels.category_of_label()]
    for code in (0, 1):
        of_group = simulated.group[labels.annotator] == code
        item = labels.item_of_label()[of_group]
        mean = np.bincount(item, value[of_group]) / np.bincount(item)
        own, other = (simulated.distributions[g] @ labels.scale.values for g in (code, 1 - code))
        assert np.corrcoef(mean, own)[0, 1] > 0.9
        assert np.corrcoef(mean, other)[0, 1] < 0.3


def test_a_shift_moves_all_items_of_a_group():
    simulated = at.simulate.groups(n_items=50, differing_share=0.0, shift=1.0, seed=3)
    scores = simulated.distributions @ np.arange(1.0, 6.0)
    difference = scores[0] - scores[1]
    assert (np.sign(difference) == np.sign(difference[0])).all()


def test_the_same_seed_gives_the_same_labels():
    one, other = (at.simulate.groups(n_items=20, labels_per_item=6, seed=5) for _ in range(2))
    assert one.labels.same_as(other.labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": {"x": 3}}, "sizes has 1 group"),
        ({"sizes": {"x": 3, "y": 0}}, r"sizes\['y'\] is 0"),
        ({"differing_share": 2}, "differing_share is 2"),
        ({"shift": -1.0}, "shift is -1.0"),
        ({"least_reliability": 0.2}, "least_reliability is 0.2"),
        ({"behavior": "lazy"}, "unknown behavior 'lazy'"),
        ({"labels_per_item": 400}, "labels_per_item .* is 400"),
    ],
)
def test_impossible_groups_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        at.simulate.groups(**options)
