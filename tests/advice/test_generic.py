"""Uncertainty and gain for models without latent classes, beside sums written out."""

import numpy as np
import pytest
from scipy.special import gammaln

import annotruth as at
from annotruth.analyses.advice.advice import advise, basis_of
from annotruth.analyses.advice.generic import OpinionBasis, ScoreBasis, one_coin_classes
from annotruth.analyses.advice.items import LEAST_GAIN
from annotruth.analyses.advice.latent_classes import LatentClassBasis


def of_item(rows, model, **options):
    """The status and the added labels of the item "it"."""
    items = advise(at.fit([*rows, ("other", 0, rows[0][2])], model, **options)).items()
    row = items[items["item"] == "it"].iloc[0]
    return row["status"], row["add"], row["why"]


def votes(**counts):
    """Rows of one item with so many labels of each class, by different annotators."""
    labels = [label for label, count in counts.items() for _ in range(count)]
    return [("it", s, label) for s, label in enumerate(labels)]


def dirichlet_uncertainty(alpha):
    """The expected squared Hellinger distance of a Dirichlet draw from its mean."""
    total = alpha.sum()
    roots = np.exp(gammaln(alpha + 0.5) - gammaln(alpha) + gammaln(total) - gammaln(total + 0.5))
    return 1.0 - (np.sqrt(alpha / total) * roots).sum()


@pytest.mark.parametrize("model", ["gpm", "majority", "ordinal-mixture"])
def test_opinions_have_dirichlet_posteriors_of_their_serious_labels(model):
    made = at.simulate.crowd(n_items=20, n_annotators=12, labels_per_item=6, seed=5)
    fit = at.fit(made.labels, model)
    basis = basis_of(fit)
    assert isinstance(basis, OpinionBasis)
    assessed = basis.assess(np.ones(12, dtype=bool))
    item = fit.data.item_of_label()
    p_serious = np.ones(len(item)) if fit.p_serious is None else fit.p_serious
    weight = 1.0 if fit.reliability is None else fit.reliability.mean()
    for e, theta in enumerate(fit.distribution.dense(5)):
        alpha = p_serious[item == e].sum() * theta + 1 / 5
        now = dirichlet_uncertainty(alpha)
        assert assessed.uncertainty[e] == pytest.approx(now, abs=1e-9)
        after = sum(
            alpha[n] / alpha.sum() * dirichlet_uncertainty(alpha + np.eye(5)[n]) for n in range(5)
        )
        worth = now / (now - after) - 1.0
        assert assessed.gain[e] == pytest.approx(now / (worth / weight + 1.0), abs=1e-9)


def test_the_dirichlet_uncertainty_is_what_draws_show():
    alpha = np.array([3.2, 0.2, 1.7])
    drawn = np.random.default_rng(0).dirichlet(alpha, size=200_000)
    mean = alpha / alpha.sum()
    shown = (1.0 - np.sqrt(drawn * mean).sum(axis=1)).mean()
    assert dirichlet_uncertainty(alpha) == pytest.approx(shown, rel=0.01)


def test_classes_are_one_coin_latent_classes():
    rows = [(e, s, "abc"[e % 3 if s < 3 else (e + 1) % 3]) for e in range(30) for s in range(4)]
    fit = at.fit(rows, "majority")
    basis = basis_of(fit)
    assert isinstance(basis, LatentClassBasis)
    classes = one_coin_classes(fit)
    assert classes.one_truth
    np.testing.assert_allclose(classes.confusion.sum(axis=1), 1.0)
    # 30 of 30 labels match, or none does; five labels at the crowd's rate are added.
    crowd = 91 / 123
    expected = [(30 + 5 * crowd) / 35] * 3 + [5 * crowd / 35]
    np.testing.assert_allclose(classes.confusion[:, 0, 0], expected)


def test_clear_votes_need_no_more_labels_and_a_tie_does():
    crowd = [(f"{e}", s, "ab"[e % 2]) for e in range(40) for s in range(8)]
    assert of_item([*votes(a=8), *crowd], "majority")[:2] == ("needs no more labels", 0)
    status, add, why = of_item([*votes(a=1, b=1), *crowd], "majority")
    assert (status, why) == ("needs labels", "top label undecided: a or b")
    assert add > 0


def test_many_votes_for_two_classes_are_divided():
    crowd = [(f"{e}", s, "ab"[e % 2]) for e in range(40) for s in range(40)]
    status, add, why = of_item([*votes(a=20, b=20), *crowd], "majority")
    assert (status, add, why) == ("divided", 0, "divided between a and b")


@pytest.mark.parametrize("model", ["mean", "median", "subject-bias"])
def test_scores_need_labels_until_their_standard_error_is_small(model):
    made = at.simulate.crowd(n_items=30, n_annotators=40, labels_per_item=3, seed=1)
    many = at.simulate.crowd(n_items=30, n_annotators=40, seed=1)
    few, full = (advise(at.fit(m.labels, model)) for m in (made, many))
    assert isinstance(basis_of(few.fit), ScoreBasis)
    assert few.of_items.needs_labels.mean() > 0.6
    assert not full.of_items.needs_labels.any()
    low, high = (few.fit.item_columns.get(name) for name in ("score_low", "score_high"))
    if low is not None:
        why = few.of_items.why.to_pylist()[0]
        assert why == f"score uncertain: {low[0]:.2f} to {high[0]:.2f}".replace("0 ", " ").rstrip(
            "0"
        )


def test_the_uncertainty_of_scores_is_that_of_normal_opinions():
    fit = at.fit([("it", s, 1 + s % 5) for s in range(10)], "mean")
    basis = basis_of(fit)
    (error,) = basis.standard_error
    rng = np.random.default_rng(0)
    # Two normal distributions of one step's deviation, whose means differ by the error.
    shown = (1.0 - np.exp(-((error * rng.standard_normal(400_000)) ** 2) / 8.0)).mean()
    assessed = basis.assess(np.ones(10, dtype=bool))
    assert assessed.uncertainty[0] == pytest.approx(shown, rel=0.02)
    assert assessed.gain[0] == pytest.approx(assessed.uncertainty[0] / 11)


def test_labels_at_both_ends_of_a_scale_are_divided():
    rows = [("it", s, 1 + 4 * (s % 2)) for s in range(60)]
    status, _, why = of_item(rows, "mean")
    assert (status, why) == ("divided", "divided between 1 and 5")


def test_agreeing_labels_are_certain_after_three():
    crowd = [(f"{e}", s, 1 + e % 5) for e in range(20) for s in range(6)]
    for n, status in ((1, "needs labels"), (2, "needs labels"), (3, "needs no more labels")):
        assert of_item([*[("it", s, 3) for s in range(n)], *crowd], "median")[0] == status


def test_unreliable_annotators_lower_the_gain():
    made = at.simulate.crowd(n_items=30, n_annotators=20, labels_per_item=5, seed=1)
    basis = basis_of(at.fit(made.labels, "gpm"))
    order = np.argsort(basis.label_gain)
    worst, best = np.zeros((2, 20), dtype=bool)
    worst[order[:3]] = best[order[-3:]] = True
    assert (basis.assess(worst).gain < basis.assess(best).gain).all()
    assert basis.assess(best).gain.max() > LEAST_GAIN


def test_more_categories_than_memory_for_confusion_matrices_are_refused():
    rows = [(e, s, f"word {e} {s}") for e in range(3000) for s in range(3)]
    fit = at.fit(rows, "majority")
    with pytest.raises(
        at.InputError, match=r"would need [\d.]+ GB for 9,000 categories by 3 annotators"
    ):
        at.next_labels(fit)
