"""What is known about annotators from earlier work."""

import numpy as np
import pandas as pd
import pytest

from annotruth.errors import InputError
from annotruth.observations import Labels

LABELS = [("a", "ann", 1), ("a", "bob", 2), ("b", "cy", 1)]


def pseudo_counts(prior):
    return Labels.of(LABELS).with_annotator_prior(prior).annotator_prior


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        ({"annotator": ["cy", "ann"], "reliability": [0.5, 0.9], "n_labels": 20},
         [[18, 2], [0, 0], [10, 10]]),
        # The interval: a standard deviation of 0.1 is that of 25 labels.
        ({"annotator": ["ann"], "reliability": 0.5, "n_labels": 500, "low": 0.304, "high": 0.696},
         [[12.5, 12.5], [0, 0], [0, 0]]),
        ({"annotator": ["ann"], "reliability": [1.0], "n_labels": [10**6]},  # at most a hundred
         [[100, 0], [0, 0], [0, 0]]),
    ],
)  # fmt: skip
def test_a_prior_counts_as_serious_and_irregular_labels(prior, expected):
    np.testing.assert_allclose(pseudo_counts(pd.DataFrame(prior)), expected)


def test_a_mapping_counts_as_ten_labels():
    np.testing.assert_allclose(pseudo_counts({"bob": 0.3}), [[0, 0], [3, 7], [0, 0]])


def test_annotators_without_labels_are_ignored():
    np.testing.assert_allclose(pseudo_counts({"ann": 1.0, "zoe": 0.0}).sum(), 10)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ({"zoe": 0.5}, "none of the annotators"),
        ({"ann": 1.5}, "annotator 'ann' a reliability of 1.5"),
        ({"ann": None}, "'reliability' of the annotator prior must hold a number"),
        (pd.DataFrame({"annotator": ["ann"], "score": [1]}), "no column 'reliability'"),
        (pd.DataFrame({"who": ["ann"], "reliability": [1]}), "no column for the annotator"),
        (
            pd.DataFrame({"annotator": ["ann", "ann"], "reliability": [0.5, 0.6]}),
            "name annotator 'ann' twice: keep one row per annotator",
        ),
    ],
)
def test_bad_priors_are_refused(prior, message):
    with pytest.raises(InputError, match=message):
        pseudo_counts(prior)
