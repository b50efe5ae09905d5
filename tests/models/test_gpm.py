"""GPM: equations, likelihood and results."""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import annotruth as at
from annotruth import simulate
from annotruth.observations import Labels, Scale

TABLE = [
    ("a", "ann", 1),
    ("a", "bob", 1),
    ("a", "cy", 2),
    ("b", "ann", 2),
    ("b", "bob", 2),
    ("b", "cy", 1),
    ("c", "ann", 3),
    ("c", "bob", 1),
]


def one_step_by_hand(table):
    """The paper's first EM step, written out with dictionaries."""
    items = sorted({i for i, _, _ in table})
    theta = {
        (e, n): sum(1 for i, _, r in table if (i, r) == (e, n))
        / sum(1 for i, *_ in table if i == e)
        for e in items
        for n in (1, 2, 3)
    }
    mu = {(e, s): 0.5 * theta[e, r] / (0.5 * theta[e, r] + 0.5 / 3) for e, s, r in table}
    eps = {
        s: np.mean([mu[e, t] for e, t, _ in table if t == s])
        for s in sorted({s for _, s, _ in table})
    }
    new = {
        (e, n): sum(mu[i, s] for i, s, r in table if (i, r) == (e, n))
        / sum(mu[i, s] for i, s, _ in table if i == e)
        for e in items
        for n in (1, 2, 3)
    }
    log_likelihood = sum(np.log(0.5 * theta[e, r] + 0.5 / 3) for e, _, r in table)
    q = sum(
        mu[e, s] * np.log(eps[s] * new[e, r]) + (1 - mu[e, s]) * np.log((1 - eps[s]) / 3)
        for e, s, r in table
    )
    return eps, new, log_likelihood, q


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_the_first_step_equals_the_papers_equations(engine):
    eps, theta, log_likelihood, q = one_step_by_hand(TABLE)
    with pytest.warns(at.ConvergenceWarning, match=r"reached max_iter \(1\)"):
        fit = at.fit(TABLE, "gpm", max_iter=1, engine=engine)
    np.testing.assert_allclose(fit.reliability, list(eps.values()), rtol=1e-14)
    dense = fit.distribution.dense(3)
    np.testing.assert_allclose(dense.ravel(), list(theta.values()), rtol=1e-14, atol=1e-16)
    assert fit.history.log_likelihood[0] == pytest.approx(log_likelihood, rel=1e-14)
    assert fit.history.objective[0] == pytest.approx(q, rel=1e-13)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(1, 12),
    n_annotators=st.integers(1, 8),
    n_categories=st.integers(1, 6),
    unused=st.integers(0, 2),
    n_known=st.integers(0, 2),
    behavior=st.sampled_from(["uniform", "learned"]),
    copies=st.integers(1, 6),
)
def test_the_log_likelihood_rises_at_every_step(
    make_labels, seed, n_items, n_annotators, n_categories, unused, n_known, behavior, copies
):
    rng = np.random.default_rng(seed)
    # Several labels by one annotator on one item: enough labels for a behavior to be learned.
    labels = make_labels(
        rng,
        n_items=n_items,
        n_annotators=n_annotators,
        n_categories=n_categories,
        unused=unused,
        copies=copies,
    )
    labels.known[:n_known] = rng.integers(n_categories + unused, size=n_known)[:n_items]
    fit = at.GPM(behavior=behavior, tol=1e-9, max_iter=200, engine="memory")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        history = fit.fit(labels).result_.history.log_likelihood
    assert np.isfinite(history).all()
    assert np.diff(history).min() >= -1e-11 * max(1.0, abs(history[0]))


def test_reliabilities_are_recovered_from_many_labels():
    errors = []
    for seed in range(3):
        made = simulate.crowd(n_items=1000, n_annotators=200, spammer_share=0.2, seed=seed)
        fit = at.fit(made.labels, "gpm", tol=0.1)
        errors.append(np.abs(fit.reliability - made.reliability).mean())
    assert np.mean(errors) < 0.06


def test_random_annotators_are_recovered_from_many_labels():
    made = simulate.crowd(n_items=400, n_annotators=60, spammer_share=0.25, seed=1)
    fit = at.fit(made.labels, "gpm", tol=0.1)
    true = made.reliability < 0.5
    clear = np.abs(made.reliability - 0.5) > 0.15
    assert (fit.spammer == true)[clear].mean() > 0.95


def test_annotators_are_spammers_below_one_half():
    fit = replace(at.fit(TABLE, "gpm"), reliability=np.array([0.5, 0.4999, 0.55]))
    assert fit.spammer.tolist() == [False, True, False]
    assert fit.n_spammers == 1
    assert fit.annotators().spammer.tolist() == [False, True, False]


def test_p_serious_separates_serious_labels():
    made = simulate.crowd(n_items=200, n_annotators=60, spammer_share=0.4, seed=2)
    fit = at.fit(made.labels, "gpm")
    serious = made.serious[made.labels.row]
    assert fit.p_serious[serious].mean() > fit.p_serious[~serious].mean() + 0.15


def test_an_annotator_with_three_labels_has_a_wide_interval():
    crowd = [(e, s, e % 3) for e in range(30) for s in range(8)]
    few = [(e, "new", e % 3) for e in range(3)]
    fit = at.fit([(e, str(s), r) for e, s, r in crowd] + few, "gpm")
    table = fit.annotators().set_index("annotator")
    assert table.loc["new", "low"] < 0.45
    assert table.loc["new", "high"] == 1.0
    assert table.loc["0", "low"] > 0.85


