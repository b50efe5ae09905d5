"""How many labels a target needs."""

from dataclasses import replace

import numpy as np
import pytest

import annotruth as at
from annotruth.analyses.advice import plan as planning
from annotruth.analyses.advice.advice import advise, basis_of
from annotruth.analyses.advice.latent_classes import ItemPosterior
from annotruth.analyses.advice.plan import LabelsNeeded, SimulatedClasses
from annotruth.models.registry import MODELS
from annotruth.models.robust_gpm.opinions import N_MEANS


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
        total = plan.total_labels(plan.evenly)
        assert total == 600 + np.ceil(150 * plan.evenly.per_item)
        assert f"{total:,} labels in total" in plan.summary()


def test_scores_are_planned_on_ordinal_scales(opinions):
    plan = at.plan_labels(opinions, "score", 0.6)
    fit = at.fit(opinions)
    half = (fit.items()["score_high"] - fit.items()["score_low"]) / 2
    assert plan.now == pytest.approx(half.mean(), rel=0.2)
    assert plan.evenly.per_item > 1


def test_with_inverted_annotators_scores_are_as_uncertain_as_in_the_fit():
    made = at.simulate.crowd(behavior="inverted", labels_per_item=5, seed=7002)
    plan = at.plan_labels(made.labels, "score", 0.6, truth="opinions")
    items = at.fit(made.labels, truth="opinions").items()
    half = (items["score_high"] - items["score_low"]) / 2
    assert plan.now == pytest.approx(half.mean(), rel=0.15)


@pytest.mark.parametrize("per_item", [3, 6])
def test_the_expected_accuracy_of_classes_is_the_real_one(classes, per_item):
    labels, truth = classes(5, per_item=per_item)
    plan = at.plan_labels(labels, "accuracy", 0.9)
    right = at.evaluate(at.fit(labels), dict(enumerate(truth)))["accuracy"]
    assert plan.now == pytest.approx(right, abs=0.06)


def test_a_plan_made_with_few_labels_is_accurate(classes):
    few, _ = classes(6, per_item=3, items=400, reliability=0.6)
    plan = at.plan_labels(few, "accuracy", 0.9)
    needed = 3 + plan.evenly.per_item
    more, truth = classes(6, per_item=round(needed), items=400, reliability=0.6)
    right = at.evaluate(at.fit(more), dict(enumerate(truth)))["accuracy"]
    assert 4 < needed < 12
    assert right == pytest.approx(0.9, abs=0.05)


def test_a_target_reached_already_needs_no_labels(opinions):
    plan = at.plan_labels(opinions, "accuracy", 0.1)
    assert plan.evenly == LabelsNeeded(0.0, 0.0, 0.0, plan.evenly.reached)
    assert "reached already" in plan.summary()


def test_a_target_out_of_reach_is_reported(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=10, n_categories=4)
    plan = at.plan_labels(labels, "accuracy", 0.999)
    assert plan.evenly.per_item is None
    assert plan.total_labels(plan.evenly) is None
    assert plan.evenly.reached < 0.999
    assert "out of reach, 60 more labels per item give 0." in plan.summary()
    assert "these annotators cannot reach it" in plan.summary()


def test_a_plan_that_needs_more_annotators_says_so(opinions):
    summary = at.plan_labels(opinions, "score", 0.4).summary()
    assert "that takes more people than these 40" in summary


def test_the_same_seed_gives_the_same_plan(opinions):
    one, two, other = (at.plan_labels(opinions, "hellinger", 0.15, seed=s) for s in (3, 3, 4))
    assert one.evenly == two.evenly
    assert one.advised == two.advised
    assert one.evenly != other.evenly


@pytest.mark.parametrize(
    ("target", "value", "text"),
    [
        (
            "speed",
            1,
            "unknown target 'speed': choose accuracy, hellinger, score; for comparisons, tau or score",
        ),
        ("accuracy", 1.0, "target accuracy is 1: give a number above 0 and below 1"),
        ("accuracy", 0.0, "above 0 and below 1"),
        ("hellinger", float("nan"), "target hellinger is nan"),
        ("score", 4.0, "target score is 4: give a number above 0 and below 4"),
        ("accuracy", "high", "accuracy is 'high': give a number"),
    ],
)
def test_a_target_out_of_range_is_refused(opinions, target, value, text):
    with pytest.raises(at.InputError, match=text):
        at.plan_labels(opinions, target, value)


def test_classes_without_order_have_no_scores(classes):
    labels, _ = classes(1, per_item=3, items=20)
    with pytest.raises(at.InputError, match="the target score needs an ordinal scale"):
        at.plan_labels(labels, "score", 0.5)


