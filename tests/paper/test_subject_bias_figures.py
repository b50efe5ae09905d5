"""Figures of the authors' own program, sureal 0.9.0, on real votes.

Computed with its content-oblivious model (one ambiguity for all items), run until the scores
moved by less than 1e-12. Its full model with all items in one content has the same optimum but
stops short of it, at -0.921995 (vqeg-hd) and -1.045605 (ftv) a vote, where the inconsistency
of two annotators has come to 0 and stays; with each item a content of its own it ends in NaN.
"""

import numpy as np
import pytest

import annotruth as at
from annotruth.models.subject_bias import SubjectBias

SUREAL = {
    "vqeg-hd": {
        "log_likelihood": -0.92183184,
        "bias": [-0.00826, -0.14957, 0.84500, -0.15500],
        "inconsistency": [0.39074, 0.57243, 0.59453, 0.60965],
        "score": [4.55696, 4.58184, 4.41459, 4.35529],
        "score_std": 0.11827,
    },
    "ftv": {
        "log_likelihood": -1.04552021,
        "bias": [0.58756, -0.27972, -0.17787, 0.51658],
        "inconsistency": [1.15377, 0.55303, 0.74559, 0.63199],
        "score": [2.54378, 2.85935, 2.55585, 2.82876],
        "score_std": 0.12642,
    },
}


@pytest.mark.parametrize("name", SUREAL)
def test_one_ambiguity_for_all_agrees_with_the_authors_program(datasets, name):
    labels = at.read_labels(datasets / name / "labels.csv")
    theirs = SUREAL[name]
    fit = SubjectBias(ambiguity="shared", tol=1e-9).fit(labels).result_
    assert fit.log_likelihood / labels.n_labels == pytest.approx(theirs["log_likelihood"], abs=1e-8)
    items = fit.items().set_index("item").loc[[1, 2, 3, 4]]
    people = fit.annotators().set_index("annotator").loc[[1, 2, 3, 4]]
    np.testing.assert_allclose(people.bias, theirs["bias"], atol=2e-5)
    np.testing.assert_allclose(people.inconsistency, theirs["inconsistency"], atol=2e-5)
    np.testing.assert_allclose(items.expectation, theirs["score"], atol=2e-5)
    half = items.score_high - items.expectation
    np.testing.assert_allclose(half / 1.959964, theirs["score_std"], atol=2e-5)
    assert fit.n_iter < 20


@pytest.mark.parametrize(
    ("name", "per_label", "at_floor"), [("vqeg-hd", -0.877423, 5), ("ftv", -1.015348, 4)]
)
def test_an_ambiguity_for_every_item_ends_in_numbers(datasets, name, per_label, at_floor):
    labels = at.read_labels(datasets / name / "labels.csv")
    fit = SubjectBias().fit(labels).result_
    assert fit.converged
    assert fit.n_iter < 50
    assert np.isfinite(fit.items().to_numpy(dtype=float)).all()
    assert np.isfinite(fit.annotators().to_numpy(dtype=float)).all()
    assert fit.log_likelihood / labels.n_labels == pytest.approx(per_label, abs=2e-6)
    assert fit.annotator_columns["at_floor"].sum() == at_floor
