"""The predictions of each model, against its formula written out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import annotruth as at
from annotruth import simulate
from annotruth.models.distribution import Distribution
from annotruth.models.robust_gpm.class_results import ClassState
from annotruth.models.scales.subject_bias_posterior import (
    rounded_gaussians,
    shared_rounding_variance,
)

ROWS = [
    *(("a", "x", 1), ("a", "y", 1), ("a", "z", 2)),
    *(("b", "x", 2), ("b", "y", 3), ("b", "z", 2)),
    *(("c", "x", 1), ("c", "y", 1)),
]


@pytest.fixture(scope="module")
def crowd():
    return simulate.crowd(n_items=60, n_annotators=14, n_categories=4, seed=5).labels


def every_pair(labels):
    item, annotator = np.indices((labels.n_items, labels.n_annotators)).reshape(2, -1)
    return item, annotator


def test_rows_of_some_items_equal_those_of_the_dense_array(crowd):
    theta = at.GPM().fit(crowd).result_.distribution
    item = np.array([3, 0, 3, 59, 17])
    np.testing.assert_array_equal(theta.rows(item, 4), theta.dense(4)[item])
    gold = Distribution.of_cells(crowd.with_gold({1: 2}), np.ones(crowd.n_cells))
    assert gold.rows(np.array([0]), 4).tolist() == [[0.0, 1.0, 0.0, 0.0]]


def test_gpm_by_hand():
    """One step from eps = 0.5 and the observed shares, computed by hand."""
    model = at.GPM(max_iter=1)
    with pytest.warns(at.ConvergenceWarning):
        fit = model.fit(ROWS).result_
    # mu of a label with share q is q / (q + 1/3): 2/3 -> 2/3, 1/3 -> 1/2, 1 -> 3/4.
    eps = {"x": (2 / 3 + 2 / 3 + 3 / 4) / 3, "z": (1 / 2 + 2 / 3) / 2}
    # For item a, the sum of mu is 2/3 + 2/3 for label 1, and 1/2 for label 2.
    theta = np.array([4 / 3, 1 / 2, 0.0]) / (4 / 3 + 1 / 2)
    predicted = model.predict_proba([0, 0], [0, 2])
    expected = [eps[s] * theta + (1 - eps[s]) / 3 for s in ("x", "z")]
    np.testing.assert_allclose(predicted, expected, rtol=1e-12)
    assert fit.data.annotators.to_pylist() == ["x", "y", "z"]


def test_dawid_skene_by_hand():
    """Parameters after one step: counts of the observed shares, then posteriors by Bayes."""
    model = at.DawidSkene(max_iter=1)
    with pytest.warns(at.ConvergenceWarning):
        model.fit(ROWS)
    posterior = model.result_.distribution.dense(3)
    expected = np.einsum("ek,skn->esn", posterior, model.confusion_).reshape(-1, 3)
    predicted = model.predict_proba(*every_pair(model.result_.data))
    np.testing.assert_allclose(predicted, expected, rtol=1e-12)


def test_glad_predicts_correct_labels_and_uniform_errors(crowd):
    model = at.GLAD().fit(crowd)
    fit, (item, annotator) = model.result_, every_pair(crowd)
    p = fit.distribution.dense(4)[item]
    x = fit.annotator_columns["ability"][annotator] / fit.item_columns["difficulty"][item]
    correct = expit(x)[:, np.newaxis]
    confusion = np.where(
        np.eye(4, dtype=bool), correct[..., np.newaxis], (1 - correct[..., np.newaxis]) / 3
    )
    expected = (p[:, :, np.newaxis] * confusion).sum(axis=1)
    np.testing.assert_allclose(model.predict_proba(item, annotator), expected, rtol=1e-10)


def test_glad_with_too_many_categories_to_store_all_posteriors():
    labels = [("a", "x", 1), ("a", "y", 1), ("b", "x", 2), ("b", "y", 150)]
    data = at.Labels.of(labels, categories=list(range(1, 151)))
    predicted = at.GLAD().fit(data).predict_proba([0, 1], [0, 1])
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0)
    assert (predicted > 0).all()
    assert np.ptp(predicted[0, 1:]) < 1e-12


def test_ord_bin_predicts_labels_above_each_threshold(crowd):
    model = at.OrdinalBinary().fit(crowd)
    item, annotator = every_pair(crowd)
    theta = model.result_.distribution.dense(4)[item]
    people = model.result_.annotators()
    predicted = model.predict_proba(item, annotator)
    for c in (1, 2, 3):
        mu = theta[:, c:].sum(axis=1)
        hit = people[f"sensitivity_{c + 1}"].to_numpy()[annotator]
        rejection = people[f"specificity_{c + 1}"].to_numpy()[annotator]
        above = mu * hit + (1 - mu) * (1 - rejection)
        # The rest is due to contradictions between thresholds.
        assert np.median(np.abs(predicted[:, c:].sum(axis=1) - above)) < 1e-3


def test_ord_bin_averages_contradicting_thresholds():
    model = at.OrdinalBinary().fit([("a", "x", 1), ("a", "y", 3), ("b", "x", 2)])
    rates = np.array([[0.2, 0.6], [0.9, 0.3]])
    model.load_fit(replace(model.result_, parameters={"hit": rates, "false_alarm": rates}))
    # 0.2 and 0.6 both become 0.4; 0.9 and 0.3 are in order.
    predicted = model.predict_proba([0, 0], [0, 1])
    np.testing.assert_allclose(predicted, [[0.6, 0.0, 0.4], [0.1, 0.6, 0.3]], atol=1e-12)


def test_ord_dis_mix_predicts_the_items_distribution_for_a_typical_annotator(crowd):
    model = at.OrdinalMixture().fit(crowd)
    fit = model.result_
    level = fit.parameters["level"]
    typical = round(np.average(level, weights=fit.reliability * crowd.labels_per_annotator))
    who = np.flatnonzero(level == typical)
    assert len(who)
    item, annotator = (codes.ravel() for codes in np.meshgrid(np.arange(60), who, indexing="ij"))
    eps = fit.reliability[annotator][:, np.newaxis]
    expected = eps * fit.distribution.dense(4)[item] + (1 - eps) / 4
    np.testing.assert_allclose(model.predict_proba(item, annotator), expected, rtol=1e-9)


def test_ord_dis_mix_predicts_a_wider_distribution_for_a_noisy_annotator(crowd):
    model = at.OrdinalMixture().fit(crowd)
    level = model.result_.parameters["level"]
    noisy, precise = int(level.argmin()), int(level.argmax())
    model.load_fit(replace(model.result_, reliability=np.full(14, 0.999)))
    a, b = (
        model.predict_proba(np.arange(60), np.full(60, s)).max(axis=1) for s in (noisy, precise)
    )
    assert (a < b).mean() > 0.9


def test_subject_bias_predicts_a_rounded_gaussian(crowd):
    model = at.SubjectBias().fit(crowd)
    fit = model.result_
    e, s = 7, 3
    items, people = fit.items().loc[e], fit.annotators().loc[s]
    score_std = (items.score_high - items.score_low) / (2 * 1.959964)
    sd = np.sqrt(items.ambiguity**2 + people.inconsistency**2 + score_std**2)
    below = norm.cdf([1.5, 2.5, 3.5], items.expectation + people.bias, sd)
    expected = np.diff([0.0, *below, 1.0])
    np.testing.assert_allclose(model.predict_proba([e], [s])[0], expected, rtol=1e-5)


def test_subject_bias_with_shared_ambiguity_predicts_distributions(crowd):
    predicted = at.SubjectBias(ambiguity="shared").fit(crowd).predict_proba(*every_pair(crowd))
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0)


def test_robust_gpm_predicts_the_row_of_a_known_class():
    made = simulate.crowd(n_items=60, n_annotators=9, seed=1)
    labels = made.labels.with_gold({1: 3})
    model = at.RobustGPM(truth="class").fit(labels)
    predicted = model.predict_proba(np.zeros(9, dtype=int), np.arange(9))
    state = ClassState.from_fit(model.result_)
    of_class = np.arange(len(state.parameters.prior)) // state.choice.candidate.n_subtypes
    rows = state.parameters.confusion[:, :, of_class == 2]
    assert (predicted >= rows.min(axis=2) - 1e-9).all()
    assert (predicted <= rows.max(axis=2) + 1e-9).all()


def test_robust_gpm_predicts_annotators_who_invert_the_scale():
    made = simulate.crowd(
        n_items=120, n_annotators=12, behavior="inverted", spammer_share=0.25, seed=4
    )
    model = at.RobustGPM(truth="opinions").fit(made.labels)
    values = np.arange(1.0, 6.0)
    slopes = []
    for s in range(12):
        score = model.predict_proba(np.arange(120), np.full(120, s)) @ values
        slopes.append(np.polyfit(made.score, score, 1)[0])
    # The slope of an annotator of reliability eps is 2 eps - 1.
    assert np.corrcoef(slopes, 2 * made.reliability - 1)[0, 1] > 0.95
    assert min(slopes) < 0 < max(slopes)


def test_majority_by_hand():
    predicted = at.MajorityVote().fit(ROWS).predict_proba([0, 1], [0, 2])
    overall = np.array([4, 3, 1]) / 8
    expected = [(np.array([2, 1, 0]) + overall) / 4, (np.array([0, 2, 1]) + overall) / 4]
    np.testing.assert_allclose(predicted, expected, rtol=1e-12)


def test_mean_and_median_by_hand():
    values = {"a": [1, 1, 2], "b": [2, 3, 2], "c": [1, 1]}
    for model, middle in ((at.MeanScore(), np.mean), (at.MedianScore(), np.median)):
        squares = sum(((np.array(v) - middle(v)) ** 2).sum() for v in values.values())
        sd = np.sqrt(squares / (8 - 3) * (1 + 1 / 3))
        below = norm.cdf([1.5, 2.5], middle(values["b"]), sd)
        predicted = model.fit(ROWS).predict_proba([1], [0])
        np.testing.assert_allclose(predicted, [np.diff([0.0, *below, 1.0])], rtol=1e-9)


def test_a_known_truth_adds_no_variance():
    model = at.MeanScore().fit(ROWS, gold={"b": 3})
    squares = 2 / 3 + 2 * (2 - 3) ** 2
    below = norm.cdf([1.5, 2.5], 3, np.sqrt(squares / (8 - 2)))
    np.testing.assert_allclose(
        model.predict_proba([1], [0]), [np.diff([0.0, *below, 1.0])], rtol=1e-9
    )


def test_with_one_label_per_item_the_mean_predicts_a_wide_distribution():
    predicted = at.MeanScore().fit([("a", "x", 1), ("b", "x", 3)]).predict_proba([0], [0])
    assert 0.3 < predicted.min() < predicted.max() < 0.7


def test_rounded_gaussians_of_a_single_category():
    assert rounded_gaussians(np.array([3.0]), np.array([9.0]), np.array([0.1])).tolist() == [[1.0]]


def test_rounded_gaussians_have_the_same_digits_on_both_sides():
    values, mean = np.arange(1.0, 6.0), np.array([3.0])
    for deviation in (0.05, 0.1, 0.4):
        row = rounded_gaussians(values, mean, np.array([deviation]))[0]
        np.testing.assert_allclose(row, row[::-1], rtol=1e-12)
    assert 0.0 < rounded_gaussians(values, mean, np.array([0.15]))[0, 4] < 1e-22


def test_the_rounding_error_that_votes_have_in_common():
    rng = np.random.default_rng(0)
    scores = rng.uniform(1.5, 4.5, 4000)
    for noise in (0.0, 0.15, 0.3, 0.6):
        votes = np.round(scores[:, np.newaxis] + noise * rng.normal(size=(4000, 200)))
        expected = ((votes.mean(axis=1) - scores) ** 2).mean() - votes.var(axis=1).mean() / 200
        actual = shared_rounding_variance(np.arange(1.0, 6.0), noise**2 + 1 / 12)
        assert actual == pytest.approx(expected, abs=0.002)


@pytest.mark.parametrize("codes", [["item 1"], ["0"], [0.5], [float("nan")], [None], [2**70]])
def test_codes_that_are_not_whole_numbers_are_refused(codes):
    model = at.GPM().fit([("item 1", "ann", 1), ("item 2", "ann", 2)])
    with pytest.raises(at.InputError, match=r"places in result_\.data\.items, not ids"):
        model.predict_proba(codes, [0])
    assert model.predict_proba([1.0], [0]).tolist() == model.predict_proba([1], [0]).tolist()
