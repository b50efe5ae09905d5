"""RobustGPM's results for annotators and items: intervals, evidence, names of behaviors."""

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth import simulate
from annotruth.models.base_fit import TOO_FEW
from annotruth.models.distribution import likely_sets
from annotruth.models.robust_gpm.annotators import (
    level_interval,
    level_shares,
    reliability_interval,
)
from annotruth.models.robust_gpm.strategies import tabulate_strategies


def test_the_interval_is_central():
    strategies = tabulate_strategies(np.full((1, 2, 1), 0.5), np.ones(1), ordinal=False)
    first, reliability = strategies.behavior == 0, strategies.reliability
    even = np.where(first & (reliability < 0.99), 0.1, 0.0)  # ten levels alike
    is_level = strategies.by_reliability()[1]
    low, high = level_interval(even[np.newaxis] @ is_level)
    assert (low[0], high[0]) == pytest.approx((0.025, 0.975))
    one_level = np.where(first & np.isclose(reliability, 0.35), 1.0, 0.0)
    interval = level_interval(one_level[np.newaxis] @ is_level)
    assert np.ravel(interval) == pytest.approx((0.3025, 0.3975))
    always = np.where(first & strategies.always_serious, 1.0, 0.0)
    low, high = level_interval(always[np.newaxis] @ is_level)
    assert (0.98 < low[0] < 0.99, high[0]) == (True, 1.0)


def test_intervals_are_not_rounded_to_levels():
    levels = np.append(np.arange(0.05, 1.0, 0.1), 0.995)
    mean, deviation = np.array([[0.2], [0.52], [0.8]]), np.array([[0.04], [0.04], [0.025]])
    likelihood = np.exp(-0.5 * ((levels - mean) / deviation) ** 2)
    likelihood[:, -1] = 0.0  # nobody is always serious
    alike = np.full_like(likelihood, 1 / 11)
    low, high = reliability_interval(likelihood, alike)
    expected = mean + 1.96 * deviation * np.array([-1, 1])
    assert np.column_stack([low, high]) == pytest.approx(expected, abs=0.003)


def test_an_interval_that_ends_at_one_has_all_of_the_rest_below():
    likelihood = np.ones((2, 11))
    shares = np.tile(np.append(np.full(10, 0.06), 0.4), (2, 1))
    shares[1] = np.append(np.full(10, 0.1), 0.0) + 1e-12  # nobody is always serious
    low, high = reliability_interval(likelihood, shares)
    assert (low[0], high[0]) == (pytest.approx(0.05 / 0.6), 1.0)
    assert (low[1], high[1]) == pytest.approx((0.025, 0.975))


def test_the_crowds_levels_are_learned_from_the_others():
    likelihood = np.full((4, 11), 1e-9)
    likelihood[:3, 7], likelihood[3, 2] = 1.0, 1.0
    labels = at.Labels.of([("a", who, "x") for who in range(4)])
    shares = level_shares(labels, likelihood)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert shares[0, [7, 2]] == pytest.approx([3 / 14, 2 / 14], abs=1e-6)  # one each before
    assert shares[3, [7, 2]] == pytest.approx([4 / 14, 1 / 14], abs=1e-6)


def test_a_crowd_of_serious_annotators_has_narrower_intervals_than_one_annotator_would():
    one = np.exp(-0.5 * ((np.append(np.arange(0.05, 1.0, 0.1), 0.995) - 0.8) / 0.15) ** 2)
    crowd = np.tile(one, (40, 1))
    labels = at.Labels.of([("a", who, "x") for who in range(40)])
    low, high = reliability_interval(crowd, level_shares(labels, crowd))
    first, last = reliability_interval(crowd, np.full_like(crowd, 1 / 11))
    assert (high - low < last - first).all()


def test_likely_sets_contain_enough_and_no_more():
    rows = np.array([[0.96, 0.03, 0.01], [0.1, 0.3, 0.6], [0.5, 0.44, 0.06]])
    assert likely_sets(rows, ["x", "y", "z"]).to_pylist() == ["x", "x|y|z", "x|y|z"]
    assert likely_sets(rows, ["x", "y", "z"], share=0.89).to_pylist() == ["x", "y|z", "x|y"]


def test_likely_sets_of_long_scales():
    rows = np.zeros((3, 12))
    rows[0, 11] = rows[1, 3] = rows[2, 11] = 1.0
    names = [f"n{number}" for number in range(12)]
    assert likely_sets(rows, names).to_pylist() == ["n11", "n3", "n11"]


