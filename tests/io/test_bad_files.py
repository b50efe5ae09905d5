"""Files that cannot be used give one line: what, where, and what to do."""

import gzip
import subprocess
import sys
import tarfile
from contextlib import suppress

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from tests.io.conftest import COMPRESSIONS, FORMATS, zipped_content

from annotruth.errors import InputError
from annotruth.io import json_lines, parse
from annotruth.io.readers import read_labels

HEADER = b"item,annotator,label\n"
COLUMNAR = ("parquet", "feather", "arrow", "arrows")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip")


BAD_CSV_FILES = {
    "empty": (b"", ["empty"]),
    "whitespace": (b" \n\t\r\n ", ["only whitespace"]),
    "byte order mark alone": (b"\xef\xbb\xbf", ["only whitespace"]),
    "header": (HEADER, ["no rows"]),
    "header without a line end": (HEADER.strip(), ["no rows"]),
    "header and blank lines": (HEADER + b"\n\n", ["no rows"]),
    "column": (b"item,annotator\n1,ann\n", ["no column for the label", "item, annotator"]),
    "no labels": (HEADER + b"1,ann,\n2,ann,\n", ["every row", "empty"]),
    "no item": (HEADER + b"1,ann,2\n,ann,2\n", ["row 2", "no item"]),
    "short": (HEADER + b"1,ann,2\n\n1,bob\n", ["row 2 (line 4)", "2 fields", "has 3"]),
    "long": (HEADER + b'"1\n2",a,2\n1,a,2,9\n', ["row 2 (line 4)", "4 fields"]),
    "spaces": (HEADER + b"1,ann,2\n  \n", ["row 2 (line 3)", "1 field "]),
    "latin": (HEADER + b"1,ann,2\n1,bob,\xe9t\xe9\n", ["byte 35 (line 3)", "0xe9", "UTF-8"]),
    "name": (b"item,annotator,label,\xe9\n1,a,2,3\n", ["byte 21 (line 1)"]),
    "truncated letter": (HEADER + b"1,ann,\xc3", ["byte 27 (line 2)", "UTF-8"]),
    "utf-16": (HEADER.decode().encode("utf-16")[:-1], ["UTF-16", "UTF-8"]),
    "utf-32": (HEADER.decode().encode("utf-32")[:-1], ["UTF-32", "UTF-8"]),
    "no names": (b"1,ann,2\n1,bob,3\n", ["no column for the item", "put one before it"]),
    "utf-16 unmarked": (HEADER.decode().encode("utf-16-be"), ["byte 0 is NUL"]),
    "nul": (HEADER + b"1,a\0nn,2\n", ["byte 24 is NUL"]),
    "control characters": (bytes(range(1, 256)) * 9, ["control characters", "not a text table"]),
    "twice": (b"item,annotator,label,item\n1,a,2,3\n", ["two columns", "'item'"]),
    "one": (b"item annotator label\n1 ann 2 x\n", ["one column", "'item annotator label'"]),
    "quote": (HEADER + b'1,ann,2\n1,bob,"2\n2,ann,1\n', ["row 2 (line 3)", "never closed"]),
    "quote2": (HEADER + b'1,ann,2\n1,"bob,2\n2,ann,1\n', ["row 2 (line 3)", "never closed"]),
    "quoted header": (b'item,"annotator,label\n1,ann,2\n', ["header", "quotes"]),
    "json": (b'{"item": 1}\n', ["the name says a CSV", "rename"]),
    "labelled twice": (HEADER + b"1,ann,2\n1,ann,3\n", ["labelled twice"]),
    "joined files": (
        HEADER + b"1,ann,2\n" + HEADER + b"1,bob,2\n" + HEADER,
        ["row 2 repeats the names of the columns (2 in all)", "name each"],
    ),
    "joined files with byte order marks": (
        b"\xef\xbb\xbf" + HEADER + b"1,ann,2\n\xef\xbb\xbf" + HEADER + b"1,bob,2\n",
        ["row 2 repeats the names of the columns (1 in all)", "name each"],
    ),
}


LINE = b'{"item": 1, "annotator": "ann", "label": 2}\n'


