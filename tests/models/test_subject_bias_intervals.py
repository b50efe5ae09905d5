"""Subject bias: recovered parameters, and intervals that cover them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.models.subject_bias_votes import fitted, rows, votes

from annotruth import simulate
from annotruth.observations import Scale


def test_parameters_of_simulated_votes_are_recovered():
    rng = np.random.default_rng(2)
    ambiguity = np.tile([0.0, 4.0, 8.0, 12.0], 75)
    labels, score, bias, inconsistency = votes(rng, n_items=300, ambiguity=ambiguity)
    fit = fitted(labels, ambiguity={e: e % 4 for e in range(300)})
    people = fit.annotators()
    assert np.abs(people.bias - bias).max() < 4 * people.bias_std.max()
    assert np.abs(people.inconsistency - inconsistency).mean() < 0.6
    np.testing.assert_allclose(fit.item_columns["ambiguity"][:4], ambiguity[:4], atol=1.0)
    error = fit.score - score
    mean_votes = pd.Series(rows(labels)[2]).groupby(rows(labels)[0]).mean()
    assert (error**2).mean() < 0.95 * ((mean_votes - score) ** 2).mean()
    items = fit.items()
    assert 0.92 < np.mean((items.score_low <= score) & (score <= items.score_high)) < 0.98
    inside = np.abs(people.inconsistency - inconsistency) < 1.96 * people.inconsistency_std
    assert inside.mean() > 0.8
    assert fit.n_iter < 30


@pytest.mark.parametrize(
    ("n_items", "n_annotators", "votes_each", "ambiguity", "top"),
    [
        (10, 5, None, 0.0, 10_000),  # a continuous scale
        (10, 20, None, 0.0, 10_000),
        (60, 20, 4, 0.0, 10_000),
        (60, 20, 4, 6.0, 10_000),
        (10, 5, None, 0.0, 12),  # noise of about one step
        (60, 20, 4, 6.0, 12),
    ],
)
@pytest.mark.parametrize("per", ["item", "shared"])
def test_intervals_cover(n_items, n_annotators, votes_each, ambiguity, top, per):
    covered, of_biases, of_inconsistencies = [], [], []
    for seed in range(600 // n_items):
        rng = np.random.default_rng(seed)
        size = {"n_items": n_items, "n_annotators": n_annotators, "votes_each": votes_each}
        of_items = rng.uniform(0, 2, n_items) * ambiguity
        labels, score, bias, inconsistency = votes(rng, **size, top=top, ambiguity=of_items)
        fit = fitted(labels, ambiguity=per)
        items, people = fit.item_columns, fit.annotator_columns
        covered.append(np.mean((items["score_low"] <= score) & (score <= items["score_high"])))
        of_biases.append((people["bias"] - bias) / people["bias_std"])
        error = people["inconsistency"] - inconsistency
        of_inconsistencies.append(error / people["inconsistency_std"])
    assert 0.91 < np.mean(covered) < 0.98
    assert 0.88 < np.mean(np.abs(of_biases) <= 1.96) < 0.99
    # As large as stated: neither overconfident nor too wide.
    assert 0.9 < np.sqrt(np.mean(np.square(of_biases))) < 1.2
    if per == "item" or not ambiguity:  # else inconsistencies contain the ambiguity
        assert np.mean(np.abs(of_inconsistencies) <= 1.96) > 0.87
        assert 0.9 < np.sqrt(np.mean(np.square(of_inconsistencies))) < 1.35


def test_intervals_of_ambiguous_items_are_wider():
    ambiguity = np.tile([0.0, 15.0], 100)
    labels, score, *_ = votes(np.random.default_rng(10), n_items=200, ambiguity=ambiguity)
    items = fitted(labels).item_columns
    inside = (items["score_low"] <= score) & (score <= items["score_high"])
    assert inside[::2].mean() > 0.9
    assert inside[1::2].mean() > 0.9
    width = items["score_high"] - items["score_low"]
    assert width[1::2].mean() > 1.8 * width[::2].mean()


def test_intervals_contain_the_score_and_the_level_of_known_truths():
    labels, score, *_ = votes(np.random.default_rng(11), n_items=40, n_annotators=5, votes_each=3)
    fit = fitted(labels, ambiguity="shared")
    items = fit.item_columns
    assert ((items["score_low"] <= fit.score) & (fit.score <= items["score_high"])).all()
    # All votes are ten too low, which only known truths reveal.
    gold = {e: round(score[e]) + 10 for e in range(20)}
    items = fitted(labels, ambiguity="shared", gold=gold).item_columns
    inside = (items["score_low"] <= score + 10) & (score + 10 <= items["score_high"])
    assert inside[20:].mean() > 0.8
    np.testing.assert_array_equal(items["score_low"][:20], items["score_high"][:20])


def test_intervals_with_many_annotators(monkeypatch):
    labels, *_ = votes(np.random.default_rng(12), n_items=120, n_annotators=30, votes_each=6)
    coupled = fitted(labels).item_columns
    monkeypatch.setattr("annotruth.models.scales.subject_bias_posterior._MAX_COUPLED", 10)
    independent = fitted(labels).item_columns
    ratio = [c["score_high"] - c["score_low"] for c in (independent, coupled)]
    np.testing.assert_allclose(ratio[0] / ratio[1], 1.0, atol=0.05)


def test_ambiguities_of_items_correlate_with_the_true_ones():
    rng = np.random.default_rng(3)
    ambiguity = rng.uniform(0, 1.2, 200) * 25  # on a scale of 1 to 5
    labels, score, bias, _ = votes(rng, n_items=200, top=4, ambiguity=ambiguity)
    fit = fitted(labels)
    assert np.corrcoef(fit.item_columns["ambiguity"], ambiguity)[0, 1] > 0.8
    assert np.abs(fit.annotator_columns["bias"] - bias).max() < 0.25
    assert np.corrcoef(fit.score, score)[0, 1] > 0.8
    assert fit.n_iter < 100


@pytest.mark.parametrize(("factor", "shift"), [(1e-9, 0.0), (100.0, 0.0), (1.0, 1e4)])
def test_intervals_do_not_depend_on_the_units_of_the_votes(factor, shift):
    labels = simulate.crowd(n_items=40, n_annotators=8, labels_per_item=5, seed=2).labels
    values = labels.scale.values
    changed = replace(labels, scale=Scale.ordinal((factor * values + shift).tolist()))
    fits = [fitted(each, tol=1e-8) for each in (labels, changed)]
    for name in ("score_low", "score_high"):
        one, other = (fit.item_columns[name] for fit in fits)
        np.testing.assert_allclose((other - shift) / factor, one, atol=1e-5)
    for name in ("bias_std", "inconsistency_std"):
        one, other = (fit.annotator_columns[name] for fit in fits)
        np.testing.assert_allclose(other / factor, one, atol=1e-5)
