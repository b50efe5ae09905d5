"""The ordinal-discrete mixture: equations, log-posterior and results."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import norm
from tests.models.fitting import fitted as fitted_as

import annotruth as at
from annotruth import metrics, simulate
from annotruth.models.distribution import likelihood_interval
from annotruth.models.scales.ordinal_mixture import OrdinalMixture
from annotruth.models.scales.ordinal_steps import make_lattice
from annotruth.observations import Labels, Scale

TABLE = [
    *(("a", "ann", 1), ("a", "bob", 1), ("a", "cy", 2)),
    *(("b", "ann", 2), ("b", "bob", 2), ("b", "cy", 4)),
    *(("c", "ann", 4), ("c", "bob", 1)),
]


fitted = partial(fitted_as, "ordinal-mixture")


def drawn(seed, *, n_items=150, n_annotators=25, n_categories=5, per_item=None, eps=None):
    """Draw labels from the model; return them and the parameters."""
    rng = np.random.default_rng(seed)
    score = rng.uniform(1, n_categories, size=n_items)
    eps = rng.beta(4, 1.5, size=n_annotators) if eps is None else np.full(n_annotators, eps)
    noise = rng.gamma(3.0, 2 / 3, size=n_annotators) ** -0.5
    difficulty = rng.gamma(3.0, 1 / 3, size=n_items) ** -0.5
    rank = rng.random((n_items, n_annotators)).argsort(axis=1)
    item, annotator = np.nonzero(rank < (per_item or n_annotators))
    opinion = rng.normal(score[item], noise[annotator] * difficulty[item])
    label = np.clip(np.rint(opinion), 1, n_categories).astype(int) - 1
    serious = rng.random(len(item)) < eps[annotator]
    label = np.where(serious, label, rng.integers(n_categories, size=len(item)))
    labels = Labels.from_codes(
        item,
        annotator,
        label,
        items=np.arange(n_items),
        annotators=np.arange(n_annotators),
        scale=Scale.ordinal(list(range(1, n_categories + 1))),
    )
    return labels, score, eps, noise, difficulty, serious[labels.row]


def one_step_by_hand(table):
    """Return the first EM step, written out with dictionaries, on the model's lattice."""
    values = np.array([1.0, 2.0, 4.0])
    on = make_lattice(values, 3.0, 3.0)
    bounds = dict(zip((1, 2, 4), [(-np.inf, 1.5), (1.5, 3.0), (3.0, np.inf)], strict=True))
    items, people = sorted({e for e, *_ in table}), ("ann", "bob", "cy")

    def p(r, k, j, level):
        low, high = bounds[r]
        sd = on.noise[level] * on.difficulty[j]
        return norm.cdf(high, on.nodes[k], sd) - norm.cdf(low, on.nodes[k], sd)

    grid = [(j, k) for j in range(5) for k in range(len(on.nodes))]
    mass, mu, start = {}, {}, on.usual
    for e in items:
        for j, k in grid:
            mass[e, j, k] = on.prior[j, k] * np.prod(
                [0.5 * p(r, k, j, start) + 0.5 / 3 for i, _, r in table if i == e]
            )
    total = {e: sum(mass[e, j, k] for j, k in grid) for e in items}
    for e, s, r in table:
        for j, k in grid:
            c1 = 0.5 * p(r, k, j, start)
            mu[e, s, j, k] = mass[e, j, k] / total[e] * c1 / (c1 + 0.5 / 3)
    eps, noise = {}, {}
    for s in people:
        mine = [(e, r) for e, t, r in table if t == s]
        eps[s] = (1 + sum(mu[e, s, j, k] for e, _ in mine for j, k in grid)) / (2 + len(mine))
        gain = {}
        for level in (start, start - 1, start + 1):
            share = on.noise[level] ** -2 / (3 / 4) ** -2
            gain[level] = 3 * (np.log(share) - share) + sum(
                mu[e, s, j, k] * np.log(p(r, k, j, level)) for e, r in mine for j, k in grid
            )
        noise[s] = on.noise[max(gain, key=gain.get)]
    log_likelihood = sum(np.log(total[e]) for e in items)
    share = on.noise[start] ** -2 / (3 / 4) ** -2
    prior = len(people) * (2 * np.log(0.5) + 3 * (np.log(share) - share))
    return list(eps.values()), list(noise.values()), log_likelihood, log_likelihood + prior


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_the_first_step_by_hand(engine):
    eps, noise, log_likelihood, log_posterior = one_step_by_hand(TABLE)
    with pytest.warns(at.ConvergenceWarning, match=r"reached max_iter \(1\)"):
        fit = OrdinalMixture(max_iter=1, acceleration=False, engine=engine).fit(TABLE).result_
    np.testing.assert_allclose(fit.reliability, eps, rtol=1e-12)
    np.testing.assert_allclose(fit.annotator_columns["noise"], noise, rtol=1e-12)
    assert fit.history.log_likelihood[0] == pytest.approx(log_likelihood, rel=1e-12)
    assert fit.history.objective[0] == pytest.approx(log_posterior, rel=1e-12)


