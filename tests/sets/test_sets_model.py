"""The model of sets: its equations, what it recovers, and what does not change it."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

import annotruth as at
from annotruth.engines import get_engine
from annotruth.observations.sets import members
from annotruth.sets.fit import set_metrics
from annotruth.sets.readout import joint_sets
from annotruth.sets.steps import SetSteps, start_rates, update_rates


@pytest.fixture(scope="module")
def made() -> at.simulate.SetSimulation:
    return at.simulate.sets(n_items=300, n_annotators=20, n_labels=6, seed=2)


@pytest.fixture(scope="module")
def fit(made: at.simulate.SetSimulation) -> at.Fit:
    return at.SetModel().fit(made.answers)


def majority(made: at.simulate.SetSimulation) -> np.ndarray:
    answers = made.answers
    votes = np.zeros(made.truth.shape)
    np.add.at(votes, answers.item_of_label(), members(answers.scale)[answers.category_of_label()])
    return votes / answers.labels_per_item[:, np.newaxis] > 0.5


def test_sets_are_recovered_better_than_by_majority(made, fit):
    ours, theirs = (
        set_metrics(made.truth, sets)["f1_micro"] for sets in (fit.sets, majority(made))
    )
    assert ours > 0.88
    assert ours > theirs + 0.05


def test_rates_are_recovered(made, fit):
    serious = made.behavior == "serious"
    for name, true in (("sensitivity", made.sensitivity), ("specificity", made.specificity)):
        error = fit.parameters[name][serious] - true[serious]
        assert abs(error.mean()) < 0.05
        assert np.sqrt((error**2).mean()) < 0.12


def test_spammers_are_found_and_named(made, fit):
    spammers = made.behavior != "serious"
    assert (fit.spammer == spammers).all()
    for s in np.flatnonzero(spammers):
        assert fit.behavior[s] == made.behavior[s]
    verdict = fit.verdict_table()["verdict"].to_pylist()
    assert [word == "drop" for word in verdict] == spammers.tolist()


def test_confidence_is_the_share_of_right_sets(made, fit):
    right = (made.truth == fit.sets).all(axis=1)
    assert abs(fit.confidence.mean() - right.mean()) < 0.08
    sure = fit.confidence > np.median(fit.confidence)
    assert right[sure].mean() > right[~sure].mean() + 0.15


def test_the_most_likely_set_is_found_by_enumeration():
    rng = np.random.default_rng(0)
    n_labels, n_types = 5, 3
    theta = rng.uniform(0.02, 0.98, (n_types, n_labels))
    types = rng.dirichlet(np.ones(n_types))
    evidence = rng.normal(0.0, 1.5, (40, n_labels))
    found = joint_sets(evidence, np.full(40, -1), np.zeros((1, n_labels)), theta, types)
    every = (np.arange(2**n_labels)[:, np.newaxis] >> np.arange(n_labels)) & 1
    for e in range(40):
        weights = np.exp((every * evidence[e]).sum(axis=1))
        by_type = np.where(every[:, np.newaxis], theta, 1.0 - theta).prod(axis=2)
        joint = weights * (by_type * types).sum(axis=1)
        joint /= joint.sum()
        assert found.probability[e] == pytest.approx(joint.max(), rel=1e-6)
        assert (every[joint.argmax()] == found.sets[e]).all()


def test_labels_that_go_together_support_each_other():
    """Where b is always with a, an item with doubtful b and clear a has it."""
    theta = np.array([[0.95, 0.95], [0.05, 0.05]])
    types = np.array([0.5, 0.5])
    none = np.zeros((1, 2))
    evidence = np.array([[3.0, -0.5]])
    together = joint_sets(evidence, np.array([-1]), none, theta, types)
    alone = joint_sets(evidence, np.array([-1]), none, theta.mean(axis=0)[np.newaxis], np.ones(1))
    assert together.sets.tolist() == [[True, True]]
    assert alone.sets.tolist() == [[True, False]]


def test_kernels_and_their_twins_agree(made):
    found = []
    for name in ("memory", "reference"):
        with closing(get_engine(name).open(made.answers)) as session:
            steps = SetSteps(made.answers, session)
            first, _ = steps.step(steps.start())
            parameters, monitor = steps.step(steps.with_types(first, 3))
            posterior = session.collect("posterior").copy()
        found.append((posterior, parameters.theta, parameters.present, monitor.log_likelihood))
    for ours, twin in zip(*found, strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-9, atol=1e-12)


def test_known_truths_fix_the_posterior():
    made = at.simulate.sets(n_items=30, n_annotators=6, n_labels=3, seed=5)
    gold = {1: {"1", "2", "3"}, 2: set()}
    for engine in ("memory", "reference"):
        fit = at.fit(made.answers.with_gold(gold), engine=engine)
        assert fit.probability[:2].tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
        assert fit.items()["labels"].tolist()[:2] == ["1|2|3", ""]
        assert fit.confidence[:2].tolist() == [1.0, 1.0]


def test_order_of_rows_and_names_change_nothing(fit, made):
    rows = made.answers.to_arrow().to_pylist()
    rng = np.random.default_rng(0)
    from annotruth.observations.sets import labels_in

    shuffled = [
        (f"item {rows[k]['item']}", f"by {rows[k]['annotator']}", labels_in(rows[k]["label"]))
        for k in rng.permutation(len(rows))
    ]
    other = at.fit(shuffled)
    items = dict(zip(other.data.items.to_pylist(), other.probability, strict=True))
    for item, expected in zip(fit.data.items.to_pylist(), fit.probability, strict=True):
        np.testing.assert_array_equal(items[f"item {item}"], expected)
    people = dict(zip(other.data.annotators.to_pylist(), other.reliability, strict=True))
    for s, expected in zip(fit.data.annotators.to_pylist(), fit.reliability, strict=True):
        assert people[f"by {s}"] == expected


def test_few_answers_are_near_the_crowd_and_many_are_their_own():
    trials = np.array([[400.0], [400.0], [400.0], [2.0]])
    successes = np.array([[360.0], [200.0], [340.0], [0.0]])
    rates = start_rates(4, 1, 0.7)
    for _ in range(30):
        rates = update_rates(rates, successes, trials, np.ones(4))
    found = rates.posterior_mean(successes, trials).ravel()
    np.testing.assert_allclose(found[:3], [0.9, 0.5, 0.85], atol=0.03)
    assert 0.4 < found[3] < rates.crowd()[0]


def test_few_answers_say_too_little():
    made = at.simulate.sets(n_items=60, n_annotators=10, n_labels=4, spammer_share=0.0, seed=1)
    rows = made.answers.to_arrow().to_pylist()
    from annotruth.observations.sets import labels_in

    data = [(row["item"], row["annotator"], labels_in(row["label"])) for row in rows]
    fit = at.fit([*data, (1, 99, []), (2, 99, ["1", "2", "3", "4"])])
    behavior = dict(zip(fit.data.annotators.to_pylist(), fit.behavior, strict=True))
    assert behavior[99] == "too few answers to tell"
    assert fit.verdict_table()["verdict"].to_pylist()[-1] == "too few answers"


def test_tempering_keeps_what_is_most_likely(made):
    with closing(get_engine("memory").open(made.answers)) as session:
        steps = SetSteps(made.answers, session)
        parameters, _ = steps.step(steps.start())
        _, sure = steps.tempered(parameters, 1.0)
        sure = sure.copy()
        _, less = steps.tempered(parameters, 0.5)
        assert ((sure > 0.5) == (less > 0.5)).all()
        np.testing.assert_allclose(
            np.log(less / (1 - less)), 0.5 * np.log(sure / (1 - sure)), rtol=1e-4, atol=1e-6
        )


def test_irregular_annotators_do_not_count(made):
    with closing(get_engine("memory").open(made.answers)) as session:
        steps = SetSteps(made.answers, session)
        parameters = steps.start()
        everybody = parameters._replace(irregular=np.ones_like(parameters.irregular))
        evidence, posterior = steps.tempered(everybody, 1.0)
        assert not evidence.any()
        np.testing.assert_allclose(posterior, np.broadcast_to(everybody.theta, posterior.shape))


def test_number_of_types_can_be_given(made):
    assert at.SetModel(n_types=2).fit(made.answers).parameters["types"].shape == (2,)
    with pytest.raises(at.InputError, match="n_types is 9: give a number from 1 to 6"):
        at.SetModel(n_types=9).fit(made.answers)


def test_metrics():
    truth = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]], dtype=bool)
    sets = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 0]], dtype=bool)
    metrics = set_metrics(truth, sets)
    assert metrics["f1_micro"] == pytest.approx(2 * 2 / 6)
    assert metrics["f1_macro"] == pytest.approx((1.0 + 0.0) / 2)  # the third label is nowhere
    assert metrics["exact_match"] == pytest.approx(1 / 3)
    assert metrics["jaccard"] == pytest.approx((0.5 + 1.0 + 0.5) / 3)


def test_a_rare_label_is_not_taken_for_a_frequent_one_that_is_seldom_given():
    made = at.simulate.sets(prevalence=(0.02, 0.08), n_labels=8, seed=3)
    fit = at.SetModel(n_types=1).fit(made.answers)
    found, true = fit.probability.mean(axis=0), made.truth.mean(axis=0)
    assert np.abs(found - true).max() < 0.1  # 0.6 without a prior of the prevalences


def test_types_that_were_given_are_named_where_too_few_answers_are_held_out():
    answers = [
        (item, person, [["x"], ["y"], ["x", "y"]][item % 3])
        for item in range(6)
        for person in "abc"
    ]
    assert at.SetModel(n_types=2).fit(at.Labels.of(answers)).chosen["why"] == (
        "2 types of items, in which labels go together (given)"
    )
    assert at.SetModel().fit(at.Labels.of(answers)).chosen["why"] == (
        "1 type of items: labels are independent of each other (too few answers to hold some out)"
    )
