"""Covariates stay with their labels, annotators and items."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.observations.append import append_labels

ROWS = [  # item, annotator, label, seconds; sorted by no column
    ("b", "ann", 2, 1.0),
    ("a", "bob", 1, 2.0),
    ("b", "bob", 1, 3.0),
    ("a", "cy", 1, 4.0),
    ("a", "ann", 3, None),
]
TABLE = pa.table(
    dict(zip(("item", "annotator", "label", "seconds"), zip(*ROWS, strict=True), strict=True))
)


@pytest.fixture
def labels():
    return at.Labels.of(TABLE, covariates=["seconds"])


def by_label(labels, name="seconds"):
    """The covariate of each (item, annotator)."""
    items, annotators = labels.items.to_pylist(), labels.annotators.to_pylist()
    return {
        (items[item], annotators[annotator]): value
        for item, annotator, value in zip(
            labels.item_of_label(),
            labels.annotator,
            labels.covariates.labels[name].to_pylist(),
            strict=True,
        )
    }


EXPECTED = {(item, annotator): seconds for item, annotator, _, seconds in ROWS}


@pytest.mark.parametrize(
    "frame", [pa.table, pd.DataFrame, pl.DataFrame], ids=lambda f: f.__module__
)
def test_columns_of_a_frame_follow_the_layout(frame):
    labels = at.Labels.of(frame(TABLE.to_pydict()), covariates=("seconds",))
    assert by_label(labels) == EXPECTED


def test_there_are_none_unless_asked_for():
    table = TABLE.rename_columns(["item", "annotator", "label", "mood"])
    assert not at.Labels.of(table).covariates
    assert at.Labels.of(table, covariates=["mood"]).covariates


def test_dropped_and_superseded_rows_are_left_out():
    more = pa.table(
        {
            "item": ["a", "b"],
            "annotator": ["bob", "dan"],
            "label": pa.array([3, None], pa.int64()),
            "seconds": [9.0, 7.0],
        }
    )
    table = pa.concat_tables([TABLE, more])
    labels = at.Labels.of(table, covariates=["seconds"], duplicates="last")
    assert by_label(labels) == {**EXPECTED, ("a", "bob"): 9.0}


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "jsonl"])
def test_files_keep_the_named_columns(tmp_path, ending):
    path = tmp_path / f"labels.{ending}"
    writer = {"arrow": "write_ipc", "jsonl": "write_ndjson"}.get(ending, f"write_{ending}")
    getattr(pl.from_arrow(TABLE), writer)(path)
    labels = at.read_labels(path, covariates=["seconds"])
    assert by_label(labels) == EXPECTED
    assert labels.covariates.labels["seconds"].type == pa.float64()


def test_text_of_a_csv_stays_text_unless_all_of_it_is_numbers(read):
    covariates = read(
        "item,annotator,label,when,order\na,x,1,monday,007\nb,x,2,8,8\n",
        covariates=["when", "order"],
    ).covariates.labels
    assert covariates["when"].to_pylist() == ["monday", "8"]
    assert covariates["order"].to_pylist() == [7, 8]


def test_dictionaries_become_values():
    table = TABLE.append_column("device", pa.array(["web", "app", "web", "app", "web"]))
    table = table.set_column(4, "device", table["device"].dictionary_encode())
    device = at.Labels.of(table, covariates=["device"]).covariates.labels["device"]
    assert device.type == pa.string()


def test_annotators_and_items_are_matched_by_id(labels):
    traits = pd.DataFrame({"worker": ["cy", "zoe", "ann"], "age": [30, 40, 50]})
    labels = labels.with_annotator_covariates(traits)
    assert labels.annotators.to_pylist() == ["ann", "bob", "cy"]
    assert labels.covariates.annotators["age"].to_pylist() == [50, None, 30]
    labels = labels.with_item_covariates(pl.DataFrame({"item": ["a"], "text": ["hello"]}))
    assert labels.items.to_pylist() == ["b", "a"]
    assert labels.covariates.items["text"].to_pylist() == [None, "hello"]
    labels = labels.with_item_covariates(pl.DataFrame({"item": ["b"], "length": [3]}))
    assert set(labels.covariates.items) == {"text", "length"}
    assert by_label(labels) == EXPECTED


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"item": ["z"], "text": ["x"]}, "names item 'z', which has no labels"),
        ({"item": ["a", "a"], "text": ["x", "y"]}, "names item 'a' twice"),
        ({"item": ["a"]}, "no column besides 'item'"),
        ({"annotator": ["zoe"], "age": [3]}, "none of the annotators of these labels"),
        ({"annotator": ["ann", "bob", "ann"], "age": [1, 2, 3]}, "name annotator 'ann' twice"),
        ({"who": ["ann"], "age": [3]}, "no column for the annotator"),
        ({"annotator": ["ann"]}, "no column besides 'annotator'"),
        ({"annotator": ["ann", None], "age": [1, 2]}, "a row without an annotator"),
    ],
)
def test_bad_covariates_are_refused(labels, data, message):
    attach = labels.with_item_covariates if "item" in data else labels.with_annotator_covariates
    with pytest.raises(InputError, match=message):
        attach(pd.DataFrame(data))


LONG = "item,annotator,label,seconds\na,x,1,2\n"


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (LONG, {"covariates": ["seconds"], "memory": "1GB"}, "do not carry covariates"),
        (LONG, {"content": ["seconds"], "memory": "1GB"}, "do not carry content"),
        (
            "item,ann,bob\na,1,2\nb,2,1\n",
            {"covariates": ["seconds"]},
            "covariates are columns of a long table",
        ),
    ],
)
def test_labels_on_disk_and_formats_refuse_them(read, content, options, message):
    with pytest.raises(InputError, match=message):
        read(content, **options)


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        ("seconds", "covariates is 'seconds': give a list of column names"),
        ([3], "covariates names 3: give a list of column names"),
        (["seconds", "seconds"], "covariates names 'seconds' twice"),
        (["minutes"], "no column 'minutes' for the covariate"),
        (["label"], "column 'label' has another role already and cannot be the covariate"),
    ],
)
def test_bad_names_are_refused(covariates, message):
    with pytest.raises(InputError, match=message):
        at.Labels.of(TABLE, covariates=covariates)


def described(labels):
    traits = pd.DataFrame({"annotator": ["ann", "bob", "cy"], "age": [50, 60, 30]})
    contents = pd.DataFrame({"item": ["a", "b"], "text": ["A", "B"]})
    return labels.with_annotator_covariates(traits).with_item_covariates(contents)


def test_a_subset_keeps_its_own(labels):
    labels = described(labels)
    kept = np.isin(labels.row, [1, 3])
    some = labels.subset(kept)
    assert by_label(some) == {("a", "bob"): 2.0, ("a", "cy"): 4.0}
    assert some.covariates.annotators["age"].to_pylist() == [60, 30]
    assert some.covariates.items["text"].to_pylist() == ["A"]


def test_known_truths_and_priors_leave_them_as_they_are(labels):
    labels = described(labels)
    other = labels.with_gold({"a": 1}).with_annotator_prior({"ann": 0.9})
    assert other.covariates is labels.covariates


def test_appended_labels_bring_theirs(labels):
    new = at.Labels.of(
        pa.table(
            {
                "item": ["c", "a"],
                "annotator": ["bob", "dan"],
                "label": [1, 2],
                "seconds": [10, 20],
                "order": [1, 2],
            }
        ),
        covariates=["seconds", "order"],
    )
    new = new.with_annotator_covariates(pd.DataFrame({"annotator": ["dan", "bob"], "age": [9, 8]}))
    both = append_labels(described(labels), new).table
    assert by_label(both) == {**EXPECTED, ("c", "bob"): 10.0, ("a", "dan"): 20.0}
    assert by_label(both, "order")["a", "dan"] == 2
    assert by_label(both, "order")["a", "bob"] is None
    assert both.annotators.to_pylist() == ["ann", "bob", "cy", "dan"]
    assert both.covariates.annotators["age"].to_pylist() == [50, 60, 30, 9]  # bob keeps his
    assert both.covariates.items["text"].to_pylist() == ["B", "A", None]


def test_replaced_labels_take_the_new_covariates(labels):
    table = pa.table({"item": ["a"], "annotator": ["bob"], "label": [2], "seconds": [5.0]})
    new = at.Labels.of(table, covariates=["seconds"])
    both = append_labels(labels, new, duplicates="last").table
    assert by_label(both) == {**EXPECTED, ("a", "bob"): 5.0}


def test_appended_types_that_do_not_fit_are_refused(labels):
    table = pa.table({"item": ["c"], "annotator": ["bob"], "label": [2], "seconds": ["long"]})
    new = at.Labels.of(table, covariates=["seconds"])
    with pytest.raises(InputError, match="covariate 'seconds' holds double in one place and"):
        append_labels(labels, new)


def test_a_saved_fit_keeps_them(labels, tmp_path):
    fit = at.fit(described(labels), "gpm")
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit").data
    assert by_label(loaded) == EXPECTED
    assert loaded.covariates.annotators["age"].equals(fit.data.covariates.annotators["age"])
    assert loaded.covariates.items["text"].equals(fit.data.covariates.items["text"])


def test_they_do_not_change_a_fit(labels):
    with_them, without = at.fit(described(labels), "gpm"), at.fit(at.Labels.of(TABLE), "gpm")
    np.testing.assert_array_equal(with_them.reliability, without.reliability)
