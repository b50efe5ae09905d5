"""Which pairs to compare next, whom to ask, and plans of comparisons."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

import annotruth as at
from annotruth import simulate
from annotruth.analyses.advice.annotators import NOBODY
from annotruth.analyses.advice.pairs.advice import advise_pairs
from annotruth.analyses.advice.pairs.annotators import typical_voter
from annotruth.analyses.advice.pairs.order import OrderPosterior, Voters, voters_of
from annotruth.analyses.advice.pairs.plan import SimulatedOrder, plan_pairs
from annotruth.models.em import direct_history
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.posterior import ScorePosterior
from annotruth.models.pairs.thurstone import Thurstone
from annotruth.models.result import Fit
from annotruth.observations import Comparisons

VOTER = Voters(np.array(1.0), np.array(1.0), 0.0)


@pytest.fixture(scope="module")
def fit():
    made = simulate.comparers(
        n_items=12, n_annotators=8, comparisons_per_annotator=15, spammer_share=0.0, seed=3
    )
    return BradleyTerry().fit(made.comparisons).result_


def ranking(rows, scores, *, sd=0.5, **estimates):
    """A fit of (left, right, annotator) with these scores, all independent."""
    left, right, annotator = np.array(rows).T
    n = len(scores)
    votes = Comparisons.from_codes(
        left,
        right,
        annotator,
        np.zeros(len(left), dtype=np.int64),
        items=[f"item {n}" for n in range(n)],
        annotators=[f"person {n}" for n in range(annotator.max() + 1)],
        frame="pyarrow",
    )
    posterior = ScorePosterior(np.array(scores, dtype=float), sd**2 * np.eye(n))
    part = estimates.pop("part", np.zeros(n, dtype=np.int64))
    return Fit("made", {}, votes, direct_history(), scores=posterior, part=part, **estimates)


def order_of(scores, covariance):
    return OrderPosterior(
        np.array(scores, dtype=float), covariance, ~np.eye(len(scores), dtype=bool)
    )


@pytest.mark.parametrize("tie_odds", [0.0, 0.7])
@pytest.mark.parametrize("reliability", [1.0, 0.6])
def test_information_is_that_of_the_outcomes_probabilities(reliability, tie_odds):
    def p(d):
        odds = np.array([np.exp(1.5 * d / 2), np.exp(-1.5 * d / 2), tie_odds])
        chance = np.array([1.0, 1.0, float(tie_odds > 0)])
        return reliability * odds / odds.sum() + (1 - reliability) * chance / chance.sum()

    voter = Voters(np.array(reliability), np.array(1.5), tie_odds)
    d, step = 0.8, 1e-5
    slope = (p(d + step) - p(d - step)) / (2 * step)
    occurs = p(d) > 0
    expected = (slope[occurs] ** 2 / p(d)[occurs]).sum()
    assert voter.information(np.array(d)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("tie_rate", [0.0, 0.3])
def test_information_of_votes_in_thurstones_model(tie_rate):
    made = simulate.comparers(
        n_items=12, n_annotators=20, tie_rate=tie_rate, spammer_share=0.0, seed=3
    )
    fit = Thurstone().fit(made.comparisons).result_
    tie = fit.parameters["tie"][0] if tie_rate else None
    d, step = np.linspace(0.0, 1.5, 4), 1e-4
    p = Thurstone.probabilities(d, tie) + 1e-12
    slope = (Thurstone.probabilities(d + step, tie) - Thurstone.probabilities(d - step, tie)) / (
        2 * step
    )
    exact = (slope**2 / p).sum(axis=1)
    voter = typical_voter(fit, np.ones(fit.data.n_annotators, dtype=bool))
    np.testing.assert_allclose(voter.information(d), exact, rtol=1e-4)


def test_the_odds_of_ties_are_those_of_the_votes():
    rng = np.random.default_rng(0)
    scores = np.array([0.5, -0.5, 0.0, 0.0])
    left = rng.integers(4, size=20_000)
    right = (left + rng.integers(1, 4, size=20_000)) % 4
    weights = np.exp(np.outer(scores[left] - scores[right], [0.5, -0.5, 0.0])) * [1, 1, 0.6]
    p = weights / weights.sum(axis=1, keepdims=True)
    outcome = (rng.random((20_000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    fit = ranking(np.stack([left, right, 0 * left], axis=1), scores)
    fit = replace(fit, data=replace(fit.data, outcome=outcome.astype(np.int8)))
    assert voters_of(fit).tie == pytest.approx(0.6, rel=0.05)


def test_the_gain_is_the_expected_decrease_of_the_uncertainty():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    order = order_of([0.4, 0.1, 0.0, -0.2, -1.0], root @ root.T / 10 + np.eye(5) / 20)
    weak = Voters(np.array(0.2), np.array(1.0), 0.0)  # a small step, where the gain is exact
    gain, kappa = order.gains(weak)
    a, b = 1, 3
    column = order.covariance[a] - order.covariance[b]
    after = order_of(order.mean, order.covariance - kappa[a, b] * np.outer(column, column))
    i, j = np.triu_indices(5, 1)

    def uncertainty(mean, covariance):
        variance = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        p = ndtr((mean[i] - mean[j]) / np.sqrt(variance))
        return (p * (1 - p)).sum()

    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    expected = sum(
        w * uncertainty(order.mean + x * np.sqrt(kappa[a, b]) * column, after.covariance)
        for x, w in zip(nodes, weights / weights.sum(), strict=True)
    )
    decrease = uncertainty(order.mean, order.covariance) - expected
    assert gain[a, b] == pytest.approx(decrease, rel=0.02)


def test_pairs_that_are_chosen_at_once_have_no_common_item():
    order = order_of(np.linspace(-1, 1, 9), np.eye(9) / 4)
    chosen = order.choose(VOTER, 4, at_once=4)
    assert len({*chosen.first, *chosen.second}) == 8
    close = order_of([3.0, 0.05, 0.0, -3.0], np.eye(4) / 4).choose(VOTER, 3)
    assert {close.first[0], close.second[0]} == {1, 2}
    assert (np.diff(close.gain) < 0).all()


def test_expected_tau_with_votes_whose_outcome_is_unknown_is_that_of_simulated_votes():
    first = order_of([0.6, 0.2, 0.0, -0.4], np.eye(4) / 4)
    order = order_of(first.mean, first.covariance)
    before = order.variance()
    order.add_vote(0, 1, 1.0)
    order.add_vote(2, 3, 1.0)
    rng = np.random.default_rng(0)
    taus = []
    for _ in range(2000):
        drawn = SimulatedOrder(first, rng)
        drawn.add_vote(0, 1, 1.0)
        drawn.add_vote(2, 3, 1.0)
        taus.append(drawn.expected_tau())
    assert order.expected_tau(before) == pytest.approx(np.mean(taus), abs=0.01)
    assert first.expected_tau() < order.expected_tau(before)


def test_simulated_votes_bring_the_scores_to_the_truth():
    order = SimulatedOrder(order_of([0.0, 0.0, 0.0], np.eye(3)), np.random.default_rng(2))
    for _ in range(60):
        order.add_random(Voters(np.array(1.0), np.array(3.0), 0.0), 10)
    assert order.mean - order.mean.mean() == pytest.approx(
        order._truth - order._truth.mean(), abs=0.1
    )
    assert np.ptp(order._truth) > 0.5


def test_a_budget_is_spent_and_tau_rises(fit):
    advice = advise_pairs(fit, budget=20)
    assert advice.n_add == 20
    assert advice.tau < advice.tau_after < 1
    table = advice.comparison_table()
    assert table.column_names == ["left", "right", "annotator", "gain", "why"]
    assert table["why"][0].as_py().startswith("order undecided: ")
    assert "ask for 20 comparisons of" in advice.summary()
    assert "expected Kendall tau of the ranking" in advice.summary()
    assert advice.to_dict()["add"] == 20
    assert repr(advice).startswith("PairAdvice(ask for 20 comparisons")


def test_one_round_without_a_budget_and_none_if_the_order_is_known(fit):
    assert advise_pairs(fit).n_add == fit.data.n_items
    known = ranking([(0, 1, 0), (1, 2, 0)], [5.0, 0.0, -5.0])
    advice = advise_pairs(known)
    assert advice.n_add == 0
    assert "ask for no more comparisons" in advice.summary()
    assert advise_pairs(known, budget=1).n_add == 1


def test_parts_are_connected_first():
    rows = [(0, 1, 0), (1, 2, 0), (0, 2, 0), (3, 4, 0)]
    part = np.array([0, 0, 0, 1, 1])
    fit = ranking(rows, [0.0] * 5, part=part)
    advice = advise_pairs(fit, budget=3)
    assert advice.why[0] == "connects part 2 with part 1"
    assert part[advice.left[0]] != part[advice.right[0]]
    assert (part[advice.left[1:]] == part[advice.right[1:]]).all()
    of_part = part[fit.data.left].astype(np.int32)
    one, own, many = 0 * of_part, of_part, np.arange(len(of_part), dtype=np.int32)
    for context, connects in ((one, True), (own, False), (many, True)):
        contexts = replace(fit.data, contexts=fit.data.items, context=context)
        again = advise_pairs(replace(fit, data=contexts), budget=3)
        assert any(why.startswith("connects") for why in again.why) == connects


def test_reliable_annotators_are_asked_and_nobody_compares_a_pair_twice():
    rows = [(0, 1, s) for s in range(4)] + [(1, 2, s) for s in range(4)]
    fit = ranking(
        rows,
        [0.1, 0.0, -0.1],
        reliability=np.array([0.95, 0.1, 0.9, 0.3]),
        low=np.array([0.9, 0.0, 0.8, 0.1]),
        high=np.array([1.0, 0.3, 1.0, 0.6]),
        behavior=["serious", "random", "serious", "random"],
        p_serious=np.full(8, 0.5),
    )
    advice = advise_pairs(fit, budget=6)
    assert advice.of_annotators.verdict.tolist() == ["keep", "drop", "keep", "unsure"]
    assert advice.of_annotators.ask.tolist() == [True, False, True, False]
    for left, right, annotator in zip(advice.left, advice.right, advice.assigned, strict=True):
        if {left, right} == {0, 2}:
            continue
        assert annotator == NOBODY  # all have compared these
    to_new_pair = [
        annotator
        for left, right, annotator in zip(advice.left, advice.right, advice.assigned, strict=True)
        if {left, right} == {0, 2}
    ]
    assert to_new_pair[:2] == [0, 2]
    assert set(to_new_pair[2:]) <= {NOBODY}
    assert advice.annotator_table().column_names == [
        *("annotator", "n_comparisons", "verdict", "ask", "reason", "information", "reliability")
    ]


def test_sides_are_balanced():
    rows = [(0, 1, 0)] * 6 + [(2, 1, 0)] * 2
    advice = advise_pairs(ranking(rows, [0.0, 0.0, 0.0]), budget=8)
    pairs = zip(advice.left.tolist(), advice.right.tolist(), strict=True)
    assert (0, 1) not in pairs  # 0 has been on the left all the time


def test_information_of_annotators_rises_with_reliability_and_sharpness():
    fit = ranking(
        [(0, 1, s) for s in range(3)],
        [0.2, -0.2],
        reliability=np.array([0.6, 0.9, 0.9]),
        annotator_columns={"sharpness": np.array([1.0, 1.0, 2.0])},
    )
    information = advise_pairs(fit, budget=1).of_annotators.information
    assert information[0] < information[1] < information[2]


@pytest.mark.parametrize("budget", [0, -1, 1.5, True])
def test_a_budget_is_a_number_of_comparisons(fit, budget):
    with pytest.raises(at.InputError, match="give a whole number of comparisons from 1"):
        advise_pairs(fit, budget)


def test_plans_say_how_many_comparisons_reach_a_target(fit):
    plan = plan_pairs(fit, "tau", 0.75)
    assert plan.now < 0.75
    assert plan.advised.per_item < plan.evenly.per_item
    assert plan.advised.low <= plan.advised.per_item <= plan.advised.high
    total = plan.total_comparisons(plan.advised)
    n_items = fit.data.n_items
    assert total == fit.data.n_comparisons + np.ceil(plan.advised.per_item * n_items)
    assert f"{total:,} comparisons in total" in plan.summary()
    assert plan.to_dict()["advised"]["total"] == total
    again = plan_pairs(fit, "tau", 0.75)
    assert again.to_dict() == plan.to_dict()
    assert plan_pairs(fit, "tau", 0.1).advised.per_item == 0.0  # is reached
    assert plan_pairs(fit, "score", 9.0).evenly.per_item == 0.0
    wide, narrow = (plan_pairs(fit, "score", value) for value in (0.8, 0.6))
    assert wide.evenly.per_item < narrow.evenly.per_item
    far = plan_pairs(fit, "tau", 0.9999)
    assert far.advised.per_item is None
    assert "out of reach, 60 more comparisons per item give 0." in far.summary()


def test_a_plan_asks_for_comparisons_that_hardly_change_the_ranking_if_the_target_needs_them():
    votes = simulate.comparers(n_items=6, n_annotators=9, comparisons_per_annotator=60, seed=1)
    fit = BradleyTerry().fit(votes.comparisons).result_
    alone = advise_pairs(fit)
    plan = plan_pairs(fit, "tau", alone.tau + 0.1 * (1.0 - alone.tau))
    assert alone.n_add == 0
    assert plan.advised.per_item > 0.0
    assert plan.advice.n_add == 6


@pytest.mark.parametrize(
    ("target", "value", "message"),
    [
        ("accuracy", 0.9, "for comparisons, choose one of tau, score"),
        ("tau", 1.0, "above 0 and below 1"),
        ("score", -1.0, "give a number above 0"),
    ],
)
def test_bad_targets_are_refused(fit, target, value, message):
    with pytest.raises(at.InputError, match=message):
        plan_pairs(fit, target, value)


def test_prompts_with_the_fewest_votes_on_a_pair_are_proposed():
    rows = [
        {"left": a, "right": b, "annotator": s, "winner": "left", "prompt": prompt}
        for s in range(3)
        for prompt, (a, b) in enumerate(["ab", "ab", "bc", "ac"])
    ]
    table = advise_pairs(at.rank(rows, "bradley-terry"), budget=6).comparison_table().to_pylist()
    assert list(table[0]) == ["left", "right", "context", "annotator", "gain", "why"]
    pair = {table[0]["left"], table[0]["right"]}
    votes = [0, 0, 0, 0]
    for row in rows:
        votes[row["prompt"]] += len(pair & {row["left"], row["right"]})
    assert votes[table[0]["context"]] == min(votes)
    assert len({row["context"] for row in table}) > 1


def test_items_of_one_scene_stay_there():
    rows = [
        {
            "left": f"{scene}1",
            "right": f"{scene}2",
            "annotator": s,
            "winner": "left",
            "scene": scene,
        }
        for s in range(4)
        for scene in "xy"
    ]
    table = advise_pairs(at.rank(rows, "bradley-terry"), budget=4).comparison_table().to_pylist()
    assert all(row["context"] == row["left"][0] == row["right"][0] for row in table)


def test_what_would_change_the_first_three_is_said():
    scores = [2.0, 1.0, 0.3, 0.2, -1.0]
    fit = ranking([(k, k + 1, 0) for k in range(4)], scores, sd=0.1)
    top = advise_pairs(fit).top
    assert top.names == ["item 0", "item 1", "item 2"]
    assert top.challenger == "item 3"
    # The difference is 0.1 with a variance of 0.02; a vote moves it by about 0.02 * 0.475.
    assert 10 <= top.n_reverse <= 14
    # It is separated where the variance is (0.1 / 1.96)^2; a vote has an information of about 0.25.
    assert top.n_separate == pytest.approx(((1.96 / 0.1) ** 2 - 50) / 0.249, rel=0.03)
    assert "first three: item 0, item 1, item 2; " in advise_pairs(fit).summary()
    far = ranking([(k, k + 1, 0) for k in range(4)], [9.0, 8.0, 7.0, -7.0, -8.0], sd=0.1)
    assert advise_pairs(far).top.n_separate == 0
    assert advise_pairs(ranking([(0, 1, 0), (1, 2, 0)], [1.0, 0.0, -1.0])).top is None


def test_annotators_may_compare_a_pair_again_on_another_prompt():
    rows = [
        {"left": a, "right": b, "annotator": s, "winner": "left", "prompt": f"{a}{b}{n}"}
        for s in range(3)
        for n in range(4)
        for a, b in ("ab", "bc", "ca")
    ]
    advice = advise_pairs(at.rank(rows, "bradley-terry"), budget=6)
    table = advice.comparison_table()
    assert table["annotator"].null_count == 0
    voted = {
        (frozenset((row["left"], row["right"])), row["annotator"], row["prompt"]) for row in rows
    }
    for row in table.to_pylist():
        assert (
            frozenset((row["left"], row["right"])),
            row["annotator"],
            row["context"],
        ) not in voted
