"""Pair comparisons on Spark: the same results as in memory."""

import numpy as np
import pytest

import annotruth as at
from annotruth import simulate
from annotruth.engines.spark import labels as spark_labels
from annotruth.engines.spark.storage import SharedFolder
from annotruth.errors import InputError, OutputError


@pytest.fixture(scope="module")
def votes():
    """Votes of a crowd with inverted annotators."""
    return simulate.comparers(n_items=8, n_annotators=15, behavior="inverted", seed=2).comparisons


@pytest.fixture
def always_in_tasks(monkeypatch):
    """Let Spark's tasks run passes over a few comparisons, too."""
    monkeypatch.setattr(spark_labels, "MAX_LABELS_ON_DRIVER", 0)


@pytest.mark.parametrize("model", ["bradley-terry", "thurstone", "crowd-bt"])
def test_results_are_those_of_memory(model, votes, make_engine, storage):
    on_spark = at.rank(votes, model, engine=make_engine(3))
    expected = at.rank(votes, model)
    assert on_spark.scores.mean == pytest.approx(expected.scores.mean, abs=1e-6)
    assert on_spark.scores.sd == pytest.approx(expected.scores.sd, abs=1e-6)
    if expected.reliability is not None:
        assert on_spark.reliability == pytest.approx(expected.reliability, abs=1e-6)
    assert not list(storage.iterdir())


def test_pair_gpm_names_the_engine_that_can(votes, make_engine):
    with pytest.raises(InputError, match=r"not on the engine spark: pass `--engine memory`"):
        at.rank(votes, engine=make_engine(3))


def test_tasks_of_spark_run_the_passes(votes, make_engine, always_in_tasks, storage):
    on_spark = at.rank(votes, "crowd-bt", engine=make_engine(2), tol=10.0)
    expected = at.rank(votes, "crowd-bt", tol=10.0)
    assert on_spark.scores.mean == pytest.approx(expected.scores.mean, abs=1e-9)
    assert not list(storage.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": [0, 9]}, "left has a code outside"),
        ({"outcome": [0, 3]}, "outcome has a code outside"),
        ({"annotator_ptr": [0, 3]}, "do not follow each other"),
        ({"right": [1]}, "its lengths are not those"),
    ],
)
def test_forged_files_are_refused(change, message, tmp_path):
    columns = {"left": [0, 1], "right": [1, 2], "outcome": [0, 2], "annotator_ptr": [0, 2]}
    folder = SharedFolder(str(tmp_path))
    arrays = {name: np.array(values) for name, values in (columns | change).items()}
    partition = spark_labels.ComparisonPartition(
        folder.write("comparisons", arrays), n_annotators=1, n_comparisons=2, n_items=3
    )
    with pytest.raises(OutputError, match=message):
        partition.load(folder)


def test_the_command_writes_the_tables_of_memory(votes, run, spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    votes.to_arrow().to_pandas().to_csv("votes.csv", index=False)
    arguments = ("rank", "votes.csv", "--model", "crowd-bt", "--quiet")
    assert run(*arguments, "--out", "memory") == (0, "", "")
    assert run(*arguments, "--out", "spark", "--engine", "spark", "--save", "fit") == (0, "", "")
    for name in ("annotators", "comparisons"):
        texts = {(tmp_path / engine / f"{name}.csv").read_text() for engine in ("memory", "spark")}
        assert len({text.partition("\n")[0] for text in texts}) == 1
    assert at.load("fit").model == "crowd-bt"
    code, _, err = run("rank", "votes.csv", "--storage", "x")
    assert (code, err) == (2, "annotruth: --master and --storage need --engine spark\n")
