"""Fits saved by earlier versions still load, predict, and take more labels.

``data/format-1`` holds, per model, a fit saved by version 0.1.0 in the first format, and what that
version computed: tables and predictions. Labels: 12 items, 5 annotators, one known truth; robust-gpm
also has knowledge about two annotators.
"""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.models.registry import get_model

DATA = Path(__file__).parent / "data" / "format-1"
MODELS = ("gpm", "robust-gpm", "dawid-skene")
NEW_LABELS = [("item 1", "new", "good"), ("item 20", "ann", "bad"), ("item 20", "bob", "bad")]


@pytest.fixture(params=MODELS)
def model(request):
    return request.param


@pytest.fixture
def folder(model, tmp_path):
    with zipfile.ZipFile(DATA / f"{model}.zip") as saved:
        saved.extractall(tmp_path)
    return tmp_path


@pytest.fixture
def expected(model):
    return json.loads((DATA / f"{model}.json").read_text())


def test_tables_are_those_of_the_version_that_saved_them(folder, expected):
    fit = at.load(folder)
    assert fit.converged
    assert fit.n_iter == expected["n_iter"]
    assert fit.log_likelihood == expected["log_likelihood"]
    for name in ("items", "annotators"):
        table = fit.tables()[name].slice(0, 100)
        assert {column: table[column].to_pylist() for column in expected[name]} == expected[name]


def test_read_outs_follow_from_the_model(folder, model):
    fit = at.load(folder)
    assert fit.readout == ("right" if model == "dawid-skene" else "opinion")
    assert (fit.verdict, fit.other_distribution) == (None, None)


def test_predictions_are_those_of_the_version_that_saved_them(folder, model, expected):
    fit = at.load(folder)
    estimator = get_model(model)().set_params(**fit.settings).load_fit(fit)
    item, annotator = np.divmod(np.arange(60), 5)
    np.testing.assert_allclose(
        estimator.predict_proba(item, annotator), expected["predict_proba"], rtol=1e-9
    )


def test_an_update_agrees_with_a_fit_of_all_labels(folder):
    updated, refitted = (at.update(folder, NEW_LABELS, refit=refit) for refit in (False, True))
    assert updated.converged
    assert updated.data.n_labels == 63
    assert updated.data.annotators.to_pylist()[-1] == "new"
    assert updated.data.known.tolist() == [0] + 12 * [-1]
    np.testing.assert_array_equal(updated.label, refitted.label)
    np.testing.assert_allclose(updated.reliability, refitted.reliability, atol=0.05)


def test_knowledge_about_annotators_is_kept(tmp_path):
    with zipfile.ZipFile(DATA / "robust-gpm.zip") as saved:
        saved.extractall(tmp_path)
    prior = at.load(tmp_path).data.annotator_prior
    assert prior is not None
    assert prior.sum(axis=1).nonzero()[0].tolist() == [0, 3]
