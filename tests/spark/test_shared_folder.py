"""Files that are written once, on any file system, and hold data only."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from annotruth.engines.spark import storage
from annotruth.engines.spark.labels import load_partition, write_partition
from annotruth.engines.spark.storage import SharedFolder
from annotruth.observations import Labels


@pytest.fixture(params=["mapped", "read"])
def folder(request, tmp_path, monkeypatch):
    """A folder whose files are mapped into memory, or read as from an object store."""
    if request.param == "read":
        monkeypatch.setattr(
            storage, "_file_system", lambda uri: (fs.LocalFileSystem(use_mmap=False), uri)
        )
    folder = SharedFolder(str(tmp_path)).new_in("some-")
    folder.make()
    return folder


def test_columns_of_different_lengths_are_read_back(folder):
    columns = {"numbers": np.arange(6.0).reshape(2, 3), "texts": pa.array(["é", None, ""])}
    read = folder.read(folder.write("some", columns))
    assert read["numbers"].to_pylist() == list(range(6))
    assert read["texts"].to_pylist() == ["é", None, ""]
    read = folder.read(folder.write("words", {"behavior": ["serious", "random"]}))
    assert read["behavior"].to_pylist() == ["serious", "random"]


def test_batches_are_read_one_at_a_time(folder):
    name = folder.write_batches("some", ({"n": np.arange(n)} for n in (3, 0, 1)))
    assert [len(folder.read(name, batch)["n"]) for batch in range(3)] == [3, 0, 1]


def test_files_and_folders_are_removed(folder, tmp_path):
    names = [folder.write("some", {"n": np.arange(3)}) for _ in range(3)]
    folder.remove(names[:2])
    folder.remove([])
    assert [path.name for path in (tmp_path / folder.uri).iterdir()] == names[2:]
    folder.remove_all()
    folder.remove_all()
    assert not list(tmp_path.iterdir())


def test_addresses_are_spelled_as_spark_does():
    assert SharedFolder("s3a://bucket/x").address_of("y") == "s3a://bucket/x/y"


SCALES = {
    "nominal": {"label": ["cat", "dog"]},
    "ordinal": {"label": ["bad", "good"], "categories": ["bad", "fair", "good"]},
    "numbers": {"label": [1, 2]},
    "truth values": {"label": [True, False]},
    "bins": {"label": [0.25, 8.5], "bins": [0.0, 5.0, 10.0]},
}


@pytest.mark.parametrize("options", SCALES.values(), ids=SCALES)
def test_partitions_keep_labels_and_scale(folder, options):
    data = pa.table({"item": ["a", "b"], "annotator": ["x", "x"], "label": options["label"]})
    options = {name: value for name, value in options.items() if name != "label"}
    labels = Labels.of(data, **options)
    partition = write_partition(folder, labels, np.array([7]))
    loaded, annotator_codes = load_partition(folder, partition)
    assert annotator_codes.tolist() == [7]
    assert loaded.to_arrow().equals(labels.to_arrow())
    assert loaded.scale.kind == labels.scale.kind
    assert loaded.scale.categories.equals(labels.scale.categories)
    assert loaded.scale.values.tolist() == labels.scale.values.tolist()
    assert (loaded.scale.edges is None) == (labels.scale.edges is None)
    if labels.scale.edges is not None:
        assert loaded.scale.edges.tolist() == labels.scale.edges.tolist()


def test_files_hold_no_pickled_objects(tmp_path):
    folder = SharedFolder(str(tmp_path))
    labels = Labels.of([("a", "x", "cat"), ("b", "x", "dog")])
    columns = folder.read(write_partition(folder, labels, np.array([0])).file)
    assert not [name for name, column in columns.items() if pa.types.is_large_binary(column.type)]
    assert not [name for name, column in columns.items() if pa.types.is_binary(column.type)]
