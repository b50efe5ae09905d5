"""Results on Spark are those in memory."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from comparison import assert_same_tables

import annotruth as at
from annotruth.engines.spark import labels as spark_labels
from annotruth.models.registry import get_model
from annotruth.models.robust_gpm import opinion_model

SMALLEST = {
    "one label": [("a", "x", 1)],
    "one annotator": [("a", "x", 1), ("b", "x", 2), ("c", "x", 2)],
    "one item": [("a", "x", 1), ("a", "y", 2), ("a", "z", 2)],
    "one category": [("a", "x", 1), ("a", "y", 1), ("b", "x", 1)],
}
MODELS = ["gpm", "robust-gpm", "dawid-skene"]


def make_model(name, **options):
    """Return a model that stops after six iterations, each of which is a Spark job."""
    return get_model(name)(max_iter=6, **options)


def fit_model(model, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        return model.fit(data, **options).result_


@pytest.fixture(scope="module")
def in_memory(frame):
    table = frame.toArrow()
    return {name: fit_model(make_model(name), table) for name in MODELS}


@pytest.fixture
def on_workers(monkeypatch):
    """Let Spark's workers make passes over few labels, too."""
    monkeypatch.setattr(spark_labels, "MAX_LABELS_ON_DRIVER", 0)


@pytest.mark.parametrize("name", ["gpm", "dawid-skene"])
def test_workers_fit_a_frame_as_in_memory(name, frame, in_memory, make_engine, on_workers):
    with fit_model(make_model(name, engine=make_engine(4)), frame) as fit:
        assert_same_tables(fit, in_memory[name])
        assert fit.log_likelihood == pytest.approx(in_memory[name].log_likelihood, rel=1e-12)


@pytest.mark.parametrize("partitions", [1, 4, 37])
@pytest.mark.parametrize("name", MODELS)
def test_a_frame_is_fitted_as_in_memory(name, partitions, frame, in_memory, make_engine):
    with fit_model(make_model(name, engine=make_engine(partitions)), frame) as fit:
        assert_same_tables(fit, in_memory[name])
        assert fit.log_likelihood == pytest.approx(in_memory[name].log_likelihood, rel=1e-12)
        assert fit.n_iter == in_memory[name].n_iter
        assert (fit.readout, fit.verdict) == (in_memory[name].readout, in_memory[name].verdict)


@pytest.mark.parametrize("name", ["one-coin", "ibcc", "ebcc", "bwa", "mace"])
def test_models_of_classes_are_fitted_as_in_memory(name, frame, make_engine):
    starts = {"n_init": 1} if name in ("ebcc", "mace") else {}
    in_memory = fit_model(make_model(name, **starts), frame.toArrow())
    with fit_model(make_model(name, engine=make_engine(4), **starts), frame) as fit:
        assert_same_tables(fit, in_memory)
        assert fit.log_likelihood == pytest.approx(in_memory.log_likelihood, rel=1e-12)


def test_data_in_memory_are_fitted_there(labels, make_engine, storage):
    fit = fit_model(make_model("gpm", engine=make_engine(5)), labels)
    assert fit.kind == "labels"
    assert fit.item_table().equals(fit_model(make_model("gpm"), labels).item_table())
    assert not list(storage.iterdir())


def test_names_and_the_order_of_rows_change_nothing(spark, make_engine):
    rows = [
        (f"i{e}", f"a{s}", "xyz"[(e + (s > 3) * (e % 2)) % 3]) for e in range(9) for s in range(6)
    ]
    swap = {"x": "z", "z": "x", "y": "y"}
    renamed = [(f"i{8 - int(e[1])}", f"a{5 - int(s[1])}", swap[n]) for e, s, n in reversed(rows)]
    found = []
    for table in (rows, renamed):
        frame = spark.createDataFrame(table, ["item", "annotator", "label"])
        with fit_model(make_model("robust-gpm", engine=make_engine(2)), frame) as fit:
            found.append(fit.items().toArrow().sort_by("item").to_pandas())
    one, other = found
    assert [swap[label] for label in reversed(other["label"])] == one["label"].tolist()
    shares = ["p_x", "p_y", "p_z"]
    np.testing.assert_allclose(other[shares[::-1]][::-1], one[shares], atol=1e-9)


def test_extrapolation_and_learned_behaviors_are_the_same(frame, make_engine):
    options = {"behavior": "learned", "acceleration": True, "max_iter": 9}
    with fit_model(at.GPM(engine=make_engine(3), **options), frame) as fit:
        assert_same_tables(fit, fit_model(at.GPM(**options), frame.toArrow()))


@pytest.mark.parametrize("name", MODELS)
def test_known_truths_are_used_as_in_memory(name, frame, make_engine):
    gold = {"item 1": 2, "item 7": 4}
    options = {"max_iter": 4}
    with fit_model(get_model(name)(engine=make_engine(3), **options), frame, gold=gold) as fit:
        assert_same_tables(fit, fit_model(get_model(name)(**options), frame.toArrow(), gold=gold))


