"""Majority vote, mean and median against plain Python."""

from collections import Counter
from statistics import median

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from annotruth.models.baselines import MajorityVote, MeanScore, MedianScore
from annotruth.observations import Labels

SCORERS = [MeanScore, MedianScore]


def fitted(cls, data, gold=None):
    return cls().fit(data, gold=gold).result_


@pytest.fixture(params=range(4))
def crowd(request):
    """Votes on a scale with gaps, 1 to 9 per item, in random order."""
    rng = np.random.default_rng(request.param)
    rows = [
        (e, s, float(rng.choice([0.5, 1.0, 2.5, 4.0]))) for e in range(60) for s in range(1 + e % 9)
    ]
    return [rows[j] for j in rng.permutation(len(rows))]


def by_item(table):
    votes = {}
    for item, _, label in table:
        votes.setdefault(item, []).append(label)
    return votes


def test_the_majority_is_the_most_frequent_label_and_a_tie_goes_to_the_lowest(crowd):
    items = fitted(MajorityVote, crowd).items().set_index("item")
    for item, votes in by_item(crowd).items():
        counts = Counter(votes)
        most = min(label for label in counts if counts[label] == max(counts.values()))
        assert items.loc[item, "label"] == most
        assert items.loc[item, "confidence"] == pytest.approx(counts[most] / len(votes))
        assert items.loc[item, "expectation"] == pytest.approx(np.mean(votes))
        for label in (0.5, 1.0, 2.5, 4.0):
            assert items.loc[item, f"p_{label}"] == pytest.approx(counts[label] / len(votes))


def test_mean_and_interval(crowd):
    items = fitted(MeanScore, crowd).items().set_index("item")
    for item, votes in by_item(crowd).items():
        row = items.loc[item]
        assert row.expectation == pytest.approx(np.mean(votes))
        if len(votes) == 1:
            assert np.isnan([row["std"], row.score_low, row.score_high]).all()
            continue
        assert row["std"] == pytest.approx(np.std(votes, ddof=1), abs=1e-12)
        reach = stats.t.ppf(0.975, len(votes) - 1) * stats.sem(votes)
        assert row.score_low == pytest.approx(np.mean(votes) - reach)
        assert row.score_high == pytest.approx(np.mean(votes) + reach)


def test_median(crowd):
    items = fitted(MedianScore, crowd).items().set_index("item")
    for item, votes in by_item(crowd).items():
        assert items.loc[item, "expectation"] == median(votes)


def test_the_interval_covers_the_truth_in_95_percent():
    rng = np.random.default_rng(5)
    votes = rng.binomial(20, 0.5, size=(2000, 12))
    table = pd.DataFrame(
        {
            "item": np.repeat(np.arange(2000), 12),
            "annotator": np.tile(np.arange(12), 2000),
            "label": votes.ravel(),
        }
    )
    items = fitted(MeanScore, table).items()
    assert items.score_low.le(10).mul(items.score_high.ge(10)).mean() == pytest.approx(
        0.95, abs=0.015
    )


@pytest.mark.parametrize("cls", SCORERS)
def test_ordered_words_have_the_values_of_their_positions(cls):
    table = [("a", "x", "bad"), ("a", "y", "good"), ("b", "x", "fair")]
    fit = fitted(cls, Labels.of(table, categories=["bad", "fair", "good"]))
    assert fit.items().expectation.tolist() == [2.0, 2.0]


def test_a_known_truth_replaces_labels_and_scores():
    table = [("a", "x", 1), ("a", "y", 1), ("b", "x", 3), ("b", "y", 5)]
    majority = fitted(MajorityVote, table, gold={"a": 5}).items().set_index("item")
    assert majority.loc["a", ["label", "p_5", "p_1"]].tolist() == [5, 1.0, 0.0]
    assert majority.loc["b", "p_3"] == 0.5
    mean = fitted(MeanScore, table, gold={"b": 5}).items().set_index("item")
    assert mean.loc["b", ["expectation", "score_low", "score_high"]].tolist() == [5.0, 5.0, 5.0]
    assert mean.loc["b", "std"] == pytest.approx(np.sqrt(2))
    assert mean.loc["a", "expectation"] == 1.0
    middle = fitted(MedianScore, table, gold={"a": 3}).items().set_index("item")
    assert middle.expectation.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("cls", [MajorityVote, *SCORERS])
def test_a_fit_without_iterations_says_so(cls):
    fit = fitted(cls, [("a", "x", 1), ("a", "y", 3)])
    assert (fit.n_iter, fit.converged, fit.stop_reason) == (0, True, "computed directly")
    assert fit.log_likelihood is None
    assert list(fit.annotators().columns) == ["annotator", "n_labels"]


def test_there_are_no_options():
    with pytest.raises(TypeError):
        MajorityVote(engine="memory")
