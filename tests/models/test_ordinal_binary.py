"""Ord-bin: equations, log-posterior and results."""

from functools import partial

import numpy as np
import pytest
from tests.models.fitting import fitted as fitted_as

import annotruth as at
from annotruth import simulate
from annotruth.models.scales.ordinal_binary import OrdinalBinary
from annotruth.observations import Labels, Scale

TABLE = [
    *(("a", "ann", 1), ("a", "bob", 1), ("a", "cy", 2)),
    *(("b", "ann", 2), ("b", "bob", 3), ("b", "cy", 1)),
    *(("c", "ann", 3), ("c", "bob", 1)),
]


fitted = partial(fitted_as, "ordinal-binary")


def labels_of(item, annotator, label, n_categories):
    return Labels.from_codes(
        item,
        annotator,
        label,
        items=range(item.max() + 1),
        annotators=range(annotator.max() + 1),
        scale=Scale.ordinal(list(range(1, n_categories + 1))),
    )


def m_step(table, c, mu, prior):
    """Sensitivity, specificity and prevalence at threshold c, written out."""
    alpha, beta = {}, {}
    for s in {s for _, s, _ in table}:
        labels = [(mu[e], r > c) for e, t, r in table if t == s]
        alpha[s] = (prior + sum(m for m, yes in labels if yes)) / (
            2 * prior + sum(m for m, _ in labels)
        )
        beta[s] = (prior + sum(1 - m for m, yes in labels if not yes)) / (
            2 * prior + sum(1 - m for m, _ in labels)
        )
    return alpha, beta, np.mean(list(mu.values()))


def one_step_by_hand(table, c, prior):
    """Threshold c's start and first EM step, written out with dictionaries."""
    items = sorted({e for e, _, _ in table})
    share = {e: np.mean([r > c for i, _, r in table if i == e]) for e in items}
    alpha, beta, p = m_step(table, c, share, prior)
    mu, log_likelihood = {}, 0.0
    for e in items:
        a, b = p, 1 - p
        for _, s, r in (row for row in table if row[0] == e):
            a *= alpha[s] if r > c else 1 - alpha[s]
            b *= 1 - beta[s] if r > c else beta[s]
        mu[e] = a / (a + b)
        log_likelihood += np.log(a + b)
    rates = np.array([[alpha[s], 1 - alpha[s], beta[s], 1 - beta[s]] for s in alpha])
    return m_step(table, c, mu, prior), log_likelihood, prior * np.log(rates).sum()


@pytest.mark.parametrize("engine", ["memory", "reference"])
@pytest.mark.parametrize("prior", [0.5, 1.0])
def test_the_first_step_equals_the_papers_equations(engine, prior):
    with pytest.warns(at.ConvergenceWarning, match=r"reached max_iter \(1\)"):
        fit = OrdinalBinary(prior=prior, max_iter=1, engine=engine).fit(TABLE).result_
    people = fit.annotators().set_index("annotator")
    log_likelihood = log_prior = 0.0
    for c in (1, 2):
        (alpha, beta, _), likelihood, before = one_step_by_hand(TABLE, c, prior)
        log_likelihood, log_prior = log_likelihood + likelihood, log_prior + before
        for s in ("ann", "bob", "cy"):
            assert people.loc[s, f"sensitivity_{c + 1}"] == pytest.approx(alpha[s], rel=1e-13)
            assert people.loc[s, f"specificity_{c + 1}"] == pytest.approx(beta[s], rel=1e-13)
    assert fit.history.log_likelihood[0] == pytest.approx(log_likelihood, rel=1e-13)
    assert fit.history.objective[0] == pytest.approx(log_likelihood + log_prior, rel=1e-13)


def test_thresholds_are_independent_binary_problems(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=30, n_annotators=6, n_categories=4)
    cell = labels.cell_of_label()
    item, label = labels.item_of_cell()[cell], labels.cell_category[cell]
    options = {
        "tol": 0.0,
        "max_iter": 20,
        "acceleration": False,
    }  # extrapolations are of all thresholds
    together = fitted(labels, **options)
    log_likelihood = 0.0
    for c in range(3):
        alone = fitted(labels_of(item, labels.annotator, (label > c).astype(int), 2), **options)
        log_likelihood += alone.history.log_likelihood
        for rate in ("sensitivity", "specificity"):
            np.testing.assert_allclose(
                together.annotator_columns[f"{rate}_{c + 2}"],
                alone.annotator_columns[rate],
                rtol=1e-12,
            )
    np.testing.assert_allclose(together.history.log_likelihood, log_likelihood, rtol=1e-12)


def test_rates_are_recovered_from_many_labels():
    rng = np.random.default_rng(1)
    n_items, n_annotators = 4000, 15
    alpha, beta = rng.uniform(0.5, 0.95, size=(2, n_annotators))
    truth = rng.random((n_items, 1)) < 0.3
    yes = rng.random((n_items, n_annotators)) < np.where(truth, alpha, 1 - beta)
    item, annotator = np.indices(yes.shape)
    fit = fitted(labels_of(item.ravel(), annotator.ravel(), yes.ravel().astype(int), 2))
    assert np.abs(fit.annotator_columns["sensitivity"] - alpha).max() < 0.05
    assert np.abs(fit.annotator_columns["specificity"] - beta).max() < 0.03
    assert fit.distribution.dense(2)[:, 1].mean() == pytest.approx(0.3, abs=0.02)
    assert ((fit.label == 1) == truth[:, 0]).mean() > 0.97


