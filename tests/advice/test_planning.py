"""How many labels a target needs."""

import numpy as np
import pytest

import annotruth as at
from annotruth.advice import planning
from annotruth.advice.beliefs import Beliefs
from annotruth.advice.crowd import judge
from annotruth.advice.planning import Need
from annotruth.models.robust_gpm.steps import MEANS


@pytest.fixture(scope="module")
def opinions():
    return at.simulate.crowd(n_items=150, n_annotators=40, labels_per_item=4, seed=1).labels


def test_higher_targets_need_more_labels(opinions):
    plans = [at.plan_labels(opinions, "hellinger", value) for value in (0.17, 0.15, 0.12)]
    evenly = [plan.evenly.per_item for plan in plans]
    assert 0 < evenly[0] < evenly[1] < evenly[2]
    for plan in plans:
        assert plan.evenly.low < plan.evenly.per_item < plan.evenly.high
        assert plan.advised.per_item < plan.evenly.per_item
        in_all = plan.in_all(plan.evenly)
        assert in_all == 600 + np.ceil(150 * plan.evenly.per_item)
        assert f"{in_all:,} in all" in plan.summary()


def test_scores_are_planned_on_ordinal_scales(opinions):
    plan = at.plan_labels(opinions, "score", 0.6)
    fit = at.fit(opinions)
    half = (fit.items()["score_high"] - fit.items()["score_low"]) / 2
    assert plan.now == pytest.approx(half.mean(), rel=0.2)
    assert plan.evenly.per_item > 1


def test_scores_are_planned_as_wide_as_the_fit_has_them_among_the_inverted():
    made = at.simulate.crowd(behavior="inverted", labels_per_item=5, seed=7002)
    plan = at.plan_labels(made.labels, "score", 0.6, truth="opinions")
    items = at.fit(made.labels, truth="opinions").items()
    half = (items["score_high"] - items["score_low"]) / 2
    assert plan.now == pytest.approx(half.mean(), rel=0.15)


@pytest.mark.parametrize("per_item", [3, 6])
def test_what_is_expected_of_classes_comes_true(classes, per_item):
    labels, truth = classes(5, per_item=per_item)
    plan = at.plan_labels(labels, "accuracy", 0.9)
    right = at.evaluate(at.fit(labels), dict(enumerate(truth)))["accuracy"]
    assert plan.now == pytest.approx(right, abs=0.06)


def test_a_plan_made_with_few_labels_comes_true(classes):
    few, _ = classes(6, per_item=3, items=400, reliability=0.6)
    plan = at.plan_labels(few, "accuracy", 0.9)
    needed = 3 + plan.evenly.per_item
    more, truth = classes(6, per_item=round(needed), items=400, reliability=0.6)
    right = at.evaluate(at.fit(more), dict(enumerate(truth)))["accuracy"]
    assert 4 < needed < 12
    assert right == pytest.approx(0.9, abs=0.05)


def test_what_is_reached_needs_nothing(opinions):
    plan = at.plan_labels(opinions, "accuracy", 0.1)
    assert plan.evenly == Need(0.0, 0.0, 0.0, plan.evenly.reached)
    assert "reached already" in plan.summary()


def test_what_a_crowd_cannot_reach_is_said_plainly(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=10, n_categories=4)
    plan = at.plan_labels(labels, "accuracy", 0.999)
    assert plan.evenly.per_item is None
    assert plan.in_all(plan.evenly) is None
    assert plan.evenly.reached < 0.999
    assert "out of reach, 60 more labels an item give 0." in plan.summary()
    assert "these annotators cannot reach it" in plan.summary()


def test_more_people_than_there_are_is_said(opinions):
    told = at.plan_labels(opinions, "score", 0.4).summary()
    assert "that takes more people than these 40" in told


def test_the_same_seed_gives_the_same_plan(opinions):
    one, two, other = (at.plan_labels(opinions, "hellinger", 0.15, seed=s) for s in (3, 3, 4))
    assert one.evenly == two.evenly
    assert one.advised == two.advised
    assert one.evenly != other.evenly


@pytest.mark.parametrize(
    ("target", "value", "text"),
    [
        ("speed", 1, "unknown target 'speed': choose accuracy, hellinger, score"),
        ("accuracy", 1.0, "target accuracy is 1: give a number above 0 and below 1"),
        ("accuracy", 0.0, "above 0 and below 1"),
        ("hellinger", float("nan"), "target hellinger is nan"),
        ("score", 4.0, "target score is 4: give a number above 0 and below 4"),
    ],
)
def test_a_target_that_is_none(opinions, target, value, text):
    with pytest.raises(at.InputError, match=text):
        at.plan_labels(opinions, target, value)


def test_classes_without_order_have_no_scores(classes):
    labels, _ = classes(1, per_item=3, items=20)
    with pytest.raises(at.InputError, match="the target score needs an ordinal scale"):
        at.plan_labels(labels, "score", 0.5)


def test_simulated_labels_bear_out_what_is_believed_on_average(classes, monkeypatch):
    monkeypatch.setattr(planning, "share_counted", lambda labels: 1.0)
    labels, _ = classes(2, per_item=3)
    crowd = judge(labels)
    for advised in (False, True):
        leader = []

        def weight_of_the_first_leader(now, leader=leader):
            leader.append(now.weights.argmax(axis=1))
            return np.take_along_axis(now.weights, leader[0][:, np.newaxis], axis=1)[:, 0]

        weights = planning._simulated(
            crowd, weight_of_the_first_leader, np.random.default_rng(0), advised=advised
        )
        assert weights[-1].mean() == pytest.approx(weights[0].mean(), abs=0.02)
        assert weights[-1].var() > 1.2 * weights[0].var()


def test_labels_that_count_less_are_needed_in_greater_number(opinions, monkeypatch):
    usual = at.plan_labels(opinions, "hellinger", 0.16).evenly.per_item
    monkeypatch.setattr(planning, "share_counted", lambda labels: 0.3)
    assert at.plan_labels(opinions, "hellinger", 0.16).evenly.per_item > 1.5 * usual


def test_a_score_is_never_known_better_than_the_shapes_tell_it(opinions):
    measure = planning._measure("score", judge(opinions))
    shapes = judge(opinions).kinds.opinions
    certain = Beliefs(np.eye(len(shapes)), shapes, None)
    np.testing.assert_allclose(measure(certain), 1.96 * (4 / MEANS) / np.sqrt(12), rtol=1e-3)


@pytest.mark.parametrize(("goal", "labels"), [(0.0, 0.0), (0.5, 0.5), (1.5, 1.25), (4.0, np.inf)])
def test_a_goal_is_met_between_two_rounds(goal, labels):
    assert planning._crossing(np.array([0.0, 1.0, 3.0]), goal) == labels


def test_a_target_is_a_number(opinions):
    with pytest.raises(at.InputError, match="accuracy is 'high': give a number"):
        at.plan_labels(opinions, "accuracy", "high")