@pytest.mark.parametrize("data", SMALLEST.values(), ids=SMALLEST)
@pytest.mark.parametrize("name", MODELS)
def test_the_smallest_data_are_fitted(name, data, spark, make_engine):
    frame = spark.createDataFrame(data, "item string, annotator string, label long")
    with fit_model(make_model(name, engine=make_engine(2)), frame) as fit:
        assert_same_tables(fit, fit_model(make_model(name), data))


def test_categories_keep_their_order(spark, make_engine):
    words = ["cat", "dog", "emu"]
    data = [(e, s, words[(e * s) % 3]) for e in range(8) for s in range(1, 6)]
    frame = spark.createDataFrame(data, ["question", "worker", "the `answer`.no"])
    frame = frame.withColumnsRenamed({"question": "item.id"})
    columns = {"item": "item.id", "label": "the `answer`.no"}
    for options in ({}, {"categories": ["emu", "dog", "cat"]}):
        engine = make_engine(2)
        with at.fit(frame, "gpm", engine=engine, tol=1.0, columns=columns, **options) as fit:
            assert_same_tables(fit, at.fit([*data], "gpm", tol=1.0, **options))


def test_bins_are_the_same(spark, make_engine):
    data = [(e, s, (e * s) % 10 / 10) for e in range(8) for s in range(1, 6)]
    frame = spark.createDataFrame(data, ["item", "annotator", "label"])
    with at.fit(frame, "gpm", engine=make_engine(2), tol=1.0, bins=3) as fit:
        assert_same_tables(fit, at.fit([*data], "gpm", tol=1.0, bins=3))


def test_many_categories_have_a_table_of_distributions(spark, make_engine):
    data = [(e, s, e + s) for e in range(100) for s in range(3)]
    frame = spark.createDataFrame(data, ["item", "annotator", "label"])
    options = {"tol": 1.0, "scale": "nominal"}
    with at.fit(frame, "gpm", engine=make_engine(2), **options) as fit:
        expected = at.fit(data, "gpm", **options).distribution_table()
        table = fit.frames["distributions"].toArrow()
    order = [("item", "ascending"), ("label", "ascending")]
    assert table.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()


def test_fit_takes_frames_and_files(frame, make_engine, tmp_path):
    csv = tmp_path / "labels.csv"
    frame.toArrow().to_pandas().to_csv(csv, index=False)
    with at.fit(str(csv), "gpm", engine=make_engine(2), tol=1.0) as fit:
        assert_same_tables(fit, at.fit(csv, "gpm", tol=1.0))
    with at.fit(frame, tol=1.0) as fit:
        assert fit.kind == "distributed"
        assert fit.model == "robust-gpm"
        assert "annotators: median accuracy" in fit.summary()


def test_a_connect_session_gives_the_same(run_script, storage):
    run_script("connect_fit.py", storage)
    assert not list(storage.iterdir())


def test_items_with_one_right_label_are_fitted_as_in_memory(spark, make_engine):
    rng = np.random.default_rng(5)
    item, annotator = np.divmod(np.arange(60 * 5), 5)
    annotator = (item + annotator * 7) % 12
    guess = rng.integers(3, size=len(item))
    label = np.where(rng.random(len(item)) < 0.7, item % 3, guess)
    table = pa.table(
        {"item": item, "annotator": annotator, "label": np.array(["a", "b", "c"])[label]}
    )
    in_memory = fit_model(at.RobustGPM(), table)
    assert in_memory.verdict == "informative"
    frame = spark.createDataFrame(table.to_pandas())
    with fit_model(at.RobustGPM(engine=make_engine(2)), frame) as fit:
        assert_same_tables(fit, in_memory)
        assert (fit.verdict, fit.readout) == (in_memory.verdict, in_memory.readout)


def test_annotators_who_copy_are_found_as_in_memory(spark, make_engine, monkeypatch):
    rng = np.random.default_rng(6)
    given = np.clip(np.arange(40)[:, np.newaxis] // 8 + rng.integers(-1, 2, size=(40, 8)), 0, 4)
    given[:, 1] = np.where(rng.random(40) < 0.8, given[:, 0], given[:, 1])
    item, annotator = (codes.ravel() for codes in np.indices(given.shape))
    table = pa.table({"item": item, "annotator": annotator, "label": given.ravel() + 1})
    model = at.RobustGPM(truth="opinions", max_iter=6)
    in_memory = fit_model(model, table)
    frame = spark.createDataFrame(table.to_pandas())
    with fit_model(at.RobustGPM(truth="opinions", max_iter=6, engine=make_engine(3)), frame) as fit:
        assert_same_tables(fit, in_memory)
    monkeypatch.setattr(opinion_model, "find_dependent_pairs", lambda *_, **__: None)
    assert (fit_model(model, table).low[:2] > in_memory.low[:2]).all()