def test_expected_measures_are_martingales_under_simulation(classes, monkeypatch):
    """The weight of the first top class keeps its mean: simulated labels follow the posterior."""
    labels, _ = classes(2, per_item=3)
    basis = basis_of(at.fit(labels))
    basis.classes = replace(basis.classes, label_weight=1.0)
    for advised in (False, True):
        top = []

        def weight_of_the_first_top(items, top=top):
            weights = items.posterior.weights
            top.append(weights.argmax(axis=1))
            return np.take_along_axis(weights, top[0][:, np.newaxis], axis=1)[:, 0]

        monkeypatch.setattr(SimulatedClasses, "measure", weight_of_the_first_top)
        weights = planning._simulated_rounds(
            *(basis, advise(basis.fit, basis=basis), "accuracy", np.random.default_rng(0)),
            advised=advised,
        )
        assert weights[-1].mean() == pytest.approx(weights[0].mean(), abs=0.02)
        assert weights[-1].var() > 1.2 * weights[0].var()


def test_labels_that_count_less_are_needed_in_greater_number(opinions):
    fit = at.fit(opinions)
    needed = []
    for weight in (1.0, 0.3):
        basis = basis_of(fit)
        basis.classes = replace(basis.classes, label_weight=weight)
        items = planning.simulate(basis, "hellinger", np.ones(40, bool), np.random.default_rng(0))
        for _ in range(5):
            items.label(np.arange(1000), np.random.default_rng(1).integers(40, size=1000))
        needed.append(items.measure().mean())
    assert needed[1] > 1.1 * needed[0]


def test_a_score_is_never_more_certain_than_within_a_class(opinions):
    basis = basis_of(at.fit(opinions))
    items = planning.simulate(basis, "score", np.ones(40, bool), np.random.default_rng(0))
    shapes = basis.classes.opinions
    items.posterior = ItemPosterior(np.eye(len(shapes)), shapes, None)
    np.testing.assert_allclose(items.measure(), 1.96 * (4 / N_MEANS) / np.sqrt(12), rtol=1e-3)


@pytest.mark.parametrize(("goal", "labels"), [(0.0, 0.0), (0.5, 0.5), (1.5, 1.25), (4.0, np.inf)])
def test_labels_are_interpolated_between_two_rounds(goal, labels):
    assert planning._crossing(np.array([0.0, 1.0, 3.0]), goal) == labels


DISTRIBUTIONS = ["majority", "gpm", "dawid-skene", "glad", "ordinal-binary", "ordinal-mixture"]


@pytest.mark.parametrize("model", DISTRIBUTIONS)
@pytest.mark.parametrize("target", ["accuracy", "hellinger"])
def test_every_model_of_distributions_is_planned_with(opinions, model, target):
    fit = at.fit(opinions, model)
    now = at.plan_labels(fit, target, 0.5).now
    better = now + (1.0 - now) / 4 if target == "accuracy" else now / 1.3
    plan = at.plan_labels(fit, target, better)
    assert plan.advised.per_item > 0
    assert 0 < plan.evenly.per_item < 60


@pytest.mark.parametrize("model", [name for name in MODELS if name != "robust-gpm"])
def test_every_model_plans_scores(opinions, model):
    fit = at.fit(opinions, model)
    now = at.plan_labels(fit, "score", 0.01).now
    # The standard error falls with the root of the number of labels.
    plan = at.plan_labels(fit, "score", now / 2)
    assert 4 < plan.evenly.per_item < 30


def test_the_expected_distance_of_serious_opinions_is_the_real_one():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(5, 0.2), size=300)
    rows = [(e, s, int(rng.choice(5, p=truth[e]))) for e in range(300) for s in range(8)]
    fit = at.fit(rows, "majority", categories=list(range(5)))
    shares = 0.2 / 9 + fit.distribution.dense(5) * 8 / 9  # with the prior of one label
    real = at.metrics.hellinger(truth, shares).mean()
    assert at.plan_labels(fit, "hellinger", 0.1).now == pytest.approx(real, rel=0.1)


@pytest.mark.parametrize("target", ["accuracy", "hellinger"])
def test_models_of_scores_refuse_targets_of_distributions(opinions, target):
    with pytest.raises(
        at.InputError, match="mean estimates scores, not distributions: choose the tar"
    ):
        at.plan_labels(at.fit(opinions, "mean"), target, 0.5)


def test_the_plan_has_the_advice_for_the_next_round(opinions):
    fit = at.fit(opinions)
    plan, advice = at.plan_labels(fit, "hellinger", 0.15), at.next_labels(fit)
    assert plan.to_dict()["next"] == advice.to_dict()
    assert plan.summary().endswith("\n".join(advice.summary().splitlines()[1:]))
