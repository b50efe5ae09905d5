"""One local Spark for all tests that need it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from annotruth import simulate
from annotruth.engines.spark import SparkEngine
from annotruth.engines.spark.starting import running_session

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def java():
    """Skip where Spark cannot run; with ANNOTRUTH_NEEDS_JAVA set that is a failure."""
    if shutil.which("java") is None and "ANNOTRUTH_NEEDS_JAVA" not in os.environ:
        pytest.skip("no Java here: install it to test Spark")


@pytest.fixture(scope="session")
def spark(java):
    """A local session on two cores."""
    return running_session("local[2]", silent=True)


@pytest.fixture
def folder(tmp_path):
    """Where state and tables go, to see that they are gone."""
    made = tmp_path / "storage"
    made.mkdir()
    return made


@pytest.fixture
def engine(spark, folder):
    """A maker of engines: ``engine(partitions)``."""
    return lambda partitions=None: SparkEngine(spark, folder.as_uri(), partitions)


@pytest.fixture(scope="session")
def labels():
    """The contract's crowd."""
    return simulate.crowd(n_items=40, n_annotators=12, n_categories=4, seed=11).labels


@pytest.fixture(scope="session")
def frame(spark, labels):
    """The contract's crowd on Spark, with text ids and in another order."""
    table = labels.to_arrow().to_pandas().sample(frac=1.0, random_state=3)
    table["item"] = "item " + table["item"].astype(str)
    table["annotator"] = "né-" + table["annotator"].astype(str)
    import pyarrow as pa

    return spark.createDataFrame(pa.Table.from_pandas(table, preserve_index=False)).cache()


@pytest.fixture
def run_script(java):
    """Run a script of this folder in a Python of its own, which fails where its claims do."""

    def run(name, *words, timeout=480):
        done = subprocess.run(
            check=False,
            args=[sys.executable, str(HERE / name), *map(str, words)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"},
        )
        assert done.returncode == 0, done.stderr[-3000:]

    return run
