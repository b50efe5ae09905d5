"""Accuracy and errors of the baselines on real labels and in the paper's Exp1-d."""

import numpy as np
import pytest

import annotruth as at
from annotruth import metrics, simulate
from annotruth.models.baselines import MajorityVote, MeanScore, MedianScore


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        ("face", 0.6301),
        ("dog", 0.8178),
        ("web", 0.7765),
        ("adult", 0.7516),
        ("duck", 0.7593),
        ("product", 0.8966),
        ("rte", 0.9187),
    ],
)
def test_accuracy_of_majority_vote(datasets, name, accuracy):
    labels = at.read_labels(datasets / name / "labels.csv", duplicates="last")
    measured = at.evaluate(MajorityVote().fit(labels).result_, datasets / name / "truth.csv")
    assert measured["accuracy"] == pytest.approx(accuracy, abs=6e-5)


@pytest.mark.parametrize(
    ("cls", "plcc", "rmse"), [(MeanScore, 0.72546, 17.8353), (MedianScore, 0.63442, 21.2641)]
)
def test_errors_on_slider_scores(datasets, cls, plcc, rmse):
    labels = at.read_labels(datasets / "emotion-0-100" / "labels.csv")
    truth = datasets / "emotion-0-100" / "truth.csv"
    measured = at.evaluate(cls().fit(labels).result_, truth, scores=True)
    assert (measured["plcc"], measured["rmse"]) == pytest.approx((plcc, rmse), rel=1e-5)


def test_errors_in_exp1d():
    """PLCC, SROCC and RMSE of mean, median and majority in 20 of the paper's 100 runs."""
    runs = []
    for seed in range(20):
        simulation = simulate.gaussian(seed=seed)
        labels = simulation.labels
        scores = [
            MeanScore().fit(labels).result_.expectation,
            MedianScore().fit(labels).result_.expectation,
            labels.scale.values[MajorityVote().fit(labels).result_.label],
        ]
        measures = (metrics.plcc, metrics.srocc, metrics.rmse)
        runs.append(
            [[measure(simulation.score, score) for measure in measures] for score in scores]
        )
    expected = [[0.9172, 0.9218, 0.6601], [0.9015, 0.9094, 0.5109], [0.9139, 0.9139, 0.5070]]
    np.testing.assert_allclose(np.mean(runs, axis=0), expected, atol=1e-4)