BAD_JSON_LINES = {
    "malformed": (LINE + b'{"item": 2,\n', ["line 2", "at character 12"]),
    "not an object": (LINE + b"\n[1, 2]\n", ["line 3", "list", "object"]),
    "number": (LINE + b"3\n", ["line 2", "int", "object"]),
    "list": (b"[1, 2]", ["JSON list", "one object per line"]),
    "mixed": (
        LINE + LINE.replace(b"2}", b'"good"}'),
        ["'label' mixes int and str", "row 2", "'good'"],
    ),
    "bool": (LINE + LINE.replace(b"2}", b"true}"), ["mixes int and bool"]),
    "twice": (LINE + b'{"item": 1, "item": 2}\n', ["line 2", "'item' twice"]),
    "utf-8": (LINE + b'{"item": "\xff"}\n', ["byte 54 (line 2)", "0xff"]),
    "nul": (LINE + b"\0\n", ["byte 44 is NUL"]),
    "column": (b'{"item": 1, "label": 2}\n', ["no column for the annotator"]),
    "no keys": (b"{}\n", ["no column for the item", "none"]),
    "deep": (b"[" * 100_000, ["not JSON", "nested too deeply"]),
    "deep object": (b'{"item": ' + b"[" * 100_000, ["line 1", "not JSON"]),
    "deep and closed": (
        LINE + b'{"item": ' + b"[" * 30_000 + b"]" * 30_000 + b"}\n",
        ["line 2", "nested too deeply"],
    ),
    "deep over lines": (
        LINE + b'{"item":\n' + b"[\n" * 30_000 + b"]\n" * 30_000 + b"}\n",
        ["line 2", "not JSON"],
    ),
    "deep objects": (
        LINE + b'{"item": ' + b'{"a[": [[],' * 30_000 + b"1" + b"]}" * 30_000 + b"}\n",
        ["line 2", "nested too deeply"],
    ),
    "deep but no crash": (
        LINE + b'{"item": ' + b"[" * 150 + b"]" * 150 + b"}\n",
        ["line 2", "nested too deeply"],
    ),
    "digits": (LINE + b'{"item": ' + b"9" * 5000 + b"}\n", ["line 2", "too many digits"]),
    "surrogate": (LINE + LINE.replace(b'"ann"', b'"\\ud800"'), ["'\\ud800' (row 2)"]),
    "escaped nul": (LINE.replace(b": 2", b': "a\\u0000b"'), ["'a\\x00b' contains a NUL"]),
    "csv": (HEADER + b"1,ann,2\n", ["the name says JSON lines", "item,annot"]),
}


ROW = HEADER + b"1,ann,2\n"
CORRUPT = bytearray(gzip.compress(HEADER + b"1,ann,2\n" * 99))
CORRUPT[-6] ^= 1  # the checksum
LOCKED = bytearray(zipped_content(HEADER))
for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
    LOCKED[LOCKED.rfind(mark) + flags] |= 1
TWICE = pa.table([pa.array([1])] * 4, names=["item", "annotator", "label", "label"])
OTHER_BAD_FILES = [
    *((f"x.{kind}", ROW, ["the name says", "b'item,annotat'"]) for kind in COLUMNAR),
    *((f"x.csv{kind}", ROW, ["the name says", "b'item,annotat'"]) for kind in COMPRESSED),
    *(
        (f"x.csv{kind}", COMPRESSIONS[kind](b""), ["is empty once it is decompressed"])
        for kind in (".gz", ".bz2", ".xz", ".zip")
    ),
    *(
        (f"x.csv{kind}", COMPRESSIONS[kind](gzip.compress(HEADER)), ["file (gzip): decompress it"])
        for kind in (".gz", ".zip")
    ),
    ("x.csv.gz", bytes(CORRUPT), ["gzip", "damaged"]),
    ("x.parquet.gz", gzip.compress(ROW), ["the name says a Parquet file"]),
    ("x.zip", zipped_content(HEADER, ("a.csv", "b.csv")), ["the zip holds 2 files"]),
    ("x.zip", zipped_content(HEADER, ()), ["the zip holds no files: create it again"]),
    ("x.zip", bytes(LOCKED), ["unzip it"]),
    (
        "x.xlsx",
        zipped_content(b"<", ("[Content_Types].xml", "a")),
        ["save the labels as .xlsx or CSV"],
    ),
    ("x.csv", HEADER + b"x" * 500_000 + b",ann,1\n1,2\n", ["row 2 (line 3) has 2"]),
    ("x.arrow", FORMATS["arrow"](TWICE), ["two columns are named 'label'"]),
    *(
        (
            "x.parquet",
            FORMATS["parquet"](
                pa.table({"item": values, "annotator": ["a", "b"], "label": [1, 2]})
            ),
            ["'item'"],
        )
        for values in ([[1], [2]], [{"a": 1}, {"a": 2}], [b"\xff", b"\xfe"])
    ),
]


@pytest.mark.parametrize(
    ("name", "content", "facts"),
    [
        *(("labels.csv", *bad) for bad in BAD_CSV_FILES.values()),
        *(("labels.jsonl", *bad) for bad in BAD_JSON_LINES.values()),
        *OTHER_BAD_FILES,
    ],
    ids=[
        *BAD_CSV_FILES,
        *(f"json {name}" for name in BAD_JSON_LINES),
        *range(len(OTHER_BAD_FILES)),
    ],
)
def test_bad_files_are_refused(refused, name, content, facts):
    text = refused(content, name)
    for fact in facts:
        assert fact in text


