"""Subject bias: equations, likelihood, floor, results and intervals."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from tests.models.fitting import fitted as fitted_as
from threadpoolctl import threadpool_limits

from annotruth import simulate
from annotruth.observations import Labels, Scale

TABLE = [
    *(("a", "ann", 1), ("a", "bob", 1), ("a", "cy", 2)),
    *(("b", "ann", 2), ("b", "bob", 4), ("b", "cy", 1)),
    *(("c", "ann", 3), ("c", "bob", 5)),
]


def one_step_by_hand(table):
    """Return the start and the first step with shared ambiguity, written out in pandas."""
    frame = pd.DataFrame(table, columns=["e", "s", "x"])
    floor = 1 / 12  # a tenth of the deviation at the start is less
    frame["psi"] = frame.groupby("e").x.transform("mean")
    frame["b"] = (frame.x - frame.psi).groupby(frame.s).transform("mean")
    r = frame.x - frame.psi - frame.b
    frame["v2"] = (r**2).groupby(frame.s).transform("mean").clip(lower=floor)
    before = (-0.5 * (np.log(2 * np.pi * frame.v2) + r**2 / frame.v2)).sum()

    w = 1 / frame.v2
    total = (w * (frame.x - frame.b)).groupby(frame.e).transform("sum")
    frame["psi"] = total / w.groupby(frame.e).transform("sum")
    frame["b"] = (frame.x - frame.psi).groupby(frame.s).transform("mean")
    r = frame.x - frame.psi - frame.b
    frame["v2"] = (r**2).groupby(frame.s).transform("mean").clip(lower=floor)
    after = (-0.5 * (np.log(2 * np.pi * frame.v2) + r**2 / frame.v2)).sum()
    return frame.groupby("s").b.first(), frame.groupby("s").v2.first(), before, after


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_the_first_step_by_hand(engine):
    b, v2, before, after = one_step_by_hand(TABLE)
    fit = fitted(TABLE, ambiguity="shared", max_iter=1, acceleration=False, engine=engine)
    people = fit.annotators().set_index("annotator")
    np.testing.assert_allclose(people.bias, b - b.mean(), rtol=1e-13)
    np.testing.assert_allclose(people.inconsistency, np.sqrt(v2), rtol=1e-13)
    assert fit.history.log_likelihood[0] == pytest.approx(before, rel=1e-13)
    assert fit.history.objective[0] == pytest.approx(after, rel=1e-13)


def test_the_log_likelihood_rises_where_scoring_alone_would_lower_it():
    for seed in (21, 81, 227):
        rng = np.random.default_rng(seed)
        ambiguity = 10 ** rng.uniform(-1, 1.3, size=40)
        n_items = int(rng.integers(5, 40))
        n_annotators = int(rng.integers(3, 12))
        labels, *_ = votes(
            rng, n_items=n_items, n_annotators=n_annotators, ambiguity=ambiguity[:n_items]
        )
        fit = fitted(labels, ambiguity={e: e % 3 for e in range(n_items)}, acceleration=False)
        assert np.diff(fit.history.log_likelihood).min() > 0


def test_no_variance_is_held_at_its_bound():
    labels, *_ = votes(np.random.default_rng(0), ambiguity=np.tile([3.0, 5.0, 9.0], 40))
    fit = fitted(labels, ambiguity={e: e % 3 for e in range(120)}, tol=1e-9)
    assert fit.n_iter < 20


def test_the_optimum_equals_that_of_a_general_optimizer():
    rng = np.random.default_rng(1)
    labels, *_ = votes(rng, n_items=60, n_annotators=15, ambiguity=np.tile([0.0, 5.0, 9.0], 20))
    fit = fitted(labels, ambiguity={e: e % 3 for e in range(60)}, tol=1e-11)
    item, who, x = rows(labels)

    def cost(p):
        psi, b, v2, a2 = np.split(p, [60, 75, 90])
        r, q = x - psi[item] - b[who], v2[who] + a2[item % 3]
        slope_b, slope_q = -r / q, 0.5 * (1 / q - (r / q) ** 2)
        slopes = [(item, slope_b), (who, slope_b), (who, slope_q), (item % 3, slope_q)]
        return (
            0.5 * (np.log(2 * np.pi * q) + r**2 / q).sum(),
            np.concatenate([np.bincount(by, slope) for by, slope in slopes]),
        )

    begin = np.r_[np.full(60, x.mean()), np.zeros(15), np.full(18, 30.0)]
    bounds = [(None, None)] * 75 + [(0.6, None)] * 15 + [(0, None)] * 3
    options = {"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-14, "gtol": 1e-7}
    best = minimize(cost, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    assert fit.log_likelihood == pytest.approx(-best.fun, abs=1e-5)
    psi, b, v2, a2 = np.split(best.x, [60, 75, 90])
    np.testing.assert_allclose(fit.score, psi + b.mean(), atol=0.01)
    np.testing.assert_allclose(fit.annotator_columns["bias"], b - b.mean(), atol=0.01)
    deviation = np.sqrt(v2 + a2.min())
    np.testing.assert_allclose(fit.annotator_columns["inconsistency"], deviation, atol=0.01)
    deviation = np.sqrt(a2 - a2.min())[np.arange(60) % 3]
    np.testing.assert_allclose(fit.item_columns["ambiguity"], deviation, atol=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_a_fit_with_ambiguities_of_items_is_stationary(make_labels, seed):
    rng = np.random.default_rng(seed)
    labels = make_labels(rng, n_items=25, n_annotators=9, n_categories=5, density=0.9)
    fit = fitted(labels, tol=1e-13, max_iter=20_000)
    item, who, x = rows(labels)
    people = fit.annotator_columns
    a2, v2 = fit.item_columns["ambiguity"] ** 2, people["inconsistency"] ** 2
    q = v2[who] + a2[item]
    r = x - fit.score[item] - people["bias"][who]
    slope_q = -0.5 * (1 / q - (r / q) ** 2)
    for slope, held in [
        (np.bincount(item, r / q), np.zeros(25, dtype=bool)),
        (np.bincount(who, r / q), np.zeros(9, dtype=bool)),
        (np.bincount(item, slope_q), a2 == 0),
        (np.bincount(who, slope_q), people["at_floor"]),
    ]:
        np.testing.assert_allclose(slope[~held], 0, atol=1e-3)
        assert (slope[held] <= 1e-3).all()


@pytest.mark.parametrize("ambiguity", ["item", "shared"])
def test_inconsistencies_of_three_annotators_stay_above_the_floor(ambiguity):
    labels, *_ = votes(np.random.default_rng(5), n_items=40, n_annotators=3, top=4)
    fit = fitted(labels, ambiguity=ambiguity, tol=1e-9, max_iter=10_000)
    people = fit.annotators()
    assert (people.inconsistency >= np.sqrt(1 / 12) - 1e-12).all()
    held = people.inconsistency < np.sqrt(1 / 12) + 1e-6
    assert (people.at_floor == held).all()
    assert held.any()
    note = f"the inconsistency of {held.sum()} of 3 annotators is at its floor of 0.289"
    assert note in fit.stop_reason
    assert note in fit.summary()


def test_the_floor_is_a_tenth_of_the_deviation_on_a_fine_scale():
    labels, *_ = votes(np.random.default_rng(6), n_items=40, n_annotators=3, top=10_000)
    item, who, x = rows(labels)
    r = x - pd.Series(x).groupby(item).transform("mean").to_numpy()
    start = np.sqrt(np.mean([r[who == s].var() for s in range(3)]))
    fit = fitted(labels, ambiguity="shared")
    assert fit.annotator_columns["inconsistency"].min() == pytest.approx(0.1 * start, rel=1e-9)


def test_with_full_agreement_the_floor_is_that_of_rounding():
    table = [(e, s, 0.5 * (e % 3)) for e in range(6) for s in "xyz"]
    fit = fitted(table, ambiguity="shared")
    np.testing.assert_allclose(fit.score, [0.5 * (e % 3) for e in range(6)], atol=1e-12)
    np.testing.assert_allclose(fit.annotator_columns["inconsistency"], 0.5 / np.sqrt(12))
    assert fit.annotator_columns["at_floor"].all()
    # All votes are rounded alike: the score may be anywhere in its step of 0.5.
    half = fit.item_columns["score_high"] - fit.score
    assert ((half > 0.25) & (half < 0.5)).all()


def test_biases_have_mean_0_and_the_least_ambiguity_is_0():
    labels, *_ = votes(np.random.default_rng(7), ambiguity=np.tile([5.0, 9.0], 60))
    fit = fitted(labels, ambiguity={e: "dim" if e % 2 else "sharp" for e in range(120)})
    assert fit.annotator_columns["bias"].mean() == pytest.approx(0, abs=1e-12)
    assert fit.item_columns["ambiguity"].min() == 0.0
    # The variance of votes on the least ambiguous content counts as inconsistency.
    assert fit.annotator_columns["inconsistency"].min() > 4.5


def test_gold_is_the_score_and_sets_the_level_of_biases():
    # All annotators vote one too high, which only known truths reveal.
    table = [(e, s, 1 + e % 3 + 1 + (s == "z" and e % 2)) for e in range(30) for s in "xyz"]
    plain = fitted(table, ambiguity="shared")
    assert plain.annotator_columns["bias"].mean() == pytest.approx(0, abs=1e-12)
    gold = {e: 1 + e % 3 for e in range(30) if e % 3}
    fit = fitted(table, ambiguity="shared", gold=gold)
    np.testing.assert_allclose(fit.annotator_columns["bias"][:2], 1.0, atol=0.15)
    for e, truth in gold.items():
        row = fit.items().set_index("item").loc[e]
        assert (row.expectation, row.score_low, row.score_high) == (truth, truth, truth)
    unknown = fit.items().set_index("item").loc[0]
    assert unknown.expectation == pytest.approx(1.0, abs=0.15)


def test_a_few_known_truths_set_the_level_in_tens_of_steps():
    labels, score, bias, _ = votes(np.random.default_rng(8), n_items=300, votes_each=10)
    gold = {e: round(score[e]) + 10 for e in range(4)}  # all are ten too low
    fit = fitted(labels, ambiguity="shared", gold=gold)
    assert fit.n_iter < 40
    assert (fit.annotator_columns["bias"] - bias).mean() == pytest.approx(-10, abs=1.5)
    assert (fit.score[4:] - score[4:]).mean() == pytest.approx(10, abs=1.5)


def test_ordered_words_are_scored_and_other_results_are_absent():
    table = [("a", s, w) for s, w in zip("xyz", ["bad", "bad", "good"], strict=True)]
    fit = fitted(Labels.of(table, categories=["bad", "fair", "good"]), ambiguity="shared")
    assert 1.0 <= fit.score[0] <= 3.0
    assert (fit.distribution, fit.reliability, fit.p_serious) == (None, None, None)
    assert list(fit.items().columns) == [
        *("item", "n_labels", "expectation", "score_low", "score_high"),
    ]
    assert list(fit.annotators().columns) == [
        *("annotator", "n_labels", "bias", "bias_std", "inconsistency", "inconsistency_std"),
        "at_floor",
    ]


def test_groups_are_given_by_a_mapping_or_a_column():
    frame = pd.DataFrame(TABLE, columns=["item", "annotator", "label"])
    frame["content"] = frame.item.map({"a": "sea", "b": "sea", "c": "city"})
    by_column = fitted(frame, ambiguity=frame.set_index("item")["content"])
    # Items without labels are ignored.
    groups = {"c": 7, "a": 3, "b": 3, "unseen": 9}
    by_mapping = fitted(frame, ambiguity=groups)
    pd.testing.assert_frame_equal(by_column.items(), by_mapping.items())
    assert by_mapping.settings["ambiguity"] == "dict"
    a, b, _ = by_column.item_columns["ambiguity"]
    assert a == b
    one = fitted(frame, ambiguity=dict.fromkeys("abc", "all"), tol=1e-10)
    shared = fitted(frame, ambiguity="shared", tol=1e-10)
    assert one.log_likelihood == pytest.approx(shared.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(one.score, shared.score, atol=1e-3)


def test_the_number_of_blas_threads_does_not_change_the_result():
    labels, *_ = votes(np.random.default_rng(3), n_items=150, n_annotators=200, votes_each=20)
    fits = []
    for threads in (1, 2, 3):  # the inverse of 200 x 200 coupled biases is divided among them
        with threadpool_limits(limits=threads, user_api="blas"):
            fits.append(fitted(labels, max_iter=20))
    for other in fits[1:]:
        pd.testing.assert_frame_equal(other.items(), fits[0].items(), check_exact=True)
        pd.testing.assert_frame_equal(other.annotators(), fits[0].annotators(), check_exact=True)


def test_parameters_of_simulated_votes_are_recovered():
    rng = np.random.default_rng(2)
    ambiguity = np.tile([0.0, 4.0, 8.0, 12.0], 75)
    labels, score, bias, inconsistency = votes(rng, n_items=300, ambiguity=ambiguity)
    fit = fitted(labels, ambiguity={e: e % 4 for e in range(300)})
    people = fit.annotators()
    assert np.abs(people.bias - bias).max() < 4 * people.bias_std.max()
    assert np.abs(people.inconsistency - inconsistency).mean() < 0.6
    np.testing.assert_allclose(fit.item_columns["ambiguity"][:4], ambiguity[:4], atol=1.0)
    error = fit.score - score
    mean_votes = pd.Series(rows(labels)[2]).groupby(rows(labels)[0]).mean()
    assert (error**2).mean() < 0.95 * ((mean_votes - score) ** 2).mean()
    items = fit.items()
    assert 0.92 < np.mean((items.score_low <= score) & (score <= items.score_high)) < 0.98
    inside = np.abs(people.inconsistency - inconsistency) < 1.96 * people.inconsistency_std
    assert inside.mean() > 0.8
    assert fit.n_iter < 30


@pytest.mark.parametrize(
    ("n_items", "n_annotators", "votes_each", "ambiguity", "top"),
    [
        (10, 5, None, 0.0, 10_000),  # a continuous scale
        (10, 20, None, 0.0, 10_000),
        (60, 20, 4, 0.0, 10_000),
        (60, 20, 4, 6.0, 10_000),
        (10, 5, None, 0.0, 12),  # noise of about one step
        (60, 20, 4, 6.0, 12),
    ],
)
@pytest.mark.parametrize("per", ["item", "shared"])
def test_intervals_cover(n_items, n_annotators, votes_each, ambiguity, top, per):
    covered, of_biases, of_inconsistencies = [], [], []
    for seed in range(600 // n_items):
        rng = np.random.default_rng(seed)
        size = {"n_items": n_items, "n_annotators": n_annotators, "votes_each": votes_each}
        of_items = rng.uniform(0, 2, n_items) * ambiguity
        labels, score, bias, inconsistency = votes(rng, **size, top=top, ambiguity=of_items)
        fit = fitted(labels, ambiguity=per)
        items, people = fit.item_columns, fit.annotator_columns
        covered.append(np.mean((items["score_low"] <= score) & (score <= items["score_high"])))
        of_biases.append((people["bias"] - bias) / people["bias_std"])
        error = people["inconsistency"] - inconsistency
        of_inconsistencies.append(error / people["inconsistency_std"])
    assert 0.91 < np.mean(covered) < 0.98
    assert 0.88 < np.mean(np.abs(of_biases) <= 1.96) < 0.99
    # As large as stated: neither overconfident nor too wide.
    assert 0.9 < np.sqrt(np.mean(np.square(of_biases))) < 1.2
    if per == "item" or not ambiguity:  # else inconsistencies contain the ambiguity
        assert np.mean(np.abs(of_inconsistencies) <= 1.96) > 0.87
        assert 0.9 < np.sqrt(np.mean(np.square(of_inconsistencies))) < 1.35


def test_intervals_of_ambiguous_items_are_wider():
    ambiguity = np.tile([0.0, 15.0], 100)
    labels, score, *_ = votes(np.random.default_rng(10), n_items=200, ambiguity=ambiguity)
    items = fitted(labels).item_columns
    inside = (items["score_low"] <= score) & (score <= items["score_high"])
    assert inside[::2].mean() > 0.9
    assert inside[1::2].mean() > 0.9
    width = items["score_high"] - items["score_low"]
    assert width[1::2].mean() > 1.8 * width[::2].mean()


def test_intervals_contain_the_score_and_the_level_of_known_truths():
    labels, score, *_ = votes(np.random.default_rng(11), n_items=40, n_annotators=5, votes_each=3)
    fit = fitted(labels, ambiguity="shared")
    items = fit.item_columns
    assert ((items["score_low"] <= fit.score) & (fit.score <= items["score_high"])).all()
    # All votes are ten too low, which only known truths reveal.
    gold = {e: round(score[e]) + 10 for e in range(20)}
    items = fitted(labels, ambiguity="shared", gold=gold).item_columns
    inside = (items["score_low"] <= score + 10) & (score + 10 <= items["score_high"])
    assert inside[20:].mean() > 0.8
    np.testing.assert_array_equal(items["score_low"][:20], items["score_high"][:20])


def test_intervals_with_many_annotators(monkeypatch):
    labels, *_ = votes(np.random.default_rng(12), n_items=120, n_annotators=30, votes_each=6)
    coupled = fitted(labels).item_columns
    monkeypatch.setattr("annotruth.models.scales.subject_bias_posterior._MAX_COUPLED", 10)
    independent = fitted(labels).item_columns
    ratio = [c["score_high"] - c["score_low"] for c in (independent, coupled)]
    np.testing.assert_allclose(ratio[0] / ratio[1], 1.0, atol=0.05)


def test_ambiguities_of_items_correlate_with_the_true_ones():
    rng = np.random.default_rng(3)
    ambiguity = rng.uniform(0, 1.2, 200) * 25  # on a scale of 1 to 5
    labels, score, bias, _ = votes(rng, n_items=200, top=4, ambiguity=ambiguity)
    fit = fitted(labels)
    assert np.corrcoef(fit.item_columns["ambiguity"], ambiguity)[0, 1] > 0.8
    assert np.abs(fit.annotator_columns["bias"] - bias).max() < 0.25
    assert np.corrcoef(fit.score, score)[0, 1] > 0.8
    assert fit.n_iter < 100


@pytest.mark.parametrize(("factor", "shift"), [(1e-9, 0.0), (100.0, 0.0), (1.0, 1e4)])
def test_intervals_do_not_depend_on_the_units_of_the_votes(factor, shift):
    labels = simulate.crowd(n_items=40, n_annotators=8, labels_per_item=5, seed=2).labels
    values = labels.scale.values
    changed = replace(labels, scale=Scale.ordinal((factor * values + shift).tolist()))
    fits = [fitted(each, tol=1e-8) for each in (labels, changed)]
    for name in ("score_low", "score_high"):
        one, other = (fit.item_columns[name] for fit in fits)
        np.testing.assert_allclose((other - shift) / factor, one, atol=1e-5)
    for name in ("bias_std", "inconsistency_std"):
        one, other = (fit.annotator_columns[name] for fit in fits)
        np.testing.assert_allclose(other / factor, one, atol=1e-5)


fitted = partial(fitted_as, "subject-bias")


def votes(rng, *, n_items=120, n_annotators=24, top=100, ambiguity=0.0, votes_each=None):
    """Simulate the model on a scale of 0 to ``top``, far from its ends."""
    unit = top / 100
    score = rng.uniform(35, 65, n_items) * unit
    bias = rng.normal(0, 4, n_annotators) * unit
    bias -= bias.mean()
    inconsistency = rng.uniform(3, 9, n_annotators) * unit
    ambiguity = np.broadcast_to(ambiguity, n_items) * unit
    votes_each = votes_each or n_annotators
    item = np.repeat(np.arange(n_items), votes_each)
    who = np.concatenate([rng.permutation(n_annotators)[:votes_each] for _ in range(n_items)])
    noise = rng.normal(size=len(item)) * np.hypot(inconsistency[who], ambiguity[item])
    vote = np.clip(np.round(score[item] + bias[who] + noise), 0, top).astype(int)
    labels = Labels.from_codes(
        item,
        who,
        vote,
        items=np.arange(n_items),
        annotators=np.arange(n_annotators),
        scale=Scale.ordinal(list(range(top + 1))),
    )
    return labels, score, bias, inconsistency


def rows(labels):
    """Return the item, the annotator and the value of each vote."""
    cell = labels.cell_of_label()
    value = labels.scale.values[labels.cell_category[cell]]
    return labels.item_of_cell()[cell], labels.annotator, value
