"""Files in the storage that somebody else has written: no code runs, and kernels stay in bounds."""

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.engines.spark import labels as spark_labels
from annotruth.engines.spark.labels import (
    LabelPartition,
    load_partition,
    read_values,
    write_partition,
    write_values,
)
from annotruth.engines.spark.storage import SharedFolder
from annotruth.observations import Labels

DATA = [("a", "x", "cat"), ("a", "y", "dog"), ("b", "x", "dog"), ("c", "y", "dog")]


class Touch:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def forged_pickle(marker):
    return pickle.dumps(Touch(marker))


def forged_extension(marker):
    """Return an Arrow file with a type that old versions of Arrow unpickled."""
    metadata = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(Touch(marker)),
    }
    kind = pa.large_list(pa.field("item", pa.float64(), metadata=metadata))
    schema = pa.schema([pa.field("values", kind, metadata=metadata)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write(pa.record_batch([pa.array([[1.0]], pa.large_list(pa.float64()))], schema))
    return sink.getvalue().to_pybytes()


@pytest.fixture
def marker(tmp_path):
    """A file that exists once forged code has run, as it does if it is unpickled."""
    path = tmp_path / "marker"
    pickle.loads(forged_pickle(path))
    path.unlink()
    return path


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    return SharedFolder(str(path))


@pytest.mark.parametrize("forge", [forged_pickle, forged_extension])
def test_code_in_files_does_not_run(forge, folder, marker):
    labels = Labels.of(DATA)
    partition = write_partition(folder, labels, np.array([0, 1]))
    values = write_values(folder, "state", np.ones(3))
    for path in folder.local_path.iterdir():
        path.write_bytes(forge(marker))
    for read in (
        lambda: load_partition(folder, partition),
        lambda: read_values(folder, values, (3,), np.float64),
    ):
        with pytest.raises(at.OutputError, match=r"cannot read .*/folder/") as raised:
            read()
        assert "\n" not in str(raised.value)
    assert not marker.exists()


@pytest.mark.parametrize("on_workers", [True, False])
def test_code_in_files_does_not_run_during_a_fit(
    on_workers, frame, make_engine, storage, marker, monkeypatch, capfd
):
    monkeypatch.setattr(spark_labels, "MAX_LABELS_ON_DRIVER", 0 if on_workers else 10**6)

    def forge(progress):
        for path in storage.rglob("*.arrow"):
            path.unlink()  # the partition may be mapped
            path.write_bytes(forged_pickle(marker))

    with pytest.raises(at.AnnotruthError, match=r"cannot read .*: Not an Arrow file"):
        at.GPM(engine=make_engine(2)).fit(frame, progress=forge)
    assert not marker.exists()
    assert not list(storage.iterdir())


CHANGES = {
    "item_ptr": np.array([0, 2, 9, 4]),
    "cell_ptr": np.array([0, 1, 2, 2, 4]),
    "cell_category": np.array([0, 1, 7, 1], dtype=np.int32),
    "annotator": np.array([0, 1, -1, 1], dtype=np.int32),
    "row": np.array([0, 1, 2, 4], dtype=np.int32),
    "known": np.array([-1, -2, 0], dtype=np.int32),
    "annotator_codes": np.array([0, 1, 2]),
    "items": np.arange(2),
    "scale_categories": np.arange(1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_indices_out_of_bounds_are_refused(folder, name):
    partition = write_partition(folder, Labels.of(DATA), np.array([0, 1]))
    load_partition(folder, partition)
    columns = {**folder.read(partition.file), name: CHANGES[name]}
    changed = partition._replace(file=folder.write("labels", columns))
    with pytest.raises(at.OutputError, match=f"cannot read .*{changed.file}: ") as raised:
        load_partition(folder, changed)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("type_", [np.float32, np.int64])
def test_other_lengths_and_types_are_refused(folder, type_):
    partition = write_partition(folder, Labels.of(DATA), np.array([0, 1]))
    for counts in ((3, 4, 5, 2), (3, 4, 4, 1)):
        with pytest.raises(at.OutputError, match="lengths are not those that were written"):
            load_partition(folder, LabelPartition(partition.file, *counts))
    for values in (np.ones(5), np.ones(6, dtype=type_)):
        with pytest.raises(at.OutputError, match=r"not \(2, 3\) of float64"):
            read_values(folder, write_values(folder, "s", values), (2, 3), np.float64)
    assert read_values(folder, write_values(folder, "s", np.ones(6)), (2, 3), np.float64).shape == (
        2,
        3,
    )


def test_offsets_out_of_bounds_are_refused(folder):
    name = folder.write("some", {"values": pa.array(["text", "more"])})
    path = folder.local_path / name
    content = path.read_bytes()
    offsets = np.array([0, 4, 8], dtype=np.int32).tobytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, np.array([0, 4, 800], dtype=np.int32).tobytes()))
    with pytest.raises(at.OutputError, match="cannot read"):
        folder.read(name)