@pytest.mark.parametrize(
    "text",
    [
        '{"item": 1, "annotator": "[[{", "label": "a \\\\"}\n' * 300,
        '{"item": 1, "annotator": "]\\"}{", "label": "a"}\n' * 300,
        '{"item": 1, "annotator": [[["a"]]], "label": "{{{"}\n' * 300,
    ],
)
def test_brackets_in_text_are_not_nested(text):
    assert not json_lines._may_be_deep(pa.py_buffer(text.encode()))
    for size in (7, 64, 1000):  # strings and escapes across partitions
        parts = [text[start : start + size].encode() for start in range(0, len(text), size)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_lines, "partitions", lambda _, parts=parts: parts)
            assert not json_lines._may_be_deep(pa.py_buffer(b""))


def test_many_different_keys_are_read_slowly(tmp_path):
    line = '{"item": %d, "annotator": "ann", "label": 2, "key%d": 1}\n'
    path = tmp_path / "labels.jsonl"
    for n, slow in ((900, False), (3000, True)):
        data = "".join(line % (row, row) for row in range(n)).encode()
        assert json_lines._has_many_keys(pa.py_buffer(data)) == slow
        path.write_bytes(data)
        assert read_labels(path).n_items == n


def test_a_surrogate_in_a_key_that_is_not_read_does_not_matter(read):
    other = LINE.replace(b'"ann"', b'"bob"').replace(b"{", b'{"\\ud800": 1, ')
    assert read(LINE + other, "labels.jsonl").n_labels == 2


@pytest.mark.parametrize("names", [("labels",), ("ann.jsonl", "bob.jsonl")])
def test_zips_with_any_damaged_byte_are_read_or_refused(tmp_path, zipped, names):
    content = b'{"id": 1, "text": "t", "label": ["a"]}\n'
    data = zipped(content, names)
    path = tmp_path / "labels.zip"
    refusals = set()
    for place in range(len(data)):
        for change in (0xFF, 0x01):
            path.write_bytes(data[:place] + bytes([data[place] ^ change]) + data[place + 1 :])
            try:
                read_labels(path)
            except InputError as error:
                refusals.add(str(error).partition(": ")[2])
    assert max(map(len, refusals)) < 400
    assert any("damaged or truncated" in refusal for refusal in refusals)
    assert any("cannot be decompressed" in refusal for refusal in refusals)
    assert any("encrypted" in refusal for refusal in refusals)


def test_a_mark_in_the_first_row_is_part_of_the_id(tmp_path):
    for end in ("\n", "\r\n"):
        path = tmp_path / "labels.csv"
        rows = ["item,annotator,label", "\ufeffa,ann,1", "\ufeffa,bob,2", "a,ann,2"]
        path.write_bytes((end.join(rows) + end).encode())
        assert read_labels(path).items.to_pylist() == ["\ufeffa", "a"]


def test_memory_that_is_not_enough_is_reported(read, monkeypatch):
    for error, amount in (
        (MemoryError(), ""),
        (pa.lib.ArrowMemoryError("malloc of size 8000 failed"), "8,000 bytes"),
        (MemoryError("Unable to allocate 7.45 GiB for an array with shape (1,)"), "7.45 GiB"),
    ):

        def fail(*_, error=error, **__):
            raise error

        monkeypatch.setattr(parse, "read_columns", fail)
        with pytest.raises(InputError, match=f"not enough memory.*{amount}.*memory='1GB'"):
            read(HEADER + b"1,ann,2\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.csv", r"nowhere\.csv: no such file: check the path$"),
        ("link.csv", r"link\.csv: this is a link that leads to itself: name"),
        ("file/labels.csv", r"labels\.csv: no such file: check the path"),
        ("", ": this is a folder"),
    ],
)
def test_paths_at_fault_are_reported(tmp_path, name, message):
    (tmp_path / "link.csv").symlink_to("link.csv")
    (tmp_path / "file").write_text("x")
    if not name:
        tmp_path = tmp_path / "folder"
        tmp_path.mkdir()
    with pytest.raises(InputError, match=message):
        read_labels(tmp_path / name)


def test_files_without_permission_are_reported(read, monkeypatch):

    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    # Removing the permission does not stop a superuser, who may run the tests.
    monkeypatch.setattr(pa, "memory_map", forbidden)
    with pytest.raises(InputError, match="may not be read: check its permissions"):
        read(HEADER)


def test_names_with_a_line_break_stay_on_one_line(read):
    with pytest.raises(InputError, match=r"two lines\.csv: the file is empty$"):
        read(b"", "two\nlines.csv")


