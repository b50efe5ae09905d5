"""RobustGPM: its bound, what it finds, and what it refuses."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import annotruth as at
from annotruth import metrics, simulate
from annotruth.engines import get_engine
from annotruth.labels import Labels, Scale
from annotruth.models.robust_gpm.annotator_confusion import OwnRows
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.models.robust_gpm.results import wider
from annotruth.models.robust_gpm.steps import Classes, Opinions, Rows
from annotruth.models.robust_gpm.strategies import KINDS, strategies_of


def fitted(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        return RobustGPM(**options).fit(data).result_


def objectives(steps, start, n_steps=12):
    found, at_ = [], start
    for _ in range(n_steps):
        at_, monitor = steps.step(at_)
        found.append(monitor.objective)
    return at_, np.diff(found)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), categories=st.integers(1, 6), gold=st.booleans())
def test_every_round_rises(make_labels, seed, categories, gold):
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
    session = get_engine("memory").open(labels)
    opinions = Opinions(labels, session)
    assert objectives(opinions, opinions.start())[1].min() > -1e-10
    classes = Classes(labels, session)
    found, rises = objectives(classes, classes.start())
    assert rises.min() > -1e-10
    own = OwnRows(classes, found)
    assert objectives(own, own.start())[1].min() > -1e-10


@pytest.mark.parametrize(
    ("behavior", "plcc", "rmse"),
    [
        ("random", 0.92, 0.13),
        ("repeated", 0.95, 0.09),
        ("inverted", 0.94, 0.10),
        ("mixed", 0.93, 0.11),
    ],
)
def test_reliability_is_found_whatever_the_behavior(behavior, plcc, rmse):
    found = []
    for seed in range(4):
        made = simulate.crowd(behavior=behavior, mixing="annotator", seed=seed)
        fit, gpm = fitted(made.labels), at.fit(made.labels, "gpm", tol=0.01)
        shapes = [
            metrics.hellinger(made.distribution, f.distribution.dense(5)).mean() for f in (fit, gpm)
        ]
        found.append(
            (
                metrics.plcc(made.reliability, fit.reliability),
                metrics.rmse(made.reliability, fit.reliability),
                shapes[0] / shapes[1],
            )
        )
    correlation, error, ratio = np.mean(found, axis=0)
    assert correlation > plcc
    assert error < rmse
    assert ratio < 0.7


def test_behaviors_have_names():
    made = simulate.crowd(behavior="mixed", mixing="annotator", spammer_share=0.4, seed=2)
    fit = fitted(made.labels)
    sure = np.flatnonzero((fit.reliability < 0.35) & (made.reliability < 0.35))
    assert len(sure) >= 4
    right = 0
    for s in sure:
        kind = made.behavior[s]
        wanted = f"repeated {made.repeated_label[s] + 1}" if kind == "repeated" else kind
        right += fit.behavior[s] == wanted
    assert right >= len(sure) - 1
    assert {fit.behavior[s] for s in np.flatnonzero(fit.reliability >= 0.5)} == {"serious"}


def test_few_labels_do_not_hide_spammers():
    # 300 items with 4 labels: GPM finds nobody.
    made = simulate.gaussian(
        n_items=300, labels_per_item=4, behavior="random", gamma="scale", precision="item", seed=3
    )
    opinions = simulate.gaussian(n_items=300, labels_per_item=4, behavior="random", seed=3)
    for crowd in (made, opinions):
        fit = fitted(crowd.labels)
        far = crowd.reliability < 0.35
        assert fit.reliability[far].mean() < fit.reliability[~far].mean() - 0.2
        assert at.fit(crowd.labels, "gpm", tol=0.01).n_spammers <= 1


def test_the_labels_tell_one_truth_from_opinions():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=200)
    item, annotator = np.divmod(np.arange(200 * 6), 6)
    right = rng.random(1200) < 0.8
    label = np.where(right, truth[item], rng.integers(4, size=1200))
    one = Labels.from_codes(
        item,
        annotator,
        label,
        items=list(range(200)),
        annotators=list(range(6)),
        scale=Scale.ordinal([1, 2, 3, 4]),
    )
    session = get_engine("memory").open(one)
    classes = Classes(one, session)
    assert classes.neighbours(objectives(classes, classes.start())[0]) < 0.5
    assert (fitted(one).label == truth).mean() > 0.9
    crowd = simulate.crowd(seed=1).labels
    classes = Classes(crowd, get_engine("memory").open(crowd))
    assert classes.neighbours(objectives(classes, classes.start())[0]) > 0.5


def test_ways_are_distributions():
    serious = np.random.default_rng(0).dirichlet(np.ones(4), (3, 6)).transpose(0, 2, 1)
    ways = strategies_of(serious, np.array([0.2, 0.5, 0.3]), ordinal=True)
    # Summed over labels, one of which is the repeated one.
    total = ways.plain.sum(axis=1) - ways.plain[:, 1] + ways.repeating[:, 1]
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)
    # The kinds that repeat leave out the other labels, so weights sum to less than the labels'.
    assert np.exp(ways.log_prior(0.4)).sum() == pytest.approx(1.0)


def test_intervals_hold_the_estimates():
    made = simulate.crowd(n_items=60, labels_per_item=5, seed=4)
    fit = fitted(made.labels, truth="opinions")
    assert (fit.low <= fit.reliability).all()
    assert (fit.reliability <= fit.high).all()
    columns = fit.item_columns
    assert ((columns["score_low"] >= 1) & (columns["score_high"] <= 5)).all()
    inside = (columns["score_low"] <= made.score) & (made.score <= columns["score_high"])
    assert inside.mean() > 0.85


def test_a_known_truth_is_certain():
    made = simulate.crowd(n_items=30, seed=5)
    for truth in ("class", "opinions"):
        labels = made.labels.with_gold(pd.DataFrame({"item": [1, 2], "label": [4, 1]}))
        fit = fitted(labels, truth=truth)
        np.testing.assert_array_equal(fit.label[:2], [3, 0])
        np.testing.assert_array_equal(fit.distribution.confidence()[:2], 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truth": "both"}, "unknown truth 'both'"),
        ({"truth": "opinions"}, "needs an ordinal scale"),
    ],
)
def test_bad_options_are_refused(options, message):
    data = [("a", "ann", "cat"), ("a", "bob", "dog")]
    with pytest.raises(at.InputError, match=message):
        RobustGPM(**options).fit(data)


@pytest.mark.parametrize(("behavior", "per_item"), [("random", None), ("inverted", 5)])
def test_intervals_hold_the_truth_as_often_as_they_say(behavior, per_item):
    reliabilities, scores = [], []
    for seed in range(12):
        made = simulate.crowd(behavior=behavior, labels_per_item=per_item, seed=500 + seed)
        fit = at.fit(made.labels, "robust-gpm")
        reliabilities.extend((fit.low <= made.reliability) & (made.reliability <= fit.high))
        columns = fit.item_columns
        scores.extend((columns["score_low"] <= made.score) & (made.score <= columns["score_high"]))
    # 300 reliabilities and 1,800 scores: three standard errors around 93 to 97%.
    assert 0.89 < np.mean(reliabilities) < 0.995
    assert 0.91 < np.mean(scores) < 0.985


def test_who_may_be_inverted_widens_every_items_interval():
    data = [("a", "ann", 1), ("b", "ann", 2), ("c", "ann", 3), ("a", "bob", 1)]
    labels = Labels.of(data, scale="ordinal")
    steps = Opinions(labels, get_engine("memory").open(labels))
    ways = steps.ways(steps.start().serious)
    always = int(np.flatnonzero((ways.eps == 0.995) & (ways.shift == 2))[0])
    turned = int(np.flatnonzero((ways.eps == 0.05) & (ways.kind == KINDS.index("inverted")))[0])
    weights = np.zeros((2, len(ways.eps)))
    weights[0, always] = weights[1, turned] = 1.0
    assert wider(steps, weights, ways) == pytest.approx(np.sqrt(1.1))
    # Bob, with one label of four, inverts 19 of 20 labels or none.
    weights[1, [always, turned]] = 0.5
    serious = (3 * 0.995 + (0.995 + 0.05) / 2) / 4
    expected = 1.1 + 29 * (0.95 / 2) ** 2 / 4 / serious**2
    assert wider(steps, weights, ways) == pytest.approx(np.sqrt(expected))
    classes = Classes(labels, get_engine("memory").open(labels))
    assert wider(classes, weights, ways) == pytest.approx(np.sqrt(1.12 + 7.5 * 2 / 4))


def test_the_prior_of_the_kinds_is_counted(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=30, n_annotators=6, n_categories=3)
    session = get_engine("memory").open(labels)
    steps = Classes(labels, session)
    begin = steps.start()
    rates = steps.rates(begin, steps.ways(begin.serious))
    kinds = steps.counted(Rows(begin.prior, rates))[0].kinds
    assert kinds.sum() == pytest.approx(labels.n_items)
    after, _ = steps.step(begin)
    np.testing.assert_allclose(after.prior, (kinds + 0.5) / (kinds + 0.5).sum())


def test_a_category_may_be_called_what_a_column_is():
    rows = [(e, s, ("leads", "x")[e * s % 2]) for e in range(6) for s in range(4)]
    found = at.fit(rows)
    table, shares = found.item_table(), found.distribution.dense(2)
    np.testing.assert_array_equal(table["p_leads"], found.item_columns["p_leads"])
    np.testing.assert_array_equal(table["p_leads_"], shares[:, 0])
    np.testing.assert_array_equal(table["p_x"], shares[:, 1])
