"""Figures the paper printed, and optima found by an independent search, on real labels."""

import pytest

import annotruth as at


def test_face_as_printed(datasets):
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
def test_the_optimum_from_the_papers_start(datasets, name, per_label, spammers):
    fit = at.fit(datasets / name / "labels.csv", "gpm", tol=1e-9, max_iter=20_000)
    assert fit.log_likelihood / fit.data.n_labels == pytest.approx(per_label, abs=6e-7)
    assert fit.n_spammers == spammers
