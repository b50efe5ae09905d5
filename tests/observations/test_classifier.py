"""A classifier's probabilities, matched to the labels."""

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.errors import AnnotruthWarning, InputError
from annotruth.observations import Labels
from annotruth.observations.append import append_labels

LABELS = [("a", "ann", "dog"), ("a", "bob", "cat"), ("b", "cy", "dog"), ("c", "cy", "cat")]


def frame(**columns):
    table = {"item": ["c", "a"], "p_cat": [0.9, 0.2], "p_dog": [0.1, 0.8], **columns}
    return pd.DataFrame({name: column for name, column in table.items() if column is not None})


def matched(classifier, labels=LABELS):
    return Labels.of(labels).with_classifier(classifier).classifier


def by_category(predictions):
    names = Labels.of(LABELS).scale.names
    return {name: predictions[:, k].tolist() for k, name in enumerate(names)}


def test_rows_are_matched_by_item_and_columns_by_name():
    found = by_category(matched(frame()))
    np.testing.assert_allclose(found["dog"], [0.8, np.nan, 0.1])
    np.testing.assert_allclose(found["cat"], [0.2, np.nan, 0.9])


def test_columns_may_be_named_as_the_categories_and_come_in_any_order():
    named = frame().rename(columns={"p_cat": "cat", "p_dog": "dog"})[["dog", "item", "cat"]]
    np.testing.assert_array_equal(matched(named), matched(frame()))


def test_other_columns_are_ignored_beside_names_with_the_prefix():
    np.testing.assert_array_equal(matched(frame(label=["cat", "dog"])), matched(frame()))


def test_rounded_probabilities_are_normalised():
    rounded = matched(frame(p_cat=[0.333, 0.2], p_dog=[0.66, 0.8]))
    np.testing.assert_allclose(np.nansum(rounded, axis=1), [1, 0, 1])


def test_predictions_of_items_without_labels_are_counted():
    with pytest.warns(AnnotruthWarning, match="1 of 2 predictions of the classifier is of an item"):
        found = matched(frame(item=["c", "zebra"]))
    np.testing.assert_array_equal(np.isnan(found[:, 0]), [True, True, False])


def test_the_rows_of_an_array_are_the_items_of_a_matrix():
    matrix = np.array([[0.0, 1.0], [np.nan, np.nan], [1.0, np.nan]])
    probabilities = np.array([[0.9, 0.1], [0.5, 0.5], [0.3, 0.7]])
    with pytest.warns(AnnotruthWarning, match="1 of 3 predictions"):  # the second row has no label
        found = matched(probabilities, matrix)
    np.testing.assert_allclose(found, probabilities[[0, 2]])


def test_the_rows_of_an_array_are_the_rows_of_a_wide_frame():
    wide = pd.DataFrame(
        {"ann": list("xyxxyy"), "bob": [*"xyxyy", None], "cy": list("xyxxyx")},
        index=pd.Index(list("stuvwz"), name="item"),
    )
    p = np.array([0.9, 0.2, 0.7, 0.6, 0.3, 0.4])
    np.testing.assert_allclose(matched(np.column_stack([p, 1 - p]), wide)[:, 0], p)


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (frame(p_cat=None), "no column p_cat .found: p_dog.: it needs one column per category"),
        (frame(p_bird=[0.0, 0.0]), "columns for bird, which no label names.*'bird'"),
        (frame(p_cat=[0.9, None]), "column 'p_cat' of the classifier must hold a number"),
        (frame(p_cat=["high", "low"]), "column 'p_cat' of the classifier must hold a number"),
        (frame(p_cat=[0.9, -0.2]), "item 'a' are not all from 0 to 1"),
        (frame(p_cat=[0.9, np.inf]), "column 'p_cat' of the classifier must hold a number"),
        (frame(p_dog=[0.1, 3.0]), r"item 'a' sum to 3.2 .*softmax"),
        (frame(item=["a", "a"]), "names item 'a' twice"),
        (frame(item=["x", "y"]), "no item of the classifier has labels"),
        (frame(item=["a", None]), "a row without an item"),
        (frame(item=None), "no column for the item"),
        (frame().iloc[:0], "the classifier has no rows"),
        (np.ones((3, 3)) / 3, "shape 3 x 3"),
        (np.ones(3), "shape 3"),
        (np.ones((2, 2)) / 2, "2 rows for 3 items"),
    ],
)
def test_bad_tables_are_refused_in_one_line(classifier, message):
    with pytest.raises(InputError, match=message) as refused:
        matched(classifier)
    assert "\n" not in str(refused.value)


def test_other_orders_and_subsets_of_labels_keep_the_predictions_of_their_items():
    labels = Labels.of(LABELS).with_classifier(frame())
    part = labels.subset(labels.item_of_label() != 1)
    np.testing.assert_array_equal(part.classifier, labels.classifier[[0, 2]])
    order = labels.canonical_orders(keep_categories=False)[0]
    again = labels.reordered(order).labels
    for e, item in enumerate(again.items.to_pylist()):
        old = labels.classifier[labels.items.to_pylist().index(item)]
        by_name = dict(zip(labels.scale.names, old, strict=True))
        np.testing.assert_array_equal(
            again.classifier[e], [by_name[name] for name in again.scale.names]
        )


def test_new_items_have_no_prediction():
    base = Labels.of(LABELS).with_classifier(frame())
    added = append_labels(base, Labels.of([("d", "ann", "dog")])).table
    np.testing.assert_array_equal(added.classifier[:3], base.classifier)
    assert np.isnan(added.classifier[3]).all()


def test_a_table_in_a_file_is_read_as_any_other(tmp_path):
    labels = [(str(e), who, "xy"[e % 2]) for e in range(40) for who in "ab"]
    p = np.where(np.arange(40) % 2, 0.9, 0.1)
    table = pd.DataFrame({"item": range(40), "p_x": 1 - p, "p_y": p})
    table.to_parquet(tmp_path / "p.parquet")
    table.to_csv(tmp_path / "p.csv", index=False)
    for name in ("p.parquet", "p.csv"):
        fit = at.fit(labels, classifier=tmp_path / name)
        np.testing.assert_allclose(fit.data.classifier[:, 1], p)
