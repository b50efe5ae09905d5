"""What is known of annotators from earlier work."""

import numpy as np
import pandas as pd
import pytest

from annotruth.errors import InputError
from annotruth.labels import Labels

LABELS = [("a", "ann", 1), ("a", "bob", 2), ("b", "cy", 1)]


def record(data):
    return Labels.of(LABELS).with_record(data).record


def test_labels_of_a_record_are_serious_or_not():
    told = pd.DataFrame({"annotator": ["cy", "ann"], "reliability": [0.5, 0.9], "n_labels": 20})
    np.testing.assert_allclose(record(told), [[18, 2], [0, 0], [10, 10]])


def test_a_mapping_counts_as_ten_labels():
    np.testing.assert_allclose(record({"bob": 0.3}), [[0, 0], [3, 7], [0, 0]])


def test_an_interval_says_how_much_a_record_counts():
    told = pd.DataFrame(
        {"annotator": ["ann"], "reliability": 0.5, "n_labels": 500, "low": 0.304, "high": 0.696}
    )
    # A deviation of 0.1 is that of 25 labels.
    np.testing.assert_allclose(record(told)[0], [12.5, 12.5])


def test_a_record_counts_for_a_hundred_labels_at_most():
    told = pd.DataFrame({"annotator": ["ann"], "reliability": [1.0], "n_labels": [10**6]})
    np.testing.assert_allclose(record(told)[0], [100, 0])


def test_people_who_gave_no_label_are_left_out():
    np.testing.assert_allclose(record({"ann": 1.0, "zoe": 0.0}).sum(), 10)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"zoe": 0.5}, "none of the annotators"),
        ({"ann": 1.5}, "annotator 'ann' a reliability of 1.5"),
        ({"ann": None}, "'reliability' of the record must hold a number"),
        (pd.DataFrame({"annotator": ["ann"], "score": [1]}), "no column 'reliability'"),
        (pd.DataFrame({"who": ["ann"], "reliability": [1]}), "no column for the annotator"),
        (
            pd.DataFrame({"annotator": ["ann", "ann"], "reliability": [0.5, 0.6]}),
            "names an annotator twice",
        ),
    ],
)
def test_a_bad_record_is_refused(told, message):
    with pytest.raises(InputError, match=message):
        record(told)