def test_scores_are_closer_to_the_truth_than_the_mean_of_the_labels():
    for seed in range(3):
        made = simulate.gaussian(seed=seed)
        fit = fitted(made.labels)
        mean = made.labels.observed_shares() @ made.labels.scale.values
        assert at.metrics.plcc(made.score, fit.expectation) > at.metrics.plcc(made.score, mean)
        assert at.metrics.rmse(made.score, fit.expectation) < at.metrics.rmse(made.score, mean)


def test_informedness_separates_experts_random_and_inverting_annotators():
    made = simulate.crowd(n_items=300, n_annotators=40, seed=2)
    informedness = fitted(made.labels).annotator_columns["informedness"]
    assert np.corrcoef(informedness, made.reliability)[0, 1] > 0.85

    rng = np.random.default_rng(3)
    truth = rng.integers(5, size=400)
    responses = np.stack([*[truth] * 5, rng.integers(5, size=400), 4 - truth], axis=1)
    # The five experts make independent errors.
    wrong = rng.random((400, 5)) < 0.2
    responses[:, :5][wrong] = rng.integers(5, size=wrong.sum())
    item, annotator = np.indices(responses.shape)
    fit = fitted(labels_of(item.ravel(), annotator.ravel(), responses.ravel(), 5))
    informedness = fit.annotator_columns["informedness"]
    assert (np.abs(informedness[:5] - 0.8) < 0.1).all()
    assert abs(informedness[5]) < 0.1
    assert informedness[6] == pytest.approx(-0.5, abs=0.05)  # -1 only where the middle is rare
    assert fit.reliability is None


def test_inverting_the_scale_inverts_the_result(make_labels):
    labels = make_labels(np.random.default_rng(4), n_items=25, n_annotators=6, n_categories=5)
    cell = labels.cell_of_label()
    item, label = labels.item_of_cell()[cell], labels.cell_category[cell]
    one, other = (
        fitted(labels_of(item, labels.annotator, codes, 5), tol=1e-10, acceleration=False)
        for codes in (label, 4 - label)
    )
    np.testing.assert_allclose(
        one.distribution.dense(5), other.distribution.dense(5)[:, ::-1], atol=1e-9
    )
    np.testing.assert_allclose(
        one.annotator_columns["sensitivity"], other.annotator_columns["specificity"], atol=1e-9
    )


def test_gold_fixes_the_item_and_changes_the_annotators():
    table = [(e, s, 5 if s in "de" else 1) for e in range(20) for s in "abcde"]
    gold = dict.fromkeys(range(0, 20, 2), 5) | dict.fromkeys(range(1, 20, 2), 1)
    fit = fitted(table, gold=gold)
    assert fit.items().label.tolist() == [5, 1] * 10
    assert fit.items().confidence.tolist() == [1.0] * 20
    people = fit.annotators().set_index("annotator")
    np.testing.assert_allclose(people.sensitivity, [1 / 12] * 3 + [11 / 12] * 2)


@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_categories_without_labels_have_probability_0(prior):
    labels = Labels.of([("a", "x", 2), ("a", "y", 3), ("b", "x", 3)], categories=[1, 2, 3, 4, 5])
    theta = fitted(labels, prior=prior).distribution.dense(5)
    np.testing.assert_array_equal(theta[:, [0, 3, 4]], 0.0)


def test_without_a_prior_an_annotator_with_two_labels_seems_infallible():
    crowd = [(e, str(s), 1 + (e + (s == e % 5)) % 2) for e in range(40) for s in range(5)]
    new = [(0, "new", 1), (1, "new", 2)]
    by_prior = {
        prior: fitted(crowd + new, prior=prior).annotators().set_index("annotator")
        for prior in (0.0, 1.0)
    }
    assert by_prior[0.0].loc["new", "sensitivity"] == pytest.approx(1.0, abs=1e-4)
    assert by_prior[1.0].loc["new", "sensitivity"] == pytest.approx(2 / 3, abs=0.01)
    assert by_prior[1.0].loc["0", "sensitivity"] > by_prior[1.0].loc["new", "sensitivity"]


def test_nominal_categories_are_used_in_the_order_of_the_scale():
    words = [(e, s, {1: "cat", 2: "dog", 3: "owl"}[r]) for e, s, r in TABLE]
    fit, numbers = fitted(words), fitted(TABLE)
    assert fit.expectation is None
    np.testing.assert_array_equal(fit.distribution.dense(3), numbers.distribution.dense(3))


def test_annotators_have_columns_per_threshold_if_these_are_few():
    means = ["sensitivity", "specificity", "informedness"]
    for n_categories, n_columns in [(1, 0), (2, 0), (3, 4), (10, 18), (11, 0)]:
        scale = list(range(1, n_categories + 1))
        table = [(e, s, scale[(e + s) % n_categories]) for e in range(22) for s in (0, 1)]
        columns = fitted(Labels.of(table, categories=scale)).annotator_columns
        assert list(columns)[:3] == means
        assert len(columns) == 3 + n_columns
        assert all(np.isnan(columns[mean]).all() == (n_categories == 1) for mean in means)


def test_arrays_that_exceed_memory_are_refused_with_their_size():
    n_items = 3000
    labels = Labels.from_codes(
        np.arange(n_items),
        np.zeros(n_items, dtype=int),
        np.arange(n_items),
        items=range(n_items),
        annotators=["x"],
        scale=Scale.nominal(list(range(100_000))),
    )
    text = r"3,000 items x 100,000 categories, 2\.4 GB \(at most 2\.1 GB\): merge categories"
    with pytest.raises(at.InputError, match=text):
        fitted(labels, max_iter=0)  # without the check, another error is raised