@pytest.mark.parametrize("suffix", COLUMNAR)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_truncated_columnar_files_are_refused(refused, table, formats, suffix, share):
    content = formats[suffix](table)
    text = refused(content[: int(len(content) * share)], f"labels.{suffix}")
    assert "damaged or truncated" in text
    assert "again" in text


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows"])
def test_damaged_files_raise_only_input_errors(tmp_path, table, formats, suffix):
    path = tmp_path / f"labels.{suffix}"
    content = formats[suffix](table)
    for place in range(0, len(content), max(1, len(content) // 150)):
        changed = bytes([content[place] ^ 0xFF])
        path.write_bytes(content[:place] + changed + content[place + 1 :])
        with suppress(InputError):  # the byte may be one that does not matter
            read_labels(path)


FLIP_FOOTER = """
import pathlib, sys
from contextlib import suppress
from annotruth.errors import InputError
from annotruth.io.readers import read_labels

path = pathlib.Path(sys.argv[1])
content = path.read_bytes()
start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
for bit in range(8 * start, 8 * (start + 90)):
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    path.write_bytes(changed)
    with suppress(InputError):
        read_labels(path)
"""


def test_no_bit_of_a_parquet_footer_ends_the_process(tmp_path, table, formats):
    path = tmp_path / "labels.parquet"
    for content in (table, table.set_column(2, "label", pa.array([["a"]] * len(table)))):
        path.write_bytes(formats["parquet"](content))
        run = [sys.executable, "-c", FLIP_FOOTER, str(path)]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_rows_that_a_parquet_footer_does_not_count_are_noticed(refused, table, formats):
    content = formats["parquet"](table)
    n = len(table)
    encoded = _zigzag(n)
    places = [at for at in range(len(content)) if content.startswith(encoded, at)]
    found = []
    for place in places[-8:]:
        changed = content[:place] + _zigzag(n - 1) + content[place + len(encoded) :]
        with suppress(pytest.fail.Exception):
            found.append(refused(changed, "labels.parquet"))
    assert any("rows where the footer says" in text for text in found)


def _zigzag(n: int) -> bytes:
    """Return an integer as Parquet's footers have it."""
    n, encoded = 2 * n, []
    while n > 127:
        encoded.append(128 | n & 127)
        n >>= 7
    return bytes([*encoded, n])


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_truncated_compressed_files_are_refused(refused, compressions, suffix):
    content = compressions[suffix](HEADER + b"".join(b"%d,ann,%d\n" % (i, i) for i in range(999)))
    text = refused(content[: len(content) // 2], f"labels.csv{suffix}")
    assert "damaged or truncated" in text


def test_tar_archives_are_refused(refused, tmp_path):
    (tmp_path / "a.csv").write_bytes(HEADER)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "a.csv", "a.csv")
    content = (tmp_path / "a.tar").read_bytes()
    for name, data in (("labels.tar", content), ("labels.tar.gz", gzip.compress(content))):
        assert "this is a tar archive: unpack it, and name a file of it" in refused(data, name)


def test_names_of_columns_may_be_ids_and_labels(read):
    assert read(HEADER + b"item,annotator,cat\nitem,ann,label\n1,annotator,label\n").n_labels == 3


def test_what_macos_adds_to_a_zip_is_left_out(read, zipped):
    packed = zipped(HEADER + b"1,ann,2\n", ("labels.csv", "__MACOSX/._labels.csv", ".x"))
    assert read(packed, "labels.zip").n_labels == 1


def test_bad_rows_are_numbered_across_blocks(refused, monkeypatch):
    monkeypatch.setattr("annotruth.io.batches._BLOCK", 256)
    rows = b"".join(b"%d,ann,1\n" % i for i in range(500))
    assert "row 501 (line 502) has 2 fields" in refused(HEADER + rows + b"1,2\n" + rows)


def test_bad_bytes_are_located_across_partitions(refused, monkeypatch):
    from annotruth.io import content

    partitions = content.partitions
    monkeypatch.setattr(content, "partitions", lambda data: partitions(data, 16))
    # The two bytes of the letter are in two partitions.
    good = b"item,label,annotator\n1,2,aaaaaa\xc3\xa9\n"
    assert good.index(b"\xc3") == 31
    assert "byte 36 (line 3) is 0xe9" in refused(good + b"1,\xe9,a\n")
    assert "byte 31 (line 2) is 0xc3" in refused(good[:32] + b"a\n")
    assert "byte 36 is NUL" in refused(good + b"1,\0,a\n")


def test_the_field_size_limit_of_csv_is_restored(refused):
    import csv

    before = csv.field_size_limit()
    refused(HEADER + b"1\n")
    assert csv.field_size_limit() == before


def test_a_question_is_refused_for_a_long_table(read):
    with pytest.raises(InputError, match="has no questions: leave out question"):
        read(HEADER + b"1,ann,2\n1,bob,3\n", question="colour")