def test_parameters_of_simulated_labels_are_recovered():
    errors = []
    for seed in range(3):
        labels, score, eps, noise, difficulty, _ = drawn(seed, n_items=400)
        fit = fitted(labels)
        assert fit.converged
        errors.append(
            (
                metrics.rmse(score, fit.score),
                metrics.rmse(eps, fit.reliability),
                metrics.rmse(np.log(noise), np.log(fit.annotator_columns["noise"])),
                metrics.srocc(difficulty, fit.item_columns["difficulty"]),
            )
        )
    of_score, of_eps, of_noise, of_difficulty = np.mean(errors, axis=0)
    assert of_score < 0.28
    assert of_eps < 0.07
    assert of_noise < 0.2
    assert of_difficulty > 0.6


@pytest.mark.parametrize("per_item", [4, None])
def test_intervals_cover_the_true_scores_in_95_percent(per_item):
    of_scores, of_reliabilities = [], []
    for seed in range(4):
        labels, score, eps, *_ = drawn(seed, n_annotators=40, per_item=per_item)
        fit = fitted(labels)
        low, high = fit.item_columns["score_low"], fit.item_columns["score_high"]
        of_scores.append((low <= score) & (score <= high))
        of_reliabilities.append((fit.low <= eps) & (eps <= fit.high))
        assert (high - low < 4.0).all()
    assert 0.92 < np.mean(of_scores) < 0.99
    assert np.mean(of_reliabilities) > 0.93


def test_with_two_categories_reliability_is_uncertain():
    labels, _, eps, *_ = drawn(1, n_categories=2, n_items=300)
    fit = fitted(labels)
    assert np.mean((fit.low <= eps) & (eps <= fit.high)) > 0.9
    assert np.mean(fit.high - fit.low) > 0.6


def test_the_interval_is_the_union_over_noise_levels_that_reach_the_floor():
    def bell(center, height):
        def support(eps):
            return height - (eps - center) ** 2 / 0.02, (center - eps) / 0.01

        return support

    peak = np.array([0.5, 0.5])
    alone = likelihood_interval([bell(0.5, 0.0)], peak)
    np.testing.assert_allclose(alone, [[0.304, 0.304], [0.696, 0.696]], atol=1e-3)
    # 1 lower, it has 0.92 left to fall: sqrt(0.02 * 0.92) = 0.136 to either side.
    wider = likelihood_interval([bell(0.5, 0.0), bell(0.7, -1.0), bell(0.2, -2.0)], peak)
    np.testing.assert_allclose(wider, [[0.304, 0.304], [0.836, 0.836]], atol=1e-3)


def test_p_serious_is_calibrated():
    labels, *_, serious = drawn(5, n_items=300, eps=0.6)
    fit = fitted(labels)
    for low, high in [(0.0, 0.2), (0.6, 0.8), (0.8, 1.0)]:
        such = (fit.p_serious > low) & (fit.p_serious < high)
        assert such.sum() > 100
        assert serious[such].mean() == pytest.approx(fit.p_serious[such].mean(), abs=0.08)


