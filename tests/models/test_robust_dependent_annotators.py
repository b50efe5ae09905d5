"""RobustGPM where annotators' labels depend on one another: pairs are found, intervals are wider."""

from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import annotruth as at
from annotruth import simulate
from annotruth.engines import get_engine
from annotruth.models.evidence import dependent_annotators
from annotruth.models.evidence.dependent_annotators import (
    DependentPairs,
    adjusted_p_values,
    find_dependent_pairs,
)
from annotruth.models.robust_gpm import opinion_model
from annotruth.models.robust_gpm.opinion_model import OpinionState, final_model
from annotruth.models.robust_gpm.opinions import OpinionShapes, OpinionSteps
from annotruth.observations import Labels

COPIED = 0.6


def with_copies(seed, n_annotators=14, **options):
    """Return votes in which the second annotator copies most of the first one's labels."""
    labels = simulate.crowd(n_annotators=n_annotators, seed=seed, **options).labels
    given = labels.category_of_label().reshape(labels.n_items, -1)
    annotator = labels.annotator.reshape(given.shape)
    given = np.take_along_axis(given, np.argsort(annotator, axis=1), axis=1)
    copied = np.random.default_rng(seed).random(labels.n_items) < COPIED
    given[copied, 1] = given[copied, 0]
    item, annotator = (codes.ravel() for codes in np.indices(given.shape))
    return Labels.of(pd.DataFrame({"item": item, "annotator": annotator, "label": given.ravel()}))


def pairs_of(labels, **changed):
    """Return the dependent pairs of the fitted labels, with some of the latent classes changed."""
    classes = final_model(labels, OpinionState.from_fit(at.fit(labels))).classes
    tables = {name: getattr(classes, name) for name in ("prior", "known_truth", "confusion")}
    with closing(get_engine("memory").open(labels)) as session:
        return find_dependent_pairs(session, labels, **tables | changed)


def made_pairs(labels, *pairs):
    """Return dependent pairs, with half of their labels copied."""
    one, other = np.array(pairs).T
    number = np.full(len(pairs), 20.0)
    return DependentPairs(labels, 10, one, other, number, 0.75 * number, 0.5 * number, number / 1e4)


@pytest.mark.parametrize("seed", range(3))
def test_copied_labels_are_found(seed):
    pairs = pairs_of(with_copies(seed))
    assert (pairs.annotator.tolist(), pairs.other.tolist()) == ([0], [1])
    assert np.argwhere(pairs.depends()).tolist() == [[0, 1], [1, 0]]
    assert pairs.n_tested == 14 * 13 / 2
    assert pairs.correlation[0] == pytest.approx(COPIED, abs=0.12)
    assert pairs.design_effect == pytest.approx(1.0 + 2.0 * pairs.correlation[0] / 14)
    assert pairs.p_value[0] < 0.05


@pytest.mark.parametrize("behavior", ["random", "repeated", "inverted", "mixed"])
def test_annotators_who_do_not_copy_are_independent(behavior):
    pairs = pairs_of(simulate.crowd(n_annotators=14, behavior=behavior, seed=1).labels)
    assert pairs.n_tested == 14 * 13 / 2
    assert len(pairs.annotator) == 0


def test_what_the_model_does_not_explain_about_anybody_is_no_dependence():
    labels = simulate.crowd(n_annotators=14, seed=1).labels
    even = np.full((14, 5, 32), 1 / 5)  # everybody agrees more often than that
    assert len(pairs_of(labels, confusion=even).annotator) == 0


def test_p_values_are_adjusted_for_the_number_of_pairs():
    common = np.full(5, 20.0)
    same = np.array([10.0, 10.0, 10.0, 10.0, 18.0])
    score = stats.norm.isf(stats.binom.sf(same - 1.0, 20, 0.5))
    expected = 5 * stats.norm.sf(score[4] - score[0])
    p_values = adjusted_p_values(same, common / 2, common)
    assert p_values == pytest.approx([1.0, 1.0, 1.0, 1.0, expected])


