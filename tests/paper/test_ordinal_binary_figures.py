"""Ord-bin on real labels: the figure printed in the paper, and accuracy on other datasets."""

import numpy as np
import pytest

import annotruth as at
from annotruth import metrics, simulate
from annotruth.io.parse import read_table
from annotruth.models.scales.ordinal_binary import OrdinalBinary


def accuracy(datasets, name, **options):
    labels = at.read_labels(datasets / name / "labels.csv", duplicates="last")
    fit = OrdinalBinary(**options).fit(labels).result_
    return at.evaluate(fit, datasets / name / "truth.csv")["accuracy"]


def test_accuracy_on_face_is_the_printed_one(datasets):
    assert accuracy(datasets, "face") == pytest.approx(0.6490, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "with_prior", "without"),
    [
        ("face", 0.6490, 0.6455),
        ("dog", 0.7770, 0.7670),
        ("web", 0.8775, 0.8605),
        ("adult", 0.7610, 0.7736),
        ("duck", 0.8889, 0.8981),
        ("product", 0.9376, 0.9393),
        ("rte", 0.9300, 0.9275),
    ],
)
def test_accuracy_with_and_without_the_prior(datasets, name, with_prior, without):
    assert accuracy(datasets, name) == pytest.approx(with_prior, abs=5e-4)
    assert accuracy(datasets, name, prior=0.0) == pytest.approx(without, abs=5e-4)


def test_accuracy_on_face_depends_on_the_order_of_its_classes(datasets):
    """The classes have no order; the paper's figure belongs to the order 0, 1, 2, 3."""
    labels = at.read_labels(datasets / "face" / "labels.csv")
    truth = read_table(datasets / "face" / "truth.csv")
    by_order = {}
    for order in ("0123", "1023", "0321"):
        as_text = labels.to_arrow().to_pandas().assign(label=lambda t: "c" + t.label.astype(str))
        reordered = at.Labels.of(as_text, categories=[f"c{n}" for n in order])
        known = truth.to_pandas().assign(label=lambda t: "c" + t.label.astype(str))
        measured = at.evaluate(OrdinalBinary().fit(reordered).result_, known)
        by_order[order] = round(measured["accuracy"], 4)
    assert by_order == {"0123": 0.6490, "1023": 0.6644, "0321": 0.6164}


def test_errors_in_exp1d():
    """PLCC, SROCC and RMSE in 20 of the paper's 100 runs."""
    runs = []
    for seed in range(20):
        simulation = simulate.gaussian(seed=seed)
        score = OrdinalBinary().fit(simulation.labels).result_.expectation
        measures = (metrics.plcc, metrics.srocc, metrics.rmse)
        runs.append([measure(simulation.score, score) for measure in measures])
    np.testing.assert_allclose(np.mean(runs, axis=0), [0.9580, 0.9628, 0.4550], atol=3e-4)
