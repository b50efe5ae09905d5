"""BWA: the Bayesian weighted average."""

import warnings
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import annotruth as at
from annotruth.engines import get_engine
from annotruth.observations import Labels, Scale

TABLE = [
    ("a", "x", "cat"),
    ("a", "y", "cat"),
    ("a", "z", "dog"),
    ("b", "x", "dog"),
    ("b", "y", "owl"),
    ("c", "x", "owl"),
    ("c", "z", "owl"),
]
CLASSES = ("cat", "dog", "owl")


def scores(weight, mean):
    """Return z[item, class] by the equation."""
    found = {}
    for item in "abc":
        for k in CLASSES:
            given = [(weight[s, k], r == k) for e, s, r in TABLE if e == item]
            total = 1.0 + sum(v for v, _ in given)
            found[item, k] = (mean[k] + sum(v for v, right in given if right)) / total
    return found


def updated(z):
    """Return the weights and means that follow from scores, with the prior of the votes."""
    votes = {
        (item, k): np.mean([r == k for e, _, r in TABLE if e == item])
        for item in "abc"
        for k in CLASSES
    }
    z = votes if z is None else z
    weight = {}
    for k in CLASSES:
        variance = sum(((r == k) - votes[e, k]) ** 2 for e, _, r in TABLE) / len(TABLE)
        for s in "xyz":
            errors = [((r == k) - z[e, k]) ** 2 for e, by, r in TABLE if by == s]
            prior = 15.0 * 4.0 * (2.0 / 3.0) * variance
            weight[s, k] = (15.0 + len(errors)) / (prior + sum(errors))
    return weight, {k: sum(z[e, k] for e in "abc") / 3 for k in CLASSES}


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_two_steps_by_hand(engine):
    labels = Labels.of(TABLE, categories=list(CLASSES))
    with closing(get_engine(engine).open(labels)) as session:
        steps = at.BWA()._steps(labels, session)
        parameters = steps.start()
        expected = updated(None)
        for _ in range(2):
            for s, row in zip("xyz", parameters.weight, strict=True):
                assert row == pytest.approx([expected[0][s, k] for k in CLASSES])
            assert parameters.mean == pytest.approx([expected[1][k] for k in CLASSES])
            parameters, _ = steps.step(parameters)
            expected = updated(scores(*expected))


def test_the_distribution_is_the_scores_as_shares():
    labels = Labels.of(TABLE, categories=list(CLASSES))
    fit = at.BWA(tol=1e-12).fit(labels).result_
    weight = {
        (s, k): fit.parameters["weight"][i, j]
        for i, s in enumerate(fit.data.annotators.to_pylist())
        for j, k in enumerate(CLASSES)
    }
    z = scores(weight, dict(zip(CLASSES, fit.parameters["mean"], strict=True)))
    for row, e in zip(fit.distribution.dense(3), fit.data.items.to_pylist(), strict=True):
        total = sum(z[e, k] for k in CLASSES)
        assert row == pytest.approx([z[e, k] / total for k in CLASSES])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(1, 12),
    n_annotators=st.integers(1, 6),
    n_categories=st.integers(1, 4),
    unused=st.integers(0, 1),
    n_known=st.integers(0, 3),
)
def test_the_objective_never_falls(
    make_labels, seed, n_items, n_annotators, n_categories, unused, n_known
):
    rng = np.random.default_rng(seed)
    made = make_labels(rng, n_items=n_items, n_annotators=n_annotators, n_categories=n_categories)
    labels = Labels.from_codes(
        made.item_of_label(),
        made.annotator,
        made.category_of_label(),
        items=made.items,
        annotators=made.annotators,
        scale=Scale.nominal(list(range(n_categories + unused))),
    )
    labels.known[:n_known] = rng.integers(n_categories + unused, size=n_known)[:n_items]
    for acceleration in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", at.ConvergenceWarning)
            model = at.BWA(tol=0.0, max_iter=60, acceleration=acceleration).fit(labels)
        objective = model.result_.history.objective
        assert np.isfinite(model.result_.history.log_likelihood).all()
        assert np.diff(objective).min(initial=0.0) >= -1e-11 * max(1.0, abs(objective).max())


