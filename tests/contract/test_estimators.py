"""The contract of all estimators, on all engines."""

import dataclasses
import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from tests.contract.tables import SMALLEST

import annotruth as at
from annotruth import simulate
from annotruth.engines import memory
from annotruth.models.registry import MODELS, get_model

# Models whose objective is per label.
PER_LABEL = ("dawid-skene", "one-coin", "ibcc", "ebcc", "bwa", "mace")
# Models whose probabilities are shares of opinion; robust-gpm has both read-outs.
OPINION = ("gpm", "majority", "mean", "median", "ordinal-mixture", "subject-bias")
ENGINES = ("memory", "reference")
pytestmark = pytest.mark.parametrize("name", MODELS)


def fitted(name, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        return at.fit(data, name, **options)


def fit_without_warnings(estimator, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        return estimator.fit(data)


@pytest.fixture(scope="module")
def crowd():
    return simulate.crowd(n_items=40, n_annotators=12, n_categories=4, seed=11)


@pytest.fixture(scope="module")
def frame(crowd):
    return crowd.labels.to_arrow().to_pandas()


def options(name, **wanted):
    """Return those of the options that the model has."""
    return {key: value for key, value in wanted.items() if key in get_model(name)().settings()}


def same_fit(one, other, tolerance):
    for field in ("expectation", "reliability", "low", "high", "p_serious", "log_likelihood"):
        a, b = getattr(one, field), getattr(other, field)
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    for table in ("item_table", "annotator_table"):
        a, b = (getattr(fit, table)() for fit in (one, other))
        assert a.column_names == b.column_names
        for name in a.column_names:
            if pa.types.is_floating(a[name].type):
                np.testing.assert_allclose(a[name], b[name], rtol=tolerance, atol=tolerance)
            else:
                assert a[name].equals(b[name])


def test_engines_agree(name, crowd):
    if not options(name, engine=""):
        pytest.skip("computed directly, without an engine")
    one, other = (
        fitted(name, crowd.labels, engine=engine, **options(name, acceleration=True))
        for engine in ENGINES
    )
    same_fit(one, other, 1e-9)
    assert one.n_iter == other.n_iter


def test_the_number_of_threads_does_not_change_the_result(name, crowd, monkeypatch):
    if not options(name, engine=""):
        pytest.skip("computed directly, without an engine")
    monkeypatch.setattr(memory, "_LABELS_PER_PARTITION", 16)
    accelerated = options(name, acceleration=True)
    fits = [
        fitted(name, crowd.labels, engine=memory.MemoryEngine(threads=threads), **accelerated)
        for threads in (1, 2, 5)
    ]
    for one, other in itertools.pairwise(fits):
        same_fit(one, other, 0.0)


def test_acceleration_reaches_the_same_optimum_and_the_objective_never_falls(name, crowd):
    if not options(name, acceleration=True):
        pytest.skip("there is nothing to accelerate")
    n = crowd.labels.n_labels
    tol = 1e-11 if name in PER_LABEL else 1e-11 * n
    fits = [
        fitted(name, crowd.labels, tol=tol, max_iter=20_000, acceleration=on)
        for on in (True, False)
    ]
    # GPM's objective is Q, which need not rise.
    objectives = [
        fit.history.log_likelihood[:-1] if name == "gpm" else fit.history.objective for fit in fits
    ]
    assert all(fit.converged for fit in fits)
    accelerated, plain = objectives
    assert not np.array_equal(accelerated, plain)
    assert np.diff(accelerated).min() >= -1e-12 * abs(accelerated[-1])
    tolerance = 1e-6 * (1.0 if name in PER_LABEL else n)
    assert accelerated[-1] >= plain[-1] - tolerance
    # Plain steps of ordinal-mixture may end on the lattice before they reach the maximum.
    if name != "ordinal-mixture":
        assert accelerated[-1] <= plain[-1] + tolerance


def test_fit_returns_the_estimator_and_does_not_change_its_options(name, frame):
    cls = get_model(name)
    estimator = cls()
    before = estimator.settings()
    assert estimator.fit(frame) is estimator
    assert isinstance(estimator.result_, at.Fit)
    assert estimator.settings() == before
    assert repr(estimator).startswith(cls.__name__)


def test_an_unfitted_estimator_has_no_results(name):
    with pytest.raises(at.AnnotruthError, match="not fitted yet: call fit first"):
        _ = get_model(name)().result_
    assert not hasattr(get_model(name)(), "result_")


def test_scikit_learn_can_clone_an_estimator(name, frame):
    made = get_model(name)(**options(name, tol=0.5, max_iter=3))
    copied = clone(fit_without_warnings(made, frame))
    assert copied is not made
    assert copied.get_params() == made.get_params()
    with pytest.raises(at.AnnotruthError, match="not fitted yet"):
        _ = copied.result_


def test_options_can_be_set_and_unknown_ones_are_refused(name):
    model = get_model(name)()
    wanted = options(name, max_iter=7)
    assert model.set_params(**wanted).get_params().items() >= wanted.items()
    with pytest.raises(at.InputError, match=f"{name} has no option 'speed'"):
        model.set_params(speed=9)


def test_tables_have_the_documented_columns(name, frame):
    fit = fitted(name, frame)
    items, annotators, labels = fit.items(), fit.annotators(), fit.labels()
    shares = [f"p_{n}" for n in (1, 2, 3, 4)]
    has_distribution = fit.distribution is not None
    documented = ["item", "n_labels", "label", "expectation", "confidence", "entropy", "disputed"]
    expected = documented if has_distribution else ["item", "n_labels", "expectation"]
    expected = [*expected, *fit.item_columns]
    assert list(items.columns) == [*expected, *(shares if has_distribution else [])]
    assert np.isfinite(items.expectation).all()
    if has_distribution:
        np.testing.assert_allclose(items[shares].sum(axis=1), 1.0)
        assert items.expectation.between(1, 4).all()
    assert (items.n_labels == frame.groupby("item").size().loc[items.item].to_numpy()).all()
    if fit.reliability is not None:
        assert annotators.reliability.between(0, 1).all()
    assert ("spammer" in annotators.columns) == (fit.p_serious is not None)
    if fit.p_serious is not None:
        below = annotators.reliability < 0.5
        flags = fit.model == "robust-gpm"  # which needs more than a low reliability
        assert (annotators.spammer <= below if flags else annotators.spammer == below).all()
    if fit.low is not None:
        assert (annotators.low <= annotators.reliability + 1e-9).all()
        assert (annotators.high >= annotators.reliability - 1e-9).all()
    pd.testing.assert_frame_equal(labels[["item", "annotator", "label"]], frame)
    if fit.p_serious is not None:
        assert labels.p_serious.between(0, 1).all()


def test_tables_are_in_the_callers_frame_library(name, frame):
    for data, kind in [
        (frame, pd.DataFrame),
        (pl.from_pandas(frame), pl.DataFrame),
        (pa.Table.from_pandas(frame), pa.Table),
    ]:
        fit = fitted(name, data)
        for table in (fit.items(), fit.annotators(), fit.labels()):
            assert isinstance(table, kind)
        if fit.distribution is None:
            with pytest.raises(at.AnnotruthError, match="estimates scores, not distributions"):
                fit.distributions()
        else:
            assert isinstance(fit.distributions(), kind)


def test_a_fit_is_frozen_and_has_a_stop_reason(name, frame):
    fit = fitted(name, frame)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fit.model = "other"
    assert fit.stop_reason
    if fit.n_iter:
        assert f"converged after {fit.n_iter} iteration" in fit.summary()
        assert len(fit.history.log_likelihood) == fit.n_iter + 1
    assert fit.settings == get_model(name)().settings()


def test_a_loaded_fit_equals_the_saved_one(name, frame, tmp_path):
    fit = fitted(name, frame)
    fit.save(tmp_path / "fit")
    again = at.load(tmp_path / "fit")
    for table in ("items", "annotators", "labels"):
        pd.testing.assert_frame_equal(getattr(again, table)(), getattr(fit, table)())
    assert again.summary() == fit.summary()
    assert again.settings == fit.settings
    np.testing.assert_array_equal(again.history.objective, fit.history.objective)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("table", SMALLEST.values(), ids=SMALLEST)
@pytest.mark.parametrize("gold", [None, {"a": 1}], ids=["no gold", "gold"])
def test_the_smallest_tables_can_be_fitted(name, engine, table, gold):
    fit = fitted(name, table, gold=gold, **options(name, engine=engine))
    assert fit.log_likelihood is None or np.isfinite(fit.log_likelihood)
    assert np.isfinite(fit.items().expectation).all()
    assert len(fit.annotators()) == len({s for _, s, _ in table})
    if gold and fit.distribution is not None:
        assert fit.items().set_index("item").loc["a", "p_1"] == 1.0


def every_pair(labels):
    """Return the codes of all pairs of items and annotators."""
    return np.indices((labels.n_items, labels.n_annotators)).reshape(2, -1)


def predicted(name, labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        return get_model(name)(**options).fit(labels).predict_proba(*every_pair(labels))


@pytest.mark.parametrize("gold", [{}, {1: 2, 2: 4}], ids=["no gold", "gold"])
def test_predictions_are_distributions(name, crowd, gold):
    labels = crowd.labels.with_gold(gold) if gold else crowd.labels
    rows = predicted(name, labels)
    assert rows.shape == (40 * 12, 4)
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-9)


def test_predictions_do_not_depend_on_what_else_is_predicted(name):
    labels = simulate.crowd(
        n_items=30, n_annotators=12, n_categories=4, labels_per_item=3, seed=2
    ).labels
    model = get_model(name)().fit(labels)
    item, annotator = every_pair(labels)
    # Two items, whose labels are by some of the annotators only.
    rows = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(item, [7, 20])))
    alone = model.predict_proba(item[rows], annotator[rows])
    np.testing.assert_allclose(alone, model.predict_proba(item, annotator)[rows], rtol=1e-12)
    assert model.predict_proba([], []).shape == (0, 4)


