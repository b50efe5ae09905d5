"""The share of divided items, where the model assumes one right label per item."""

import numpy as np
import pytest

import annotruth as at
from annotruth.analyses.advice.advice import basis_of
from annotruth.analyses.advice.latent_classes import estimate_divided
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.observations import Labels


def test_the_share_of_divided_items_is_estimated(three_kinds_of_items):
    basis = basis_of(at.fit(three_kinds_of_items(2, ordinal=False)))
    assert basis.divided_share == pytest.approx(1 / 3, abs=0.06)


def test_without_divided_items_the_share_is_near_zero(classes):
    labels, _ = classes(1, per_item=10)
    assert basis_of(at.fit(labels)).divided_share < 0.02


def test_opinions_and_single_categories_have_no_divided_class(three_kinds_of_items):
    rows = three_kinds_of_items(0, ordinal=True)
    assert basis_of(at.fit(rows, truth="opinions")).divided_share == 0
    assert basis_of(at.fit([("a", "x", "one"), ("b", "x", "one")])).divided_share == 0


def test_annotators_are_not_blamed_for_divided_items(three_kinds_of_items):
    labels = Labels.of(three_kinds_of_items(2, ordinal=False))
    model = RobustGPM().fit(labels)
    classes = model.latent_classes()
    corrected, _ = estimate_divided(labels, classes)
    serious = model.result_.reliability > 0.5
    before, after = (np.einsum("snn->s", each.confusion) / 5 for each in (classes, corrected))
    assert after[serious].mean() > before[serious].mean() + 0.1
    np.testing.assert_allclose(corrected.confusion.sum(axis=1), 1.0, atol=1e-9)
