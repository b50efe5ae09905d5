"""How many items are divided, where one answer was thought right."""

import numpy as np
import pytest

from annotruth.advice.crowd import judge
from annotruth.advice.divided import admit_divided
from annotruth.labels import Labels
from annotruth.models.robust_gpm.model import RobustGPM


def test_the_share_of_divided_items_is_found(three_sorts):
    crowd = judge(Labels.of(three_sorts(2, ordinal=False)))
    assert crowd.divided == pytest.approx(1 / 3, abs=0.06)


def test_where_no_item_is_divided_hardly_any_is_thought_to_be(classes):
    labels, _ = classes(1, per_item=10)
    assert judge(labels).divided < 0.02


def test_opinions_and_single_categories_are_left_alone(three_sorts):
    assert judge(Labels.of(three_sorts(0, ordinal=True)), RobustGPM(truth="opinions")).divided == 0
    assert judge(Labels.of([("a", "x", "one"), ("b", "x", "one")])).divided == 0


def test_annotators_are_no_longer_blamed_for_divided_items(three_sorts):
    labels = Labels.of(three_sorts(2, ordinal=False))
    fit, kinds = RobustGPM().fit_with_kinds(labels)
    cleared, _ = admit_divided(labels, kinds)
    serious = fit.reliability > 0.5
    right = np.einsum("snn->s", kinds.rates) / 5, np.einsum("snn->s", cleared.rates) / 5
    assert right[1][serious].mean() > right[0][serious].mean() + 0.1
    np.testing.assert_allclose(cleared.rates.sum(axis=1), 1.0, atol=1e-9)
