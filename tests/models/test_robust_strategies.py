"""Response strategies of RobustGPM, shares of shapes, and the M-step of classes."""

import warnings
from contextlib import closing

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import annotruth as at
from annotruth import simulate
from annotruth.engines.memory import MemoryEngine
from annotruth.models.latent_classes import normalise_log_weights
from annotruth.models.robust_gpm import strategies as strategies_module
from annotruth.models.robust_gpm.class_steps import ClassSteps
from annotruth.models.robust_gpm.opinions import ShapeShares
from annotruth.models.robust_gpm.states import TrueClasses
from annotruth.models.robust_gpm.strategies import (
    IRREGULAR_BEHAVIORS,
    NO_LABEL,
    Behavior,
    LabelTable,
    find_repeated_labels,
    tabulate_strategies,
)


def random_serious(n_shifts=3, n_categories=4, n_classes=6):
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(n_categories), (n_shifts, n_classes)).transpose(0, 2, 1)


def test_labels_of_a_strategy_are_distributions():
    strategies = tabulate_strategies(random_serious(), np.array([0.2, 0.5, 0.3]), ordinal=True)
    other, repeated = strategies.probability
    # Over all labels, the second of which is the repeated one.
    total = other.sum(axis=1) - other[:, 1] + repeated[:, 1]
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)
    assert np.exp(strategies.log_prior(0.4)).sum() == pytest.approx(1.0)


def test_a_label_of_an_annotator_with_unknown_strategy_is_serious_by_bayes_rule():
    strategies = tabulate_strategies(random_serious(1), np.ones(1), ordinal=False)
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(strategies.n_strategies), size=3)
    repeated_label = np.array([1, 3, 0])
    found = strategies.label_is_serious(weights, repeated_label)
    for s, n, z in np.ndindex(found.shape):
        probability, p_serious = (
            (table.repeated if n == repeated_label[s] else table.other)[:, n, z]
            for table in (strategies.probability, strategies.p_serious)
        )
        after_label = weights[s] * probability / (weights[s] @ probability)  # of the strategies
        assert found[s, n, z] == pytest.approx(after_label @ p_serious)


def test_strategies_combine_levels_behaviors_and_shifts():
    strategies = tabulate_strategies(random_serious(5), np.full(5, 0.2), ordinal=True)
    n_behaviors, (levels, is_level) = len(strategies.behaviors), strategies.by_reliability()
    # Levels up to 0.5 have no shifts, those above have five, and the always serious one behavior.
    expected = np.where(levels < 0.5, n_behaviors, 5 * n_behaviors)
    expected[-1] = strategies.always_serious.sum()
    assert is_level.sum(axis=0).tolist() == expected.tolist()
    assert expected[-1] == 5
    assert set(strategies.shift[strategies.reliability < 0.5]) == {2}
    nominal = tabulate_strategies(random_serious(1), np.ones(1), ordinal=False)
    assert [behavior.name for behavior in nominal.behaviors] == ["random", "repeated"]


@pytest.mark.parametrize("behavior", IRREGULAR_BEHAVIORS, ids=lambda behavior: behavior.name)
def test_behaviors_are_distributions(behavior):
    serious = random_serious()[0]
    other = behavior.distribution(serious)
    repeated = (behavior.repeated_label or behavior.distribution)(serious)
    for label in range(4):
        total = other.sum(axis=0) - other[label] + repeated[label]
        np.testing.assert_allclose(total, 1.0)


def test_the_prior_weight_of_a_repeated_label_is_shared_by_all_labels():
    strategies = tabulate_strategies(random_serious(1), np.ones(1), ordinal=True)
    level = strategies.reliability == strategies.reliability.min()
    prior = np.exp(strategies.log_prior(0.5))[level]
    expected = np.array(
        [b.prior_weight / (1 if b.repeated_label is None else 4) for b in strategies.behaviors]
    )
    np.testing.assert_allclose(prior / prior.sum(), expected / expected.sum())


