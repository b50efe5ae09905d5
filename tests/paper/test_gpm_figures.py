"""GPM on real labels: the figures printed in the paper, and independently computed optima."""

import pytest

import annotruth as at


def test_accuracy_on_face_is_the_printed_one(datasets):
    fit = at.fit(datasets / "face" / "labels.csv", "gpm")
    assert at.evaluate(fit, datasets / "face" / "truth.csv")["accuracy"] == pytest.approx(
        0.6370, abs=5e-5
    )
    assert fit.n_spammers == 0
    assert fit.converged


@pytest.mark.parametrize(
    ("name", "per_label", "spammers"),
    [
        ("ftv", -1.108286, 2),
        ("vqeg-hd", -0.987944, 2),
        ("uhd4u", -0.957234, 0),
        ("face", -0.520106, 0),
    ],
)
def test_optimum_from_the_start_of_the_paper(datasets, name, per_label, spammers):
    fit = at.fit(datasets / name / "labels.csv", "gpm", tol=1e-9, max_iter=20_000)
    assert fit.log_likelihood / fit.data.n_labels == pytest.approx(per_label, abs=6e-7)
    assert fit.n_spammers == spammers
