"""What RobustGPM learns from held-out labels, and what follows for items and annotators."""

from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import annotruth as at
from annotruth.engines import get_engine
from annotruth.models.evidence.chance import Folds, assign_folds, label_shares
from annotruth.models.latent_classes import normalise_log_weights
from annotruth.models.robust_gpm.choice import CORRELATIONS, Candidate, HeldOutScores
from annotruth.models.robust_gpm.class_results import ClassState
from annotruth.models.robust_gpm.states import TrueClasses

NEW_NAMES = dict(zip("abcd", "zxwy", strict=True))


def crowd(seed, *, accuracy, n_items=300, n_annotators=20, per_item=5, hard_share=0.0):
    """Labels of four classes; on hard items every annotator takes one of two classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=n_items)
    hard = rng.random(n_items) < hard_share
    item = np.repeat(np.arange(n_items), per_item)
    annotator = np.argsort(rng.random((n_items, n_annotators)), axis=1)[:, :per_item].ravel()
    other = np.where(hard[item] & (rng.random(len(item)) < 0.45), truth[item] ^ 1, truth[item])
    right = rng.random(len(item)) < accuracy
    label = np.where(right, other, rng.integers(4, size=len(item)))
    frame = pd.DataFrame(
        {"item": item, "annotator": annotator, "label": np.array(list("abcd"))[label]}
    )
    return frame, truth


def choice_of(fit):
    return ClassState.from_fit(fit).choice


@pytest.mark.parametrize("seed", range(3))
def test_labels_of_chance_are_reported_as_such(seed):
    fit = at.fit(crowd(seed, accuracy=0.0)[0])
    assert fit.verdict == "chance"
    assert "no better than chance" in fit.summary()
    assert np.median(fit.reliability) < 0.3
    assert fit.distribution.confidence().max() < 0.9
    assert (fit.high - fit.low).min() > 0.1


def test_agreement_is_informative():
    frame, truth = crowd(0, accuracy=0.6)
    fit = at.fit(frame)
    assert fit.verdict == "informative"
    order = np.array(fit.data.items.to_pylist())
    assert (fit.label == truth[order]).mean() > 0.85


@pytest.mark.parametrize("seed", range(3))
def test_a_third_of_serious_annotators_is_not_chance(seed):
    rng = np.random.default_rng(seed)
    frame, truth = crowd(seed, accuracy=0.0, n_items=200)
    serious = (frame["annotator"] < 7) & (rng.random(len(frame)) < 0.8)
    right = np.array(list("abcd"))[truth[frame["item"]]]
    frame["label"] = frame["label"].where(~serious, right)
    fit = at.fit(frame)
    assert fit.verdict == "informative"
    is_serious = np.array(fit.data.annotators.to_pylist()) < 7
    assert fit.reliability[is_serious].min() > fit.reliability[~is_serious].max()


@pytest.mark.parametrize("n_categories", [2, 5, 12])
def test_numbers_of_chance_are_reported_as_such(n_categories):
    rng = np.random.default_rng(n_categories)
    frame, _ = crowd(0, accuracy=0.0)
    frame["label"] = rng.integers(n_categories, size=len(frame))
    fit = at.fit(frame, scale="ordinal")
    assert fit.verdict == "chance"
    # Scores that follow the item, with opinions that differ, are not chance.
    frame["label"] = np.clip(
        frame["item"] * n_categories / 300 + rng.normal(0, 0.2 * n_categories, len(frame)),
        0,
        n_categories - 1,
    ).astype(int)
    assert at.fit(frame).verdict == "informative"


def test_one_label_per_item_has_no_verdict_and_is_right_as_often_as_assumed_before():
    frame, _ = crowd(0, accuracy=0.8)
    fit = at.fit(frame.drop_duplicates("item"))
    assert fit.verdict is None
    prior = (1 + 1 / 4) / 2  # annotators who are right half of the time, and guess among 4 classes
    assert np.mean(fit.items()["confidence"]) == pytest.approx(prior, abs=0.03)


def test_known_truths_tell_serious_annotators_from_chance():
    frame, truth = crowd(0, accuracy=0.8)
    frame = frame.drop_duplicates("item")
    gold = pd.DataFrame({"item": range(300), "label": np.array(list("abcd"))[truth]})
    assert at.fit(frame, gold=gold).verdict == "informative"


def test_few_labels_have_no_verdict():
    fit = at.fit([(e, s, "ab"[e % 2]) for e in range(4) for s in range(3)])
    assert fit.verdict is None


def test_subtypes_are_chosen_where_items_of_a_class_differ():
    alike = at.fit(crowd(1, accuracy=0.85, n_items=800, per_item=8)[0])
    differ = at.fit(crowd(1, accuracy=0.85, n_items=800, per_item=8, hard_share=0.4)[0])
    assert choice_of(alike).candidate.n_subtypes == 1
    assert choice_of(differ).candidate.n_subtypes == 3


def test_held_out_labels_choose_on_ordinal_scales_too():
    frame, _ = crowd(1, accuracy=0.85, n_items=800, per_item=8, hard_share=0.4)
    frame["label"] = frame["label"].map(dict(zip("abcd", range(4), strict=True)))
    fit = at.fit(frame)
    assert fit.data.scale.is_ordinal
    assert choice_of(fit).candidate.n_subtypes == 3


def test_probabilities_are_calibrated_where_the_model_holds():
    sure, right = [], []
    for seed in range(6):
        frame, truth = crowd(seed, accuracy=0.55, per_item=4)
        fit = at.fit(frame)
        sure.append(fit.distribution.confidence())
        right.append(fit.label == truth[np.array(fit.data.items.to_pylist())])
    assert np.mean(sure) == pytest.approx(np.mean(right), abs=0.03)


def test_no_item_gets_a_label_that_nobody_gave_it():
    for seed in range(3):
        frame, _ = crowd(seed, accuracy=0.4, per_item=3)
        fit = at.fit(frame)
        given = set(zip(frame["item"], frame["label"], strict=True))
        items = fit.items()
        assert set(zip(items["item"], items["label"], strict=True)) <= given


def rename(frame):
    """Return the labels with other names in another order, and the new names of the items."""
    rng = np.random.default_rng(9)
    items, people = rng.permutation(300), rng.permutation(20)
    renamed = pd.DataFrame(
        {
            "item": [f"i{items[e]:03}" for e in frame["item"]],
            "annotator": [f"s{people[s]:02}" for s in frame["annotator"]],
            "label": frame["label"].map(NEW_NAMES),
        }
    )
    return renamed.sample(frac=1.0, random_state=3), items, people


@pytest.mark.parametrize("accuracy", [0.0, 0.5, 0.8])
def test_names_and_order_do_not_matter(accuracy):
    frame, _ = crowd(4, accuracy=accuracy, hard_share=0.3)
    renamed, items, _ = rename(frame)
    before, after = (at.fit(one).items().set_index("item") for one in (frame, renamed))
    after = after.loc[[f"i{items[e]:03}" for e in before.index]]
    for old, name in NEW_NAMES.items():
        np.testing.assert_allclose(after[f"p_{name}"], before[f"p_{old}"], atol=1e-9)


def test_folds_do_not_depend_on_names_and_order():
    frame, _ = crowd(4, accuracy=0.5)
    renamed, items, people = rename(frame)
    before, after = folds_of(frame), folds_of(renamed)
    names = [(f"i{items[e]:03}", f"s{people[s]:02}") for e, s in before]
    assert [after[name] for name in names] == list(before.values())
    assert len(set(before.values())) == 5


def folds_of(frame):
    """Return the fold of each pair of item and annotator."""
    labels = at.Labels.of(frame)
    with closing(get_engine("memory").open(labels)) as session:
        assign_folds(labels, session, Folds.of(labels))
        fold = labels.in_row_order(session.collect("fold"))
    table = labels.to_arrow()
    pairs = zip(table["item"].to_pylist(), table["annotator"].to_pylist(), strict=True)
    return dict(zip(pairs, fold.tolist(), strict=True))


def test_both_read_outs_are_distributions():
    fit = at.fit(crowd(2, accuracy=0.7)[0])
    assert fit.readout == "right"
    right, opinion = fit.distributions("right"), fit.distributions("opinion")
    for table in (right, opinion):
        np.testing.assert_allclose(table.groupby("item")["p"].sum(), 1.0)
    # One right label is more certain than what a serious annotator would say.
    assert right.groupby("item")["p"].max().mean() > opinion.groupby("item")["p"].max().mean()


def test_the_right_label_of_hard_items_follows_opinion():
    items = TrueClasses(at.Labels.of([("a", "x", "c"), ("a", "y", "d")]), n_subtypes=2)
    serious = np.array([[0.9, 0.6, 0.1, 0.1], [0.1, 0.4, 0.9, 0.9]])  # labels x states
    right = items.right_labels(serious)
    np.testing.assert_allclose(right, [[1.0, 0.0], [2 / 3, 1 / 3], [0.0, 1.0], [0.0, 1.0]])


def test_no_label_is_likelier_than_the_class():
    items = TrueClasses(at.Labels.of([("a", "x", "c"), ("a", "y", "d"), ("a", "z", "e")]))
    counts = np.array([[10.0, 0.0, 50.0], [60.0, 90.0, 40.0], [30.0, 10.0, 10.0]])
    crowd_rows = items.serious_from_counts(counts)
    np.testing.assert_allclose(crowd_rows.sum(axis=0), 1.0)
    assert (crowd_rows.max(axis=0) - np.diag(crowd_rows)).max() < 1e-12


def compared(rng, better, n=400, *, learn_crowd=True):
    """Return the scores of two candidates, of which the second predicts better by some amount.

    The noise of differences has a standard error of 0.05.
    """
    candidates = [Candidate(1, 16.0, learn_crowd), Candidate(3, 16.0, learn_crowd=True)]
    expected = np.repeat([0.0, better], len(CORRELATIONS))
    noise = rng.standard_normal((n, len(expected)))
    noise = (noise - noise.mean(axis=0)) / noise.std(axis=0) * (0.05 * np.sqrt(n / 2))
    values = -1.0 + expected + noise
    total, products = np.append(n, values.sum(axis=0)), values.T @ values
    return HeldOutScores(candidates, total, products)


def test_the_simplest_candidate_within_one_standard_error_of_the_best_is_chosen():
    rng = np.random.default_rng(0)
    (within, _), (beyond, _) = compared(rng, 0.02).choice(), compared(rng, 0.2).choice()
    assert (within.candidate.n_subtypes, beyond.candidate.n_subtypes) == (1, 3)


def test_the_correlation_is_a_mean_weighted_by_the_likelihood_of_held_out_labels():
    scores = compared(np.random.default_rng(0), 0.2)
    # Without a difference of likelihoods, that of the prior: one half for no correlation.
    assert scores.choice()[0].correlation == pytest.approx(CORRELATIONS[1:].mean() / 2.0)
    ahead = np.log(np.arange(1.0, len(CORRELATIONS) + 1.0))
    weighted = scores.plus(np.concatenate([[0.0], ahead, ahead[::-1]]), 0.0)
    weights = np.arange(len(CORRELATIONS), 0.0, -1.0)
    weights[0] *= len(CORRELATIONS) - 1.0
    expected = weights @ CORRELATIONS / weights.sum()
    assert weighted.choice()[0].correlation == pytest.approx(expected)


def test_candidates_are_compared_with_their_best_correlations():
    scores = compared(np.random.default_rng(0), 0.2)
    ahead = np.zeros(len(scores.total))
    ahead[3] = 0.4 * scores.n_labels  # the first candidate with one correlation only
    chosen = scores.plus(ahead, 0.0).choice()[0]
    assert (chosen.candidate.n_subtypes, chosen.correlation) == (1, pytest.approx(CORRELATIONS[2]))


@pytest.mark.parametrize(("better", "learned"), [(0.02, False), (0.2, True)])
def test_the_alternative_is_weighted_by_how_probably_it_predicts_better(better, learned):
    choice, alternative = compared(np.random.default_rng(0), better, learn_crowd=False).choice()
    assert choice.candidate.learn_crowd == learned
    assert alternative.candidate.learn_crowd != learned
    n_errors = -better / 0.05 if learned else better / 0.05
    assert alternative.weight == pytest.approx(ndtr(n_errors), abs=0.03)


def test_there_is_no_alternative_among_candidates_of_one_sort():
    assert compared(np.random.default_rng(0), 0.2).choice()[1] is None


def opinions_as_classes(seed):
    """Labels of 60 items by 10 annotators, whose serious labels differ within each item."""
    rng = np.random.default_rng(seed)
    opinions = rng.dirichlet(np.ones(3), 60)
    item = np.repeat(np.arange(60), 5)
    annotator = np.argsort(rng.random((60, 10)), axis=1)[:, :5].ravel()
    serious = np.array([rng.choice(3, p=opinions[e]) for e in item])
    is_serious = rng.random(300) < rng.beta(3.0, 1.5, 10)[annotator]
    label = np.where(is_serious, serious, rng.integers(3, size=300))
    return pd.DataFrame(
        {"item": item, "annotator": annotator, "label": np.array(list("abc"))[label]}
    )


def test_intervals_contain_the_reliabilities_of_another_choice():
    frame = opinions_as_classes(15)
    fits = [at.fit(one) for one in (frame, frame.iloc[2:])]
    # Two labels fewer, and whether serious labels are right is chosen differently.
    assert len({choice_of(fit).candidate.learn_crowd for fit in fits}) == 2
    one, other = (fit.annotators().set_index("annotator").sort_index() for fit in fits)
    assert (one["reliability"] - other["reliability"]).abs().max() > 0.3
    for table, again in ((one, other), (other, one)):
        assert again["reliability"].between(table["low"], table["high"]).all()


def test_the_mean_of_two_likelihoods_of_strategies():
    states = [ClassState.from_fit(at.fit(crowd(seed, accuracy=0.8)[0])) for seed in (0, 1)]
    one, other = (normalise_log_weights(state.loo_log_likelihood) for state in states)
    mean = normalise_log_weights(states[0].averaged(states[1], 0.25).averaged_log_likelihood)
    np.testing.assert_allclose(mean, 0.75 * one + 0.25 * other)


def test_candidates_behind_by_four_standard_errors_are_dropped_with_their_sums():
    rng = np.random.default_rng(0)
    kept = compared(rng, 0.18)  # 3.6 standard errors
    assert kept.without_clearly_worse().candidates == kept.candidates
    scores = compared(rng, 0.22)
    left = scores.without_clearly_worse()
    assert left.candidates == scores.candidates[1:]
    assert left.choice() == scores.choice()
    width = len(CORRELATIONS)
    np.testing.assert_array_equal(left.total, [scores.total[0], *scores.total[1 + width :]])
    np.testing.assert_array_equal(left.products, scores.products[width:, width:])


def test_no_candidate_is_dropped_by_few_held_out_labels():
    scores = compared(np.random.default_rng(0), 0.5, n=40)
    assert len(scores.without_clearly_worse().candidates) == 2


def test_an_annotator_whose_labels_are_all_held_out_has_the_crowds_shares():
    counts = np.array([[3.0, 1.0], [0.0, 0.0]])
    for leave_one_out in (False, True):  # without a warning of a division by zero
        shares = label_shares(counts, leave_one_out=leave_one_out)
        np.testing.assert_allclose(shares[1], [4 / 6, 2 / 6])