def test_tables_use_the_repeated_label_of_each_annotator():
    rng = np.random.default_rng(1)
    table = LabelTable(rng.random((5, 3, 2)), rng.random((5, 3, 2)))
    repeated_label = np.array([2, 0])
    weights, counts = rng.random((2, 5)), rng.random((2, 3, 2))
    mean, total = table.average(weights, repeated_label), table.total(counts, repeated_label)
    for s, label in enumerate(repeated_label):
        own = table.other.copy()
        own[:, label] = table.repeated[:, label]
        np.testing.assert_allclose(mean[s], np.einsum("g,gnk->nk", weights[s], own))
        np.testing.assert_allclose(total[s], np.einsum("nk,gnk->g", counts[s], own))


def test_the_repeated_label_is_the_one_most_above_the_crowd():
    counts = np.array([[50, 50], [70, 30], [95, 5]])
    for break_ties in (True, False):
        repeated = find_repeated_labels(counts, break_ties=break_ties)
        np.testing.assert_array_equal(repeated, [1, 1, 0])


def test_labels_that_are_repeated_alike_are_not_decided_by_their_order():
    counts = np.array([[4, 4, 1], [1, 1, 4]])
    np.testing.assert_array_equal(find_repeated_labels(counts, break_ties=True), [0, 2])
    np.testing.assert_array_equal(find_repeated_labels(counts, break_ties=False), [-1, 2])


def test_irregular_behaviors_are_named():
    crowd = simulate.crowd(behavior="mixed", mixing="annotator", spammer_share=0.4, seed=2)
    fit = at.fit(crowd.labels, "robust-gpm")
    spammers = np.flatnonzero(fit.spammer)
    assert len(spammers) >= 4
    assert (crowd.reliability[spammers] < 0.6).all()
    n_right = 0
    for s in spammers:
        behavior = crowd.behavior[s]
        label = f" {crowd.repeated_label[s] + 1}" if behavior == "repeated" else ""
        n_right += fit.behavior[s] == behavior + label
    assert n_right >= len(spammers) - 1
    serious = [fit.behavior[s] for s in np.flatnonzero(crowd.reliability >= 0.95)]
    assert len(serious) > 1
    assert set(serious) <= {"serious", "generous", "harsh"}


def extremes(serious):
    ends = np.zeros_like(serious)
    ends[[0, -1]] = 0.5
    return ends


def test_a_behavior_is_added_by_adding_one_object(monkeypatch):
    crowd = simulate.crowd(n_items=100, n_annotators=12, behavior="random", seed=1)
    rng = np.random.default_rng(0)
    rows = [*crowd.labels.to_arrow().select(["item", "annotator", "label"]).to_pylist()]
    rows = [(row["item"], str(row["annotator"]), row["label"]) for row in rows]
    rows += [(item, "clicker", int(rng.choice([1, 5]))) for item in range(1, 101)]
    added = Behavior("extremes", 0.05, extremes, ordinal_only=True)
    monkeypatch.setattr(strategies_module, "IRREGULAR_BEHAVIORS", (*IRREGULAR_BEHAVIORS, added))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        table = at.fit(rows, "robust-gpm", truth="opinions").annotators()
    assert table.set_index("annotator").behavior["clicker"] == "extremes"


@pytest.mark.parametrize("n_means", [[16, 16], [16, 16, 28]])
def test_the_estimate_has_the_highest_posterior(n_means):
    rng = np.random.default_rng(0)
    shares, n = ShapeShares(n_means), sum(n_means)
    counts = rng.gamma(0.3, 20.0, n)

    def loss(logs):
        normalised = logs - logsumexp(logs)
        return -(counts @ normalised) - shares.log_prior(np.exp(normalised))

    best = minimize(loss, np.zeros(n), method="BFGS", options={"gtol": 1e-6, "maxiter": 2_000})
    # From two starts, of which one is far away.
    for start in (np.full(n, 1 / n), np.where(np.arange(n) == 3, 1.0, 1e-12)):
        estimate = shares.estimate(counts, start / start.sum())
        assert estimate.sum() == pytest.approx(1.0)
        assert loss(np.log(estimate)) <= best.fun + 1e-6
        np.testing.assert_allclose(estimate, np.exp(best.x - logsumexp(best.x)), atol=1e-4)


