"""GLAD on real labels: accuracies, and optima computed by an independent search."""

import pytest

import annotruth as at
from annotruth.models.confusion.glad import GLAD


@pytest.mark.parametrize(
    ("name", "accuracy", "log_posterior"),
    [
        # The maximum of the log-posterior by a quasi-Newton search over all alpha and b together,
        # from the same start.
        ("dog", 0.8340, -7736.49944),
        ("rte", 0.9250, -4863.20878),
        ("face", 0.6284, -5060.62798),
    ],
)
def test_accuracy_and_log_posterior(datasets, name, accuracy, log_posterior):
    labels = at.read_labels(datasets / name / "labels.csv")
    fit = GLAD().fit(labels).result_
    assert fit.converged
    measured = at.evaluate(fit, datasets / name / "truth.csv")["accuracy"]
    assert measured == pytest.approx(accuracy, abs=5e-5)
    assert fit.history.objective[-1] == pytest.approx(log_posterior, abs=1e-3)


def test_accuracy_on_face_is_not_below_the_printed_one(datasets):
    fit = GLAD().fit(at.read_labels(datasets / "face" / "labels.csv")).result_
    assert at.evaluate(fit, datasets / "face" / "truth.csv")["accuracy"] >= 0.5976
