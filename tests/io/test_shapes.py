"""Labels in other shapes than a long table are the same labels."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.observations import Labels

NAN = float("nan")
# Of cleanlab's shape: items x annotators.
MATRIX = np.array([[0, 1, NAN, 1], [2, NAN, 2, NAN], [1, 1, 0, 1], [NAN, 0, 2, 2]])
ROWS = [
    (item, annotator, int(MATRIX[item, annotator]))
    for item in range(4)
    for annotator in range(4)
    if MATRIX[item, annotator] == MATRIX[item, annotator]
]
WIDE = pd.DataFrame(MATRIX, columns=["ann", "bob", "cy", "dan"])
NAMED = [(item, ["ann", "bob", "cy", "dan"][annotator], label) for item, annotator, label in ROWS]


@pytest.mark.parametrize(
    "matrix",
    [
        MATRIX,
        np.where(np.isnan(MATRIX), -1, MATRIX).astype(int),
        np.ma.masked_invalid(MATRIX),
        np.array(pd.DataFrame(MATRIX).astype("Int64").replace({pd.NA: None}), dtype=object),
        MATRIX.astype(np.float32),
        pd.DataFrame(MATRIX),
    ],
    ids=["nan", "-1", "masked", "objects", "float32", "frame"],
)
def test_a_matrix_is_items_by_annotators(rows_of, matrix):
    labels = Labels.of(matrix)
    assert rows_of(labels) == ROWS
    assert labels.scale.names == ["0", "1", "2"]
    assert labels.read_as.startswith("matrix of items by annotators (4 rows by 4 columns, 4 ")


def test_a_matrix_of_text(rows_of):
    matrix = np.array([["cat", "dog"], ["cat", None], ["dog", "dog"]], dtype=object)
    assert rows_of(Labels.of(matrix))[:2] == [(0, 0, "cat"), (0, 1, "dog")]
    assert Labels.of(matrix).n_labels == 5


@pytest.mark.parametrize(
    ("frame", "library"),
    [
        (WIDE, "pandas"),
        (WIDE.astype("Int64"), "pandas"),
        (WIDE.astype("category"), "pandas"),
        (pl.DataFrame(WIDE), "polars"),
        (pl.LazyFrame(WIDE), "polars"),
        (pa.table({name: pa.array(WIDE[name], from_pandas=True) for name in WIDE}), "pyarrow"),
    ],
    ids=["float", "Int64", "category", "polars", "lazy", "pyarrow"],
)
def test_a_wide_frame_has_a_column_per_annotator(rows_of, frame, library):
    labels = Labels.of(frame)
    assert rows_of(labels) == NAMED
    assert labels.frame == library


@pytest.mark.parametrize(
    "frame",
    [
        WIDE.assign(item=list("wxyz")),
        WIDE.assign(ID=list("wxyz")),
        WIDE.set_axis(list("wxyz")),
        pl.DataFrame(WIDE.assign(stimulus=list("wxyz"))),
    ],
    ids=["item", "ID", "index", "polars"],
)
def test_items_of_a_wide_frame_have_names(rows_of, frame):
    assert rows_of(Labels.of(frame)) == [("wxyz"[item], *rest) for item, *rest in NAMED]


def test_three_columns_may_be_long_or_wide(rows_of):
    frame = pd.DataFrame({"a": [1, 2, 1, 2], "b": [1, 1, 2, 2], "c": [1, 2, 2, 1]})
    with pytest.raises(at.InputError) as caught:
        Labels.of(frame)
    assert str(caught.value) == (
        "columns 'a', 'b', 'c' may be the item, annotator and label, or three annotators: pass "
        "columns={'item': 'a', 'annotator': 'b', 'label': 'c'}, or name the items in a column 'item' or, in "
        "pandas, by frame.rename_axis('item')"
    )
    assert Labels.of(frame, columns={"item": "a", "annotator": "b", "label": "c"}).n_items == 2
    assert Labels.of(frame.rename_axis("item")).n_items == 4
    assert Labels.of(frame.set_axis(["rater_1", "rater_2", "rater_3"], axis=1)).n_items == 4
    assert Labels.of(frame.mask([[False, True, True], *[[False] * 3] * 3])).n_items == 4


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"film": ["p", "q"], "who": ["x", "y"], "stars": [4, 5]}),
        pd.DataFrame({"a": [1, 2], "b": [1, 2], "rater": [1, 2], "d": [1, 2]}),
        pd.DataFrame({"name": ["p", "q"], "age": [30, 40], "note": ["", "?"], "city": ["X", "Y"]}),
        pd.DataFrame({"item": [1, 2], "a": [1, "x"], "b": [1, 2]}, dtype=object),
        pd.DataFrame({"item": [1, 2], "a": [1, 2]}),
        pd.DataFrame({"a": [1], "b": [1], "c": [1], "d": [1]}),
    ],
    ids=["long", "an annotator", "traits", "mixed", "one column", "one row"],
)
def test_other_frames_are_long_and_asked_for_columns(frame):
    with pytest.raises(at.InputError, match=r"no column for the .*pass columns="):
        Labels.of(frame)


@pytest.mark.parametrize(
    "data",
    [
        [{"item": e, "annotator": s, "label": label} for e, s, label in NAMED],
        [{"worker": s, "TASK": e, "rating": label, "note": {}} for e, s, label in NAMED],
        {e: {s: label for i, s, label in NAMED if i == e} for e in range(4)},
    ],
    ids=["dicts", "other names", "dict of dicts"],
)
def test_other_shapes_are_the_same_labels(rows_of, data):
    assert rows_of(Labels.of(data)) == NAMED


def test_a_dict_without_a_label_is_dropped():
    labels = Labels.of([{"item": 1, "annotator": "x", "label": 1}, {"item": 2, "annotator": "x"}])
    assert (labels.n_labels, labels.n_dropped) == (1, 1)


def test_a_dataset_of_hugging_face_is_long_or_wide(rows_of):
    datasets = pytest.importorskip("datasets")
    names = ["item", "annotator", "label"]
    long = dict(zip(names, map(list, zip(*NAMED, strict=True)), strict=True))
    assert rows_of(Labels.of(datasets.Dataset.from_dict(long))) == NAMED
    wide = {name: pa.array(WIDE[name], from_pandas=True).to_pylist() for name in WIDE}
    assert rows_of(Labels.of(datasets.Dataset.from_dict(wide))) == NAMED


def test_classes_of_a_dataset_are_its_names(rows_of):
    datasets = pytest.importorskip("datasets")
    animals = datasets.ClassLabel(names=["dog", "cat", "cow"])
    features = datasets.Features(
        {"item": datasets.Value("int64"), "annotator": datasets.Value("string"), "label": animals}
    )
    rows = {"item": [1, 1, 2], "annotator": ["ann", "bob", "ann"], "label": [0, 1, -1]}
    data = datasets.Dataset.from_dict(rows, features=features)
    labels = Labels.of(data.select([2, 1, 0]))
    assert sorted(rows_of(labels)) == [(1, "ann", "dog"), (1, "bob", "cat")]
    assert labels.n_dropped == 1
    assert labels.scale.kind == "nominal"
    assert labels.scale.categories.to_pylist() == ["dog", "cat", "cow"]
    ordered = Labels.of(data, categories=["cat", "dog"])
    assert ordered.scale.categories.to_pylist() == ["cat", "dog"]
    wide = {"id": [1, 2, 3, 4], "ann": [0, 1, 1, 0], "bob": [0, -1, 1, 1]}
    of_annotators = datasets.Features(
        {"id": datasets.Value("int64"), "ann": animals, "bob": animals}
    )
    labels = Labels.of(datasets.Dataset.from_dict(wide, features=of_annotators))
    assert labels.scale.categories.to_pylist() == ["dog", "cat", "cow"]
    assert labels.n_labels == 7


def test_several_datasets_and_streams_are_refused():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"item": [1], "annotator": ["a"], "label": ["x"]})
    both = datasets.DatasetDict({"train": data, "test": data})
    with pytest.raises(
        at.InputError, match=r"\(train, test\): pass one, such as dataset\['train'\]"
    ):
        Labels.of(both)
    with pytest.raises(at.InputError, match="unless it streams"):
        Labels.of(data.to_iterable_dataset())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros(3), "two dimensions, items x annotators, and this has 1"),
        (np.zeros((2, 2, 2)), "and this has 3"),
        (np.zeros((0, 4)), "there are no rows"),
        (np.full((2, 2), NAN), "every row has an empty label"),
        (np.array([("a", "x", "cat"), ("b", "x", "dog")]), "as a list of tuples"),
        (np.array([[n, n % 3, n % 2] for n in range(20)]), "as a list of tuples"),
        (np.array([[0, 1], [-1, 1]]), r"-1 beside 0 and 1 may be .* pass categories=\[-1, 0, 1\]"),
        ({"a": 1}, r"the value of 'a' is 1: give {item: {annotator: label}}"),
        ({"item": [1]}, r"the value of 'item' is \[1\]: give"),
        ({}, "there are no rows"),
        ([{"item": 1, "annotator": 2, "label": 3}, (1, 2, 3)], r"row 2 is \(1, 2, 3\): each must"),
        ([{1: 1}], "a key that is not text"),
        ([{"film": 1, "label": 1}], "no column for the item and the annotator"),
        (pd.Series([1, 2]), r"row 1 is 1: each must be \(item, annotator, label\)"),
        (SimpleNamespace(), "cannot read labels from SimpleNamespace"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(data, message):
    with pytest.raises(at.InputError, match=message) as caught:
        Labels.of(data)
    assert "\n" not in str(caught.value)


def test_fits_and_estimators_take_them():
    expected = at.fit(NAMED, "dawid-skene").items()
    assert at.fit(WIDE, "dawid-skene").items().equals(expected)
    assert at.DawidSkene().fit(WIDE).result_.items().equals(expected)
    assert at.fit(MATRIX, "majority").items()["item"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["gold", "Majority vote", "mean"])
def test_columns_of_truths_and_means_are_no_annotators(rows_of, name):
    labels = Labels.of(WIDE.assign(**{name: [1, 2, 1, 2]}))
    assert rows_of(labels) == NAMED
    assert f"not {name}, by name" in labels.read_as
