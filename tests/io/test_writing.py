"""Written tables read back equal; failed writes leave nothing."""

import datetime
import errno
import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from annotruth.errors import InputError, OutputError
from annotruth.io.parse import read_table
from annotruth.io.readers import read_labels
from annotruth.io.writers import write_table, write_tables
from annotruth.observations import Labels


@pytest.fixture
def rich() -> pa.Table:
    return pa.table(
        {
            "item": ["plain", "a,b", 'say "hi"', "two\nlines", " spaced ", "ünï", None],
            "count, all": pa.array([0, -1, 2**62, 3, 4, 5, None]),
            "share": [0.1, 1 / 3, 1e-300, 123456789.123456789, 5e-324, -0.0, None],
            "spammer": [True, False, None, True, True, False, None],
        }
    )


def test_csv_reads_back_equal(tmp_path, rich):
    path = tmp_path / "rich.csv"
    write_table(rich, path, "csv")
    text = read_table(path)
    assert set(text.schema.types) == {pa.string()}
    assert text.column_names == rich.column_names
    assert text["item"].to_pylist() == rich["item"].to_pylist()
    assert text["spammer"].to_pylist() == [
        None if value is None else str(value).lower() for value in rich["spammer"].to_pylist()
    ]
    for name in ("count, all", "share"):
        assert text[name].cast(rich.schema.field(name).type).equals(rich[name])


def test_nan_is_an_empty_cell_in_csv(tmp_path):
    numbers = pa.array([1.5, float("nan"), None, float("inf")])
    write_table(pa.table({"item": list("abcd"), "std": numbers}), tmp_path / "t.csv", "csv")
    assert (tmp_path / "t.csv").read_text() == '"item","std"\n"a",1.5\n"b",\n"c",\n"d",inf\n'


def test_parquet_reads_back_equal(tmp_path, rich):
    write_table(rich, tmp_path / "rich.parquet", "parquet")
    assert read_table(tmp_path / "rich.parquet").equals(rich)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_written_labels_read_back_equal(tmp_path, table, form):
    write_table(table, tmp_path / f"labels.{form}", form)
    labels, expected = read_labels(tmp_path / f"labels.{form}"), Labels.of(table)
    assert labels.items.equals(expected.items)
    assert labels.cell_category.tolist() == expected.cell_category.tolist()


def test_a_table_without_rows_keeps_its_columns(tmp_path, rich):
    write_table(rich.slice(0, 0), tmp_path / "none.csv", "csv")
    assert read_table(tmp_path / "none.csv").column_names == rich.column_names


def test_categories_and_dates_can_be_written(tmp_path):
    day = datetime.date(2024, 2, 29)
    table = pa.table({"label": pa.array(["a", "b"]).dictionary_encode(), "day": [day, day]})
    write_table(table, tmp_path / "x.csv", "csv")
    assert read_table(tmp_path / "x.csv").to_pydict() == {
        "label": ["a", "b"],
        "day": ["2024-02-29", "2024-02-29"],
    }


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_and_texts_are_written_to_a_folder(tmp_path, table, form):
    folder = tmp_path / "new" / "fit"
    write_tables(
        {"items": table, "labels": table.slice(1)}, folder, format=form, extra={"fit.json": '"ü"\n'}
    )
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [f"items.{form}", f"labels.{form}", "fit.json"]
    )
    assert json.loads((folder / "fit.json").read_text(encoding="utf-8")) == "ü"
    assert read_table(folder / f"labels.{form}").num_rows == table.num_rows - 1


def test_an_unknown_format_is_refused_before_writing(tmp_path, table):
    with pytest.raises(InputError, match="unknown format 'xml': choose csv, parquet or json"):
        write_table(table, tmp_path / "x" / "y", "xml")
    with pytest.raises(InputError, match="unknown format"):
        write_tables({"items": table}, tmp_path / "x", format="xml")
    assert list(tmp_path.iterdir()) == []


def test_types_that_csv_cannot_hold_are_refused(tmp_path, table):
    nested = pa.table({"x": [[1], [2]]})
    with pytest.raises(OutputError, match=r"cannot write .*fit/nested\.csv: .*another format") as e:
        write_tables({"items": table, "nested": nested}, tmp_path / "fit", format="csv")
    assert "\n" not in str(e.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_full_disk_leaves_the_old_results(tmp_path, monkeypatch, table, form):
    write_tables({"items": table}, tmp_path, format=form, extra={"fit.json": "old"})
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(where, *_, **__):
        where.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "[Errno 28] Error writing bytes to file")

    monkeypatch.setattr(pa.csv, "CSVWriter", full)
    monkeypatch.setattr(pa.parquet, "ParquetWriter", full)
    with pytest.raises(OutputError, match="free some space"):
        write_tables({"items": table}, tmp_path, format=form, extra={"fit.json": "new"})
    with pytest.raises(OutputError, match="free some space"):
        write_table(table, tmp_path / f"items.{form}", form)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.fixture
def coded(rich) -> pa.Table:
    """The same table with a dictionary for its text."""
    return rich.set_column(0, "item", rich["item"].dictionary_encode())


def test_arrow_types_survive_beside_a_dictionary(tmp_path, coded):
    pause = pa.array([None if i % 2 else i for i in range(coded.num_rows)], pa.duration("s"))
    write_table(coded.append_column("pause", pause), tmp_path / "x.parquet", "parquet")
    found = pa.parquet.read_table(tmp_path / "x.parquet").schema
    assert found.types == [pa.string(), *coded.schema.types[1:], pa.duration("s")]


def test_dictionaries_are_written_as_values(tmp_path, rich, coded):
    write_table(rich, tmp_path / "plain.csv", "csv")
    write_table(coded, tmp_path / "coded.csv", "csv")
    assert (tmp_path / "coded.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    write_table(coded, tmp_path / "coded.parquet", "parquet")
    found = pa.parquet.read_table(tmp_path / "coded.parquet")
    assert found.schema.equals(rich.schema, check_metadata=True)
    assert found.equals(rich)


def test_partitions_of_a_long_table_are_written_in_order(tmp_path, monkeypatch, coded):
    write_table(pa.concat_tables([coded] * 9), tmp_path / "complete.csv", "csv")
    monkeypatch.setattr("annotruth.io.writers._ROWS_AT_ONCE", 2)
    write_table(pa.concat_tables([coded] * 9), tmp_path / "partitions.csv", "csv")
    assert (tmp_path / "partitions.csv").read_bytes() == (tmp_path / "complete.csv").read_bytes()
