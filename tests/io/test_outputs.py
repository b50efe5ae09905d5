"""Soft labels and JSON tables in files."""

import datetime
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.io.writers import write_soft_labels, write_table


@pytest.fixture
def fit():
    return at.fit([("x", "a", "cat"), ("x", "b", "dog"), ("y", "a", "dog"), ("y", "b", "dog")])


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_soft_labels_in_a_table(tmp_path, fit, ending):
    path = tmp_path / f"soft.{ending}"
    write_soft_labels(fit.soft_label_table(), fit.data.scale.categories, path)
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "json": pd.read_json}[ending]
    assert read(path).columns.tolist() == ["item", "p_cat", "p_dog"]
    assert np.allclose(read(path)["p_dog"], fit.distribution.dense(2)[:, 1])


DAYS = [datetime.date(2024, 2, 28), datetime.date(2024, 2, 29)]


@pytest.mark.parametrize("ids", [["x", "y"], [7, 8], [True, False], DAYS])
def test_soft_labels_in_arrays_without_pickle(tmp_path, ids):
    rows = [(ids[0], "a", 1.5), (ids[0], "b", 2.5), (ids[1], "a", 2.5), (ids[1], "b", 2.5)]
    fit = at.fit(rows)
    write_soft_labels(fit.soft_label_table(), fit.data.scale.categories, tmp_path / "soft.npz")
    with np.load(tmp_path / "soft.npz", allow_pickle=False) as arrays:
        assert arrays["items"].tolist() == ([str(day) for day in ids] if ids is DAYS else ids)
        assert arrays["classes"].tolist() == [1.5, 2.5]
        assert np.array_equal(arrays["probabilities"], fit.distribution.dense(2))


def test_an_unknown_suffix_is_refused(tmp_path, fit):
    with pytest.raises(
        at.InputError, match=r"soft\.txt: soft labels are written to a name that ends in \.csv, "
    ):
        write_soft_labels(fit.soft_label_table(), fit.data.scale.categories, tmp_path / "soft.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ({"item": ["ü", 'q"', None], "n": [1, None, 3], "p": [0.1, 1 / 3, None]}, None),
        ({"p": [float("nan"), float("inf"), 1.0]}, [{"p": None}, {"p": None}, {"p": 1.0}]),
        ({"p": pa.array([], pa.float64())}, []),
        ({"n": list(range(20))}, None),
    ],
    ids=["text and gaps", "not finite", "empty", "many"],
)
def test_json_tables_read_back(tmp_path, monkeypatch, columns, rows):
    monkeypatch.setattr("annotruth.io.writers._OBJECTS_AT_ONCE", 7)
    table = pa.table(columns)
    write_table(table, tmp_path / "t.json", "json")
    found = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert found == (table.to_pylist() if rows is None else rows)


def test_labels_written_as_json_can_be_read(tmp_path, fit):
    write_table(fit.label_table(), tmp_path / "labels.json", "json")
    assert at.fit(tmp_path / "labels.json").labels().equals(fit.labels())
