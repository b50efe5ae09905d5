"""What the baselines reach on real labels and on the paper's Exp1-d."""

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
def test_majority_vote(datasets, name, accuracy):
    labels = at.read_labels(datasets / name / "labels.csv", duplicates="last")
    found = at.evaluate(MajorityVote().fit(labels).result_, datasets / name / "truth.csv")
    assert found["accuracy"] == pytest.approx(accuracy, abs=6e-5)


@pytest.mark.parametrize(
    ("cls", "plcc", "rmse"), [(MeanScore, 0.72546, 17.8353), (MedianScore, 0.63442, 21.2641)]
)
def test_scores_of_a_slider(datasets, cls, plcc, rmse):
    labels = at.read_labels(datasets / "emotion-0-100" / "labels.csv")
    truth = datasets / "emotion-0-100" / "truth.csv"
    found = at.evaluate(cls().fit(labels).result_, truth, scores=True)
    assert (found["plcc"], found["rmse"]) == pytest.approx((plcc, rmse), rel=1e-5)


def test_exp1d():
    """20 runs of the paper's 100: PLCC, SROCC, RMSE of the mean, the median, the majority."""
    runs = []
    for seed in range(20):
        made = simulate.gaussian(seed=seed)
        values = made.labels.scale.values
        scores = [
            MeanScore().fit(made.labels).result_.expectation,
            MedianScore().fit(made.labels).result_.expectation,
            values[MajorityVote().fit(made.labels).result_.label],
        ]
        measures = (metrics.plcc, metrics.srocc, metrics.rmse)
        runs.append([[measure(made.score, score) for measure in measures] for score in scores])
    expected = [[0.9172, 0.9218, 0.6601], [0.9015, 0.9094, 0.5109], [0.9139, 0.9139, 0.5070]]
    np.testing.assert_allclose(np.mean(runs, axis=0), expected, atol=1e-4)