@pytest.mark.parametrize(
    "crowd",
    [
        {},
        {"gamma": "scale"},
        {"n_items": 400, "n_annotators": 50, "labels_per_item": 6},
    ],
)
def test_scores_are_closer_than_those_of_gpm_and_mean_for_gaussian_opinions(crowd):
    ours, gpm, mean = [], [], []
    for seed in range(4):
        made = simulate.gaussian(seed=seed, **crowd)
        data = made.labels
        ours.append(metrics.rmse(made.score, fitted(data).score))
        gpm.append(metrics.rmse(made.score, at.fit(data, "gpm").expectation))
        mean.append(metrics.rmse(made.score, data.observed_shares() @ data.scale.values))
    assert np.mean(ours) < 0.85 * min(np.mean(gpm), np.mean(mean))
    if not crowd:
        assert np.mean(ours) < 0.3050  # the figure in the GPM paper for this model


def test_scores_lie_within_the_scale_and_follow_its_values():
    table = [(e, s, (1, 2, 10)[e % 3]) for e in range(30) for s in "abcde"]
    fit = fitted(table)
    low, middle, high = (fit.score[e::3] for e in range(3))
    assert (low >= 1).all()
    assert (high <= 10).all()
    assert (low < 2.5).all()
    assert ((middle > low) & (middle < 6)).all()
    assert (high > 7.5).all()
    words = fitted(
        Labels.of(
            [(e, s, "abc"[(1, 2, 10).index(r)]) for e, s, r in table], categories=["a", "b", "c"]
        )
    )
    assert ((words.score >= 1) & (words.score <= 3)).all()


def test_units_and_direction_of_the_scale_do_not_matter():
    made = simulate.gaussian(n_items=60, n_annotators=12, seed=2)
    rows = made.labels.to_arrow().to_pylist()
    fit, large, turned = (
        fitted([(row["item"], row["annotator"], change(row["label"])) for row in rows])
        for change in (lambda r: r, lambda r: 100 + 50 * r, lambda r: 6 - r)
    )
    np.testing.assert_allclose(large.score, 100 + 50 * fit.score, rtol=1e-9)
    np.testing.assert_allclose(turned.score, 6 - fit.score, rtol=1e-9)
    for other, factor in ((large, 50), (turned, 1)):
        np.testing.assert_allclose(other.reliability, fit.reliability, rtol=1e-8)
        noise = other.annotator_columns["noise"] / factor
        np.testing.assert_allclose(noise, fit.annotator_columns["noise"], rtol=1e-9)


def test_gold_fixes_the_item_and_changes_the_annotators():
    table = [(e, s, 2 if s in "de" else 4) for e in range(20) for s in "abcde"]
    table += [(20, "a", 1), (20, "b", 5)]
    plain = fitted(table)
    gold = fitted(table, gold=dict.fromkeys(range(20), 2))
    items = gold.items().iloc[:20]
    assert items.label.tolist() == [2] * 20
    assert items.expectation.tolist() == items.score_low.tolist() == items.score_high.tolist()
    assert items.expectation.tolist() == [2.0] * 20
    assert items.p_2.tolist() == [1.0] * 20
    assert (plain.score[:20] > 3).all()
    assert gold.reliability[3] > gold.reliability[0]
    # A known score has no prior, so both fits have the same likelihood.
    one, other = (fitted([("x", "a", 1), ("x", "b", 2)], gold={"x": r}) for r in (1, 2))
    assert one.history.log_likelihood[0] == pytest.approx(other.history.log_likelihood[0], rel=1e-9)


def test_gold_on_a_scale_with_more_categories_than_scores():
    table = [(e, s, 7 * e + s) for e in range(40) for s in range(5)]
    fit = fitted(Labels.of(table, categories=list(range(300))), gold={3: 26})
    assert fit.score[3] == 26.0
    assert fit.label[3] == 26


def test_the_score_without_information_is_the_middle_of_the_scale():
    fit = fitted(Labels.of([("a", "x", 3)], categories=[1, 2, 3, 4, 5]))
    assert fit.score[0] == pytest.approx(3.0)
    assert 1.0 < fit.item_columns["score_low"][0] < 1.6
    alone = fitted([("a", "x", 3)])
    assert alone.score.tolist() == [3.0]
    assert alone.reliability.tolist() == [0.5]


def test_tables_that_exceed_memory_are_refused_before_they_are_computed():
    labels = Labels.of([("a", "x", 1)], categories=list(range(20_000)))
    with pytest.raises(at.InputError, match=r"more than 2\.1 GB for 20,000 categories and 1 items"):
        OrdinalMixture().fit(labels)
