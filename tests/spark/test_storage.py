"""Files that are written once, on any file system."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from annotruth.engines.spark import storage
from annotruth.engines.spark.chunks import Chunk, Slices
from annotruth.engines.spark.storage import Storage


@pytest.fixture(params=["mapped", "read"])
def folder(request, tmp_path, monkeypatch):
    """A folder whose files are mapped into memory, or read as from an object store."""
    if request.param == "read":
        monkeypatch.setattr(
            storage, "_file_system", lambda uri: (fs.LocalFileSystem(use_mmap=False), uri)
        )
    return Storage(str(tmp_path)).new_folder()


def test_columns_of_any_length_come_back(folder):
    columns = {"numbers": np.arange(6.0).reshape(2, 3), "texts": pa.array(["é", None, ""])}
    back = folder.read(folder.write("some", columns))
    assert back["numbers"].to_pylist() == list(range(6))
    assert back["texts"].to_pylist() == ["é", None, ""]
    assert folder.read(folder.write("words", {"behavior": ["serious", "random"]}))[
        "behavior"
    ].to_pylist() == ["serious", "random"]


def test_parts_are_read_one_at_a_time(folder):
    name = folder.write_parts("some", ({"n": np.arange(n)} for n in (3, 0, 1)))
    assert [len(folder.read(name, part)["n"]) for part in range(3)] == [3, 0, 1]


def test_files_and_folders_go(folder, tmp_path):
    names = [folder.write("some", {"n": np.arange(3)}) for _ in range(3)]
    folder.remove(names[:2])
    folder.remove([])
    assert [path.name for path in (tmp_path / folder.uri).iterdir()] == names[2:]
    folder.remove_all()
    folder.remove_all()
    assert not list(tmp_path.iterdir())


def test_addresses_are_spelled_as_spark_does():
    assert Storage("s3a://bucket/x").address("y") == "s3a://bucket/x/y"


@pytest.mark.parametrize("n", [1, 3, 7])
def test_sums_of_chunks_are_added_in_slices(folder, n):
    rng = np.random.default_rng(0)
    chunks, total, slices = [], np.zeros((7, 2)), Slices(7, n)
    for _ in range(4):
        people = np.flatnonzero(rng.random(7) < 0.6)
        sums = rng.random((len(people), 2))
        chunks.append(slices.write(folder, people, sums))
        total[people] += sums
    parts = [slices.add_slice(folder, chunks, 2, place) for place in range(n)]
    assert np.array_equal(np.concatenate(parts), total)


def test_slices_follow_the_sums_of_all_chunks():
    def cut(n_annotators, n_chunks, width):
        chunks = [Chunk("", 1, 1, 1, n_annotators)] * n_chunks
        return Slices.of(chunks, n_annotators, width).n

    assert cut(5_000, 8, 1) == 1
    assert cut(20_000_000, 10, 1) == 48
    assert cut(3, 1, 10**9) == 3