@pytest.mark.parametrize(("n_items", "n_tested"), [(9, None), (10, 1)])
def test_few_common_items_say_nothing(n_items, n_tested):
    labels = Labels.of([(item, who, item % 5 + 1) for item in range(n_items) for who in "ab"])
    tables = {"prior": np.ones(1), "known_truth": np.ones((6, 1))}
    with closing(get_engine("memory").open(labels)) as session:
        pairs = find_dependent_pairs(
            session, labels, **tables, confusion=np.full((2, len(labels.scale), 1), 0.2)
        )
    assert (pairs and pairs.n_tested) == n_tested


@pytest.mark.parametrize("limit", ["MAX_ANNOTATORS", "_MAX_COMMON"])
def test_very_many_labels_are_not_compared(monkeypatch, limit):
    labels = with_copies(0, n_annotators=8)
    assert pairs_of(labels) is not None
    monkeypatch.setattr(dependent_annotators, limit, 7)
    assert pairs_of(labels) is None


def test_groups_hold_nobody_with_those_they_depend_on():
    labels = simulate.crowd(n_items=20, n_annotators=5).labels
    pairs = made_pairs(labels, (0, 1), (1, 2), (0, 2), (2, 3))
    groups = list(pairs.independent_groups())
    assert np.sum(groups, axis=0).tolist() == [1, 1, 1, 1, 0]
    for group in groups:
        assert not pairs.depends()[np.ix_(group, group)].any()


def test_dependent_annotators_are_left_out_together():
    labels = with_copies(2, n_annotators=8, n_items=60)
    pairs = made_pairs(labels, (1, 4))
    parameters = OpinionState.from_fit(at.fit(labels)).parameters
    with closing(get_engine("reference").open(labels)) as session:
        steps = OpinionSteps(OpinionShapes(labels), session)
        alone = steps.leave_one_out(parameters)
        together = opinion_model._leave_out_together(steps, parameters, alone, pairs)
    others = np.delete(np.arange(8), [1, 4])
    np.testing.assert_array_equal(together[others], alone[others])
    for annotator, left_out in ((1, 4), (4, 1)):
        rows = np.delete(np.arange(8), left_out)
        kept = labels.annotator != left_out
        fewer = Labels.from_codes(
            labels.item_of_label()[kept],
            np.searchsorted(rows, labels.annotator[kept]),
            labels.category_of_label()[kept],
            items=labels.items,
            annotators=labels.annotators.take(rows),
            scale=labels.scale,
        )
        some = parameters._replace(strategy_weights=parameters.strategy_weights[rows])
        with closing(get_engine("reference").open(fewer)) as session:
            fewer_steps = OpinionSteps(OpinionShapes(fewer), session)
            fewer_steps._repeated_label = steps.repeated_label[rows]
            expected = fewer_steps.leave_one_out(some)
        np.testing.assert_allclose(
            together[annotator], expected[rows.tolist().index(annotator)], rtol=1e-10
        )


def test_copies_make_intervals_wider_and_change_no_estimate(monkeypatch):
    labels = with_copies(1)
    now = at.fit(labels)
    effect = pairs_of(labels).design_effect
    monkeypatch.setattr(opinion_model, "find_dependent_pairs", lambda *_, **__: None)
    without = at.fit(labels)
    assert now.reliability.tolist() == without.reliability.tolist()
    values = labels.scale.values
    score = without.distribution.expectation(values)
    assert (now.distribution.expectation(values) == score).all()
    width, narrower = (fit.high - fit.low for fit in (now, without))
    assert (width[:2] > narrower[:2]).all()
    assert width[2:] == pytest.approx(narrower[2:], abs=0.03)  # by shares of levels
    low, lower = (fit.item_columns["score_low"] for fit in (without, now))
    inside = lower > values[0]
    ratio = (score - lower)[inside] / (score - low)[inside]
    assert ratio == pytest.approx(np.sqrt(effect))
