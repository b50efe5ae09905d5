"""GLAD: equations, log-posterior, results on simulated labels and edge cases."""

import itertools
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from tests.models.fitting import estimator

import annotruth as at
from annotruth import simulate
from annotruth.models.confusion.glad import GLAD, _best_log_scale
from annotruth.observations import Labels, Scale

TABLE = [
    *[("a", "x", 1), ("a", "y", 1), ("a", "z", 2)],
    *[("b", "x", 2), ("b", "y", 2), ("b", "z", 2), ("b", "w", 3)],
    *[("c", "x", 3), ("c", "z", 1)],
]


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def simulated(*, n_items, n_annotators, n_categories, per_item, seed):
    """Draw labels from GLAD itself, priors included: labels, truth, abilities, b."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_categories, size=n_items)
    alpha, b = rng.normal(1.0, 1.0, size=n_annotators), rng.normal(1.0, 1.0, size=n_items)
    item = np.repeat(np.arange(n_items), per_item)
    annotator = np.argsort(rng.random((n_items, n_annotators)))[:, :per_item].ravel()
    right = rng.random(len(item)) < sigmoid(alpha[annotator] * np.exp(b[item]))
    wrong = (truth[item] + rng.integers(1, n_categories, size=len(item))) % n_categories
    labels = Labels.from_codes(
        item,
        annotator,
        np.where(right, truth[item], wrong),
        items=np.arange(n_items),
        annotators=np.arange(n_annotators),
        scale=Scale.nominal(list(range(n_categories))),
    )
    return labels, truth, alpha, b


def log_posterior(labels, alpha, b):
    """Sum out the truth of each item, as the model is defined; gold counts as given."""
    cell, k = labels.cell_of_label(), labels.n_categories
    item, category = labels.item_of_cell()[cell], labels.cell_category[cell]
    x = alpha[labels.annotator] * np.exp(b[item])
    right, wrong = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x) - np.log(k - 1)
    joint = np.zeros((labels.n_items, k))
    for z in range(k):
        np.add.at(joint[:, z], item, np.where(category == z, right, wrong))
    given = joint[np.arange(labels.n_items), labels.known]
    value = np.where(labels.known >= 0, given, logsumexp(joint, axis=1) - np.log(k)).sum()
    return value + norm.logpdf(alpha, 1.0).sum() + norm.logpdf(b, 1.0).sum()


fit_without_warnings = partial(estimator, "glad")


def abilities(model):
    return model.result_.annotators().set_index("annotator").ability


def easiness(model):
    return -np.log(model.result_.items().set_index("item").difficulty)


def parameters(model):
    return np.array(abilities(model)), np.array(easiness(model))


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_the_first_step_by_hand(engine):
    model = fit_without_warnings(TABLE, max_iter=1, acceleration=False, engine=engine)
    fit = model.result_
    e = math.e  # alpha = b = 1, so every x = alpha beta is e
    sigma = sigmoid(e)
    people, items = ["x", "y", "z", "w"], ["a", "b", "c"]

    # E-step: each label multiplies the weight of its class by (K - 1) exp(x).
    p = {}
    for item in items:
        given = [r for i, _, r in TABLE if i == item]
        weight = {n: (2 * math.exp(e)) ** given.count(n) for n in (1, 2, 3)}
        p |= {(item, n): weight[n] / sum(weight.values()) for n in weight}
    alpha = []
    for s in people:
        mine = [(i, r) for i, t, r in TABLE if t == s]
        g = sum(e * (p[i, r] - sigma) for i, r in mine)
        h = 1 + len(mine) * e**2 * sigma * (1 - sigma)
        parabola = 1 + len(mine) * e**2 * math.tanh(e / 2) / (2 * e)
        most = e * len(mine) ** 0.125
        newton = min(abs(g) / h, abs(g) / parabola)
        alpha.append(1 + math.copysign(max(newton, math.log1p(most * abs(g) / h) / most), g))
    alpha = np.array(alpha)

    # Scale: the maximum of -3 u^2/2 - |exp(u) alpha - 1|^2/2, found on a grid.
    grid = np.linspace(-1, 1, 2_000_001)
    prior = -1.5 * grid**2 + np.exp(grid) * alpha.sum() - 0.5 * np.exp(2 * grid) * (alpha @ alpha)
    u = grid[prior.argmax()]
    alpha *= np.exp(u)
    np.testing.assert_allclose(abilities(model).loc[people], alpha, atol=3e-6)

    # Each item: one Newton step, with differences for derivatives.
    labels = fit.data
    alpha = abilities(model).to_numpy()
    start = np.full(3, 1.0 - u)
    for i in range(3):

        def f(at_, i=i):
            b = start.copy()
            b[i] = at_
            return log_posterior(labels, alpha, b)

        low, middle, high = (f(start[i] + d) for d in (-1e-3, 0.0, 1e-3))
        slope, curvature = (high - low) / 2e-3, (high - 2 * middle + low) / 1e-6
        move = np.clip(slope / abs(curvature), -1, 1)
        assert f(start[i] + move) > middle  # so that nothing was halved
        assert easiness(model).iloc[i] == pytest.approx(start[i] + move, abs=1e-4)

    assert fit.history.objective[0] == pytest.approx(log_posterior(labels, *parameters(model)))
    ones = log_posterior(labels, np.ones(4), np.ones(3)) + 3.5 * np.log(2 * np.pi)
    assert fit.history.log_likelihood[0] == pytest.approx(ones, rel=1e-12)


@pytest.mark.parametrize("n_categories", [2, 4])
def test_the_objective_is_the_log_posterior_and_ends_at_a_maximum(make_labels, n_categories):
    rng = np.random.default_rng(n_categories)
    labels = make_labels(rng, n_items=15, n_annotators=6, n_categories=n_categories)
    labels.known[3] = 1
    model = GLAD(tol=1e-12).fit(labels)
    alpha, b = parameters(model)
    top = log_posterior(labels, alpha, b)
    assert model.result_.history.objective[-1] == pytest.approx(top, rel=1e-12)
    assert top > log_posterior(labels, np.ones(6), np.ones(15))
    for values in (alpha, b):
        for i, sign in itertools.product(range(len(values)), (1e-3, -1e-3)):
            values[i] += sign
            assert log_posterior(labels, alpha, b) < top
            values[i] -= sign
    # The direction in which only the priors differ.
    for u in (1e-3, -1e-3):
        assert log_posterior(labels, np.exp(u) * alpha, b - u) < top


def test_parameters_of_simulated_labels_are_recovered():
    labels, truth, alpha, b = simulated(
        n_items=1500, n_annotators=60, n_categories=4, per_item=30, seed=1
    )
    model = GLAD().fit(labels)
    fit = model.result_
    assert fit.converged
    assert fit.n_iter <= 30
    found_alpha, found_b = parameters(model)
    assert np.corrcoef(found_alpha, alpha)[0, 1] > 0.98
    assert np.abs(found_alpha - alpha).mean() < 0.15
    assert np.corrcoef(found_b, b)[0, 1] > 0.85
    assert (fit.label == truth).mean() > 0.99
    assert ((fit.reliability < 0.5) == (alpha < 0))[np.abs(alpha) > 0.15].all()


def test_the_scale_maximises_the_priors():
    rng = np.random.default_rng(0)
    grid = np.linspace(-4, 4, 80_001)
    for _ in range(20):
        alpha, b = rng.normal(rng.normal(1, 2), 1.0, size=30), rng.normal(rng.normal(), 1, size=20)
        u = _best_log_scale(alpha, (b - 1).sum(), 20)
        priors = -0.5 * (
            np.square(np.exp(grid)[:, None] * alpha - 1).sum(axis=1)
            + np.square(b - 1 - grid[:, None]).sum(axis=1)
        )
        assert u == pytest.approx(grid[priors.argmax()], abs=1e-3)


def test_the_scale_is_kept_if_its_search_ends_at_a_lower_prior():
    """With far more annotators than items, the priors have two maxima."""
    alpha, slope = np.full(100, 0.05), 0.115
    assert _best_log_scale(alpha, alpha @ alpha - alpha.sum() + slope, 3) == 0.0


def test_confidence_is_calibrated_on_simulated_labels():
    labels, truth, *_ = simulated(n_items=4000, n_annotators=50, n_categories=3, per_item=4, seed=3)
    fit = GLAD().fit(labels).result_
    right = fit.label == truth
    confidence = fit.distribution.confidence()
    for low, high in [(0.4, 0.7), (0.7, 0.9), (0.9, 1.0)]:
        some = (confidence > low) & (confidence <= high)
        assert right[some].mean() == pytest.approx(confidence[some].mean(), abs=0.06)


def test_the_distribution_is_bayes_rule_over_all_classes():
    table = pd.DataFrame(TABLE, columns=["item", "annotator", "label"])
    labels = Labels.of(table, categories=[0, 1, 2, 3, 4])
    model = GLAD().fit(labels)
    alpha, b = abilities(model), easiness(model)
    found = dict(zip(b.index, model.result_.distribution.dense(5), strict=True))
    for item, group in table.groupby("item"):
        right = sigmoid(alpha[group.annotator].to_numpy() * np.exp(b[item]))
        joint = [np.where(group.label == z, right, (1 - right) / 4).prod() for z in range(5)]
        np.testing.assert_allclose(found[item], joint / np.sum(joint), rtol=1e-9)


def test_reliability_is_the_expected_share_of_right_labels():
    model = GLAD().fit(TABLE)
    for s, reliability in zip(abilities(model).index, model.result_.reliability, strict=True):
        items = [i for i, t, _ in TABLE if t == s]
        right = sigmoid(abilities(model)[s] * np.exp(easiness(model)[items]))
        assert reliability == pytest.approx(right.mean(), rel=1e-9)


def test_an_annotator_who_contradicts_the_others_has_a_negative_ability():
    crowd = [(e, s, e % 2) for e in range(30) for s in "abcde"]
    table = [*crowd, *((e, "contrary", 1 - e % 2) for e in range(30))]
    annotators = GLAD().fit(table).result_.annotators().set_index("annotator")
    assert annotators.ability["contrary"] < 0 < annotators.ability["a"]
    assert (annotators.reliability < 0.5).to_dict() == {
        s: s == "contrary" for s in annotators.index
    }


def test_with_one_category_parameters_stay_at_their_priors():
    model = GLAD().fit([("a", "x", 1), ("a", "y", 1), ("b", "x", 1)])
    fit = model.result_
    assert fit.log_likelihood == 0.0
    assert abilities(model).tolist() == [1.0, 1.0]
    assert easiness(model).tolist() == [1.0, 1.0]
    assert fit.reliability.tolist() == [1.0, 1.0]
    assert fit.distribution.dense(1).tolist() == [[1.0], [1.0]]


def test_one_label_by_hand():
    """With two classes and one label, p(r) = 1/2 for all alpha and b, which stay at the priors."""
    model = GLAD(tol=1e-12).fit(Labels.of([("a", "x", 1)], categories=[1, 2]))
    assert model.result_.log_likelihood == pytest.approx(math.log(0.5))
    assert abilities(model)["x"] == pytest.approx(1.0, abs=1e-5)
    assert easiness(model)["a"] == pytest.approx(1.0, abs=1e-5)
    assert model.result_.distribution.dense(2)[0, 0] == pytest.approx(sigmoid(math.e), abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_abilities_do_not_change_sign_where_most_labels_are_wrong(seed):
    # Two labels in five are correct, and the wrong ones are spread over four classes: the majority
    # is still correct, although every ability is negative.
    made = simulate.gaussian(
        n_items=174, n_annotators=60, labels_per_item=16, spammer_share=0.0, seed=seed
    )
    majority = at.fit(made.labels, "majority")
    fit = GLAD().fit(made.labels).result_
    right = (fit.label == made.label).mean()
    assert right > (majority.label == made.label).mean() - 0.05
