"""Labels are the same in every file format."""

import pyarrow as pa
import pyarrow.parquet
import pytest

from annotruth.errors import InputError
from annotruth.io.parse import read_table
from annotruth.io.readers import read_labels
from annotruth.observations import Labels
from annotruth.observations.build import LabelBuilder


def assert_same(found: Labels, expected: Labels) -> None:
    assert found.items.to_pylist() == expected.items.to_pylist()
    assert found.annotators.to_pylist() == expected.annotators.to_pylist()
    assert found.scale.categories.to_pylist() == expected.scale.categories.to_pylist()
    assert found.scale.kind == expected.scale.kind
    for name in ("item_ptr", "cell_category", "cell_ptr", "annotator", "row"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name


def test_every_format_and_compression_gives_the_same_labels(read, table, written, compression):
    suffix, content = written
    packed_suffix, pack = compression
    assert_same(read(pack(content), f"labels.{suffix}{packed_suffix}"), Labels.of(table))


def test_content_is_recognised_without_a_suffix(write, table, written, compression):
    path = write("labels", compression[1](written[1]))
    assert_same(read_labels(str(path)), Labels.of(table))


def test_read_table_gives_all_columns_and_those_of_a_csv_as_text(tmp_path, table, formats):
    for suffix, write in formats.items():
        path = tmp_path / f"truth.{suffix}"
        path.write_bytes(write(table))
        found = read_table(path)
        assert found.column_names == table.column_names
        if suffix.endswith(("csv", "tsv", "txt")):
            assert set(found.schema.types) == {pa.string()}
        else:
            assert found.equals(table)


def test_options_reach_the_labels(read):
    labels = read(
        "x,y,z\n1,ann,bad\n1,ann,good\n2,bob,\n",
        columns={"item": "x", "annotator": "y", "label": "z"},
        scale="ordinal",
        categories=["bad", "fair", "good"],
        duplicates="last",
    )
    assert labels.items.to_pylist() == [1]
    assert labels.scale.names == ["bad", "fair", "good"]
    assert labels.cell_category.tolist() == [2]
    assert labels.n_dropped == 1


HEADER = "item,annotator,label\n"
HUGE, BIG = "x" * (1 << 20), 123456789012345678901234567890
LINE = '{"item": "%s", "annotator": %d, "label": %d}\n'
FILES = {  # content, and the items, annotators and categories in it
    **{
        f"lines end in {end!r}": (
            end.join(["", " item , annotator,label ", "1,ann,x", "", "2,bob,y"]),
            ([1, 2], ["ann", "bob"], ["x", "y"]),
        )
        for end in ("\n", "\r\n", "\r")
    },
    "only an empty cell is null": (
        HEADER + 'NA,null,None\n#N/A,NULL,""\nx,y,z\n',
        (["NA", "x"], ["null", "y"], ["None", "z"]),
    ),
    "integers without loss": (HEADER + "007,1,4.0\n8,22,3\n", (["007", "8"], [1, 22], [3, 4])),
    "a quote in a cell is a character": (HEADER + '5" disk,ann,1\n', (['5" disk'], ["ann"], [1])),
    "separators in quotes": (
        'item;annotator;label;"a, b, c, d, e"\n1;ann;2;x\n',
        ([1], ["ann"], [2]),
    ),
    "columns that are not read": (
        b"item,annotator,label,note,\n1,ann,2,caf\xe9,\n",
        ([1], ["ann"], [2]),
    ),
    "huge ids": (
        HEADER + f"{HUGE},{BIG},1\n{HUGE},{BIG + 1},2\n",
        ([HUGE], [str(BIG), str(BIG + 1)], [1, 2]),
    ),
    "huge ids in JSON": (
        LINE % (HUGE, BIG, 1) + LINE % (HUGE, BIG + 1, 2),
        ([HUGE], [str(BIG), str(BIG + 1)], [1, 2]),
    ),
    "types of JSON": (
        '{"item": "7", "annotator": 1, "label": "2024-01-01", "more": [1]}\n\n'
        + '{"annotator": 9007199254740993, "item": "8", "label": "2024-01-02"}\n',
        (["7", "8"], [1, 9007199254740993], ["2024-01-01", "2024-01-02"]),
    ),
    "large integers beside fractions": (
        f'{{"item": {2**64 + 1}, "annotator": 1.5, "label": 1}}\n',
        ([str(2**64 + 1)], [1.5], [1]),
    ),
}


@pytest.mark.parametrize(("content", "found"), FILES.values(), ids=FILES)
def test_ids_and_categories_are_those_of_the_file(read, content, found):
    labels = read(content, "labels")
    arrays = (labels.items, labels.annotators, labels.scale.categories)
    assert tuple(each.to_pylist() for each in arrays) == found


def test_columns_without_a_name_are_allowed(write):
    path = write("labels.csv", ",item,annotator,label,,\n0,1,ann,2,,\n")
    assert read_labels(path).n_labels == 1
    assert read_table(path).column_names == [
        "column 1", "item", "annotator", "label", "column 5", "column 6",
    ]  # fmt: skip


def test_several_blocks_make_one_table(read, monkeypatch):
    monkeypatch.setattr("annotruth.io.batches._BLOCK", 64)
    labels = read("item,annotator,label\n" + "".join(f'{i},"a\nb",{i % 3}\n' for i in range(99)))
    assert labels.items.to_pylist() == list(range(99))
    assert labels.annotators.to_pylist() == ["a\nb"]


def test_parquet_reads_only_the_columns_it_needs(tmp_path, monkeypatch, table):
    path = tmp_path / "labels.parquet"
    pa.parquet.write_table(table.append_column("mood", pa.array(["good"] * 4)), path)
    asked = []
    read = pa.parquet.ParquetFile.iter_batches

    def spy(self, columns=None, **options):
        asked.extend(columns)
        return read(self, columns=columns, **options)

    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", spy)
    read_labels(path)
    assert set(asked) == {"item", "annotator", "label", "seconds"}


def test_dictionaries_of_parquet_stay_dictionaries(tmp_path, monkeypatch):
    n = 3000
    table = pa.table(
        {
            "item": [f"item {i}" for i in range(n)],
            "annotator": [f"annotator {i % 7}" for i in range(n)],
            "label": [None if i % 5 == 4 else "good" for i in range(n)],
        }
    )
    path = tmp_path / "labels.parquet"
    pa.parquet.write_table(table, path, row_group_size=1000)
    expected = Labels.of(table)
    seen = []
    add = LabelBuilder.add

    def spy(builder, parsed):
        seen.extend(pa.types.is_dictionary(kind) for kind in parsed.table.schema.types)
        add(builder, parsed)

    monkeypatch.setattr(LabelBuilder, "add", spy)
    assert_same(read_labels(path), expected)
    assert seen == [True, True, True]  # text that is held as such is encoded while it is read
    assert read_table(path).equals(table)


def test_a_table_stays_after_its_file_is_removed(tmp_path, table):
    path = tmp_path / "truth.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    found = read_table(path)
    path.unlink()
    assert found.equals(table)


def test_read_table_reads_json_lists_as_they_are_written(write):
    path = write("truth.json", '[\n{"item": 1, "label": "a"},\n{"item": 2, "note": "x"}\n]\n')
    assert read_table(path).to_pydict() == {
        "item": [1, 2],
        "label": ["a", None],
        "note": [None, "x"],
    }
    path.write_text("[1, 2]")
    with pytest.raises(InputError, match=r"truth\.json: record 1 is 1, which is not an object"):
        read_table(path)
