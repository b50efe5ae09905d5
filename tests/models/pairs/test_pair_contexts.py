"""PairGPM on many prompts: right about voters, right about ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.models.pairs.prompts import prompt_crowd

import annotruth as at
from annotruth.models.pairs.beside import PLAIN_SCORES, contradictions
from annotruth.models.pairs.pair_gpm import estimation
from annotruth.models.pairs.pair_gpm.estimation import MARGINAL, estimate, start_estimate
from annotruth.models.pairs.pair_gpm.model import PairGPM
from annotruth.models.pairs.pair_gpm.scores import Prior
from annotruth.models.pairs.pair_gpm.starts import better_estimate, trimmed_start
from annotruth.models.pairs.pair_gpm.verdicts import control_discoveries
from annotruth.models.pairs.pair_gpm.votes import make_votes, ranking_weights
from annotruth.models.pairs.summary import NOT_SHARED
from annotruth.observations import TIE, Comparisons
from annotruth.report.rank_verdict import rank_trust


def spread_of(fit: at.Fit) -> float:
    return float(fit.parameters["spread"][0])


@pytest.mark.parametrize("n_votes", [5, 60], ids=["fewer votes than items", "more votes"])
@pytest.mark.parametrize("n_contexts", [1, 12])
def test_differences_by_others_are_those_without_the_annotators_sites(
    n_votes: int, n_contexts: int
) -> None:
    data = prompt_crowd(n_annotators=6, n_votes=n_votes, n_contexts=n_contexts).comparisons
    lengths = np.random.default_rng(0).normal(size=data.n_comparisons)
    votes = make_votes(replace(data, covariates={"length": lengths}))
    now = start_estimate(votes, votes.passes())
    now.prior = Prior(1.0, 1.5 if votes.has_contexts else 0.0)
    now.iterate(3)
    group = now.scores
    left_out = group.leave_out()
    own = slice(*votes.outcomes.ptr[2:4])
    group.sites.precision[own], group.sites.shift[own] = 0.0, 0.0
    group.solve(now.prior)
    again = group.leave_out()  # nothing is left to leave out
    np.testing.assert_allclose(left_out.mean[own], group.differences.mean[own], atol=1e-8)
    np.testing.assert_allclose(left_out.variance[own], again.variance[own], atol=1e-8)


def test_the_spread_over_contexts_is_learned() -> None:
    varied = at.rank(prompt_crowd(spread=2.0).comparisons)
    constant = at.rank(prompt_crowd(spread=0.0).comparisons)
    assert 1.2 < spread_of(varied) < 4.0
    assert spread_of(constant) < 0.4


def test_scores_are_log_odds_in_a_new_context() -> None:
    made = prompt_crowd(n_annotators=40, n_contexts=300, seed=1)
    fit = at.rank(made.comparisons)
    marginal = made.scores / np.sqrt(1.0 + MARGINAL * 2.0**2)
    low, high = fit.scores.interval.T
    assert ((low <= marginal) & (marginal <= high)).all()
    assert fit.scores.mean @ marginal / (marginal @ marginal) == pytest.approx(1.0, abs=0.35)


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_sites_match_the_moments_that_votes_give_their_differences(weight: float) -> None:
    # With equal scores and one vote in a context, its difference is N(0, 8) times the vote's likelihood.
    data = prompt_crowd(n_annotators=3, n_votes=30).comparisons
    context = np.arange(90, dtype=np.int32)
    context[30:36] = np.arange(6)  # enough that two annotators share
    votes = make_votes(replace(data, contexts=pa.array(range(90)), context=context))
    now = start_estimate(votes, votes.passes())
    now.prior = Prior(1e12, 2.0)
    now.states.p_class[:, 0] = weight
    now.iterate(1)
    found, who = now.scores.differences, now.states.voters()
    x = np.linspace(-15.0, 15.0, 3_001)
    for v in range(40, 90, 5):
        s = votes.annotator[v]
        d = who.sharpness[s] * x + who.side[s]
        odds = np.stack([np.exp(d / 2.0), np.exp(-d / 2.0), np.full_like(d, np.exp(who.tie[s]))])
        p = 0.985 * (odds / odds.sum(axis=0))[votes.outcomes.outcome[v]] + 0.005
        density = np.exp(-(x**2) / 16.0) * p**weight
        density /= density.sum()
        mean = density @ x
        assert found.mean[v] == pytest.approx(mean, abs=0.01)
        assert found.variance[v] == pytest.approx(density @ (x - mean) ** 2, rel=0.01)


def test_ties_are_as_many_in_new_contexts_as_in_known_ones() -> None:
    made = prompt_crowd(n_votes=150, n_contexts=80, spread=1.0, cell_tie_sd=1.5).comparisons
    fit = at.rank(made)
    assert fit.parameters["cell_tie_sd"][0] > 0.5
    model = PairGPM()
    model.load_fit(fit)
    share = model.predict_proba(made.left, made.right, made.annotator_of_comparison())[:, TIE]
    assert share.mean() == pytest.approx((made.outcome == TIE).mean(), abs=0.01)


def test_scores_do_not_shrink_where_contexts_decide_everything() -> None:
    # Three people nearly always agree on each of 300 prompts with one pair.
    rng = np.random.default_rng(0)
    rows = []
    for prompt in range(300):
        left, right = rng.choice(4, 2, replace=False).tolist()
        better = "left" if rng.random() < (0.7 if left < right else 0.3) else "right"
        for person in "abc":
            vote = better if rng.random() < 0.97 else "tie"
            rows.append((left, right, person, vote, prompt))
    names = ("left", "right", "annotator", "winner", "prompt")
    votes = Comparisons.of([dict(zip(names, row, strict=True)) for row in rows])
    fit, plain = at.rank(votes), at.rank(votes, "bradley-terry")
    assert fit.converged
    assert spread_of(fit) > 3.0
    slope = fit.scores.mean @ plain.scores.mean / (plain.scores.mean @ plain.scores.mean)
    assert slope == pytest.approx(1.0, abs=0.25)


def test_the_better_of_two_starts_is_taken() -> None:
    made = prompt_crowd(n_random=14, n_annotators=24, n_votes=60, spread=1.0, seed=3)
    votes = make_votes(made.comparisons)
    first = start_estimate(votes, votes.passes())
    estimate(first, tol=0.01, max_rounds=40)
    other = trimmed_start(first)
    assert (other.states.p_class[:, 0] < 1.0).sum() == 12
    estimate(other, tol=0.01, max_rounds=40)
    assert first.states.share_serious() < 0.75
    best = max(first.states.log_likelihood, other.states.log_likelihood)
    assert best > min(first.states.log_likelihood, other.states.log_likelihood)
    assert better_estimate(first, other).states.log_likelihood == best
    assert better_estimate(other, first).states.log_likelihood == best
    fit = at.rank(made.comparisons)
    assert fit.log_likelihood == pytest.approx(best, rel=1e-9)


def test_no_start_is_taken_that_reverses_the_order() -> None:
    votes = make_votes(prompt_crowd(n_contexts=1).comparisons)
    first, other = (start_estimate(votes, votes.passes()) for _ in range(2))
    for each, sign in ((first, 1.0), (other, -1.0)):
        each.scores.solution[:] = sign * np.arange(6)
    first.states.log_likelihood, other.states.log_likelihood = -2.0, -1.0
    assert better_estimate(first, other) is first


def test_few_contexts_make_intervals_wider() -> None:
    few, many = (
        at.rank(prompt_crowd(n_contexts=n, n_annotators=30, seed=2).comparisons) for n in (8, 300)
    )
    assert few.scores.sd.mean() > 1.5 * many.scores.sd.mean()


def test_honest_voters_are_not_accused_whatever_prompts_and_ties_do() -> None:
    accused = 0
    for seed in range(4):
        made = prompt_crowd(tie_rate=1.0, pair_tie_sd=1.5, spread=2.0 * (seed % 2), seed=seed)
        accused += at.rank(made.comparisons).n_spammers or 0
    assert accused == 0


def test_ties_of_a_pair_on_a_prompt_are_learned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = prompt_crowd(n_items=4, n_contexts=12, spread=0.5, cell_tie_sd=1.5, seed=5).comparisons
    held_out = np.random.default_rng(0).random(data.n_comparisons) < 0.2
    rows, annotator = np.flatnonzero(held_out), data.annotator_of_comparison()
    assert data.context is not None
    new = (data.left[rows], data.right[rows], annotator[rows], {}, data.context[rows])

    def fit_and_score() -> tuple[at.RankFit, float]:
        model = PairGPM().fit(data.subset(~held_out))
        p = model.predict_proba(*new)
        return model.result_, float(np.log(p[np.arange(len(rows)), data.outcome[rows]]).mean())

    fit, log_p = fit_and_score()
    assert fit.n_spammers == 0
    fit.save(tmp_path / "fit")
    again = PairGPM().load_fit(at.load(tmp_path / "fit")).predict_proba(*new)
    np.testing.assert_allclose(again, PairGPM().load_fit(fit).predict_proba(*new), atol=1e-12)
    short = replace(fit, parameters={**fit.parameters, "cell_tie": fit.parameters["cell_tie"][1:]})
    with pytest.raises(at.InputError, match="has no cell_tie of"):
        PairGPM().load_fit(short).predict_proba(*new)
    monkeypatch.setattr(estimation, "_CELL_TIE_VARIANCES", (0.0,))
    without, log_p_without = fit_and_score()
    assert "cell_tie" not in without.parameters
    assert log_p > log_p_without + 0.02


def test_random_voters_are_found_by_others_votes_on_the_same_prompts() -> None:
    made = prompt_crowd(n_random=4, n_annotators=24, n_votes=80)
    fit = at.rank(made.comparisons)
    np.testing.assert_array_equal(fit.spammer, made.is_spammer)
    accuracy = np.asarray(fit.annotator_columns["accuracy"])
    assert accuracy[4:].min() > accuracy[:4].max()


def test_whose_prompts_nobody_shares_are_unknown() -> None:
    made = prompt_crowd(own_contexts=True, n_contexts=400, n_votes=20, spread=0.5, seed=1)
    fit = at.rank(made.comparisons)
    assert fit.verdict != "chance"
    assert NOT_SHARED in fit.behavior
    assert not fit.spammer.any()
    cannot = np.array(fit.behavior) == NOT_SHARED
    assert np.isnan(np.asarray(fit.annotator_columns["accuracy"])[cannot]).all()


def ranked() -> Comparisons:
    """Rankings of four items by ten people in ten contexts each."""
    rng = np.random.default_rng(0)
    rows = []
    for person in range(10):
        for context in range(10):
            place = rng.permutation(4)
            for a in range(4):
                for b in range(a + 1, 4):
                    rows.append((a, b, person, "left" if place[a] < place[b] else "right", context))
    columns = ("left", "right", "annotator", "winner", "context")
    return Comparisons.of([dict(zip(columns, row, strict=True)) for row in rows])


def test_votes_of_rankings_are_recognised_and_count_less() -> None:
    weight, is_ranked = ranking_weights(ranked())
    assert is_ranked
    np.testing.assert_allclose(weight, 4 * (4 - 25 / 12) / 12)


def test_votes_of_named_rankings_count_less_also_without_contexts() -> None:
    table = ranked().to_arrow()
    n_votes = 6  # of a ranking of four items
    ranking = pa.array([f"r{row // n_votes}" for row in range(table.num_rows)])
    named = table.drop_columns("context").append_column("ranking", ranking)
    weight, is_ranked = ranking_weights(Comparisons.of(named))
    assert is_ranked
    np.testing.assert_allclose(weight, 4 * (4 - 25 / 12) / 12)
    # The same name is another ranking of another person; a vote without one stands alone.
    same = named.set_column(4, "ranking", pa.array([None, *["r"] * (table.num_rows - 1)]))
    data = Comparisons.of(same)
    first = data.further["ranking"].to_pylist()
    assert first[0] is None
    assert len(set(first[1:])) == 10


def test_ranks_of_several_items_are_rankings() -> None:
    rows = [
        {"annotator": who, "item": item, "rank": (item + who) % 3, "prompt": prompt}
        for who in range(3)
        for prompt in range(2)
        for item in range(3)
    ]
    weight, is_ranked = ranking_weights(Comparisons.of(rows))
    assert is_ranked
    np.testing.assert_allclose(weight, 7 / 9)
    alike = [{**row, "rank": row["item"]} for row in rows]
    assert "votes follow from rankings" in at.rank(alike).summary()


def test_circles_are_no_rankings() -> None:
    data = ranked()
    # 0 beats 1, 1 beats 2, 2 beats 0 for two of ten people.
    outcome = data.outcome.copy()
    for row in np.flatnonzero(data.annotator_of_comparison() < 2):
        pair = int(data.left[row]), int(data.right[row])
        outcome[row] = {(0, 1): 0, (1, 2): 0, (0, 2): 1}.get(pair, int(outcome[row]))
    weight, is_ranked = ranking_weights(replace(data, outcome=outcome))
    assert not is_ranked
    assert (weight == 1.0).all()


def test_false_discoveries_are_controlled() -> None:
    p = np.array([0.001, 0.002, 0.14, 0.19, 0.9])
    found = control_discoveries(p, p <= 0.2)
    assert found.tolist() == [True, True, True, False, False]
    assert not control_discoveries(np.array([0.06]), np.array([True])).any()


def test_votes_are_predicted_in_their_context() -> None:
    made = prompt_crowd(seed=5, n_votes=120)
    data = made.comparisons
    rng = np.random.default_rng(0)
    kept = rng.random(data.n_comparisons) < 0.8
    model = PairGPM().fit(data.subset(kept))
    new = ~kept
    codes = (data.left[new], data.right[new], data.annotator_of_comparison()[new])
    outcome = data.outcome[new].astype(np.int64)
    rows = np.arange(len(outcome))
    known = model.predict_proba(*codes, None, data.context[new])[rows, outcome]
    unknown = model.predict_proba(*codes)[rows, outcome]
    assert np.log(known).mean() > np.log(unknown).mean() + 0.1
    np.testing.assert_allclose(model.predict_proba(*codes).sum(axis=1), 1.0)


def test_a_ranking_that_plain_counts_contradict_is_not_to_be_trusted() -> None:
    fit = at.rank(prompt_crowd(spread=0.0).comparisons)
    assert contradictions(fit) == []
    assert rank_trust(fit).word in ("Yes", "Mostly", "Partly", "No")
    plain = -fit.scores.mean
    wrong = replace(fit, parameters={**fit.parameters, PLAIN_SCORES: plain})
    assert "rank correlation -1.00" in contradictions(wrong)[0]
    assert "WARNING: the ranking differs" in wrong.summary()
    assert rank_trust(wrong).word == "Not as it is"


def test_a_side_bias_that_the_sides_chosen_contradict_is_said() -> None:
    fit = at.rank(prompt_crowd(spread=0.0).comparisons)
    wrong = replace(fit, side_bias=np.array([4.4, 4.2, 4.6]))
    assert "+4.40 log odds, but" in contradictions(wrong)[0]


def test_few_contexts_are_said() -> None:
    fit = at.rank(prompt_crowd(n_contexts=3).comparisons)
    assert "there are only 3 contexts" in fit.summary()


def test_votes_that_agree_only_within_prompts_are_no_chance() -> None:
    made = prompt_crowd(spread=3.0, n_contexts=10, n_annotators=30, n_items=8, seed=11)
    data = made.comparisons
    # Each context against its mirror image: over all contexts, no item is better.
    outcome = np.array([1, 0, 2], dtype=np.int8)[data.outcome]
    table, mirrored = (each.to_arrow() for each in (data, replace(data, outcome=outcome)))
    contexts = pa.array([f"mirrored {each}" for each in mirrored["context"].to_pylist()])
    mirrored = mirrored.set_column(4, "context", contexts)
    table = table.set_column(4, "context", table["context"].cast(pa.string()))
    fit = at.rank(pa.concat_tables([table, mirrored]))
    assert fit.verdict != "chance"
    assert spread_of(fit) > 1.0