def test_log_linear_shares_are_not_penalised():
    shares = ShapeShares([16, 16])
    rising = np.exp(0.3 * np.concatenate([np.arange(16), np.arange(16)[::-1]]))
    rising[16:] *= 5.0  # shares of a concentration are free
    counts = 1_000 * rising / rising.sum() - 0.2
    estimate = shares.estimate(counts, np.full(32, 1 / 32))
    np.testing.assert_allclose(estimate, rising / rising.sum(), rtol=1e-9)


def test_one_peak_is_spread_over_its_neighbours_unless_there_are_many_items():
    shares, start = ShapeShares([16]), np.full(16, 1 / 16)
    counts = np.where(np.arange(16) == 8, 1.0, 0.0)
    few, many = (shares.estimate(n * counts, start) for n in (20, 20_000))
    assert few[8] < 0.6
    assert few[[7, 9]].min() > 0.1
    assert many[8] > 0.98


def test_the_curvature_of_shares_does_not_depend_on_the_number_of_means():
    def log_prior(n):
        logs = -0.5 * (np.linspace(0, 1, n) - 0.5) ** 2 / 0.2**2
        shares = ShapeShares([n])
        logs -= logsumexp(logs)
        return shares.log_prior(np.exp(logs)) - 0.2 * logs.sum()

    assert log_prior(200) == pytest.approx(log_prior(100), rel=0.05)


def test_scores_of_annotators_with_few_labels_each():
    errors, inside = [], []
    for seed in range(6):
        simulated = at.simulate.crowd(
            behavior="mixed",
            mixing="annotator",
            n_items=300,
            n_annotators=300,
            labels_per_item=5,
            seed=seed,
        )
        fit = at.RobustGPM(truth="opinions").fit(simulated.labels).result_
        errors.append(((fit.expectation - simulated.score) ** 2).mean())
        low, high = (np.asarray(fit.item_columns[f"score_{end}"]) for end in ("low", "high"))
        inside.append(((low <= simulated.score) & (simulated.score <= high)).mean())
    # With 0.2 pseudo-items per shape alone 0.53, in intervals that cover less.
    assert np.mean(errors) < 0.48
    assert 0.94 < np.mean(inside) < 0.985


N_CATEGORIES, CONCENTRATION = 3, 5.0


@pytest.fixture
def labels(make_labels):
    rng = np.random.default_rng(0)
    return make_labels(rng, n_items=30, n_annotators=9, n_categories=N_CATEGORIES, density=0.5)


def test_counts_of_labels_in_strategies_have_the_repeated_label_apart():
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(4), 9)
    counts = rng.gamma(1.0, size=(9, N_CATEGORIES, 5))
    repeated = rng.integers(NO_LABEL, N_CATEGORIES, 9)
    found = LabelTable.of_counts(weights, counts, repeated)
    is_repeated = repeated[:, np.newaxis] == np.arange(N_CATEGORIES)
    repeating = np.einsum("sg,snz,sn->gnz", weights, counts, is_repeated)
    np.testing.assert_allclose(found.repeated, repeating, rtol=1e-12)
    every = np.einsum("sg,snz->gnz", weights, counts)
    np.testing.assert_allclose(found.other, every - repeating, atol=1e-12)


def test_the_counts_after_em_are_those_of_its_last_parameters(labels):
    with closing(MemoryEngine(threads=1).open(labels)) as session:
        session.allocate("fold", per="labels")
        steps = ClassSteps(TrueClasses(labels), session)
        last, _ = steps.step(steps.start())
        steps.finalize(last)
        counts = steps.annotator_counts(last).counts[:, :-1]
        np.testing.assert_array_equal(counts, steps.e_step(last)[0].counts)


