"""Errors are one line, and no files remain."""

import importlib.util
import os
import shutil
import signal
import threading
import time

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.engines.spark import SparkEngine, cluster
from annotruth.engines.spark import engine as engine_module
from annotruth.engines.spark.cluster import errors_in_one_line, run_tasks
from annotruth.engines.spark.storage import SharedFolder
from annotruth.observations import Labels

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
    "last": (ROWS, COLUMNS, {"duplicates": "last"}, "pass duplicates='keep'"),
    "gold": (ROWS, COLUMNS, {"gold": {"z": 1}}, "no item of the gold has labels"),
    "gold twice": (ROWS, COLUMNS, {"gold": TWICE}, "names item 'a' twice"),
    "annotator_prior": (
        ROWS,
        COLUMNS,
        {"annotator_prior": {"x": 0.9}},
        r"annotator_prior is not supported on Spark",
    ),
    "memory": (
        ROWS,
        COLUMNS,
        {"memory": "1GB"},
        r"memory is not supported on Spark",
    ),
    "covariates": (
        ROWS,
        COLUMNS,
        {"covariates": ["time"]},
        r"covariates is not supported on Spark",
    ),
}


@pytest.mark.parametrize(("rows", "columns", "options", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_one_line(
    rows, columns, options, message, spark, make_engine, storage
):
    frame = spark.createDataFrame(rows, columns)
    with pytest.raises(at.InputError, match=message) as raised:
        at.fit(frame, "gpm", engine=make_engine(2), **options)
    assert "\n" not in str(raised.value)
    assert not list(storage.iterdir())


def test_rows_without_a_label_are_dropped_and_counted(spark, make_engine):
    frame = spark.createDataFrame([*ROWS, ("c", "x", None)], COLUMNS)
    with at.fit(frame, "gpm", engine=make_engine(2)) as fit:
        assert fit.data.n_dropped == 1
        assert "1 row had no label" in fit.summary()
        assert fit.items().count() == 2


def test_only_tables_remain_after_a_fit(frame, make_engine, storage):
    fit = at.fit(frame, "gpm", engine=make_engine(2), tol=10.0)
    (tables,) = storage.iterdir()
    assert tables.stat().st_mode & 0o777 == 0o700
    assert {path.suffix for path in tables.iterdir()} == {".parquet"}
    fit.close()
    assert not list(storage.iterdir())


def test_files_are_removed_after_a_fit_that_failed(frame, make_engine, storage):
    def interrupt(progress):
        if progress.n_iter == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        at.GPM(engine=make_engine(2)).fit(frame, progress=interrupt)
    assert not list(storage.iterdir())


def test_warm_starts_of_distributed_labels_are_refused(frame, labels, make_engine, storage):
    previous = at.fit(labels, "gpm", tol=10.0)
    engine = make_engine(2)
    with pytest.raises(at.InputError, match="warm_start is for labels on this machine"):
        at.fit(frame, "gpm", engine=engine, warm_start=previous)
    assert not list(storage.iterdir())


def test_labels_on_disk_are_refused(tmp_path, make_engine, storage):
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\na,x,1\na,y,2\n")
    labels = at.read_labels(path, memory="1GB")
    assert labels.on_disk
    with pytest.raises(at.InputError, match="the engine spark takes no labels on disk"):
        at.GPM(engine=make_engine()).fit(labels)
    assert not list(storage.iterdir())


def test_unsupported_models_and_engines_name_the_alternatives(frame, labels):
    for data in (frame, labels):
        with pytest.raises(at.InputError, match=r"glad runs on the engines memory.*choose gpm"):
            at.GLAD(engine="spark").fit(data)
    with pytest.raises(at.InputError, match="pass engine='spark'"):
        at.GPM().fit(frame)
    with pytest.raises(at.InputError, match=r"pass engine='spark'"):
        Labels.of(frame)
    with pytest.raises(at.InputError, match=r"annotator_prior is not supported on Spark"):
        at.RobustGPM(engine="spark").fit(frame, annotator_prior={"x": 0.9})
    with pytest.raises(at.InputError, match="auto fits many models"):
        at.fit(frame, "auto")


def test_what_needs_items_in_memory_is_refused(frame, make_engine):
    model = at.GPM(engine=make_engine(2), tol=10.0).fit(frame)
    with pytest.raises(at.AnnotruthError, match="this fit is distributed"):
        model.predict_proba([0], [0])
    with pytest.raises(at.AnnotruthError, match="this fit is distributed"):
        model.partial_fit([("new", "x", 1)])
    model.result_.close()


def test_an_executor_killed_twice_changes_no_result(run_script, storage):
    run_script("killed_executor_fit.py", storage)


@pytest.mark.parametrize(
    ("storage", "reason"),
    [
        ("/proc/annotruth", "No such file or directory"),
        ("/dev/null/annotruth", "Not a directory"),
        ("nowhere://annotruth", "Unrecognized filesystem type"),
    ],
)
def test_storage_that_cannot_be_written_is_named(frame, spark, storage, reason):
    with pytest.raises(at.OutputError, match=f"cannot write to {storage}: {reason}.*as storage"):
        at.fit(frame, "gpm", engine=SparkEngine(spark, storage))


def test_storage_that_disappears_is_named(frame, make_engine, storage):
    def remove(progress):
        shutil.rmtree(storage)

    with pytest.raises(at.OutputError, match=r"^cannot write .*storage.*: No such file"):
        at.GPM(engine=make_engine(2)).fit(frame, progress=remove)


def test_storage_that_workers_cannot_write_is_named(spark, capfd):
    folder = SharedFolder("/proc/annotruth")
    message = r"^a Spark task failed: cannot write /proc/annotruth/some.*: No such file.*as storage"
    with pytest.raises(at.AnnotruthError, match=message) as raised:
        run_tasks(spark, lambda number: folder.write("some", {"x": ["y"]}), 1)
    assert "\n" not in str(raised.value)


def kill_worker(number):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_named(spark, capfd):
    with pytest.raises(at.AnnotruthError, match="a Python worker was killed or crashed") as raised:
        run_tasks(spark, kill_worker, 1)
    assert "\n" not in str(raised.value)


def test_a_cancelled_job_is_named(spark, capfd):
    def cancel():
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.1)
        spark.sparkContext.cancelAllJobs()

    threading.Thread(target=cancel).start()
    with pytest.raises(at.AnnotruthError, match=r"task failed: the job was cancelled: fit again$"):
        run_tasks(spark, lambda number: time.sleep(60), 1)


def test_missing_programs_are_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(at.InputError, match=r"pip install 'annotruth\[spark\]'"):
        cluster.get_session()
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(at.InputError, match="Java 17 or newer"):
        cluster._check_java()


def test_errors_of_spark_become_one_line():
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, PySparkException

    messages = {
        "Traceback\n  File x\nModuleNotFoundError: No module named 'annotruth'\n": "is missing on",
        "[JAVA_GATEWAY_EXITED] Java gateway\nmore": "Java 17 or newer",
        "Job aborted\nTraceback:\nValueError: too few\n\tat java": "ValueError: too few",
        "": "gave no reason",
        "calling o2.collect.\n: org.SparkException: Job aborted": "^it failed: org.Spark.*aborted",
        "x\nannotruth.errors.OutputError: cannot write y\n": "^it failed: cannot write y$",
        "Task 0: ExecutorLostFailure (executor 1 exited)": "executors were lost",
        "Job 3 cancelled because SparkContext was shut down": "Spark was stopped or killed",
    }
    for text, message in messages.items():
        with pytest.raises(at.AnnotruthError, match=message), errors_in_one_line("it failed"):
            raise PySparkException(text)
    with pytest.raises(at.AnnotruthError, match="executor lost"), errors_in_one_line("it failed"):
        raise Py4JError("executor lost\n\tat java")
    with pytest.raises(at.AnnotruthError, match="Spark was stop"), errors_in_one_line("it failed"):
        raise ConnectionRefusedError
    with pytest.raises(at.InputError, match="no such table"), errors_in_one_line("it failed"):
        raise AnalysisException("no such table SQLSTATE: 42P01\nmore")


def test_spark_on_other_machines_needs_a_shared_folder(frame, monkeypatch):
    monkeypatch.setattr(engine_module, "is_local", lambda spark: False)
    with pytest.raises(at.InputError, match=r"a folder that all of them can reach.*storage='URL'"):
        at.fit(frame, "gpm", engine="spark")