def test_weights_are_in_the_order_of_accuracies():
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=2000)
    accuracy = np.array([0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    rows = [
        (e, s, int(t if rng.random() < a else (t + rng.integers(1, 3)) % 3))
        for e, t in enumerate(truth)
        for s, a in enumerate(accuracy)
    ]
    fit = at.BWA().fit(Labels.of(rows, scale="nominal")).result_
    weight = fit.annotator_columns["weight"]
    assert (np.diff(weight) < 0).all()
    assert (np.diff(fit.reliability) < 0).all()
    votes = at.fit(Labels.of(rows, scale="nominal"), "majority")
    assert np.mean(fit.label == truth) > np.mean(votes.label == truth)


@pytest.mark.parametrize(("acceleration", "tolerance"), [(False, 1e-10), (True, 1e-5)])
def test_renaming_categories_renames_the_results(acceleration, tolerance):
    crowd = at.simulate.crowd(n_items=60, n_annotators=10, n_categories=4, seed=3)
    rows = [
        (row["item"], row["annotator"], f"c{row['label']}")
        for row in crowd.labels.to_arrow().to_pylist()
    ]
    turned = [2, 0, 3, 1]
    one, other = (
        at.BWA(acceleration=acceleration)
        .fit(Labels.of(rows, categories=[f"c{1 + k}" for k in order], scale="nominal"))
        .result_
        for order in (range(4), turned)
    )
    np.testing.assert_allclose(
        one.distribution.dense(4)[:, turned], other.distribution.dense(4), atol=tolerance
    )


def test_known_truths_fix_items_and_assess_annotators():
    table = [(e, s, e % 2) for e in range(8) for s in "ab"] + [
        (e, "c", 1 - e % 2) for e in range(8)
    ]
    plain = at.BWA().fit(table).result_
    gold = at.BWA().fit(table, gold={e: 1 - e % 2 for e in range(8)}).result_
    assert (plain.reliability.argmin(), gold.reliability.argmax()) == (2, 2)
    assert (gold.distribution.confidence() == 1.0).all()


def test_annotators_who_all_agree_have_finite_weights():
    fit = at.BWA().fit([(e, s, e % 2) for e in range(6) for s in "ab"]).result_
    assert np.isfinite(fit.annotator_columns["weight"]).all()
    assert fit.label.tolist() == [0, 1, 0, 1, 0, 1]
    assert fit.reliability == pytest.approx(1.0, abs=1e-4)


def test_a_warm_start_ends_at_the_same_optimum():
    labels = at.simulate.crowd(n_items=80, n_annotators=10, n_categories=3, seed=4).labels
    rows = labels.to_arrow().to_pylist()
    rows = [(row["item"], str(row["annotator"]), row["label"]) for row in rows]
    more = [*rows[-40:], (1, "new", 2), (1000, "new", 3)]
    before = at.BWA(tol=1e-10).fit(rows[:-40]).result_
    updated_fit = at.BWA(tol=1e-10).fit(rows[:-40] + more, warm_start=before).result_
    fresh = at.BWA(tol=1e-10).fit(rows[:-40] + more).result_
    assert updated_fit.n_iter <= fresh.n_iter
    np.testing.assert_allclose(updated_fit.reliability, fresh.reliability, atol=1e-4)


def test_a_warm_start_begins_with_the_weights_of_the_previous_fit():
    previous = at.BWA().fit(TABLE[:-1]).result_
    labels = Labels.of([*TABLE, ("c", "new", "cat")])
    with closing(get_engine("memory").open(labels)) as session:
        steps = at.BWA()._steps(labels, session)
        resumed, start = steps.resume(previous), steps.start()
    np.testing.assert_array_equal(resumed.weight[:3], previous.parameters["weight"])
    np.testing.assert_array_equal(resumed.weight[3], start.weight[3])


@pytest.mark.parametrize("option", ["pseudo_labels", "strength"])
def test_priors_that_are_not_positive_are_refused(option):
    with pytest.raises(at.InputError, match=f"{option} must be above 0, and finite, not 0"):
        at.BWA(**{option: 0.0}).fit(TABLE)
