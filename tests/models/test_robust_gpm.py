"""RobustGPM: its lower bound, its estimates, its stages and what it refuses."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.fitting import fitted

import annotruth as at
from annotruth import metrics, simulate
from annotruth.engines import get_engine
from annotruth.engines.memory import MemorySession
from annotruth.models.latent_classes import variance_inflation
from annotruth.models.robust_gpm import pooling
from annotruth.models.robust_gpm.annotators import AnnotatorPosterior
from annotruth.models.robust_gpm.class_steps import ClassSteps
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.models.robust_gpm.opinions import OpinionShapes, OpinionSteps, adjacent_ratio
from annotruth.models.robust_gpm.pooling import has_room
from annotruth.models.robust_gpm.states import TrueClasses
from annotruth.observations import Labels

fit_robust = partial(fitted, "robust-gpm")


def run_steps(steps, start, n_steps=12):
    """Return the parameters after some steps, and by how much each raised the objective."""
    parameters, objectives = start, []
    for _ in range(n_steps):
        parameters, monitor = steps.step(parameters)
        objectives.append(monitor.objective)
    return parameters, np.diff(objectives)


def class_steps(labels):
    session = get_engine("memory").open(labels)
    session.allocate("fold", per="labels")
    return ClassSteps(TrueClasses(labels), session)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), categories=st.integers(1, 6), gold=st.booleans())
def test_every_step_raises_the_objective(make_labels, seed, categories, gold):
    rng = np.random.default_rng(seed)
    labels = make_labels(
        rng,
        n_items=int(rng.integers(1, 25)),
        n_annotators=int(rng.integers(1, 10)),
        n_categories=categories,
        density=rng.uniform(0.1, 1.0),
    )
    if gold:
        labels.known[0] = 0
    opinions = OpinionSteps(OpinionShapes(labels), get_engine("memory").open(labels))
    assert run_steps(opinions, opinions.start())[1].min() > -1e-10


@pytest.mark.parametrize(
    ("behavior", "plcc", "rmse"),
    [
        ("random", 0.92, 0.13),
        ("repeated", 0.95, 0.09),
        ("inverted", 0.94, 0.10),
        ("mixed", 0.93, 0.11),
    ],
)
def test_reliability_is_estimated_for_every_behavior(behavior, plcc, rmse):
    scores = []
    for seed in range(4):
        crowd = simulate.crowd(behavior=behavior, mixing="annotator", seed=seed)
        fit, gpm = fit_robust(crowd.labels), at.fit(crowd.labels, "gpm", tol=0.01)
        distances = [
            metrics.hellinger(crowd.distribution, f.distribution.dense(5)).mean()
            for f in (fit, gpm)
        ]
        scores.append(
            (
                metrics.plcc(crowd.reliability, fit.reliability),
                metrics.rmse(crowd.reliability, fit.reliability),
                distances[0] / distances[1],
            )
        )
    correlation, error, ratio = np.mean(scores, axis=0)
    assert correlation > plcc
    assert error < rmse
    assert ratio < 0.7


def test_few_labels_per_item_do_not_hide_spammers():
    # 300 items with 4 labels each: GPM finds no spammer.
    one_truth = simulate.gaussian(
        n_items=300, labels_per_item=4, behavior="random", gamma="scale", seed=3
    )
    opinions = simulate.gaussian(n_items=300, labels_per_item=4, behavior="random", seed=3)
    for crowd in (one_truth, opinions):
        fit = fit_robust(crowd.labels)
        spammers = crowd.reliability < 0.35
        assert fit.reliability[spammers].mean() < fit.reliability[~spammers].mean() - 0.2
        assert at.fit(crowd.labels, "gpm", tol=0.01).n_spammers <= 1


def test_labels_decide_between_one_truth_and_opinions():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=200)
    item, annotator = np.divmod(np.arange(200 * 6), 6)
    right = rng.random(1200) < 0.8
    label = np.where(right, truth[item], rng.integers(4, size=1200))
    rows = list(zip(item.tolist(), annotator.tolist(), (label + 1).tolist(), strict=True))
    one_truth, few_items = (Labels.of(rows[:n], scale="ordinal") for n in (1200, 72))
    opinions = simulate.crowd(seed=1).labels
    ratios = []
    for labels in (one_truth, opinions):
        steps = class_steps(labels)
        parameters, _ = run_steps(steps, steps.start())
        ratios.append(steps.items.max_adjacent_ratio(parameters))
    assert ratios[0] < 0.5 < ratios[1]
    fits = fit_robust(one_truth), fit_robust(opinions)
    assert [fit.readout for fit in fits] == ["right", "opinion"]
    assert (fits[0].label == truth).mean() > 0.9
    # Of a few items one cannot tell, and takes a scale for a scale.
    assert fit_robust(few_items).readout == "opinion"


def test_a_known_truth_is_certain():
    crowd = simulate.crowd(n_items=30, seed=5)
    for truth in ("class", "opinions"):
        labels = crowd.labels.with_gold(pd.DataFrame({"item": [1, 2], "label": [4, 1]}))
        fit = fit_robust(labels, truth=truth)
        np.testing.assert_array_equal(fit.label[:2], [3, 0])
        np.testing.assert_array_equal(fit.distribution.confidence()[:2], 1.0)


def test_too_many_categories_are_refused_where_they_cannot_be_merged():
    rows = [(e, s, f"category {e}") for e in range(129) for s in "xy"]
    message = "they have 129 categories, and it takes at most 128; merge categories, or choose"
    with pytest.raises(at.InputError, match=message):
        RobustGPM().without_pooling().fit(rows)


def test_a_model_that_replaces_the_default_is_named_first_and_does_not_reassure(monkeypatch):
    rows = [(e, s, "abc"[e % 3]) for e in range(12) for s in "xyz"]
    monkeypatch.setattr(pooling, "MAX_BYTES", 10.0)
    with pytest.warns(at.AnnotruthWarning, match="too many for robust-gpm: gpm was fitted"):
        fit = at.fit(rows)
    assert fit.model == "gpm"
    first, *others = fit.summary().splitlines()
    assert first.startswith("WARNING: ")
    assert "3 annotators and 3 categories are too many for robust-gpm: gpm was fitted" in first
    assert "reliability" not in "".join(others)
    assert fit.to_dict()["chosen"]["instead_of"] == "robust-gpm"


def test_tables_beyond_the_memory_limit_are_refused(monkeypatch):
    rows = [("a", "ann", "cat"), ("a", "bob", "dog")]
    assert has_room(Labels.of(rows))
    monkeypatch.setattr(pooling, "MAX_BYTES", 8 * 8 * 2 * 2 * 2 - 1)
    message = "its tables of 2 annotators x 2 categories would take 0.0 GB, and the limit is 0 GB"
    with pytest.raises(at.InputError, match=message):
        RobustGPM().fit(rows)


@pytest.mark.parametrize(("behavior", "per_item"), [("random", None), ("inverted", 5)])
def test_intervals_have_their_nominal_coverage(behavior, per_item):
    reliabilities, scores = [], []
    for seed in range(12):
        crowd = simulate.crowd(behavior=behavior, labels_per_item=per_item, seed=500 + seed)
        fit = at.fit(crowd.labels, "robust-gpm")
        reliabilities.extend((fit.low <= crowd.reliability) & (crowd.reliability <= fit.high))
        columns = fit.item_columns
        assert ((columns["score_low"] >= 1) & (columns["score_high"] <= 5)).all()
        scores.extend(
            (columns["score_low"] <= crowd.score) & (crowd.score <= columns["score_high"])
        )
    # 300 reliabilities and 1,800 scores: three standard errors around 93 to 97%.
    assert 0.89 < np.mean(reliabilities) < 0.995
    assert 0.91 < np.mean(scores) < 0.985


@pytest.mark.parametrize("seed", range(3))
def test_opinions_on_few_categories_are_no_classes(seed):
    crowd = simulate.crowd(
        n_items=1000,
        n_annotators=40,
        n_categories=3,
        labels_per_item=4,
        behavior="inverted",
        mixing="annotator",
        seed=seed,
    )
    assert fit_robust(crowd.labels).readout == "opinion"


@pytest.mark.parametrize("n_categories", [1, 2])
def test_opinions_need_three_categories(n_categories):
    rows = [(e, s, 1 + (e * s) % n_categories) for e in range(30) for s in range(6)]
    fit = fit_robust(Labels.of(rows, scale="ordinal"))
    assert (fit.data.n_categories, fit.readout) == (n_categories, "right")


def test_adjacent_labels_of_shapes_are_fewer_on_short_scales():
    ratios = [adjacent_ratio(n) for n in (3, 4, 5, 7)]
    assert ratios[0] > 0.0
    assert ratios == sorted(ratios)


def test_uncertainty_about_inversion_inflates_the_variance_of_all_items():
    rows = [("a", "ann", 1), ("b", "ann", 2), ("c", "ann", 3), ("a", "bob", 1)]
    labels = Labels.of(rows, scale="ordinal")
    items = OpinionShapes(labels)
    strategies = items.strategies
    names = [behavior.name for behavior in strategies.behaviors]
    always = np.flatnonzero(strategies.always_serious & (strategies.shift == 2))[0]
    is_inverted = strategies.behavior == names.index("inverted")
    inverted = np.flatnonzero(is_inverted & (strategies.reliability == 0.05))[0]
    impossible = -1e3
    loo = np.full((2, strategies.n_strategies), impossible)
    loo[0, always] = loo[1, inverted] = 0.0
    flat = np.zeros(strategies.n_strategies)
    posterior = AnnotatorPosterior(labels, strategies, flat, loo)
    sure = (
        posterior.tempering,
        items.variance_inflation(posterior),
        items.share_inflation(posterior),
    )
    assert sure[0] < 1.0  # the variances of reliabilities are inflated in any case
    assert min(sure[1:]) >= 1.0
    # Bob, with one label of four, inverts 19 of 20 labels or none.
    loo[1, [always, inverted]] = 0.0
    posterior = AnnotatorPosterior(labels, strategies, flat, loo)
    assert posterior.tempering < sure[0]
    assert items.variance_inflation(posterior) > sure[1]
    assert items.share_inflation(posterior) > sure[2]


def test_variances_grow_as_annotators_have_fewer_labels():
    many, few = (Labels.of([(e, s, e % 2) for e in range(n) for s in range(4)]) for n in (50, 5))
    assert variance_inflation(few) > variance_inflation(many) > 1.0


@pytest.mark.parametrize("truth", ["class", "opinions"])
def test_latent_classes_need_no_pass_over_the_labels(truth, tmp_path, monkeypatch):
    crowd = simulate.crowd(n_items=30, n_annotators=8, seed=0)
    model = RobustGPM(truth=truth).fit(crowd.labels)
    expected = model.latent_classes()
    model.result_.save(tmp_path / "fit")

    def refuse(*_, **__):
        raise AssertionError("a pass over the labels")

    monkeypatch.setattr(MemorySession, "run_pass", refuse)
    loaded = RobustGPM(truth=truth).load_fit(at.load(tmp_path / "fit")).latent_classes()
    n_classes = 5 if truth == "class" else OpinionShapes(crowd.labels).n_classes
    assert loaded.opinions.shape == (n_classes, 5)
    assert loaded.one_truth is (truth == "class")
    for name in ("prior", "known_truth", "confusion", "opinions", "score_inflation"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(expected, name))
    np.testing.assert_allclose(loaded.confusion.sum(axis=1), 1.0)


def test_stored_parameters_keep_their_names():
    # Saved fits are read by these names.
    rows = [(e, s, e % 2) for e in range(6) for s in "xyz"]
    assert fit_robust(rows, truth="class").parameters.keys() == {
        *("state_prior", "serious", "strategy_prior", "counts", "pseudo_counts"),
        *("choice", "loo_log_likelihood", "repeated_label"),
    }
    ordinal = Labels.of(rows, scale="ordinal")
    names = {"weights", "prior", "always", "support", "repeated"}
    assert fit_robust(ordinal, truth="opinions").parameters.keys() == names


def test_a_category_may_have_the_name_of_a_column():
    rows = [(e, s, ("leads", "x")[e * s % 2]) for e in range(6) for s in range(4)]
    fit = at.fit(rows)
    table, shares = fit.item_table(), fit.distribution.dense(2)
    np.testing.assert_array_equal(table["p_leads"], fit.item_columns["p_leads"])
    np.testing.assert_array_equal(table["p_leads_"], shares[:, 0])
    np.testing.assert_array_equal(table["p_x"], shares[:, 1])


def slider_votes(rng, *, n_items=120, n_annotators=25, per_item=6):
    """Votes on a scale of 0 to 100 with biases and unequal noise, and the true scores."""
    score = rng.uniform(10, 90, n_items)
    bias, noise = rng.normal(0, 6, n_annotators), rng.uniform(3, 20, n_annotators)
    item = np.repeat(np.arange(n_items), per_item)
    who = np.concatenate([rng.permutation(n_annotators)[:per_item] for _ in range(n_items)])
    vote = score[item] + (bias - bias.mean())[who] + noise[who] * rng.normal(size=len(item))
    return item, who, np.clip(np.round(vote), 0, 100), score


def test_long_scales_are_no_worse_than_votes_less_biases():
    errors = []
    for seed in range(3):
        item, who, vote, score = slider_votes(np.random.default_rng(seed))
        deviation = vote - (np.bincount(item, vote) / np.bincount(item))[item]
        less_bias = vote - (np.bincount(who, deviation) / np.bincount(who))[who]
        plain = np.bincount(item, less_bias) / np.bincount(item)
        fit = at.fit(list(zip(item, who, vote, strict=True)), scale="ordinal", bins=20)
        errors.append([np.mean((s - score) ** 2) for s in (fit.expectation, plain)])
    ours, theirs = np.mean(errors, axis=0)
    assert ours < theirs


def test_shapes_are_narrower_on_long_scales():
    shapes = []
    for n in (2, 5, 8, 10, 40):
        labels = at.Labels.of([("a", "x", 1), ("b", "x", n)], categories=list(range(1, n + 1)))
        items = OpinionShapes(labels)
        n_shifts, n_categories, n_shapes = items.serious.shape
        assert (n_categories, n_shapes) == (n, items.n_classes)
        assert items.shifts[n_shifts // 2] == 0.0
        np.testing.assert_allclose(items.serious.sum(axis=1), 1.0)
        shapes.append((n_shifts, n_shapes))
    assert shapes[0] == shapes[1] == shapes[2] < shapes[3] < shapes[4]


def test_labels_of_chance_are_predicted_by_annotators_shares():
    rng = np.random.default_rng(0)
    rows = [
        (item, who, "a" if rng.random() < (0.9 if who < 3 else 0.2) else "b")
        for item in range(200)
        for who in range(6)
    ]
    model = RobustGPM().fit(rows)
    assert model.result_.verdict == "chance"
    item, annotator = np.repeat([0, 150], 6), np.tile(np.arange(6), 2)
    proba = model.predict_proba(item, annotator)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(proba[:6], proba[6:])  # whatever the item
    votes = np.array([[sum(r[1:] == (who, k) for r in rows) for k in "ab"] for who in range(6)])
    crowd = (votes.sum(axis=0) + 1.0) / (votes.sum() + 2.0)
    # Annotators differ, and one pseudo-count is the fewest of those that are compared.
    np.testing.assert_allclose(proba[:6], (votes + crowd) / 201.0)
    # Shares of alike annotators with few labels are nearly the crowd's.
    rows = [(item, 10 * item + s, "ab"[rng.integers(2)]) for item in range(150) for s in range(4)]
    rows = [(item, who % 97, label) for item, who, label in rows]
    model = RobustGPM().fit(rows)
    assert model.result_.verdict == "chance"
    assert np.abs(model.predict_proba(np.zeros(97, int), np.arange(97)) - 0.5).max() < 0.1
