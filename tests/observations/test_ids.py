"""Ids are kept, whatever their type and source."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io.readers import read_labels
from annotruth.observations import Labels
from annotruth.observations.append import append_labels

DAY, TIME = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30)


@pytest.mark.parametrize(
    "ids",
    [
        [3, -1, 0],
        [2**62, 2**62 + 1, -(2**62)],
        [0.5, -1.25, 3.0],
        ["b", "a", "B"],
        ["007", "7", "07"],
        [" a", "a", "a "],
        ["12345678901234567890123456789" + digit for digit in "012"],
        ["ünï", "猫", "🐈‍⬛"],
        ["a,b", 'say "hi"', "two\nlines"],
        [True, False, True],
        [DAY, DAY.replace(day=1), DAY.replace(day=2)],
        [TIME, TIME.replace(hour=1), TIME.replace(hour=2)],
        [Decimal("1.50"), Decimal("2.25"), Decimal("0.10")],
    ],
    ids=lambda ids: repr(ids[0])[:20],
)
def test_ids_of_frames_are_kept(frame, rows_of, ids):
    rows = [(ids[0], ids[2], 1), (ids[1], ids[1], 2), (ids[0], ids[1], 2), (ids[2], ids[1], 1)]
    item, annotator, label = (list(column) for column in zip(*rows, strict=True))
    labels = Labels.of(
        frame({"item": item, "annotator": annotator, "label": label}), duplicates="keep"
    )
    assert rows_of(labels) == rows
    assert labels.items.to_pylist() == list(dict.fromkeys(item))
    types = [type(value) for value in labels.items.to_pylist()]
    assert all(issubclass(kind, type(ids[0])) for kind in types)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["3", "-1", "0"], [3, -1, 0]),
        (["007", "7", "8"], ["007", "7", "8"]),
        (["1", "2", "x"], ["1", "2", "x"]),
        (["1.0", "2.0", "3.5"], ["1.0", "2.0", "3.5"]),
        (["+1", "2", "3"], ["+1", "2", "3"]),
        (["-0", "0", "1"], ["-0", "0", "1"]),
        ([" 1", "2", "3"], [" 1", "2", "3"]),
        ([str(10**30), str(10**30 + 1), "1"], [str(10**30), str(10**30 + 1), "1"]),
        (["9223372036854775807", "1", "2"], [2**63 - 1, 1, 2]),
        (["true", "false", "x"], ["true", "false", "x"]),
        (["ünï", "猫", "NA"], ["ünï", "猫", "NA"]),
    ],
)
def test_ids_of_a_csv_become_integers_where_that_loses_nothing(tmp_path, written, expected):
    path = tmp_path / "labels.csv"
    rows = "".join(f"{value},{value},1\n" for value in written)
    path.write_text("item,annotator,label\n" + rows, encoding="utf-8")
    labels = read_labels(path)
    assert labels.items.to_pylist() == expected
    assert labels.annotators.to_pylist() == expected


def test_integers_beyond_64_bits_become_their_text():
    big = [10**30, 10**30 + 1]
    for data in (
        pd.DataFrame({"item": big, "annotator": ["a", "a"], "label": [1, 2]}),
        pl.DataFrame({"item": pl.Series(big, dtype=pl.Int128), "annotator": "a", "label": [1, 2]}),
        [(big[0], "a", 1), (big[1], "a", 2)],
        pd.DataFrame({"item": [*big, None, pd.NA], "annotator": "a", "label": [1, 2, None, None]}),
    ):
        assert Labels.of(data).items.to_pylist() == [str(value) for value in big]


def test_numpy_scalars_are_values():
    labels = Labels.of([(np.int64(3), np.str_("ann"), np.float32(2)), (np.int64(4), "bob", 1.0)])
    assert labels.items.to_pylist() == [3, 4]
    assert labels.annotators.to_pylist() == ["ann", "bob"]
    assert labels.scale.categories.to_pylist() == [1, 2]


def test_tables_are_returned_in_the_callers_library(frame):
    data = frame({"item": [1], "annotator": ["a"], "label": ["x"]})
    home = type(data).__module__.partition(".")[0]
    expected = {"builtins": "pandas"}.get(home, home)
    assert Labels.of(data).frame == expected


def test_an_id_may_have_a_million_characters(rows_of):
    rows = [("x" * 10**6, "y" * 10**6, "z"), ("x" * 10**6 + "!", "y" * 10**6, "z")]
    assert rows_of(Labels.of(rows)) == rows


def test_messages_with_long_ids_stay_short():
    with pytest.raises(InputError, match=r"labelled twice.*\.\.\.'") as caught:
        Labels.of([("x" * 10**6, "y" * 10**6, label) for label in (1, 2)])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.Series([[1], [2]]), "list"),
        (pd.Series([{"a": 1}, {"a": 2}]), "struct"),
        (pd.Series([b"1", b"2"]), "binary"),
        (pd.Series([1j, 2j]), "complex"),
        (pd.Series(pd.period_range("2024", periods=2, freq="M")), "period"),
        (pl.Series([[1], [2]]), "list"),
        (pl.Series([{"a": 1}, {"a": 2}]), "struct"),
        (pl.Series([{1}, {2}], dtype=pl.Object), "binary"),
    ],
)
@pytest.mark.parametrize("role", ["item", "annotator", "label"])
def test_types_that_cannot_be_ids_are_refused_by_column(values, kind, role):
    make = pl.DataFrame if isinstance(values, pl.Series) else pd.DataFrame
    columns = {"item": [1, 2], "annotator": [1, 2], "label": [1, 2], role: values}
    message = rf"column '{role}' holds .*{kind}.*text or numbers"
    if (kind, role) == ("list", "label"):
        message = "every answer has exactly one label, so these are no sets"
    with pytest.raises(InputError, match=message):
        Labels.of(make(columns))


NO_HALF_FLOATS = pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 26, reason="older pyarrow cannot encode half floats"
)


@pytest.mark.parametrize(
    "kind",
    [
        pa.string_view(),
        pa.large_string(),
        pa.uint8(),
        pytest.param(pa.float16(), marks=NO_HALF_FLOATS),
    ],
)
def test_every_arrow_type_is_read(kind):
    values = ["1", "2"] if "string" in str(kind) else [1, 2]
    array = pa.array(values, kind)
    labels = Labels.of(pa.table({"item": array, "annotator": array, "label": array}))
    assert labels.items.to_pylist() == values
    assert labels.with_gold({values[1]: values[1]}).known.tolist() == [-1, 1]


def test_appended_ids_of_text_are_not_those_of_equal_numbers():
    base = Labels.of([(1, 7, "x"), (1, 8, "y")])
    new = Labels.of([("1", "007", "x"), ("02", "8", "y"), ("2", "8", "y")])
    labels = append_labels(base, new).table
    assert labels.annotators.to_pylist() == ["7", "8", "007"]
    assert labels.items.to_pylist() == ["1", "02", "2"]
    whole = append_labels(base, Labels.of([(1.0, 9.0, "x")])).table
    assert whole.annotators.to_pylist() == [7, 8, 9]


@pytest.mark.parametrize("memory", [None, "1MB"])
def test_whole_numbers_with_a_point_are_the_same_ids(tmp_path, memory):
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("item,worker,label\n1.0,7.0,x\n2.0,8.0,y\n3.0,7,x\n")
    second.write_text("item,worker,label\n1,8,x\n2,7.00,x\n")
    labels = at.read_labels([first, second], memory=memory)
    assert labels.items.to_pylist() == [1, 2, 3]
    assert labels.annotators.to_pylist() == [7, 8]
    rows = [tuple(row.values()) for row in labels.to_arrow().to_pylist()]
    assert rows == [(1, 7, "x"), (2, 8, "y"), (3, 7, "x"), (1, 8, "x"), (2, 7, "x")]
    gold = labels.with_gold(pa.table({"item": ["1.0", "3"], "label": ["x", "x"]}))
    assert (gold.known >= 0).tolist() == [True, False, True]


@pytest.mark.parametrize("ids", ["1.0 01", "1.0 x", "1.5 1.0", "1.0 1e3"])
def test_ids_that_are_not_all_whole_numbers_stay(tmp_path, ids):
    path = tmp_path / "a.csv"
    path.write_text(
        "item,worker,label\n" + "".join(f"{e},{s},x\n" for e in ids.split() for s in "ab")
    )
    assert at.read_labels(path).items.to_pylist() == ids.split()


def test_whole_numbers_in_comparisons(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("left,right,worker,winner\n1.0,2.0,5.0,left\n2,1,5,right\n")
    data = at.read_comparisons(path)
    assert (data.items.to_pylist(), data.annotators.to_pylist()) == ([1, 2], [5])
    assert data.left.tolist() == [0, 1]
