"""Subject bias on real votes, compared with the authors' program, sureal 0.9.0.

The expected values are from its content-oblivious model (one ambiguity for all items), run until
the scores changed by less than 1e-12. Its full model with all items in one content has the same
optimum but stops before it, at -0.921995 (vqeg-hd) and -1.045605 (ftv) per vote, where the
inconsistency of two annotators is stuck at 0; with one content per item it ends in NaN.
"""

import numpy as np
import pytest

import annotruth as at
from annotruth.models.scales.subject_bias import SubjectBias

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
def test_shared_ambiguity_agrees_with_the_program_of_the_authors(datasets, name):
    labels = at.read_labels(datasets / name / "labels.csv")
    expected = SUREAL[name]
    fit = SubjectBias(ambiguity="shared", tol=1e-9).fit(labels).result_
    assert fit.log_likelihood / labels.n_labels == pytest.approx(
        expected["log_likelihood"], abs=1e-8
    )
    items = fit.items().set_index("item").loc[[1, 2, 3, 4]]
    annotators = fit.annotators().set_index("annotator").loc[[1, 2, 3, 4]]
    np.testing.assert_allclose(annotators.bias, expected["bias"], atol=2e-5)
    np.testing.assert_allclose(annotators.inconsistency, expected["inconsistency"], atol=2e-5)
    np.testing.assert_allclose(items.expectation, expected["score"], atol=2e-5)
    # Their standard error takes variances and biases as known, so our intervals are wider.
    everybody = fit.annotators().inconsistency
    assert (1 / everybody**2).sum() ** -0.5 == pytest.approx(expected["score_std"], abs=2e-5)
    ratio = (items.score_high - items.score_low) / (2 * 1.959964 * expected["score_std"])
    assert ratio.between(1.0, 1.1).all()
    assert fit.n_iter < 20


@pytest.mark.parametrize(
    ("name", "per_label", "n_at_floor"), [("vqeg-hd", -0.877423, 5), ("ftv", -1.015348, 4)]
)
def test_ambiguity_per_item_gives_finite_results(datasets, name, per_label, n_at_floor):
    labels = at.read_labels(datasets / name / "labels.csv")
    fit = SubjectBias().fit(labels).result_
    assert fit.converged
    assert fit.n_iter < 50
    assert np.isfinite(fit.items().to_numpy(dtype=float)).all()
    assert np.isfinite(fit.annotators().to_numpy(dtype=float)).all()
    assert fit.log_likelihood / labels.n_labels == pytest.approx(per_label, abs=2e-6)
    assert fit.annotator_columns["at_floor"].sum() == n_at_floor
