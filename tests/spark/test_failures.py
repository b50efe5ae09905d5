"""What goes wrong is told in one line, and leaves no files."""

import importlib.util
import shutil

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.engines.spark import starting
from annotruth.engines.spark.failures import in_one_line

COLUMNS = "item string, annotator string, label long"
ROWS = [("a", "x", 1), ("a", "y", 2), ("b", "x", 2), ("b", "y", 1)]
TWICE = pa.table({"item": ["a", "a"], "label": [1, 2]})
BAD = {
    "no rows": ([], COLUMNS, {}, "no rows"),
    "no labels": ([("a", "x", None)], COLUMNS, {}, "every row has an empty label"),
    "no item": ([("a", "x", 1), (None, "x", 1)], COLUMNS, {}, "1 rows have a label but no item"),
    "twice": ([*ROWS, ("a", "x", 2)], COLUMNS, {}, "annotator 'x' on item 'a'"),
    "no column": (ROWS, "item string, who string, label long", {}, "no column for the annotator"),
    "unknown": (ROWS, COLUMNS, {"categories": [1, 3]}, "label 2 is not among the categories"),
    "lists": ([(["a"], "x", 1)], "item array<string>, annotator string, label long", {}, "list"),
    "last": (ROWS, COLUMNS, {"duplicates": "last"}, "have no order"),
    "gold": (ROWS, COLUMNS, {"gold": {"z": 1}}, "names 1 items that have no labels"),
    "gold twice": (ROWS, COLUMNS, {"gold": TWICE}, "names item 'a' twice"),
    "annotator_prior": (
        ROWS,
        COLUMNS,
        {"annotator_prior": {"x": 0.9}},
        "annotator_prior is not for labels on Spark",
    ),
    "memory": (ROWS, COLUMNS, {"memory": "1GB"}, "memory is not for labels on Spark"),
}


@pytest.mark.parametrize(("rows", "columns", "how", "words"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_leaves_nothing(rows, columns, how, words, spark, engine, folder):
    frame = spark.createDataFrame(rows, columns)
    with pytest.raises(at.InputError, match=words) as raised:
        at.fit(frame, "gpm", engine=engine(2), **how)
    assert "\n" not in str(raised.value)
    assert not list(folder.iterdir())


def test_rows_without_a_label_are_dropped_and_counted(spark, engine):
    frame = spark.createDataFrame([*ROWS, ("c", "x", None)], COLUMNS)
    with at.fit(frame, "gpm", engine=engine(2)) as found:
        assert found.data.n_dropped == 1
        assert "1 row had no label" in found.summary()
        assert found.items().count() == 2


def test_state_is_gone_after_a_fit_and_tables_when_it_is_closed(frame, engine, folder):
    found = at.fit(frame, "gpm", engine=engine(2), tol=10.0)
    (tables,) = folder.iterdir()
    assert {path.suffix for path in tables.iterdir()} == {".parquet"}
    found.close()
    assert not list(folder.iterdir())


def test_state_is_gone_after_a_fit_that_failed(frame, engine, folder):
    def stop(progress):
        if progress.n_iter == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        at.GPM(engine=engine(2)).fit(frame, progress=stop)
    assert not list(folder.iterdir())


def test_models_that_cannot_say_who_can(frame, labels):
    for data in (frame, labels):
        with pytest.raises(at.InputError, match=r"glad cannot run on Spark.*memory"):
            at.GLAD(engine="spark").fit(data)
    with pytest.raises(at.InputError, match="choose engine='spark'"):
        at.GPM().fit(frame)
    with pytest.raises(at.InputError, match="annotator_prior is not for labels on Spark"):
        at.RobustGPM(engine="spark").fit(frame, annotator_prior={"x": 0.9})
    with pytest.raises(at.InputError, match="auto fits many models"):
        at.fit(frame, "auto")


def test_what_needs_items_in_memory_says_so(frame, engine):
    model = at.GPM(engine=engine(2), tol=10.0).fit(frame)
    with pytest.raises(at.AnnotruthError, match="this fit is on Spark"):
        model.labels_  # noqa: B018
    with pytest.raises(at.AnnotruthError, match="this fit is on Spark"):
        model.partial_fit([("new", "x", 1)])
    model.result_.close()


def test_an_executor_killed_twice_changes_nothing(run_script, folder):
    run_script("killed_fit.py", folder)


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(at.InputError, match=r"pip install 'annotruth\[spark\]'"):
        starting.running_session()
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(at.InputError, match="Java 17 or newer"):
        starting._need_java()


def test_sparks_failures_are_one_line():
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, PySparkException

    told = {
        "Traceback\n  File x\nModuleNotFoundError: No module named 'annotruth'\n": "no annotruth",
        "[JAVA_GATEWAY_EXITED] Java gateway\nmore": "Java 17 or newer",
        "Job aborted\nTraceback:\nValueError: too few\n\tat java": "ValueError: too few",
        "": "gave no reason",
    }
    for text, words in told.items():
        with pytest.raises(at.AnnotruthError, match=words), in_one_line("it failed"):
            raise PySparkException(text)
    with pytest.raises(at.AnnotruthError, match="executor lost"), in_one_line("it failed"):
        raise Py4JError("executor lost\n\tat java")
    with pytest.raises(at.InputError, match="no such table"), in_one_line("it failed"):
        raise AnalysisException("no such table SQLSTATE: 42P01\nmore")


def test_spark_elsewhere_needs_a_shared_folder(frame, monkeypatch):
    import annotruth.engines.spark as room

    monkeypatch.setattr(room, "is_local", lambda spark: False)
    with pytest.raises(at.InputError, match="a folder that all of them reach"):
        at.fit(frame, "gpm", engine="spark")