def test_predictions_of_fitted_labels_are_better_than_chance(name, crowd):
    labels = crowd.labels
    model = get_model(name)().fit(labels)
    rows = model.predict_proba(labels.item_of_label(), labels.annotator)
    likely = rows[np.arange(labels.n_labels), labels.category_of_label()]
    assert np.log(likely).mean() > np.log(1 / 4) + 0.1


def test_engines_agree_on_predictions(name, crowd):
    if not options(name, engine=""):
        pytest.skip("computed directly, without an engine")
    one, other = (predicted(name, crowd.labels, engine=engine) for engine in ENGINES)
    np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_predictions_for_the_smallest_tables_are_distributions(name):
    for table in SMALLEST.values():
        rows = predicted(name, at.Labels.of(table))
        assert (rows >= 0).all()
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-9)


def test_codes_that_are_not_in_the_fit_are_refused(name, frame):
    model = get_model(name)()
    with pytest.raises(at.AnnotruthError, match="not fitted yet: call fit first"):
        model.predict_proba([0], [0])
    model.fit(frame)
    with pytest.raises(at.InputError, match="item codes from 0 to 39"):
        model.predict_proba([40], [0])
    with pytest.raises(at.InputError, match="annotator codes from 0 to 11"):
        model.predict_proba([0], [-1])
    with pytest.raises(at.InputError, match="as many item codes as annotator codes"):
        model.predict_proba([0, 1], [0])


