"""Finding columns, missing values, and messages about them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from annotruth.errors import InputError
from annotruth.observations import Labels
from annotruth.observations.columns.names import (
    LABEL_ROLES,
    TRUTH_ROLES,
    describe_columns,
    find_columns,
    is_known_name,
)


def test_numbered_columns_of_pandas_can_be_named():
    data = pd.DataFrame([("i", "a", 1), ("i", "b", 2)])
    labels = Labels.of(data, columns={"item": 0, "annotator": 1, "label": 2})
    assert labels.annotators.to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    "names",
    [
        ["item", "annotator", "label"],
        ["task", "worker", "label"],
        ["question", "worker", "answer"],
        ["item", "rater", "rating"],
        [" Item", "ANNOTATOR ", "Label"],
        ["item_id", "annotator_id", "sentiment"],
        ["sample_id", "user", "score"],
        ["Text", "observer", "category"],
        ["stimulus", "subject", "vote"],
        ["unit_id", "worker_id", "response"],
        ["question_id", "rater_id", "class"],
        ["example_id", "judge", "choice"],
        ["image", "coder", "value"],
        ["pvs", "user_id", "rating"],
    ],
)
def test_known_column_names_need_no_option(names):
    table = pa.table([["i"], [5], ["x"], [9]], names=[*names, "seconds"])
    labels = Labels.of(table)
    assert labels.items.to_pylist() == ["i"]
    assert labels.annotators.to_pylist() == [5]
    assert labels.scale.names == ["x"]


def test_columns_can_be_named(frame):
    data = frame({"x": [1, 2], "y": ["a", "b"], "z": ["p", "q"]})
    if isinstance(data, list):
        assert Labels.of(data).items.to_pylist() == [1, 2]
        return
    labels = Labels.of(data, columns={"item": "y", "annotator": "x", "label": "z"})
    assert labels.items.to_pylist() == ["a", "b"]
    assert labels.annotators.to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ("item text worker label score", "item worker label"),  # ours come first
        ("task task_id rater user rating value", "task rater rating"),
        ("item_id text annotator_id score", "item_id annotator_id score"),  # an id, its text
        ("video image labeler score", "image labeler score"),
        ("Clip participant participation rating", "Clip participant rating"),
    ],
)
def test_names_of_an_earlier_group_come_first(names, columns):
    assert list(find_columns(names.split(), LABEL_ROLES).values()) == columns.split()


def test_all_unclear_columns_are_asked_for_at_once():
    names = ["sample_id", "example_id", "user_id", "judge", "mark"]
    with pytest.raises(InputError) as caught:
        find_columns(names, LABEL_ROLES)
    assert str(caught.value) == (
        "columns 'sample_id' and 'example_id' could both be the item; columns 'user_id' and 'judge' "
        "could both be the annotator; no column for the label (found: sample_id, example_id, "
        "user_id, judge, mark); name it 'label', or pass columns={'item': 'sample_id', "
        "'annotator': 'user_id', 'label': 'mark'}"
    )


@pytest.mark.parametrize("name", ["user", "User_ID", "subject"])
def test_a_column_that_may_be_the_author_is_asked_for(name):
    """As in a table of posts with a class each."""
    table = pa.table({"text": ["a", "b"], name: [1, 2], "sentiment": ["good", "bad"]})
    message = f"every item has one label, so '{name}' .*'item': 'text', 'annotator': '{name}', 'la"
    with pytest.raises(InputError, match=message):
        Labels.of(table)
    assert Labels.of(table, columns={"annotator": name}).n_labels == 2
    assert Labels.of(pa.concat_tables([table, table]), duplicates="keep").n_labels == 4


def test_columns_taken_for_roles_are_described():
    names = {"item": "sample_id", "annotator": "annotator", "label": "score"}
    said = "item = sample_id, annotator = annotator, label = score"
    assert Labels.of(pa.table([["i"], ["a"], [1]], names=list(names.values()))).read_as == said
    assert describe_columns({"item": "Item", "annotator": " annotator", "label": "label"}) == ""
    assert describe_columns(names, {"item": "sample_id"}) == said
    assert describe_columns(names, {"item": "sample_id", "label": "score"}) == ""


def test_named_columns_take_precedence_over_known_names():
    names = ["item", "worker", "label", "task"]
    assert find_columns(names, LABEL_ROLES, {"item": "task"})["item"] == "task"
    assert find_columns(["item", "truth"], TRUTH_ROLES) == {"item": "item", "truth": "truth"}
    for spelled in (["label", "Label"], ["Label", "label"]):  # the exact spelling comes first
        assert find_columns(["item", "rater", *spelled], LABEL_ROLES)["label"] == "label"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (
            "!amt_annotation_ids !amt_worker_ids orig_id response gold",
            "orig_id !amt_worker_ids response",
        ),
        ("unitId workerId judgment", "unitId workerId judgment"),
        ("_unit_id Worker-ID _label", "_unit_id Worker-ID _label"),
        ("hit_id assignment.worker Answer", "hit_id assignment.worker Answer"),
        ("hitId imageId workerID class", "imageId workerID class"),
        ("Stimulus Respondent OpinionScore", "Stimulus Respondent OpinionScore"),
        ("topicID questionID workerID response", "questionID workerID response"),
        ("text_id performer verdict", "text_id performer verdict"),
        ("item Worker_ID worker_id label", "item worker_id label"),
        ("item Worker_Id WORKER_ID label", "item Worker_Id label"),
    ],
)
def test_names_are_known_in_any_spelling(names, found):
    assert list(find_columns(names.split(), LABEL_ROLES).values()) == found.split()
    assert all(map(is_known_name, found.split()))


@pytest.mark.parametrize(
    ("names", "given", "message"),
    [
        ("item workerID worker-id label", {}, "'workerID' and 'worker-id' could both be the annot"),
        (
            "sentence_id tweet_id rater label",
            {},
            "'sentence_id' and 'tweet_id' could both be the item",
        ),
        ("item worker", {}, r"no column for the label \(found: item, worker\).*'label': 'NAME'}"),
        ("", {}, r"no column for the item and the annotator and the label \(found: none\)"),
        ("item task worker label", {}, "'item' and 'task' could both be the item.*'item': 'item'}"),
        ("item worker label", {"item": "id"}, r"no column 'id' \(found: item, worker, label\)"),
        ("item who label", {}, r"name it 'annotator', or .*columns={'annotator': 'who'}$"),
        (
            "film who label",
            {"item": "movie", "annotator": "who"},
            "'item': 'film', 'annotator': 'who'}",
        ),
        ("item who label hour", {}, "columns={'annotator': 'NAME'}"),
        ("\ufeffitem worker label", {}, "columns={'item': 'NAME'}"),  # cannot be typed
        (
            "item who label",
            {"item": "id", "label": "is"},
            r"^no column 'id' and no column 'is'; no column for the annotator \(found: item, who,"
            + r" label\); pass columns={'item': 'NAME', 'annotator': 'NAME', 'label': 'NAME'}$",
        ),
        (
            "film who stars",
            {"item": "film"},
            r"^no column for the annotator and the label .*"
            + r"columns={'item': 'film', 'annotator': 'NAME', 'label': 'NAME'}$",
        ),
        ("item worker label", {"rater": "x"}, "role 'rater': the roles are item, annotator, label"),
        ("item worker label label", {}, "two columns are named 'label'"),
        ("item worker label", {"item": "label"}, "'label' cannot be the item and the label at"),
    ],
)
def test_missing_and_ambiguous_columns_are_refused(names, given, message):
    with pytest.raises(InputError, match=message):
        find_columns(names.split(), LABEL_ROLES, given)


def test_two_columns_of_one_name_are_refused():
    names = ["item", "annotator", "label", "label"]
    for data in (
        pd.DataFrame([[1, 2, 3, 4]], columns=names),
        pa.table([[1], [2], [3], [4]], names=names),
    ):
        with pytest.raises(InputError, match=r"two columns .*name.*: rename one"):
            Labels.of(data)


def test_other_columns_may_hold_anything():
    columns = {"item": [1, 2], "annotator": "a", "label": [1, 2]}
    assert Labels.of(pd.DataFrame({**columns, "meta": [1, "x"], 7: [{1: 2}, 3j]})).n_labels == 2
    things = pl.Series([{1}, object()], dtype=pl.Object)
    assert Labels.of(pl.DataFrame({**columns, "meta": things})).n_labels == 2


NO_TRIPLE = r"row 2 is .*each must be \(item, annotator, label\)"
NO_LABELS = r"cannot read labels from .*read_labels"
NO_INDEX = r"row 1 is .*each must be \(item, annotator, label\)"


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        *((data, {}, NO_LABELS) for data in (5, None, "labels.csv", b"x", len)),
        *(
            ([(1, "a", "x"), row], {}, NO_TRIPLE)
            for row in ((1, 2), "abc", 5, {"item": 1}, (1, 2, 3, 4))
        ),
        (pd.Series([1, 2]), {}, NO_INDEX),
        (pl.Series([1, 2]), {}, NO_INDEX),
        ([], {}, "no rows"),
        (pd.DataFrame({"item": [], "annotator": [], "label": []}), {}, "no rows"),
        ([(1, "a", None), (2, "a", None)], {}, "every row has an empty label"),
        ([], {"columns": ["x", "y", "z"]}, "give a mapping from role to column name"),
    ],
    ids=repr,
)
def test_other_data_are_refused(data, options, message):
    with pytest.raises(InputError, match=message):
        Labels.of(data, **options)


def test_labels_are_returned_as_they_are_and_options_are_refused():
    labels = Labels.of([(1, "a", "x")])
    assert Labels.of(labels) is labels
    for options in ({"scale": "nominal"}, {"categories": ["x"]}, {"columns": {"item": "x"}}):
        with pytest.raises(InputError, match="Labels already"):
            Labels.of(labels, **options)


@pytest.mark.parametrize(
    "column",
    [
        [1, np.nan, None, 2],
        pd.array([1, None, None, 2], dtype="Int64"),
        pl.Series([1.0, float("nan"), None, 2.0]),
        ["x", None, "", "y", " ", "nan", "NaN"],
        pd.Series(["x", pd.NA, "", "y", None, float("nan"), "nan"], dtype=object),
        pd.Categorical(["x", None, "", "y", None, "nan", " "]),
        pd.array(["x", None, None, "y", "", "nan", None], dtype="string"),
        pl.Series(["x", None, "", "y", " ", "nan", "NaN"]),
        pl.Series(["x", None, "", "y", " ", "nan", "NaN"], dtype=pl.Categorical),
    ],
    ids=[
        *("numpy", "nullable", "polars numbers", "list", "object", "categorical", "string"),
        *("polars", "polars categorical"),
    ],
)
def test_missing_labels_are_dropped_and_counted(column, rows_of):
    make, n = (pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame), len(column)
    labels = Labels.of(
        make({"item": range(n), "annotator": ["a", *"b" * (n - 1)], "label": column})
    )
    first, last = (1, 2) if n == 4 else ("x", "y")
    assert rows_of(labels) == [(0, "a", first), (3, "b", last)]
    assert labels.n_dropped == n - 2
    assert labels.items.to_pylist() == [0, 3]


@pytest.mark.parametrize("missing", [None, "", "nan", " "], ids=repr)
@pytest.mark.parametrize("role", ["item", "annotator"])
def test_a_label_without_an_id_is_refused_by_row(role, missing):
    rows = [{"item": "i", "annotator": "a", "label": label} for label in ("x", None, "y", "z")]
    rows[1][role] = missing  # no label either: dropped, but counted as a row
    rows[2][role] = missing
    rows[3]["item"] = "j"
    with pytest.raises(InputError, match=rf"row 3 has a label but no {role} \(1 in all\)"):
        Labels.of(pd.DataFrame(rows), duplicates="keep")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "x"], r"mixes int and str \(row 2: 'x'\)"),
        (["x", None, 2.5], r"mixes str and float \(row 3: 2.5\)"),
        ([1, True], r"mixes int and bool \(row 2: True\)"),
        ([pd.NA, 1, "x"], r"mixes int and str \(row 3: 'x'\)"),
        (["\ud800", "x"], "holds str values that cannot be read"),
        ([1, np.zeros((2, 2))], r"mixes int and ndarray \(row 2"),
        ([np.zeros((2, 2))], "holds ndarray values that cannot be read"),
    ],
)
@pytest.mark.parametrize("role", ["item", "annotator", "label"])
def test_mixed_types_are_refused_by_column_and_row(role, values, message):
    columns = {name: list(range(len(values))) for name in ("item", "annotator", "label")}
    columns[role] = values
    with pytest.raises(InputError, match=f"column '{role}' {message}"):
        Labels.of(list(zip(*columns.values(), strict=True)))
    columns[role] = pd.Series(values, dtype=object)
    with pytest.raises(InputError, match=f"column '{role}' {message}"):
        Labels.of(pd.DataFrame(columns))


TWICE = [(1, "a", "x"), (2, "a", "x"), (1, "b", "y"), (1, "a", "z"), (2, "a", "y"), (1, "a", "x")]


def test_duplicate_rows_are_refused_by_name():
    message = r"annotator 'a' on item 1, annotator 'a' on item 2, annotator 'a' on item 1; pass"
    with pytest.raises(InputError, match=message):
        Labels.of(TWICE)
    with pytest.raises(InputError, match="and 1 more; pass duplicates='keep'"):
        Labels.of(TWICE + TWICE[:2])


def test_a_row_without_a_label_is_not_a_duplicate(rows_of):
    assert rows_of(Labels.of([(1, "a", "x"), (1, "a", None)])) == [(1, "a", "x")]
