"""PairGPM: kernels equal their twins, known parameters are recovered, behaviors are named."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from annotruth import simulate
from annotruth.errors import InputError
from annotruth.models.pairs.pair_gpm.model import PairGPM
from annotruth.models.pairs.pair_gpm.starts import sample_votes
from annotruth.models.pairs.summary import TOO_FEW_VOTES
from annotruth.observations import Comparisons


@pytest.mark.parametrize(
    "behavior", ["random", "always left", "always right", "always tie", "inverted"]
)
def test_behaviors_are_named(behavior: str) -> None:
    made = simulate.comparers(
        n_items=12, n_annotators=30, comparisons_per_annotator=80, behavior=behavior, spammer_reliability=(0.0, 0.0),
        tie_rate=0.4 * (behavior == "always tie"), sharpness_spread=0.3, score_spread=1.5, seed=5,
    )  # fmt: skip
    fit = PairGPM().fit(made.comparisons).result_
    named = np.array(fit.behavior)
    assert (named[made.is_spammer] == behavior).mean() >= 0.8
    assert (fit.spammer == made.is_spammer).mean() >= 0.95


def test_an_annotator_who_favours_one_item_is_found() -> None:
    made = simulate.comparers(
        n_items=5, n_annotators=30, comparisons_per_annotator=60, behavior="favours one item",
        spammer_reliability=(0.0, 0.0), seed=1,
    )  # fmt: skip
    fit = PairGPM().fit(made.comparisons).result_
    named = np.array(fit.behavior)[made.is_spammer]
    assert (named == "favours one item").mean() >= 0.8
    found = fit.parameters["favoured"][made.is_spammer]
    assert (found == made.favourite[made.is_spammer]).mean() >= 0.8


def test_scores_offsets_and_coefficients_are_recovered() -> None:
    made = simulate.comparers(
        n_items=15, n_annotators=80, comparisons_per_annotator=80, side_bias=0.5,
        coefficients={"length": 0.8}, sharpness_spread=0.4, reliability=(1.0, 1.0), seed=2,
    )  # fmt: skip
    fit = PairGPM().fit(made.comparisons).result_
    np.testing.assert_allclose(fit.scores.mean, made.scores, atol=0.35)
    assert fit.side_bias is not None
    assert fit.side_bias[1] < 0.5 < fit.side_bias[2]
    low, high = fit.coefficients["length"][1:]
    assert low < 0.8 < high


def swapped(data: Comparisons) -> Comparisons:
    outcome = np.array([1, 0, 2], dtype=np.int8)[data.outcome]
    return dataclasses.replace(data, left=data.right, right=data.left, outcome=outcome)


def test_swapping_sides_swaps_what_depends_on_them() -> None:
    made = simulate.comparers(n_items=8, n_annotators=20, behavior="always left", seed=4)
    one, other = (
        PairGPM().fit(each).result_ for each in (made.comparisons, swapped(made.comparisons))
    )
    exchanged = {"always left": "always right", "always right": "always left"}
    assert [exchanged.get(name, name) for name in one.behavior or ()] == list(other.behavior or ())


def test_nothing_is_said_about_sides_that_are_not_known() -> None:
    made = simulate.comparers(n_items=8, n_annotators=20, behavior="always left", seed=4)
    unsided = dataclasses.replace(made.comparisons, sides_known=False)
    fit = PairGPM().fit(unsided).result_
    assert fit.side_bias is None
    assert "side_bias" not in fit.annotator_columns
    assert not {"always left", "always right"} & set(fit.behavior or ())
    again = PairGPM().fit(swapped(unsided)).result_
    np.testing.assert_allclose(fit.scores.mean, again.scores.mean, atol=1e-6)


@pytest.mark.parametrize(
    ("outcome", "annotator"),
    [([0] * 12, [0, 1, 2, 3] * 3), ([2] * 12, [0, 1, 2, 3] * 3), ([0, 1, 0] * 4, [0] * 12)],
    ids=["always left", "only ties", "one annotator"],
)
def test_degenerate_votes_have_finite_results(outcome: list[int], annotator: list[int]) -> None:
    left = [0, 1, 2, 0, 2, 1] * 2
    right = [1, 2, 0, 2, 1, 0] * 2
    names = [f"a{s}" for s in range(max(annotator) + 1)]
    data = Comparisons.from_codes(
        left, right, annotator, outcome, items=["a", "b", "c"], annotators=names
    )
    fit = PairGPM().fit(data).result_
    assert np.isfinite(fit.scores.mean).all()
    assert np.isfinite(fit.scores.sd).all()
    assert fit.reliability is not None
    assert ((fit.reliability >= 0) & (fit.reliability <= 1)).all()


def test_a_sample_is_small_even_if_every_annotator_has_many_comparisons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where a few language models compare everything."""
    monkeypatch.setattr("annotruth.models.pairs.pair_gpm.model.LARGE", 400)
    monkeypatch.setattr("annotruth.models.pairs.pair_gpm.model._SAMPLE", 100)
    made = simulate.comparers(n_items=6, n_annotators=3, comparisons_per_annotator=500)
    fit = PairGPM(tol=1.0).fit(made.comparisons).result_
    assert np.isfinite(fit.scores.mean).all()