def test_progress_is_called_after_every_iteration(name, frame):
    reported = []
    fit = fitted(name, frame, progress=reported.append)
    assert [p.n_iter for p in reported] == list(range(1, fit.n_iter + 1))


def test_the_fit_says_what_its_probabilities_are(name, crowd):
    fit = fitted(name, crowd.labels)
    if name != "robust-gpm":
        assert fit.readout == ("opinion" if name in OPINION else "right")
    if fit.distribution is None:
        assert "p_<label>" not in fit.summary()
        return
    words = {"right": "probabilities of the right label", "opinion": "shares of opinion"}
    assert f"p_<label> and confidence are {words[fit.readout]}" in fit.summary().splitlines()
    assert fit.distributions(fit.readout).equals(fit.distributions())
    assert fit.soft_labels(fit.readout).equals(fit.soft_labels())


def test_a_read_out_that_the_model_has_not_is_refused(name, crowd):
    fit = fitted(name, crowd.labels)
    if fit.distribution is None:
        pytest.skip("there are no distributions")
    with pytest.raises(at.InputError, match="unknown read-out 'best': choose right or opinion"):
        fit.distributions("best")
    (other,) = {"right", "opinion"} - {fit.readout}
    if name == "robust-gpm":
        assert not fit.distributions(other).equals(fit.distributions())
        return
    for table in (fit.distributions, fit.soft_labels):
        with pytest.raises(
            at.InputError,
            match=f"{name} has no read-out '{other}': choose '{fit.readout}', or the model robust",
        ):
            table(other)