CROWDS = [
    {"labels_per_item": 3},
    {"labels_per_item": 6, "spammer_share": 0.4},
    {"labels_per_item": 2, "n_annotators": 40},
    {"labels_per_item": 5, "behavior": "inverted", "spammer_share": 0.3},
]
CANDIDATES = [(1, 1024.0, False), (1, 16.0, True), (3, 16.0, True), (3, 4.0, True)]


def log_posterior_of_strategies(steps, parameters, counts, learn_crowd):
    """Return K, the log-posterior of the crowd's confusion and of the shares of strategies."""
    serious, shares, items = parameters.serious, parameters.strategy_prior, steps.items
    strategies = items.strategies(serious)
    joint = strategies.log_probability.total(counts, steps.repeated_label)
    joint = joint + strategies.log_prior_of(shares)
    on_class = np.log(serious[items.class_of, np.arange(items.n_classes)]).sum()
    log_prior = (1.0 if learn_crowd else 1e12) * on_class + np.log(serious).mean(axis=0).sum()
    return logsumexp(joint, axis=1).sum() + log_prior + np.log(shares).mean()


@pytest.mark.parametrize("n_categories", [2, 3, 5])
@pytest.mark.parametrize("options", CROWDS)
@pytest.mark.parametrize(("n_subtypes", "concentration", "learn_crowd"), CANDIDATES)
def test_every_step_raises_the_objective_of_classes(
    n_categories, options, n_subtypes, concentration, learn_crowd
):
    for seed in range(3):
        made = {"n_items": 60, "n_annotators": 12, "n_categories": n_categories, **options}
        labels = at.simulate.crowd(**made, seed=seed).labels
        with closing(MemoryEngine(threads=1).open(labels)) as session:
            session.allocate("fold", per="labels")
            items = TrueClasses(labels, n_subtypes, learn_crowd=learn_crowd)
            steps = ClassSteps(items, session, concentration)
            parameters, objectives = steps.start(), []
            for _ in range(25):
                counts, _ = steps.e_step(parameters)
                before = parameters
                parameters, monitor = steps.step(before)
                objectives.append(monitor.objective)
                # The other half: the crowd's confusion and the shares of strategies.
                evidence = [
                    log_posterior_of_strategies(steps, each, counts.counts, learn_crowd)
                    for each in (before, parameters)
                ]
                if learn_crowd:  # otherwise rounding of a prior of 1e12 labels hides everything
                    assert evidence[1] - evidence[0] > -1e-9 * labels.n_labels
            assert np.diff(objectives).min() > -1e-12


def test_the_objective_is_the_log_posterior_at_the_pseudo_counts_of_each_step(labels):
    with closing(MemoryEngine(threads=1).open(labels)) as session:
        session.allocate("fold", per="labels")
        steps = ClassSteps(TrueClasses(labels), session, CONCENTRATION)
        first = steps.start()
        counts, before = steps.e_step(first)
        second, monitor = steps.step(first)
        third, after = steps.step(second)
        strategies = steps.items.strategies(first.serious)
        joint = strategies.log_probability.total(counts.counts, steps.repeated_label)
        weights = normalise_log_weights(joint + strategies.log_prior_of(first.strategy_prior))
        mean = strategies.probability.average(weights, steps.repeated_label)
    pseudo_counts = CONCENTRATION * mean
    mass = counts.counts + pseudo_counts
    np.testing.assert_allclose(second.confusion, mass / mass.sum(axis=1, keepdims=True))
    rise = (pseudo_counts * np.log(second.confusion / first.confusion)).sum()
    rise += np.log(second.prior / first.prior).mean()
    assert monitor.objective == pytest.approx(before / labels.n_labels)
    expected = (after.log_likelihood + rise) / labels.n_labels
    assert after.objective == pytest.approx(expected, rel=1e-12)
    assert after.compared == pytest.approx(after.log_likelihood / labels.n_labels)
    assert third.log_prior != second.log_prior