def test_random_votes_among_many_comparisons_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """States that are unlikely at the start, such as those of random votes, may be likely at the end."""
    rng = np.random.default_rng(5)
    n_items, n_annotators, n_votes = 100, 50, 15_000
    scores = rng.normal(size=n_items)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    annotator = rng.integers(n_annotators, size=n_votes)
    is_random = annotator < 10
    p_left = np.where(is_random, 0.5, 1.0 / (1.0 + np.exp(scores[right] - scores[left])))
    outcome = np.where(rng.random(n_votes) < 0.1, 2, rng.random(n_votes) > p_left)
    votes = Comparisons.from_codes(
        left,
        right,
        annotator,
        outcome.astype(np.int8),
        items=np.arange(n_items),
        annotators=np.arange(n_annotators),
    )
    monkeypatch.setattr("annotruth.models.pairs.pair_gpm.model.LARGE", 5000)
    monkeypatch.setattr("annotruth.models.pairs.pair_gpm.starts._SAMPLE", 2000)
    fit = PairGPM().fit(votes).result_
    assert fit.behavior[:10].count("random") >= 8
    assert set(fit.behavior[10:]) == {"serious"}


def test_scores_of_many_comparisons_have_the_scale_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where some vote at random, scores of all votes counted alike are too close to each other."""
    data = simulate.comparers(
        n_items=6, n_annotators=120, comparisons_per_annotator=200, behavior="random",
        spammer_share=0.3, score_spread=1.5, sharpness_spread=0.5, seed=2,
    ).comparisons  # fmt: skip
    few = PairGPM().fit(data).result_.scores.mean
    monkeypatch.setattr("annotruth.models.pairs.pair_gpm.model.LARGE", 5000)
    monkeypatch.setattr("annotruth.models.pairs.pair_gpm.starts._SAMPLE", 4000)
    many = PairGPM().fit(data).result_.scores.mean
    assert many @ few / (few @ few) == pytest.approx(1.0, abs=0.06)


def test_the_prior_of_many_comparisons_is_that_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotators who are not in the sample do not count for the mean sharpness in it."""
    data = simulate.comparers(n_items=40, n_annotators=300, seed=1).comparisons
    sample = sample_votes(data, 1000, seed=0)
    assert sample.n_annotators == (sample.comparisons_per_annotator > 0).sum() == 25
    small = PairGPM().fit(data).result_.parameters["precision"][0]
    monkeypatch.setattr("annotruth.models.pairs.pair_gpm.model.LARGE", 2000)
    monkeypatch.setattr("annotruth.models.pairs.pair_gpm.starts._SAMPLE", 1000)
    large = PairGPM(tol=1.0).fit(data).result_.parameters["precision"][0]
    assert 0.5 < large / small < 2.0


def test_predictions_at_large_covariates_are_probabilities() -> None:
    made = simulate.comparers(n_items=4, n_annotators=4, comparisons_per_annotator=20, seed=0)
    lengths = np.random.default_rng(0).normal(size=80)
    votes = dataclasses.replace(made.comparisons, covariates={"length": lengths})
    model, zero = PairGPM().fit(votes), np.zeros(2, dtype=np.int64)
    p = model.predict_proba(zero, zero + 1, np.array([-1, 0]), {"length": np.full(2, 1e6)})
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    with pytest.raises(InputError, match="a covariate of these comparisons is not a finite number"):
        model.predict_proba(zero, zero + 1, zero, {"length": np.array([0.0, np.nan])})


def test_nobody_is_accused_of_what_everybody_does() -> None:
    made = simulate.comparers(n_items=6, n_annotators=5, comparisons_per_annotator=30, seed=0)
    ties = dataclasses.replace(made.comparisons, outcome=np.full(150, 2, dtype=np.int8))
    assert not PairGPM().fit(ties).result_.spammer.any()


def test_bad_options_and_no_comparisons_are_refused_and_one_is_too_few_to_tell() -> None:
    one = Comparisons.from_codes([0], [1], [0], [0], items=["a", "b"], annotators=["x"])
    fit = PairGPM().fit(one).result_
    assert fit.behavior == [TOO_FEW_VOTES]
    assert not fit.spammer.any()
    with pytest.raises(InputError, match="seed is -1: give a whole number from 0"):
        PairGPM(seed=-1).fit(one)
    with pytest.raises(InputError, match="tol must be 0 or more, and finite, not -1"):
        PairGPM(tol=-1).fit(one)
    with pytest.raises(InputError, match="there are no comparisons: nothing to rank"):
        PairGPM().fit(one.subset(np.array([False])))
