"""One local Spark session for all tests that need Spark."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from annotruth import simulate
from annotruth.engines.spark import SparkEngine
from annotruth.engines.spark.cluster import get_session

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def java():
    """Skip where Java is missing, unless ANNOTRUTH_NEEDS_JAVA is set: then the test fails."""
    if shutil.which("java") is None and "ANNOTRUTH_NEEDS_JAVA" not in os.environ:
        pytest.skip("Java is missing: install it to test Spark")


@pytest.fixture(scope="session")
def spark(java):
    """A local session on two cores."""
    return get_session("local[2]", silent=True)


@pytest.fixture
def storage(tmp_path):
    """The folder for the engine's files, in which tests see that they are removed."""
    folder = tmp_path / "storage"
    folder.mkdir()
    return folder


@pytest.fixture
def make_engine(spark, storage):
    """Return a function that makes an engine with a number of partitions."""
    return lambda partitions=None: SparkEngine(spark, storage.as_uri(), partitions)


@pytest.fixture(scope="session")
def labels():
    """Labels in memory."""
    return simulate.crowd(n_items=40, n_annotators=12, n_categories=4, seed=11).labels


@pytest.fixture(scope="session")
def frame(spark, labels):
    """The same labels in a Spark frame, with text ids and in another order."""
    table = labels.to_arrow().to_pandas().sample(frac=1.0, random_state=3)
    table["item"] = "item " + table["item"].astype(str)
    table["annotator"] = "né-" + table["annotator"].astype(str)
    return spark.createDataFrame(pa.Table.from_pandas(table, preserve_index=False)).cache()


@pytest.fixture
def run_script(java):
    """Return a function that runs a script of this folder in its own process, which must succeed."""

    def run(name, *arguments, timeout=480):
        done = subprocess.run(
            check=False,
            args=[sys.executable, str(HERE / name), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"},
        )
        assert done.returncode == 0, done.stderr[-3000:]

    return run
