"""GPM: equations, likelihood and results."""

from dataclasses import replace

import numpy as np
import pytest
from tests.models.fitting import NUMBERS as TABLE

import annotruth as at
from annotruth import simulate


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


def test_reliabilities_are_recovered_from_many_labels():
    errors = []
    for seed in range(3):
        made = simulate.crowd(n_items=1000, n_annotators=200, spammer_share=0.2, seed=seed)
        fit = at.fit(made.labels, "gpm", tol=0.1)
        errors.append(np.abs(fit.reliability - made.reliability).mean())
    assert np.mean(errors) < 0.06


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


def test_behaviors_of_annotators_with_few_labels_stay_uniform():
    crowd = [(e, str(s), e % 2) for e in range(40) for s in range(5)]
    nine, ten = ([(e, f"{n} labels", 1) for e in range(n)] for n in (9, 10))
    fit = at.fit([*crowd, *nine, *ten], "gpm", behavior="learned", max_iter=5000)
    people = fit.data.annotators.to_pylist()
    pi = fit.parameters["pi"]
    assert pi[people.index("9 labels")].tolist() == [0.5, 0.5]
    assert pi[people.index("10 labels"), 1] > 0.99


def test_results_of_a_distribution_by_hand():
    votes = [("a", s, r) for s, r in zip("vwxyz", [1, 1, 1, 5, 5], strict=True)]
    with pytest.warns(at.ConvergenceWarning):
        row = at.fit(votes, "gpm", max_iter=3).items().iloc[0]
    p = np.array([row.p_1, row.p_5])
    assert row.n_labels == 5
    assert row.confidence == p.max() == row.p_1
    assert row.expectation == pytest.approx(p[0] + 5 * p[1])
    assert row.entropy == pytest.approx(-(p * np.log(p)).sum())
