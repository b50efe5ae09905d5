"""Models of classes on real labels: accuracies of their authors' or other programs."""

import pytest

import annotruth as at

# Measured with crowd-kit 1.4 (one-coin, MACE), and the programs of Li, Rubinstein and Cohn (iBCC,
# EBCC, BWA).
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
    "bwa": {
        "face": 0.6182,
        "duck": 0.7593,
        "dog": 0.8315,
        "rte": 0.9275,
        "web": 0.8225,
        "product": 0.9194,
        "fact": 0.8872,
        "cf": 0.8933,
        "ms": 0.7857,
        "sp": 0.9170,
        "hate-speech": 0.8451,
    },
    # With ids of annotators and categories in the order in which they occur: otherwise crowd-kit
    # gives annotators the spam of others, because it sorts one array and not the other.
    "mace": {
        "face": 0.6438,
        "duck": 0.8611,
        "dog": 0.8302,
        "rte": 0.9262,
        "web": 0.8387,
        "product": 0.8362,
        "fact": 0.8750,
        "cf": 0.8867,
        "ms": 0.8000,
        "sp": 0.9178,
    },
    # One run each; other optima of the same bound differ by some hundredths on face and duck.
    "ebcc": {
        "dog": 0.8401,
        "rte": 0.9313,
        "web": 0.7437,
        "product": 0.9349,
        "fact": 0.8924,
        "cf": 0.8833,
        "ms": 0.7871,
        "sp": 0.9088,
        "hate-speech": 0.8554,
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
