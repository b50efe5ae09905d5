"""Models with confusion matrices on real labels: accuracies of their authors' or other programs."""

import pytest

import annotruth as at

# Measured with crowd-kit 1.4 (one-coin), and the programs of Li, Rubinstein and Cohn (iBCC).
ACCURACY = {
    "one-coin": {
        "face": 0.6113,
        "duck": 0.5833,
        "dog": 0.8302,
        "rte": 0.9250,
        # crowd-kit stops after two steps here, where its bound falls (0.7486), and reaches this
        # accuracy if it continues.
        "web": 0.8078,
        "product": 0.9084,
        "fact": 0.9010,
        "cf": 0.8867,
        "ms": 0.7929,
        "sp": 0.9166,
        "hate-speech": 0.8755,
    },
    "ibcc": {
        "face": 0.6404,
        "duck": 0.8889,
        "dog": 0.8389,
        "rte": 0.9275,
        "web": 0.7508,
        "product": 0.9383,
        "fact": 0.8767,
        "cf": 0.8833,
        "ms": 0.7900,
        "sp": 0.9150,
        "hate-speech": 0.8583,
    },
}


@pytest.mark.parametrize(
    ("model", "name"), [(model, name) for model, figures in ACCURACY.items() for name in figures]
)
def test_accuracy_is_that_of_other_programs(datasets, model, name):
    labels = at.read_labels(datasets / name / "labels.csv", scale="nominal", duplicates="keep")
    fit = at.fit(labels, model)
    assert fit.converged
    accuracy = at.evaluate(fit, datasets / name / "truth.csv")["accuracy"]
    assert accuracy == pytest.approx(ACCURACY[model][name], abs=0.01)
