"""Files fitted within a memory limit: the same labels and results, and nothing left behind."""

import errno
import gc
import gzip
import mmap
import sys
import tempfile
import warnings
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import annotruth as at
from annotruth import simulate
from annotruth.engines.memory import MemoryEngine
from annotruth.models.registry import MODELS, get_model
from annotruth.observations import disk

LITTLE = 50_000  # bytes: batches of some 50 rows, and ranges of items with some 250 labels


@pytest.fixture(scope="module")
def table():
    """Labels with text ids in any order, some of them missing."""
    crowd = simulate.crowd(n_items=300, n_annotators=25, n_categories=4, seed=3)
    table = crowd.labels.to_arrow()
    rng = np.random.default_rng(4)
    table = table.take(pa.array(rng.permutation(table.num_rows)))
    label = table["label"].to_pylist()
    for row in rng.integers(table.num_rows, size=40):
        label[row] = None
    return pa.table(
        {
            "item": [f"item-{e}" for e in table["item"].to_pylist()],
            "annotator": [f"wörker {s}" for s in table["annotator"].to_pylist()],
            "label": label,
        }
    )


def written(table, path):
    if path.name.endswith(".csv"):
        pa.csv.write_csv(table, path)
    elif path.name.endswith(".csv.gz"):
        text = pa.BufferOutputStream()
        pa.csv.write_csv(table, text)
        path.write_bytes(gzip.compress(text.getvalue()))
    elif path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=700)
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table, max_chunksize=300)
    else:
        pa.feather.write_feather(table, str(path), chunksize=300)
    return path


