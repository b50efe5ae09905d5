"""Whether numbers are a scale or the codes of classes."""

import numpy as np
import pytest

import annotruth as at
from annotruth.observations import Labels

CLASSES = "numbers taken as classes: "
SCALE = "numbers taken as a scale: "


def confused(confusion, *, n_items=150, n_labels=5, seed=0):
    """Return labels drawn from a row of a confusion matrix per item."""
    rng = np.random.default_rng(seed)
    n = len(confusion)
    truth = rng.integers(n, size=n_items)
    return [
        (e, s, int(rng.choice(n, p=confusion[truth[e]])))
        for e in range(n_items)
        for s in range(n_labels)
    ]


def neighbours(n):
    """Return a confusion matrix in which errors fall on neighbours."""
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    weight = np.where(distance == 0, 0.6, np.where(distance == 1, 0.2, 0.02))
    return weight / weight.sum(axis=1, keepdims=True)


def uniform(n):
    """Return a confusion matrix in which errors fall anywhere."""
    return np.full((n, n), 0.4 / n) + 0.6 * np.eye(n)


def in_pairs():
    """Return a confusion matrix of four classes, of which the first two and the last two are alike."""
    return np.kron(np.eye(2), np.array([[0.7, 0.27], [0.27, 0.7]])) + np.kron(
        np.eye(2)[::-1], np.full((2, 2), 0.015)
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [4, 5, 8])
def test_errors_on_neighbours_mean_a_scale(n, seed):
    scale = Labels.of(confused(neighbours(n), seed=seed)).scale
    assert scale.is_ordinal
    assert scale.reason.startswith(f"{SCALE}labels agree better as numbers (alpha ")
    assert scale.reason.endswith("scale='nominal' takes them as classes")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [3, 5, 8])
def test_errors_anywhere_mean_classes(n, seed):
    scale = Labels.of(confused(uniform(n), n_items=300, seed=seed)).scale
    assert not scale.is_ordinal
    assert scale.reason.startswith(f"{CLASSES}labels do not agree clearly better as numbers")
    assert scale.reason.endswith("scale='ordinal' takes them as a scale")


def test_classes_in_pairs_are_no_scale():
    scale = Labels.of(confused(in_pairs(), n_items=400)).scale
    assert scale.reason.startswith(f"{CLASSES}1 and 2 are hardly ever confused")


@pytest.mark.parametrize("codes", [(0, 1), (1, 2), (-1, 1)])
def test_the_codes_of_two_classes(codes):
    rows = [("a", "x", codes[0]), ("a", "y", codes[1])]
    assert Labels.of(rows).scale.reason.startswith(f"{CLASSES}there are only two")
    assert not at.fit(rows, "majority").data.scale.is_ordinal


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "x", 4), ("a", "y", 5)],
        [(e, s, (e + s) % 3) for e in range(3) for s in range(2)],
        [(e, "x", e % 5) for e in range(50)],
        [(e, s, 0) for e in range(5) for s in range(2)] + [(9, 0, 1), (10, 0, 2)],
        confused(uniform(5), n_items=15),
    ],
    ids=["two of a scale", "few", "one label each", "no disagreement", "few of classes"],
)
def test_too_few_labels_are_a_scale(rows):
    assert Labels.of(rows).scale.is_ordinal


def test_options_come_before_the_labels():
    rows = confused(uniform(5))
    for options in ({"scale": "ordinal"}, {"categories": [0, 1, 2, 3, 4]}):
        scale = Labels.of(rows, **options).scale
        assert scale.is_ordinal
        assert scale.reason == ""
    assert Labels.of(confused(neighbours(5)), scale="nominal").scale.reason == ""
    halves = [(item, annotator, label / 2) for item, annotator, label in rows]
    assert Labels.of(halves).scale.is_ordinal
    many = [(item, annotator, 3 * label + item % 3) for item, annotator, label in rows]
    assert Labels.of(many).scale.is_ordinal


def test_names_and_order_do_not_matter():
    rows = confused(uniform(4), n_items=40, seed=1)
    reasons = {
        Labels.of(each).scale.reason
        for each in (rows, rows[::-1], [(f"i{e}", f"a{s}", label) for e, s, label in rows])
    }
    assert len(reasons) == 1


def test_models_of_scales_take_numbers_as_a_scale():
    rows = confused(uniform(5))
    assert at.fit(rows, "mean").data.scale.is_ordinal
    assert at.fit(rows, "subject-bias").data.scale.reason == ""
    with pytest.raises(at.InputError, match="needs an ordinal scale"):
        at.fit(rows, "mean", scale="nominal")
    assert at.coefficients.krippendorff_alpha(rows, "interval") > 0


def test_the_summary_has_the_reason_and_fits_save_it(tmp_path):
    fit = at.fit(confused(uniform(5)), "majority")
    assert f"\n{CLASSES}" in fit.summary()
    assert "expectation" not in fit.items().columns
    fit.save(tmp_path / "fit")
    assert at.load(tmp_path / "fit").data.scale.reason == fit.data.scale.reason


@pytest.mark.parametrize(
    ("name", "is_ordinal"),
    [
        *((name, True) for name in ("web", "ftv", "vqeg-hd", "uhd4u", "movielens-100k", "adult")),
        *((name, True) for name in ("groups-offensiveness", "emotion-0-100")),
        *((name, False) for name in ("face", "dog", "duck", "rte", "product")),
    ],
)
def test_public_sets_are_taken_for_what_they_are(name, is_ordinal, datasets):
    labels = at.read_labels(datasets / name / "labels.csv", duplicates="keep")
    assert labels.scale.is_ordinal == is_ordinal, labels.scale.reason