def test_the_log_likelihood_at_the_ends_of_the_interval_is_1_92_lower():
    made = simulate.crowd(n_items=60, n_annotators=12, seed=5)
    fit = at.fit(made.labels, "gpm")
    data, theta = fit.data, fit.distribution.probability
    cell = data.cell_of_label()
    for s in range(data.n_annotators):
        share = theta[cell[data.annotator == s]]

        def support(eps, share=share):
            return np.log(eps * share + (1 - eps) / data.n_categories).sum()

        best = support(min(fit.reliability[s], 1 - 1e-9))
        for end in (fit.low[s], fit.high[s]):
            if 0.0 < end < 1.0:
                assert best - support(end) == pytest.approx(1.9207, abs=0.02)
            else:
                assert best - support(end) < 1.93


def test_learned_behavior_detects_repeated_labels():
    made = simulate.crowd(n_items=300, n_annotators=30, behavior="repeated", seed=3)
    fit = at.fit(made.labels, "gpm", behavior="learned", max_iter=5000)
    spammers = np.flatnonzero(made.reliability < 0.3)
    assert len(spammers) > 0
    for s in spammers:
        assert fit.behavior[s] == f"repeated {made.repeated_label[s] + 1}"


def test_behaviors_of_annotators_with_few_labels_stay_uniform():
    crowd = [(e, str(s), e % 2) for e in range(40) for s in range(5)]
    nine, ten = ([(e, f"{n} labels", 1) for e in range(n)] for n in (9, 10))
    fit = at.fit([*crowd, *nine, *ten], "gpm", behavior="learned", max_iter=5000)
    people = fit.data.annotators.to_pylist()
    pi = fit.parameters["pi"]
    assert pi[people.index("9 labels")].tolist() == [0.5, 0.5]
    assert pi[people.index("10 labels"), 1] > 0.99


def test_gold_fixes_the_item_and_changes_the_annotators():
    table = [(e, s, int(s in "de")) for e in range(20) for s in "abcde"]
    plain = at.fit(table, "gpm").annotators().set_index("annotator").reliability
    gold = at.fit(table, "gpm", gold=dict.fromkeys(range(20), 1))
    assert gold.items().label.tolist() == [1] * 20
    assert gold.items().p_1.tolist() == [1.0] * 20
    with_gold = gold.annotators().set_index("annotator").reliability
    assert plain["a"] > 0.9
    assert with_gold["a"] < 0.1
    assert with_gold["d"] > 0.9


def test_gold_may_be_a_category_without_labels():
    fit = at.fit([("a", "x", 1), ("a", "y", 1), ("b", "x", 2), ("b", "y", 2)], "gpm", gold={"a": 2})
    row = fit.items().set_index("item").loc["a"]
    assert (row.label, row.p_2, row.p_1, row.entropy) == (2, 1.0, 0.0, 0.0)
    first = at.fit([("a", "x", 1), ("b", "x", 2), ("b", "y", 2)], "gpm", gold={"b": 1})
    row = first.items().set_index("item").loc["b"]
    assert (row.label, row.p_1, row.p_2, row.entropy) == (1, 1.0, 0.0, 0.0)


def test_a_tie_goes_to_the_first_category_of_the_scale():
    table = [("a", "x", "lo"), ("a", "y", "hi")]
    assert at.fit(table, "gpm", categories=["lo", "hi"]).items().label.tolist() == ["lo"]
    assert at.fit(table, "gpm", categories=["hi", "lo"]).items().label.tolist() == ["hi"]


def test_results_of_a_distribution_by_hand():
    votes = [("a", s, r) for s, r in zip("vwxyz", [1, 1, 1, 5, 5], strict=True)]
    with pytest.warns(at.ConvergenceWarning):
        row = at.fit(votes, "gpm", max_iter=3).items().iloc[0]
    p = np.array([row.p_1, row.p_5])
    assert row.n_labels == 5
    assert row.confidence == p.max() == row.p_1
    assert row.expectation == pytest.approx(p[0] + 5 * p[1])
    assert row.entropy == pytest.approx(-(p * np.log(p)).sum())


def test_memory_does_not_grow_with_items_times_classes():
    rng = np.random.default_rng(0)
    n_items = 200_000
    item = np.repeat(np.arange(n_items), 2)
    labels = Labels.from_codes(
        item,
        np.tile([0, 1], n_items),
        rng.integers(1000, size=len(item)),
        items=np.arange(n_items),
        annotators=["x", "y"],
        scale=Scale.nominal(list(range(1000))),
    )
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        fit = at.fit(labels, "gpm", max_iter=3)
        fit.item_table()
        fit.distribution_table()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n_items * 1000 * 8 / 10


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"behavior": "odd"}, "unknown behavior 'odd': choose uniform or learned"),
        ({"tol": -1}, "tol must be 0 or more"),
        ({"tol": float("nan")}, "tol must be 0 or more"),
        ({"max_iter": 10**20}, "max_iter is 100000000000000000000: integers must be below"),
        ({"tol": 10**20}, "tol is 100000000000000000000: integers must be below"),
        ({"tol": float("inf")}, "tol must be 0 or more, and finite, not inf"),
        ({"max_iter": 0}, "max_iter must be 1 or more"),
        ({"engine": "abacus"}, "unknown engine 'abacus'"),
        ({"engine": 2}, "unknown engine 2: choose memory"),
        ({"shrink": 1}, "gpm has no option 'shrink': it has tol, max_iter"),
    ],
)
def test_invalid_options_are_refused(options, text):
    with pytest.raises(at.InputError, match=text):
        at.fit(TABLE, "gpm", **options)


@pytest.mark.parametrize("model", [at.GPM, 5])
def test_a_model_that_is_neither_name_nor_estimator_is_refused(model):
    with pytest.raises(at.InputError, match="pass a name, or an estimator such as"):
        at.fit(TABLE, model)
