"""What people are alerted to, each thing once, and whether agreement fell."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.serve.worker.conftest import make_events

import annotruth as at
from annotruth.analyses.advice.advice import advise
from annotruth.observations import Labels
from annotruth.observations.scale import Scale
from annotruth.serve.worker.alerting import (
    AgreementState,
    Alerted,
    find_agreement_change,
    find_alerts,
)


@pytest.fixture(scope="module")
def fit():
    events = make_events(n_items=60, n_annotators=8, per_item=7, accuracy=0.9)
    return at.fit([(each.item, each.annotator, each.label) for each in events], "robust-gpm")


@pytest.fixture(scope="module")
def plain(fit):
    """A fit of a model that judges people by their reliability."""
    return at.fit(fit.data, "gpm")


def with_reliability(fit, value, half_width):
    """Return the fit with the reliability of all annotators at one value."""
    n = fit.data.n_annotators
    values = {"reliability": value, "low": value - half_width, "high": value + half_width}
    columns = {name: np.full(n, number) for name, number in values.items()}
    return replace(fit, **columns, behavior=["serious"] * n)


def seq_of(fit):
    return np.arange(fit.data.n_labels)


def verdict_alerts(fit, reliabilities, half_width=0.1):
    """Return before and after of the alerts about one annotator, fit after fit."""
    alerted, found = Alerted(), []
    for value in reliabilities:
        now = with_reliability(fit, value, half_width)
        alerted, alerts = find_alerts(now, advise(now), seq_of(fit), alerted)
        name = fit.data.annotators[0].as_py()
        found += [
            (each.detail["before"], each.detail["verdict"])
            for each in alerts
            if (each.kind, each.subject) == ("verdict", name)
        ]
    return found


def test_a_verdict_is_reported_once(plain):
    assert verdict_alerts(plain, [0.9, 0.9, 0.3, 0.3, 0.3]) == [("keep", "drop")]


def test_a_first_verdict_is_reported_only_if_it_is_to_drop(plain):
    assert verdict_alerts(plain, [0.9, 0.9]) == []
    assert verdict_alerts(plain, [0.2, 0.2]) == [(None, "drop")]


def test_a_reliability_near_the_threshold_gives_no_alerts(plain):
    # The lower end of the interval crosses 0.5 again and again.
    assert verdict_alerts(plain, [0.62, 0.58, 0.62, 0.57, 0.61]) == []
    # So does the upper end after a verdict to drop.
    assert verdict_alerts(plain, [0.2, 0.38, 0.42, 0.38, 0.42]) == [(None, "drop")]


def test_a_reliability_beyond_the_threshold_gives_one_alert(plain):
    found = verdict_alerts(plain, [0.62, 0.48, 0.52, 0.48, 0.52, 0.62, 0.58])
    assert found == [("keep", "unsure"), ("unsure", "keep")]


def flag_alerts(fit, steps, growth=1):
    """Return before and after of the alerts about one annotator, given behaviors and probabilities.

    ``growth`` is how many times as many labels each fit has as the one before.
    """
    alerted, found = Alerted(), []
    n = fit.data.n_annotators
    for behavior, p_spammer in steps:
        columns = {
            "flagged": np.full(n, behavior == "random"),
            "p_spammer": np.full(n, p_spammer),
            "agreement": np.full(n, 0.9 if behavior == "serious" else 0.0),
        }
        now = replace(
            fit, behavior=[behavior] * n, annotator_columns={**fit.annotator_columns, **columns}
        )
        alerted, alerts = find_alerts(now, advise(now), seq_of(fit), alerted)
        held = {
            name: each._replace(since=each.since // growth, n_labels=each.n_labels // growth)
            for name, each in alerted.verdicts.items()
        }
        alerted = replace(alerted, verdicts=held)
        found += [
            (each.detail["before"], each.detail["verdict"])
            for each in alerts
            if each.subject == fit.data.annotators[0].as_py()
        ]
    return found


def test_a_flag_is_taken_back_once_people_are_rather_serious(fit):
    steps = [("serious", 0.0), ("random", 0.99), ("unclear", 0.7), ("random", 0.99)]
    assert flag_alerts(fit, steps) == []
    assert flag_alerts(fit, steps, growth=2) == [("keep", "drop")]
    after = flag_alerts(fit, [*steps, ("serious", 0.05)], growth=2)
    assert after == [("keep", "drop"), ("drop", "keep")]


def test_unclear_labels_change_no_verdict_to_keep(fit):
    assert flag_alerts(fit, [("serious", 0.0), ("unclear", 0.3), ("serious", 0.05)]) == []


def test_a_notice_without_new_labels_gives_no_alert(fit):
    assert flag_alerts(fit, [("serious", 0.0), ("low accuracy", 0.3), ("low accuracy", 0.3)]) == []


def test_models_without_intervals_have_a_margin_too(plain):
    alerted, n_alerts = Alerted(), []
    for value in (0.9, 0.51, 0.49, 0.51, 0.1, 0.49, 0.1):
        reliability = np.full(plain.data.n_annotators, value)
        now = replace(plain, reliability=reliability, low=None, high=None, behavior=None)
        alerted, alerts = find_alerts(now, advise(now), seq_of(plain), alerted)
        n_alerts.append(sum(each.kind == "verdict" for each in alerts))
    assert n_alerts == [0, 0, 0, 0, 8, 0, 0]


def test_items_are_reported_when_finished_and_only_then(fit):
    advice = advise(fit)
    first = find_alerts(fit, advice, seq_of(fit), Alerted())
    reported = [i for each in first[1] if each.kind == "finished" for i in each.detail["items"]]
    needs = advice.of_items.needs_labels
    assert 0 < len(reported) < fit.data.n_items
    assert set(reported) == set(fit.data.items.filter(~needs).to_pylist())
    again = find_alerts(fit, advice, seq_of(fit), first[0])
    assert again[1] == []


def finished(fit, status, alerted):
    """Return the items reported as finished if all have one status."""
    advice = advise(fit)
    statuses = np.full(fit.data.n_items, status)
    advice = replace(advice, of_items=replace(advice.of_items, status=statuses))
    alerted, alerts = find_alerts(fit, advice, seq_of(fit), alerted)
    return alerted, [i for a in alerts if a.kind == "finished" for i in a.detail["items"]]


def test_an_item_is_finished_again_only_after_labels_of_its_own(fit):
    alerted, items = finished(fit, "needs no more labels", Alerted())
    assert len(items) == 60
    alerted, _ = finished(fit, "needs labels", alerted)
    alerted, items = finished(fit, "divided", alerted)
    assert items == []
    name = fit.data.items[7].as_py()
    more = at.update(fit, [(name, "another annotator", fit.data.scale.categories[0].as_py())])
    alerted, _ = finished(more, "needs labels", alerted)
    alerted, items = finished(more, "needs no more labels", alerted)
    assert items == [name]


def test_no_item_is_finished_as_long_as_all_labels_are_equal():
    fit = at.fit([("a", "x", "yes"), ("a", "y", "yes"), ("b", "x", "yes")], "robust-gpm")
    assert find_alerts(fit, advise(fit), np.arange(3), Alerted())[1] == []


def test_what_was_reported_is_saved_and_loaded(fit, tmp_path):
    alerted, _ = find_alerts(fit, advise(fit), seq_of(fit), Alerted())
    alerted.save(tmp_path)
    loaded = Alerted.load(tmp_path)
    assert loaded.verdicts == alerted.verdicts
    assert loaded.agreement == alerted.agreement
    assert find_alerts(fit, advise(fit), seq_of(fit), loaded)[1] == []


def test_comparisons_have_alerts_of_verdicts_only():
    made = at.simulate.comparers(n_items=8, n_annotators=6, comparisons_per_annotator=60, seed=1)
    data = made.comparisons
    ids = {name: getattr(data, name).cast(pa.string()) for name in ("items", "annotators")}
    fit = at.rank(replace(data, **ids))
    alerted, alerts = find_alerts(fit, None, np.arange(360), Alerted())
    assert all(each.kind == "verdict" for each in alerts)
    assert find_alerts(fit, None, np.arange(360), alerted)[1] == []


def labels_in_order(seed, *, n_items=300, n_annotators=20, per_item=5, fall_at=None, shifts=False):
    """Item, annotator and label codes of a crowd; from some label on, all are less accurate."""
    rng = np.random.default_rng(seed)
    accuracy = rng.beta(8.0, 3.0, n_annotators)
    item = np.repeat(np.arange(n_items), per_item)
    annotator = np.concatenate(
        [rng.choice(n_annotators, per_item, replace=False) for _ in range(n_items)]
    )
    order = rng.permutation(len(item))
    if shifts:  # the most accurate half works first
        order = np.lexsort((order, accuracy[annotator] < np.median(accuracy)))
    item, annotator = item[order], annotator[order]
    right = accuracy[annotator]
    if fall_at is not None:
        right = right - 0.4 * (np.arange(len(item)) >= fall_at)
    truth = rng.integers(4, size=n_items)[item]
    label = np.where(rng.random(len(item)) < right, truth, rng.integers(4, size=len(item)))
    return item, annotator, label


def changes_found(codes, n_looks=25):
    state, found = AgreementState(), []
    for n in np.linspace(100, len(codes[0]), n_looks).astype(int):
        item, annotator, label = (column[:n] for column in codes)
        _, item = np.unique(item, return_inverse=True)
        _, annotator = np.unique(annotator, return_inverse=True)
        labels = Labels.from_codes(
            item,
            annotator,
            label,
            items=np.arange(item.max() + 1),
            annotators=np.arange(annotator.max() + 1),
            scale=Scale.nominal(list("abcd")),
        )
        state, change = find_agreement_change(labels, np.arange(1, n + 1), state)
        if change is not None:
            found.append((n, change))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_fall_is_found_once(seed):
    ((n, change),) = changes_found(labels_in_order(seed, fall_at=800))
    assert 800 < n < 1300
    assert change.fell
    assert change.high < 0.0


def test_chance_is_rarely_taken_for_a_change():
    assert sum(bool(changes_found(labels_in_order(seed))) for seed in range(100, 130)) <= 3


def test_a_change_of_shifts_is_no_change():
    found = [changes_found(labels_in_order(seed, shifts=True)) for seed in range(200, 212)]
    assert sum(any(change.fell for _, change in each) for each in found) <= 1


def test_few_labels_are_not_compared():
    labels = Labels.of([("a", "x", 1), ("a", "y", 2), ("b", "x", 1)])
    state, change = find_agreement_change(labels, np.arange(3), AgreementState())
    assert state == AgreementState()
    assert change is None
