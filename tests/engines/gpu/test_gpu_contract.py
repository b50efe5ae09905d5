"""The contract of all estimators, for the models of the GPU engine: as in memory, but for rounding.

On a machine with a card, the same tests also run there.
"""

import warnings

import numpy as np
import pytest
from tests.contract.tables import SMALLEST
from tests.engines.gpu.host_device import device_of
from tests.fuzz.crowds import change_of_crowd

import annotruth as at
from annotruth.engines.gpu import GPUEngine
from annotruth.models.registry import get_model

MODELS = ("gpm", "dawid-skene", "robust-gpm")
pytestmark = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(params=["host", "card"])
def engine(request):
    return GPUEngine(device_of(request.param))


@pytest.fixture(scope="module")
def labels():
    return at.simulate.crowd(n_items=40, n_annotators=12, n_categories=4, seed=11).labels


def fitted(model, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.AnnotruthWarning)
        return at.fit(data, model, **options)


def test_tables_are_those_of_the_memory_engine(model, labels, engine):
    one, other = (fitted(model, labels, engine=each) for each in (engine, "memory"))
    for table in ("item_table", "annotator_table"):
        ours, theirs = (getattr(fit, table)().to_pandas() for fit in (one, other))
        assert list(ours) == list(theirs)
        numbers = ours.select_dtypes("number").columns
        np.testing.assert_allclose(ours[numbers], theirs[numbers], atol=0.02)
    np.testing.assert_allclose(one.log_likelihood, other.log_likelihood, rtol=1e-5)
    assert (one.label == other.label).mean() >= 0.97


@pytest.mark.parametrize("table", SMALLEST)
def test_the_smallest_tables_can_be_fitted(model, table, engine):
    fit = fitted(model, SMALLEST[table], engine=engine)
    probability = fit.distribution.dense(fit.data.n_categories)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, atol=1e-6)
    assert ((fit.reliability >= 0) & (fit.reliability <= 1)).all()


@pytest.mark.parametrize("number", range(4))
def test_names_and_the_order_of_rows_change_nothing(model, number, engine):
    change = change_of_crowd(model, (15, number), engine=engine)
    assert max(change.values(), default=0.0) <= 0.02, change


def test_three_runs_are_identical(model, labels, engine):
    first, *others = (fitted(model, labels, engine=engine) for _ in range(3))
    for other in others:
        np.testing.assert_array_equal(first.reliability, other.reliability)
        np.testing.assert_array_equal(
            first.distribution.probability, other.distribution.probability
        )


def test_predictions_are_distributions(model, labels, engine):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.AnnotruthWarning)
        estimator = get_model(model)(engine=engine).fit(labels)
    predicted = estimator.predict_proba(np.arange(10), np.arange(10))
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0, atol=1e-6)
