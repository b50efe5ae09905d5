"""The same answers as in memory."""

import warnings

import pytest
from comparing import same_tables

import annotruth as at
from annotruth.engines import memory
from annotruth.engines.spark import chunks, people
from annotruth.models.registry import get_model

SMALLEST = {
    "one label": [("a", "x", 1)],
    "one annotator": [("a", "x", 1), ("b", "x", 2), ("c", "x", 2)],
    "one item": [("a", "x", 1), ("a", "y", 2), ("a", "z", 2)],
    "one category": [("a", "x", 1), ("a", "y", 1), ("b", "x", 1)],
}
ON_SPARK = ["gpm", "robust-gpm", "dawid-skene"]


def few_steps(name, **options):
    """A model that stops after some steps, as each is a job of Spark's."""
    return get_model(name)(max_iter=6, **options)


def fitted(estimator, data, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        return estimator.fit(data, **more).result_


@pytest.fixture(scope="module")
def in_memory(frame):
    table = frame.toArrow()
    return {name: fitted(few_steps(name), table) for name in ON_SPARK}


@pytest.mark.parametrize("partitions", [1, 4, 37])
@pytest.mark.parametrize("name", ON_SPARK)
def test_a_frame_is_fitted_as_in_memory(name, partitions, frame, in_memory, engine):
    with fitted(few_steps(name, engine=engine(partitions)), frame) as found:
        same_tables(found, in_memory[name])
        assert found.log_likelihood == pytest.approx(in_memory[name].log_likelihood, rel=1e-12)
        assert found.n_iter == in_memory[name].n_iter


@pytest.mark.parametrize("name", ON_SPARK)
def test_labels_in_memory_may_be_swept_on_spark(name, labels, engine):
    one = fitted(few_steps(name, engine=engine(5)), labels)
    other = fitted(few_steps(name), labels)
    assert isinstance(one, at.Fit)
    ids = ["item", "annotator", "label"]
    assert one.label_table().select(ids).equals(other.label_table().select(ids))
    for part in ("reliability", "p_serious", "expectation"):
        a, b = getattr(one, part), getattr(other, part)
        assert (a is None) == (b is None)
        if a is not None:
            assert a == pytest.approx(b, abs=1e-9)


def test_leaps_and_learned_behaviors_are_the_same(frame, engine):
    options = {"behavior": "learned", "acceleration": True, "max_iter": 9}
    with fitted(at.GPM(engine=engine(3), **options), frame) as found:
        same_tables(found, fitted(at.GPM(**options), frame.toArrow()))


def test_passes_in_single_precision_are_the_same(frame, engine, monkeypatch):
    monkeypatch.setattr(memory, "SINGLE_PRECISION_LABELS", 0)
    model = few_steps("robust-gpm", truth="opinions")
    on_spark = few_steps("robust-gpm", truth="opinions", engine=engine(4))
    # Chunks are added up in another order than parts, in six digits.
    same_tables(fitted(on_spark, frame), fitted(model, frame.toArrow()), tolerance=1e-4)


def test_many_annotators_are_added_up_by_tasks(frame, in_memory, engine, monkeypatch):
    """Cut into slices and shards of three annotators, as millions would be."""
    monkeypatch.setattr(chunks, "_NUMBERS_A_SLICE", 3)
    monkeypatch.setattr(people, "_PEOPLE_A_SHARD", 3)
    with fitted(few_steps("gpm", engine=engine(2)), frame) as found:
        assert len(found.data.shards) > 3
        same_tables(found, in_memory["gpm"])
    with fitted(few_steps("robust-gpm", engine=engine(2)), frame) as found:
        same_tables(found, in_memory["robust-gpm"])


@pytest.mark.parametrize("name", ON_SPARK)
def test_gold_counts_as_in_memory(name, frame, engine):
    gold = {"item 1": 2, "item 7": 4}
    options = {"max_iter": 4}
    with fitted(get_model(name)(engine=engine(3), **options), frame, gold=gold) as found:
        same_tables(found, fitted(get_model(name)(**options), frame.toArrow(), gold=gold))


@pytest.mark.parametrize("data", SMALLEST.values(), ids=SMALLEST)
@pytest.mark.parametrize("name", ON_SPARK)
def test_the_smallest_crowds(name, data, spark, engine):
    frame = spark.createDataFrame(data, "item string, annotator string, label long")
    with fitted(few_steps(name, engine=engine(2)), frame) as found:
        same_tables(found, fitted(few_steps(name), data))


def test_classes_and_words_keep_their_order(spark, engine):
    words = ["cat", "dog", "emu"]
    data = [(e, s, words[(e * s) % 3]) for e in range(8) for s in range(1, 6)]
    frame = spark.createDataFrame(data, ["question", "worker", "the `answer`.no"])
    frame = frame.withColumnsRenamed({"question": "item.id"})
    columns = {"item": "item.id", "label": "the `answer`.no"}
    for more in ({}, {"categories": ["emu", "dog", "cat"]}):
        one = at.fit(frame, "gpm", engine=engine(2), tol=1.0, columns=columns, **more)
        other = at.fit([*data], "gpm", tol=1.0, **more)
        with one:
            same_tables(one, other)


def test_fit_takes_frames_and_files(spark, frame, engine, tmp_path):
    csv = tmp_path / "labels.csv"
    frame.toArrow().to_pandas().to_csv(csv, index=False)
    with at.fit(str(csv), "gpm", engine=engine(2), tol=1.0) as found:
        same_tables(found, at.fit(csv, "gpm", tol=1.0))
    with at.fit(frame, tol=1.0) as found:
        assert isinstance(found, at.SparkFit)
        assert found.model == "robust-gpm"
        assert "annotators: median reliability" in found.summary()


def test_a_connect_session_gives_the_same(run_script):
    run_script("connect_fit.py")
