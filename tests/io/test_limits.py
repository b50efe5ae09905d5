"""Files that would exhaust memory are refused before they do; the limit can be raised."""

import json
import lzma
import os
import threading
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import content
from annotruth.io.decompress import arrow_size, decoded_size, read_stream
from annotruth.io.parse import read_table
from annotruth.io.readers import read_labels

HEADER = b"item,annotator,label\n"
ZEROS = pa.table({name: np.zeros(200_000, np.int64) for name in ("item", "annotator", "label")})


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch):
    """Let any file take 1 MB, so that small files can be bombs."""
    monkeypatch.setattr(content, "_UNSUSPICIOUS", 1_000_000)


def _stream(codec):
    def write(path):
        with pa.CompressedOutputStream(os.fspath(path), codec) as file:
            file.write(HEADER + b"a,b,1\n" * 400_000)

    return write


def _zip(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.csv", HEADER + b"a,b,1\n" * 400_000)


def _xz(path):
    path.write_bytes(lzma.compress(HEADER + b"a,b,1\n" * 400_000))


def _parquet(path):
    pa.parquet.write_table(ZEROS, path, compression="zstd")


def _arrow(path, new=pa.ipc.new_file):
    with new(path, ZEROS.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(ZEROS)


def _arrow_stream(path):
    _arrow(path, pa.ipc.new_stream)


BOMBS = {
    "labels.csv.gz": _stream("gzip"),
    "labels.csv.bz2": _stream("bz2"),
    "labels.csv.zst": _stream("zstd"),
    "labels.csv.xz": _xz,
    "labels.zip": _zip,
    "labels.parquet": _parquet,
    "labels.feather": _arrow,
    "labels.arrows": _arrow_stream,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_holds_too_much_is_refused_unless_it_is_allowed(tmp_path, name):
    path = tmp_path / name
    BOMBS[name](path)
    assert path.stat().st_size < 60_000
    for read in (read_labels, read_table):
        with pytest.raises(
            InputError, match=r"more than .* the limit.*max_size='[\d.]+GB'"
        ) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
    labels = read_labels(path, max_size="1GB", duplicates="keep")
    is_columnar = name.endswith(("parquet", "feather", "arrows"))
    assert labels.n_labels == (200_000 if is_columnar else 400_000)


@pytest.mark.parametrize("name", ["labels.csv.gz", "labels.parquet", "labels.feather"])
def test_the_limit_holds_within_a_memory_limit(tmp_path, name):
    path = tmp_path / name
    BOMBS[name](path)
    with pytest.raises(InputError, match="the limit"):
        read_labels(path, memory="100MB")
    assert read_labels(path, memory="100MB", max_size="1GB", duplicates="keep").n_labels >= 200_000


def test_a_bomb_as_gold_truth_or_prior_is_refused(tmp_path):
    bomb = tmp_path / "bomb.csv.gz"
    BOMBS["labels.csv.gz"](bomb)
    labels = [("a", "ann", 1), ("a", "bob", 2), ("b", "ann", 1)]
    for option in ("gold", "annotator_prior"):
        with pytest.raises(InputError, match=r"bomb\.csv\.gz: .* the limit"):
            at.fit(labels, **{option: bomb})
    fit = at.fit(labels, "gpm")
    with pytest.raises(InputError, match=r"bomb\.csv\.gz: .* the limit"):
        at.evaluate(fit, bomb)
    with pytest.raises(InputError, match="twice"):  # read in full
        at.evaluate(fit, bomb, max_size="1GB")


def test_labels_that_compress_well_are_read(read):
    rows = "".join(
        f"item {e},annotator {s},{(e * s) % 5}\n" for e in range(2000) for s in range(10)
    )
    assert read(lzma.compress(HEADER + rows.encode(), preset=9), "labels.csv.xz").n_labels == 20_000


def test_a_plain_file_may_be_large(read):
    assert read(HEADER + b"a,b,1\n" * 200_000, duplicates="keep").n_labels == 200_000


def test_one_long_text_in_a_dictionary_is_not_repeated(tmp_path):
    table = pa.table(
        {"item": ["x" * 100_000] * 500, "annotator": [*range(500)], "label": [1] * 500}
    )
    path = tmp_path / "labels.parquet"
    pa.parquet.write_table(table, path, dictionary_pagesize_limit=1 << 20)
    assert read_labels(path).n_items == 1
    with pytest.raises(InputError, match=r"text takes 50.0 MB"):
        read_table(path)
    assert len(read_table(path, max_size="1GB")["item"][0].as_py()) == 100_000


def test_json_is_measured_as_objects(tmp_path):
    path = tmp_path / "labels.json.gz"
    with pa.CompressedOutputStream(os.fspath(path), "gzip") as file:
        file.write(b"[" + b"[]," * 30_000 + b"[]]")
    with pytest.raises(InputError, match=r"JSON takes .* the limit"):
        read_labels(path)


def test_a_zip_of_several_files_is_measured_as_a_whole(tmp_path):
    record = json.dumps({"id": 1, "text": "x" * 400, "label": ["a"]}).encode()
    path = tmp_path / "users.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for user in range(4):
            archive.writestr(f"{user}.jsonl", record + b"\n" + b" " * 500_000)
    with pytest.raises(InputError, match=r"takes 2.0 MB of memory, more than 1.0 MB"):
        read_labels(path)
    assert read_labels(path, max_size="100MB").n_annotators == 4


def test_pipes_are_read_once_and_within_the_limit(tmp_path):
    lines = b'{"item": 1, "annotator": "ann", "label": 2}\n{"item": 1, "annotator": "bob", "label": 3}\n'
    for text, reads in (
        (HEADER + b"a,ann,1\na,bob,2\n", True),
        (lines, True),
        (b"a,b,1\n" * 500_000, False),
    ):
        path = tmp_path / f"pipe{len(text)}"
        os.mkfifo(path)

        def write(path=path, text=text):
            try:
                with path.open("wb") as file:
                    file.write(text)
            except BrokenPipeError:
                pass

        writer = threading.Thread(target=write)
        writer.start()
        if reads:
            assert read_labels(path).n_labels == 2
        else:
            with pytest.raises(InputError, match=r"the pipe holds more than 1.0 MB, the limit"):
                read_labels(path)
        writer.join()


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_devices_are_refused(device):
    if not Path(device).exists():
        pytest.skip("needs devices")
    with pytest.raises(InputError, match=f"{device}: this is a device"):
        read_labels(device)


@pytest.mark.parametrize("size", ["", "much", "-1GB", 0])
def test_a_limit_that_is_no_size_is_refused(read, size):
    with pytest.raises(InputError, match=r"max_size .* is not a size"):
        read(HEADER + b"a,b,1\n", max_size=size)


def test_the_size_of_arrow_files_is_that_of_their_buffers():
    table = pa.table(
        {"item": ["a" * 100] * 900 + ["b"], "annotator": [1] * 901, "label": [*range(901)]}
    )
    per_value = content.VALUE_BYTES * 901 * 3
    for new in (pa.ipc.new_file, pa.ipc.new_stream):
        for compression in (None, "lz4", "zstd"):
            stream = pa.BufferOutputStream()
            options = pa.ipc.IpcWriteOptions(compression=compression)
            with new(stream, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=300)
            size = arrow_size(stream.getvalue())
            assert size == pytest.approx(table.nbytes + per_value, rel=0.01)


def test_damaged_arrow_files_raise_only_errors_of_arrow():
    stream = pa.BufferOutputStream()
    with pa.ipc.new_file(stream, ZEROS.schema) as writer:
        writer.write_table(ZEROS.slice(0, 10))
    data = stream.getvalue()
    for length in range(6, data.size, 7):
        with suppress(pa.ArrowException, OSError):
            arrow_size(data.slice(0, length))
    random = np.random.default_rng(0)
    for _ in range(300):
        damaged = np.frombuffer(data, np.uint8).copy()
        damaged[random.integers(len(damaged), size=5)] = random.integers(256, size=5)
        with suppress(pa.ArrowException, OSError):
            arrow_size(pa.py_buffer(damaged))


def test_texts_of_views_and_dictionaries_are_measured_as_values():
    texts = pa.array(["a" * 50, None, "b" * 50, "a" * 50])
    views, codes = texts.cast(pa.string_view()), texts.dictionary_encode()
    for array, kept, decoded in ((views, 150, 150), (codes, 0, 150), (texts, 0, 0)):
        table = pa.table({"item": array})
        assert decoded_size(table, keep_codes=True) == kept
        assert decoded_size(table, keep_codes=False) == decoded
    assert decoded_size(pa.table({"item": views[2:]}), keep_codes=True) == 100


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_text_of_parquet_files_is_read_in_every_encoding(tmp_path, encoding):
    path = tmp_path / "labels.parquet"
    table = pa.table(
        {"item": ["i", "i", "k"], "annotator": ["a", "b", "a"], "label": ["u", "v", "u"]}
    )
    encodings = dict.fromkeys(table.column_names, encoding)
    pyarrow.parquet.write_table(table, path, use_dictionary=False, column_encoding=encodings)
    assert read_labels(path).to_arrow().equals(at.Labels.of(table).to_arrow())


def test_a_long_text_that_all_values_begin_with_counts_as_often_as_it_is_read(tmp_path):
    path = tmp_path / "labels.parquet"
    items = [f"{'x' * 10_000}{number}" for number in range(2_000)]
    table = pa.table({"item": items, "annotator": ["a", "b"] * 1_000, "label": ["u", "v"] * 1_000})
    encodings = {"item": "DELTA_BYTE_ARRAY"}
    pyarrow.parquet.write_table(table, path, use_dictionary=False, column_encoding=encodings)
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match="reading the Parquet content takes more than"):
        read_labels(path)


def test_only_the_chosen_columns_of_parquet_files_count(tmp_path):
    path = tmp_path / "labels.parquet"
    few = {"item": [1], "annotator": [2], "label": [3]}
    pa.parquet.write_table(pa.table({**few, "text": ["x" * 2_000_000]}), path)
    assert read_labels(path).n_labels == 1


def test_lists_of_too_many_values_are_refused(tmp_path):
    n = 2_000_000
    codes = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["x"]))
    lists = pa.ListArray.from_arrays(pa.array([0, n], pa.int32()), codes)
    table = pa.table({"item": ["a"], "annotator": ["b"], "label": lists})
    path = tmp_path / "labels.parquet"
    pa.parquet.write_table(table, path)
    assert path.stat().st_size < 2_000
    with pytest.raises(
        InputError, match=r"lists of the Parquet content takes 48.0 MB .* the limit"
    ):
        read_labels(path)


def test_all_parts_of_a_stream_count():
    def stream(n_parts):
        parts = iter([b"0123456789"] * n_parts)
        return lambda size: next(parts, b"")

    assert read_stream(stream(3), "file", limit=30).to_pybytes() == b"0123456789" * 3
    with pytest.raises(InputError, match="the file holds more than"):
        read_stream(stream(4), "file", limit=30)
