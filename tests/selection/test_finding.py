"""The finding of a comparison, on scores whose differences are known."""

import numpy as np
import pytest

from annotruth.models.registry import MODELS, SIMPLEST_FIRST
from annotruth.selection.choose import find_simplest
from annotruth.selection.heldout import HeldOut

N = 400


def scores(**behind):
    """Scores of models that are behind the first by some standard errors of the difference."""
    rng = np.random.default_rng(0)
    base = -1.0 + 0.1 * rng.normal(size=N)
    noise = rng.normal(size=N)
    noise -= noise.mean()
    item, annotator = np.arange(N), np.arange(N) % 20
    made = {}
    for name, errors in behind.items():
        name = name.replace("_", "-")
        unit = HeldOut("", 0.01 * noise, item, annotator, 0, True).standard_error
        log_p = base if errors == 0 else base - 0.01 * noise - errors * unit
        made[name] = HeldOut(name, log_p, item, annotator, 0, True)
    return made


def test_every_model_has_a_place_in_the_order_of_simplicity():
    assert sorted(SIMPLEST_FIRST) == sorted(MODELS)


def test_a_simpler_model_within_one_standard_error_is_recommended():
    found = find_simplest(scores(robust_gpm=0, dawid_skene=0.5, majority=0.9))
    assert found.model == "majority"
    assert found.sentence == (
        "majority predicts held-out labels as well as the best model (robust-gpm): the difference "
        "is within one standard error"
    )


def test_a_simpler_model_beyond_one_standard_error_is_not():
    found = find_simplest(scores(robust_gpm=0, dawid_skene=0.5, majority=1.1))
    assert found.model == "dawid-skene"


def test_a_clear_winner_is_named_with_the_distance_to_the_next():
    found = find_simplest(scores(robust_gpm=0, dawid_skene=3.1, majority=5))
    assert found == (
        "robust-gpm",
        "robust-gpm predicts held-out labels best, 3.1 standard errors ahead of dawid-skene",
    )


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ({"gpm": 0.5}, "1 less simple model is within"),
        ({"gpm": 0.5, "ebcc": 0.6, "glad": 2.0}, "2 less simple models are within"),
    ],
)
def test_the_best_model_may_be_the_simplest_of_several(others, text):
    found = find_simplest(scores(majority=0, **others))
    assert found.model == "majority"
    assert text in found.sentence


def test_the_same_difference_on_every_label_has_no_standard_error():
    best, other = scores(gpm=0, majority=0).values()
    other = HeldOut("majority", best.log_p - 0.5, best.item, best.annotator, 0, True)
    assert "more than 100 standard errors" in find_simplest({"gpm": best, "majority": other})[1]


def test_one_item_is_too_few_to_compare_models():
    made = [
        HeldOut(name, np.array([p, p]), np.zeros(2, int), np.arange(2), 0, True)
        for name, p in (("gpm", -1.0), ("majority", -2.0))
    ]
    found = find_simplest({one.model: one for one in made})
    assert found.model == "majority"
    assert "too few items or annotators" in found.sentence


def test_a_single_model_is_the_only_one():
    found = find_simplest(scores(gpm=0))
    assert found == ("gpm", "gpm is the only model that could be compared")
