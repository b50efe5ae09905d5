"""What RobustGPM says of annotators and items, and how sure it is."""

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth import simulate
from annotruth.models.base_fit import TOO_FEW
from annotruth.models.intervals import likely_sets
from annotruth.models.robust_gpm.evidence import interval
from annotruth.models.robust_gpm.strategies import strategies_of


def ways():
    return strategies_of(np.full((1, 2, 1), 0.5), np.ones(1), ordinal=False)


def test_an_interval_is_the_middle_of_the_weights():
    table = ways()
    even = np.where((table.kind == 0) & (table.eps < 0.99), 0.1, 0.0)  # ten levels alike
    low, high = interval(even[np.newaxis], table)
    assert (low[0], high[0]) == pytest.approx((0.025, 0.975))
    one = np.where((table.kind == 0) & np.isclose(table.eps, 0.35), 1.0, 0.0)
    assert np.ravel(interval(one[np.newaxis], table)) == pytest.approx((0.3025, 0.3975))
    always = np.where((table.kind == 0) & (table.eps > 0.99), 1.0, 0.0)
    low, high = interval(always[np.newaxis], table)
    assert (0.98 < low[0] < 0.99, high[0]) == (True, 1.0)


def test_likely_sets_hold_enough_and_no_more():
    rows = np.array([[0.96, 0.03, 0.01], [0.1, 0.3, 0.6], [0.5, 0.44, 0.06]])
    assert likely_sets(rows, ["x", "y", "z"]).to_pylist() == ["x", "x|y|z", "x|y|z"]
    assert likely_sets(rows, ["x", "y", "z"], share=0.89).to_pylist() == ["x", "y|z", "x|y"]


def crowd_with(extra, n_items=150, per_item=6, seed=0):
    """Votes of ten serious people on shapes of opinion, and somebody else's beside them."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(1, 5, n_items)
    rows = []
    for e in range(n_items):
        for s in rng.permutation(10)[:per_item]:
            rows.append((e, f"s{s}", vote(mean[e], rng)))
    rows += [(e, name, label) for name, e, label in extra(mean, rng)]
    return pd.DataFrame(rows, columns=["item", "annotator", "label"])


def vote(mean, rng):
    return int(np.clip(np.rint(mean + rng.normal(0, 0.8)), 1, 5))


def verdict_of(frame, name, **options):
    fit = at.fit(frame, "robust-gpm", scale="ordinal", **options)
    return fit.annotators().set_index("annotator").loc[name]


def test_generous_and_harsh_raters_are_serious():
    def leaning(mean, rng):
        for e, m in enumerate(mean):
            yield "kind", e, vote(m + 1.2, rng)
            yield "strict", e, vote(m - 1.2, rng)

    frame = crowd_with(leaning)
    kind, strict = (verdict_of(frame, name) for name in ("kind", "strict"))
    assert (kind.behavior, strict.behavior) == ("generous", "harsh")
    assert kind.bias > 0.4
    assert strict.bias < -0.4
    assert min(kind.reliability, strict.reliability) > 0.5


def test_three_labels_are_too_few_to_tell():
    def newcomer(mean, rng):
        for e in range(3):
            yield "new", e, int(np.rint(mean[e]))

    new = verdict_of(crowd_with(newcomer), "new")
    assert new.behavior == TOO_FEW
    assert new.high - new.low > 0.2
    assert abs(new.evidence) < 1


def test_evidence_has_a_sign_and_grows():
    def clicking(n):
        def rows(mean, rng):
            return (("bot", e, int(rng.integers(1, 6))) for e in range(n))

        return rows

    few, many = (verdict_of(crowd_with(clicking(n)), "bot").evidence for n in (15, 150))
    assert 0 < few < many
    assert many > 3
    assert verdict_of(crowd_with(clicking(15)), "s1").evidence < -1


def test_a_record_counts_where_labels_are_few():
    def newcomer(mean, rng):
        for e in range(3):
            yield "new", e, int(np.rint(mean[e]))

    frame = crowd_with(newcomer)
    bad = pd.DataFrame({"annotator": ["new"], "reliability": [0.1], "n_labels": [100]})
    with_prior = verdict_of(frame, "new", annotator_prior=bad)
    assert verdict_of(frame, "new").reliability > 0.8
    assert with_prior.reliability < 0.3
    assert with_prior.behavior != TOO_FEW
    # Nobody else's labels are read another way for it.
    other = verdict_of(frame, "s1").reliability
    assert verdict_of(frame, "s1", annotator_prior=bad).reliability == pytest.approx(
        other, abs=0.02
    )


def test_a_record_is_kept_with_the_fit(tmp_path):
    made = simulate.crowd(n_items=40, n_annotators=6, seed=1)
    fit = at.fit(made.labels, "robust-gpm", annotator_prior={1: 0.4, 3: 0.9})
    fit.save(tmp_path / "fit")
    np.testing.assert_array_equal(
        at.load(tmp_path / "fit").data.annotator_prior, fit.data.annotator_prior
    )


def test_other_models_refuse_a_record():
    with pytest.raises(at.InputError, match="gpm takes no annotator_prior"):
        at.fit([("a", "x", 1), ("a", "y", 2)], "gpm", annotator_prior={"x": 0.5})


def test_items_say_what_may_lead():
    made = simulate.crowd(n_items=200, labels_per_item=6, seed=3)
    items = at.fit(made.labels, "robust-gpm", truth="opinions").items()
    sets = items["may_lead"].str.split("|")
    assert all(str(label) in told for label, told in zip(items["label"], sets, strict=True))
    held = [str(n + 1) in told for n, told in zip(made.label, sets, strict=True)]
    assert np.mean(held) > 0.9
    # The leader's own probability says how often it is the right one.
    right = items["label"].to_numpy() == made.label + 1
    assert right.mean() == pytest.approx(items["p_leads"].mean(), abs=0.1)
    assert (items["confidence_low"] <= items["confidence"]).all()
    assert (items["confidence"] <= items["confidence_high"]).all()