def same_labels(one, other):
    assert one.items.equals(other.items)
    assert one.annotators.equals(other.annotators)
    assert one.scale.categories.equals(other.scale.categories)
    assert (one.scale.kind, one.n_dropped) == (other.scale.kind, other.n_dropped)
    for name in ("item_ptr", "cell_category", "cell_ptr", "annotator", "row", "known"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    assert one.to_arrow().equals(other.to_arrow())


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow", "arrows"])
def test_labels_on_disk_equal_those_in_memory(table, tmp_path, ending):
    path = written(table, tmp_path / f"labels.{ending}")
    same_labels(at.read_labels(path, memory=LITTLE), at.read_labels(path))


@pytest.mark.parametrize(
    "item", [pa.int64(), pa.int16(), pa.float64(), pa.large_string(), pa.date32(), pa.bool_()]
)
def test_ids_of_any_type_are_kept(tmp_path, item):
    numbers = pa.array(np.random.default_rng(1).integers(2, size=900))
    if not pa.types.is_boolean(item):
        numbers = pa.array(np.random.default_rng(1).integers(500, size=900).astype(np.int32))
    labels = pa.table(
        {
            "item": numbers.cast(item),
            "annotator": range(900),
            "label": ["yes", "no", "perhaps"] * 300,
        }
    )
    path = written(labels, tmp_path / "labels.parquet")
    same_labels(at.read_labels(path, memory=4 * LITTLE), at.read_labels(path))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_ordered_categoricals_keep_their_order(table, tmp_path, ending):
    words = pa.array(["bad", "fair", "good", "great"]).take(
        pa.array([None if v is None else v - 1 for v in table["label"].to_pylist()], pa.int32())
    )
    levels = pa.array(["great", "good", "fair", "bad"])
    indices = pa.compute.index_in(words, levels)
    ordered = pa.DictionaryArray.from_arrays(indices, levels, ordered=True)
    path = written(table.set_column(2, "label", ordered), tmp_path / f"labels.{ending}")
    labels, in_memory = at.read_labels(path, memory=LITTLE), at.read_labels(path)
    same_labels(labels, in_memory)
    if ending == "arrow":
        assert labels.scale.names == ["great", "good", "fair", "bad"]


@pytest.mark.parametrize("duplicates", ["keep", "last"])
def test_duplicates_are_handled_as_in_memory(table, tmp_path, duplicates):
    again = table.slice(50, 300).set_column(2, "label", pa.array([2] * 300))
    path = written(pa.concat_tables([table, again]), tmp_path / "labels.parquet")
    within = at.read_labels(path, memory=LITTLE, duplicates=duplicates)
    same_labels(within, at.read_labels(path, duplicates=duplicates))


def test_identical_rows_count_once_as_in_memory(table, tmp_path):
    path = written(pa.concat_tables([table, table.slice(50, 300)]), tmp_path / "labels.parquet")
    within, in_memory = at.read_labels(path, memory=LITTLE), at.read_labels(path)
    same_labels(within, in_memory)
    n_empty = table["label"].slice(50, 300).null_count
    assert within.n_repeated == in_memory.n_repeated == 300 - n_empty


def relabelled(table):
    return table.set_column(2, "label", pc.subtract(5, table["label"]))


def unnamed(role, ids):
    rows = {"item": ids, "annotator": ids, "label": [1] * len(ids)}
    return pa.table({**rows, ("annotator" if role == "item" else "item"): ["new"] * len(ids)})


@pytest.mark.parametrize(
    "change",
    [
        lambda table: pa.concat_tables([table, relabelled(table.slice(9, 80))]),
        lambda table: pa.concat_tables([table, unnamed("item", ["", "a", None])]),
        lambda table: pa.concat_tables([table, unnamed("annotator", [" "])]),
        lambda table: table.set_column(2, "label", pa.nulls(len(table), pa.int64())),
        lambda table: table.slice(0, 0),
        lambda table: table.rename_columns(["item", "who", "label"]),
    ],
    ids=["twice", "no item", "no annotator", "no label", "no rows", "no column"],
)
def test_bad_rows_give_the_same_messages_as_in_memory(table, tmp_path, change):
    path = written(change(table), tmp_path / "labels.parquet")
    with pytest.raises(at.InputError) as in_memory:
        at.read_labels(path)
    with pytest.raises(at.InputError) as within:
        at.read_labels(path, memory=LITTLE)
    assert str(within.value) == str(in_memory.value)


def test_bad_rows_of_a_csv_are_numbered(table, tmp_path):
    path = written(table, tmp_path / "labels.csv")
    path.write_text(path.read_text() + '"a","b",1,2\n')
    with pytest.raises(at.InputError, match=f"row {table.num_rows + 1} .* has 4 fields"):
        at.read_labels(path, memory=LITTLE)


@pytest.fixture
def in_file_order(monkeypatch):
    """Fit in memory in the order of the file, as many labels are, and as on disk in any case.

    Sums of few labels have the same terms in another order.
    """
    monkeypatch.setattr("annotruth.models.fits.make_fit.MAX_CANONICAL_LABELS", 0)


def fits(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        return [at.fit(path, memory=memory, **options) for memory in (LITTLE, None)]


MODELS_ON_DISK = [name for name in MODELS if get_model(name).capabilities.out_of_core]


@pytest.mark.parametrize("gold", [None, {"item-3": 1, "item-7": 4}], ids=["plain", "gold"])
@pytest.mark.parametrize("model", MODELS_ON_DISK)
@pytest.mark.usefixtures("in_file_order")
def test_fits_are_identical_to_those_in_memory(table, tmp_path, model, gold):
    path = written(table, tmp_path / "labels.parquet")
    within, in_memory = fits(path, model=model, gold=gold, max_iter=30)
    assert within.data.on_disk
    assert within.item_table().equals(in_memory.item_table())
    assert within.annotator_table().equals(in_memory.annotator_table())
    assert within.label_table().equals(in_memory.label_table())
    assert within.summary() == in_memory.summary()


@pytest.mark.parametrize("model", MODELS_ON_DISK)
def test_fits_of_few_labels_equal_those_in_memory_up_to_rounding(table, tmp_path, model):
    path = written(table, tmp_path / "labels.parquet")
    within, in_memory = fits(path, model=model, max_iter=30)
    for name in ("item_table", "annotator_table", "label_table"):
        one, other = (getattr(fit, name)().to_pydict() for fit in (within, in_memory))
        for column, values in one.items():
            if isinstance(values[0], float):
                np.testing.assert_allclose(values, other[column], atol=1e-9)
            else:
                assert values == other[column]


@pytest.mark.usefixtures("in_file_order")
def test_classes_are_fitted_as_in_memory(tmp_path):
    rng = np.random.default_rng(2)
    item = np.repeat(np.arange(300), 6)
    right = rng.random(len(item)) < 0.7
    label = np.where(right, item % 3, rng.integers(3, size=len(item)))
    table = pa.table(
        {
            "item": [f"item-{e}" for e in item],
            "annotator": [
                f"s{s}"
                for s in rng.permuted(np.tile(np.arange(20), (300, 1)), axis=1)[:, :6].ravel()
            ],
            "label": np.array(["a", "b", "c"])[label],
        }
    )
    within, in_memory = fits(written(table, tmp_path / "labels.parquet"))
    assert within.data.on_disk
    assert within.verdict == in_memory.verdict == "informative"
    for readout in ("right", "opinion"):
        tables = (fit.distribution_table(readout) for fit in (within, in_memory))
        assert next(tables).equals(next(tables))
    assert within.annotator_table().equals(in_memory.annotator_table())


@pytest.mark.parametrize("format", ["csv", "parquet", "json"])
@pytest.mark.usefixtures("in_file_order")
def test_partitioned_tables_are_written_as_complete_ones(table, tmp_path, run, monkeypatch, format):
    monkeypatch.setattr("annotruth.io.writers._CELLS_AT_ONCE", 500)
    monkeypatch.setattr("annotruth.io.writers._ROWS_AT_ONCE", 70)
    path = written(table, tmp_path / "labels.csv")
    words = ["fit", path, "--format", format, "--quiet", "--out"]
    assert run(*words, tmp_path / "within", "--memory", "250KB") == (0, "", "")
    assert run(*words, tmp_path / "whole") == (0, "", "")
    for name in ("items", "annotators", "labels"):
        one, other = (tmp_path / folder / f"{name}.{format}" for folder in ("within", "whole"))
        if format == "parquet":
            assert pa.parquet.read_table(one).equals(pa.parquet.read_table(other))
        else:
            assert one.read_bytes() == other.read_bytes()


@pytest.mark.usefixtures("in_file_order")
def test_distributions_of_many_categories_are_written_in_partitions(tmp_path, run, monkeypatch):
    monkeypatch.setattr("annotruth.io.writers._CELLS_AT_ONCE", 100)
    rng = np.random.default_rng(5)
    labels = pa.table(
        {
            "item": np.repeat(np.arange(300), 4),
            "annotator": np.tile(np.arange(4), 300),
            "label": [f"word {n}" for n in rng.integers(150, size=1200)],
        }
    )
    path = written(labels, tmp_path / "labels.parquet")
    words = ["fit", path, "--model", "gpm", "--format", "parquet", "--quiet", "--out"]
    assert run(*words, tmp_path / "within", "--memory", "250KB")[0] == 0
    assert run(*words, tmp_path / "whole")[0] == 0
    one, other = (
        pa.parquet.read_table(tmp_path / folder / "distributions.parquet")
        for folder in ("within", "whole")
    )
    assert one.equals(other)


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A folder for temporary files that nothing else uses."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def maps_of(folder):
    return [
        line for line in Path("/proc/self/maps").read_text().splitlines() if str(folder) in line
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_is_left_on_disk(table, tmp_path, scratch):
    path = written(table, tmp_path / "labels.csv")
    fit = at.fit(path, "gpm", memory="250KB")
    assert maps_of(scratch)  # it is used, by files without a name
    assert not list(scratch.iterdir())
    del fit
    gc.collect()
    assert not maps_of(scratch)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_is_left_on_disk_after_a_failure(table, tmp_path, scratch):
    path = written(table, tmp_path / "labels.csv")

    def interrupt(progress):
        assert maps_of(scratch)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        at.fit(path, "gpm", memory="250KB", progress=interrupt)
    gc.collect()
    assert not list(scratch.iterdir())
    assert not maps_of(scratch)


def test_too_little_disk_space_is_reported_in_one_line(table, tmp_path, monkeypatch):
    path = written(table, tmp_path / "labels.csv")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(at.OutputError, match=r"are needed in .*, where 10 bytes are free: free"):
        at.fit(path, "gpm", memory="250KB")


def test_a_full_disk_is_reported_in_one_line(table, tmp_path, monkeypatch):
    path = written(table, tmp_path / "labels.csv")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk.os, "posix_fallocate", full, raising=False)
    with pytest.raises(at.OutputError, match=r"the disk of .* is full: .* set TMPDIR"):
        at.fit(path, "gpm", memory="250KB")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--memory", "lots"], "`--memory` 'lots' is not a size: write 500MB, 1GB or 1.5GiB"),
        (["--memory", "0MB"], "`--memory` '0MB' is not a size"),
        (["--memory", "-1GB"], "`--memory` '-1GB' is not a size"),
        (["--memory", "5XB"], "`--memory` '5XB' is not a size"),
        (["--memory", "1KB"], "memory of 1.0 kB is too little: ids alone take"),
        (["--memory", "1GB", "--model", "glad"], "glad needs all labels in memory"),
        (["--memory", "1GB", "--model", "auto"], "auto fits many models, in memory: name one"),
        (
            ["--memory", "1GB", "--input-format", "wide"],
            "only a table of one row per label is read",
        ),
    ],
)
def test_unsupported_options_are_refused_in_one_line(table, tmp_path, run, options, message):
    path = written(table, tmp_path / "labels.csv")
    code, out, err = run("fit", path, "--out", tmp_path / "out", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_memory_that_sums_of_annotators_need_is_named(tmp_path):
    labels = pa.table({"item": [1] * 400, "annotator": range(400), "label": [1, 3] * 200})
    path = written(labels, tmp_path / "labels.parquet")
    with pytest.raises(at.InputError, match=r"the sums of 400 annotators alone take .* at least"):
        at.fit(path, "robust-gpm", memory="40KB", truth="opinions")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "labels.jsonl",
            b'{"item": 1, "annotator": 2, "label": 3}\n',
            "JSON is not read within a memory limit",
        ),
        ("labels.csv.xz", b"\xfd7zXZ\x00rest", "decompress the file first"),
        ("labels.csv.gz", b"\x1f\x8brest", "the gzip content is damaged"),
        ("labels.parquet", b"PAR1rest", "the Parquet content is damaged"),
        ("labels.csv", b"item,annotator,label\n1,a,\0\n", "is NUL"),
    ],
)
def test_files_that_need_memory_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(at.InputError, match=message):
        at.read_labels(tmp_path / name, memory=LITTLE)


def test_memory_is_for_files_of_single_labels(table, tmp_path):
    path = written(
        table.set_column(2, "label", pa.array([[1]] * len(table))), tmp_path / "l.parquet"
    )
    with pytest.raises(at.InputError, match=r"sets of labels need .*leave out memory"):
        at.read_labels(path, memory=LITTLE)
    with pytest.raises(at.InputError, match="memory is for files"):
        at.fit(table, memory="1GB")


def test_arrays_of_models_are_on_disk_too(table, tmp_path):
    labels = at.read_labels(written(table, tmp_path / "labels.csv"), memory=LITTLE)
    with closing(MemoryEngine().open(labels)) as session:
        session.allocate("theta", per="cells", shape=(2,))
        array = session.collect("theta")
    assert array.shape == (labels.n_cells, 2)
    while isinstance(array, np.ndarray):
        array = array.base
    assert isinstance(array.obj, mmap.mmap)