def crowd_with(make_rows, n_items=150, per_item=6, seed=0):
    """Return labels of ten serious annotators, and rows of others made from the items' means."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(1, 5, n_items)
    rows = []
    for e in range(n_items):
        for s in rng.permutation(10)[:per_item]:
            rows.append((e, f"s{s}", vote(mean[e], rng)))
    rows += [(e, name, label) for name, e, label in make_rows(mean, rng)]
    return pd.DataFrame(rows, columns=["item", "annotator", "label"])


def vote(mean, rng):
    return int(np.clip(np.rint(mean + rng.normal(0, 0.8)), 1, 5))


def result_of(frame, annotator, **options):
    fit = at.fit(frame, "robust-gpm", scale="ordinal", **options)
    return fit.annotators().set_index("annotator").loc[annotator]


def three_labels(mean, rng):
    for e in range(3):
        yield "new", e, int(np.rint(mean[e]))


def test_generous_and_harsh_annotators_are_serious():
    def shifted(mean, rng):
        for e, m in enumerate(mean):
            yield "generous", e, vote(m + 1.2, rng)
            yield "harsh", e, vote(m - 1.2, rng)

    frame = crowd_with(shifted)
    generous, harsh = (result_of(frame, name) for name in ("generous", "harsh"))
    assert (generous.behavior, harsh.behavior) == ("generous", "harsh")
    assert generous.bias > 0.4
    assert harsh.bias < -0.4
    assert min(generous.reliability, harsh.reliability) > 0.5


def test_three_labels_are_too_few_to_name_a_behavior():
    new = result_of(crowd_with(three_labels), "new")
    assert new.behavior == TOO_FEW
    assert new.high - new.low > 0.2
    assert abs(new.evidence) < 1


def test_evidence_has_a_sign_and_grows_with_the_labels():
    def random_labels(n):
        def rows(mean, rng):
            return (("bot", e, int(rng.integers(1, 6))) for e in range(n))

        return rows

    few, many = (result_of(crowd_with(random_labels(n)), "bot").evidence for n in (15, 150))
    assert 0 < few < many
    assert many > 3
    assert result_of(crowd_with(random_labels(15)), "s1").evidence < -1


def test_an_annotator_prior_counts_where_labels_are_few():
    frame = crowd_with(three_labels)
    bad = pd.DataFrame({"annotator": ["new"], "reliability": [0.1], "n_labels": [100]})
    with_prior = result_of(frame, "new", annotator_prior=bad)
    assert result_of(frame, "new").reliability > 0.8
    assert with_prior.reliability < 0.3
    assert with_prior.behavior != TOO_FEW
    # Other annotators are not affected.
    other = result_of(frame, "s1").reliability
    assert result_of(frame, "s1", annotator_prior=bad).reliability == pytest.approx(other, abs=0.02)


def test_the_annotator_prior_is_saved_with_the_fit(tmp_path):
    crowd = simulate.crowd(n_items=40, n_annotators=6, seed=1)
    fit = at.fit(crowd.labels, "robust-gpm", annotator_prior={1: 0.4, 3: 0.9})
    fit.save(tmp_path / "fit")
    np.testing.assert_array_equal(
        at.load(tmp_path / "fit").data.annotator_prior, fit.data.annotator_prior
    )


def test_other_models_refuse_an_annotator_prior():
    with pytest.raises(at.InputError, match="gpm takes no annotator_prior"):
        at.fit([("a", "x", 1), ("a", "y", 2)], "gpm", annotator_prior={"x": 0.5})


def test_items_have_the_set_of_labels_that_may_lead():
    crowd = simulate.crowd(n_items=200, labels_per_item=6, seed=3)
    items = at.fit(crowd.labels, "robust-gpm", truth="opinions").items()
    sets = items["may_lead"].str.split("|")
    assert all(str(label) in labels for label, labels in zip(items["label"], sets, strict=True))
    covered = [str(n + 1) in labels for n, labels in zip(crowd.label, sets, strict=True)]
    assert np.mean(covered) > 0.9
    # The probability of the top label is how often it is the right one.
    right = items["label"].to_numpy() == crowd.label + 1
    assert right.mean() == pytest.approx(items["p_leads"].mean(), abs=0.1)
    assert (items["confidence_low"] <= items["confidence"]).all()
    assert (items["confidence"] <= items["confidence_high"]).all()
