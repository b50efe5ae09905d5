"""Known truths are matched with items, or refused."""

import datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from annotruth.errors import AnnotruthWarning, InputError
from annotruth.observations import Labels
from annotruth.observations.truth import match_truth


@pytest.fixture
def labels() -> Labels:
    """Items 7, 8, 9 with labels 1, 2, 4 of 1..5."""
    return Labels.of([(7, "a", 1), (8, "a", 2), (9, "a", 4)], categories=range(1, 6))


@pytest.mark.parametrize(
    "gold",
    [
        {9: 5, 7: 1},
        {"9": "5", "7": "1"},
        {9.0: 5.0, 7.0: 1.0},
        pd.Series([5, 1], index=[9, 7]),
        pd.Series(["5", "1"], index=["9", "7"]),
        pd.DataFrame({"item": [9, 7], "label": [5, 1]}),
        pd.DataFrame({"task": ["9", "7"], "truth": ["5.0", "1.0"], "note": [1, "x"]}),
        pd.DataFrame({"item": pd.Categorical([9, 7]), "label": pd.Categorical([5, 1])}),
        pl.DataFrame({"question": [9, 7], "truth": [5, 1]}),
        pl.LazyFrame({"item": ["9", "7"], "rating": [5, 1]}),
        pl.DataFrame({"item": pl.Series(["9", "7"], dtype=pl.Categorical), "label": [5, 1]}),
        pa.table({"item": pa.array([9, 7], pa.uint8()), "answer": [5, 1]}),
        pa.table({"item": pa.chunked_array([["9"], ["7"]]), "label": [5, 1]}),
    ],
    ids=lambda gold: type(gold).__name__,
)
def test_gold_may_be_a_frame_a_mapping_or_a_series(labels, gold):
    known = labels.with_gold(gold).known
    assert known.tolist() == [0, -1, 4]
    assert (labels.known == -1).all()


def test_columns_of_the_gold_can_be_named(labels):
    gold = pd.DataFrame({"item": [0], "id": [8], "is": [3]})
    known = labels.with_gold(gold, columns={"item": "id", "truth": "is"}).known
    assert known.tolist() == [-1, 2, -1]


@pytest.mark.parametrize(
    ("ids", "gold"),
    [
        (["007", "7"], {"007": "x"}),
        (["a,b", "c"], {"a,b": "x"}),
        ([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)], {"2024-01-01": "x"}),
        ([1.5, 2.0], {"1.5": "x"}),
        ([True, False], {True: "x"}),
        ([1e300, 1.0], {1e300: "x"}),
        ([2**60 + 1, 2**60], {2**60 + 1: "x"}),
        (["1" * 30, "2" * 30], {int("1" * 30): "x"}),
    ],
)
def test_ids_of_different_types_match_as_text(ids, gold):
    labels = Labels.of([(item, "a", label) for item, label in zip(ids, "xy", strict=True)])
    assert labels.with_gold(gold).known.tolist() == [0, -1]


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({10: 1, 11: 1}, r"no item of the gold has labels \(first: 10, 2 in all\): check"),
        ({"07": 1}, "first: '07', 1 in all"),
        ({1e300: 1}, r"first: 1e\+300, 1 in all"),
        ({7: 6}, "names label 6, which is not among the categories 1, 2, 3, 4, 5"),
        ({7: "good"}, "names label 'good', which is not among"),
        (
            {7: 1.5},
            r"label 1\.5, which is not among the categories 1, 2, 3, 4, 5: correct it, or list",
        ),
        (pd.DataFrame({"item": [8, 7, 7], "label": [1, 2, 2]}), "names item 7 twice: keep one"),
        ({7: 1, "7": 1}, "mixes int and str"),
        ({7: None}, "without an item or a label"),
        ({7: float("nan")}, "without an item or a label"),
        ({7: ""}, "without an item or a label"),
        (pd.DataFrame({"item": [None], "label": [1]}), "without an item or a label"),
        ({}, "the gold has no rows"),
        (pd.DataFrame({"item": [7]}), "no column for the truth .*name it 'label'"),
        (
            pd.DataFrame({"a17": ["b3"], "cat": ["dog"]}),
            r"\(found: a17, cat\); name them 'item' and 'label', in the first row$",
        ),
        (pd.DataFrame({"item": [7], "label": [1], "truth": [1]}), "'label' and 'truth' could both"),
        ({7: [1]}, "column 'label' holds values of type list"),
        (pd.Series([1], index=pd.MultiIndex.from_tuples([(7, 8)])), "column 'item' holds"),
        ([(7,)], r"row 1 is \(7,\)"),
        (5, "cannot read labels from int"),
    ],
)
def test_bad_gold_is_refused(labels, gold, message):
    with pytest.raises(InputError, match=message) as caught:
        labels.with_gold(gold)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({10: 1, 9: 5, 7: 1, 11: 99}, "^2 of 4 gold truths are of items without labels and were"),
        ({"9": 5, "7": 1, "seven": 1}, "^1 of 3 gold truths is of an item without labels and was"),
        (
            pd.DataFrame({"item": [9, 10, 7, 10], "label": [5, 1, 1, 2]}),
            "^2 of 4 gold truths are of items without labels",
        ),
    ],
)
def test_truths_of_items_without_labels_are_left_out_and_counted(labels, gold, message):
    with pytest.warns(AnnotruthWarning, match=message):
        known = labels.with_gold(gold).known
    assert known.tolist() == [0, -1, 4]


def scores(labels: Labels, *truths) -> list[float]:
    ids = labels.items.to_pylist()[: len(truths)]
    truth = match_truth(dict(zip(ids, truths, strict=True)), labels, role="truth")
    return truth.scores().tolist()


def test_scores_may_lie_between_numeric_categories(labels):
    assert scores(labels, 1, 3.4, 5.0) == [1, 3.4, 5]
    assert scores(labels, "2.5", "1") == [2.5, 1]
    for outside in (0.9, 5.1, -1):
        with pytest.raises(InputError, match=rf"score {outside:g}, outside the scale 1 to 5"):
            scores(labels, 2, outside)


def test_scores_follow_the_values_of_the_scale_or_the_places_of_text(labels):
    fractions = Labels.of([(1, "a", -2), (2, "a", 0.5)])
    assert scores(fractions, -2, 0.5) == [-2, 0.5]
    assert scores(fractions, 0) == [0]
    words = Labels.of([(1, "a", "bad"), (2, "a", "good")], categories=["bad", "fair", "good"])
    assert scores(words, "good", "fair") == [3, 2]
    for data, truth in ((words, "great"), (labels, "good")):
        with pytest.raises(InputError, match=f"'{truth}', which is not among the categories"):
            scores(data, truth)
    with pytest.raises(InputError, match="no item of the truth has labels"):
        match_truth({1: 1}, labels, role="truth")


def test_codes_are_negative_where_a_truth_is_not_a_category(labels):
    truth = match_truth({7: 1, 8: 2.5, 9: 9}, labels, role="truth")
    assert truth.codes().tolist() == [0, -1, -1]
    assert truth.item.tolist() == [0, 1, 2]


@pytest.mark.parametrize("gold", [{"a": 2}, [("a", 2)], (["a", 2],), [{"item": "a", "label": 2}]])
def test_known_truths_are_a_mapping_pairs_or_dicts(gold):
    labels = Labels.of([("a", "x", 1), ("a", "y", 1), ("b", "x", 2)])
    assert labels.with_gold(gold).known.tolist() == [1, -1]
    with pytest.raises(InputError, match=r"row 1 is \('a', 2, 3\): each must be \(item, label\)"):
        labels.with_gold([("a", 2, 3)])
