"""Dawid-Skene on real labels: accuracies, and optima computed by plain NumPy EM."""

import pytest

import annotruth as at
from annotruth.models.confusion.dawid_skene import DawidSkene


@pytest.mark.parametrize(
    ("name", "minimum"),
    [
        ("face", 0.640),
        ("dog", 0.842),
        ("duck", 0.888),
        ("product", 0.939),
        ("rte", 0.927),
        ("web", 0.829),
    ],
)
@pytest.mark.parametrize("acceleration", [False, True])
def test_accuracy_is_not_below_other_implementations(datasets, name, minimum, acceleration):
    model = DawidSkene(acceleration=acceleration)
    fit = model.fit(at.read_labels(datasets / name / "labels.csv")).result_
    assert fit.converged
    if name == "web" and acceleration:
        # SQUAREM ends closer to the optimum, where labels are less accurate.
        minimum = 0.828
    assert at.evaluate(fit, datasets / name / "truth.csv")["accuracy"] >= minimum


@pytest.mark.parametrize(
    ("name", "log_likelihood", "accuracy"),
    [
        ("face", -4088.7916, 0.6404),
        ("dog", -4745.5499, 0.8426),
        ("duck", -1888.1168, 0.8981),
        ("product", -7568.7463, 0.9393),
        ("rte", -3679.6290, 0.9275),
        # The optimum, 3.0 in log-likelihood above where the default stops, is less accurate.
        ("web", -17236.3460, 0.8259),
    ],
)
def test_optimum_from_the_observed_shares(datasets, name, log_likelihood, accuracy):
    labels = at.read_labels(datasets / name / "labels.csv")
    fit, fast = (
        DawidSkene(tol=0.0, max_iter=20_000, acceleration=acceleration).fit(labels).result_
        for acceleration in (False, True)
    )
    assert fit.log_likelihood == pytest.approx(log_likelihood, abs=2e-4)
    assert fast.log_likelihood == pytest.approx(log_likelihood, abs=1e-6 * labels.n_labels)
    measured = at.evaluate(fit, datasets / name / "truth.csv")["accuracy"]
    assert measured == pytest.approx(accuracy, abs=5e-5)
