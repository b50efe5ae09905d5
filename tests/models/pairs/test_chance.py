"""Comparisons that agree no better than chance are found, said to be so, and not ranked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import annotruth as at
from annotruth.models.fits.notes import CHANCE
from annotruth.models.pairs import chance
from annotruth.models.pairs.chance import RandomVotes, _ScoreRatios, judge_comparisons
from annotruth.models.pairs.pair_gpm.starts import sample_votes
from annotruth.models.pairs.summary import CHANCE_RANKING, TOO_FEW_VOTES
from annotruth.observations import TIE, Comparisons
from annotruth.observations.pairs.votes import in_order_of_codes


def votes_of_chance(
    n_items: int = 8,
    n_annotators: int = 10,
    n_votes: int = 300,
    *,
    own_shares: bool = False,
    ties: float = 0.0,
    seed: int = 0,
) -> Comparisons:
    """Return votes at random; with ``own_shares``, annotators prefer sides and differ in ties."""
    rng = np.random.default_rng(seed)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    annotator = np.arange(n_votes) % n_annotators
    to_left = rng.beta(2, 2, n_annotators) if own_shares else np.full(n_annotators, 0.5)
    tie = 2.0 * ties * rng.random(n_annotators) if own_shares else np.full(n_annotators, ties)
    outcome = (rng.random(n_votes) > to_left[annotator]).astype(int)
    outcome[rng.random(n_votes) < tie[annotator]] = TIE
    return Comparisons.from_codes(
        left,
        right,
        annotator,
        outcome,
        items=[f"item{k}" for k in range(n_items)],
        annotators=[f"p{s}" for s in range(n_annotators)],
    )


def judge(data: Comparisons) -> str | None:
    return judge_comparisons(data, seed=0)


@pytest.mark.parametrize("own_shares", [False, True])
@pytest.mark.parametrize("ties", [0.0, 0.3])
@pytest.mark.parametrize(
    ("n_items", "n_annotators", "n_votes"),
    [(2, 5, 200), (5, 30, 300), (20, 10, 1000), (50, 50, 2000)],
)
def test_votes_of_chance_are_reported_as_such(n_items, n_annotators, n_votes, ties, own_shares):
    for seed in range(10, 13):
        data = votes_of_chance(
            n_items, n_annotators, n_votes, own_shares=own_shares, ties=ties, seed=seed
        )
        assert judge(data) == "chance"
        # As in files of winners and losers: the winner is on the left.
        assert judge(winners_left(data)) == "chance"


def winners_left(data: Comparisons) -> Comparisons:
    swapped = data.outcome == 1
    return replace(
        data,
        left=np.where(swapped, data.right, data.left),
        right=np.where(swapped, data.left, data.right),
        outcome=np.where(swapped, 0, data.outcome).astype(np.int8),
        sides_known=False,
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tie_rate": 0.5, "side_bias": 1.0},
        {"sharpness_spread": 0.5},
        {"behavior": "always left"},
    ],
    ids=["random", "ties and sides", "unequal sharpness", "always left"],
)
def test_a_third_of_serious_annotators_is_informative(options):
    settings = {"spammer_share": 2 / 3, "behavior": "random", "score_spread": 1.5, **options}
    for seed in range(3):
        data = at.simulate.comparers(n_items=20, n_annotators=30, seed=seed, **settings).comparisons
        assert judge(data) == "informative"
        if "side_bias" not in options:  # which is noise where sides are not known
            assert judge(winners_left(data)) == "informative"


def test_annotators_with_one_vote_each_are_informative():
    crowd = at.simulate.comparers(n_items=10, n_annotators=500, comparisons_per_annotator=1)
    assert judge(crowd.comparisons) == "informative"


def test_votes_that_follow_a_covariate_are_informative():
    crowd = at.simulate.comparers(
        n_items=20, n_annotators=30, score_spread=0.0, coefficients={"length": 1.0}
    )
    data = crowd.comparisons
    assert judge(replace(data, covariates={})) == "chance"
    assert judge(data) == "informative"


def test_too_few_votes_have_no_verdict():
    assert judge(votes_of_chance(n_votes=99)) is None
    assert judge(votes_of_chance(n_items=800, n_votes=150)) is None


@pytest.mark.parametrize("outcome", [0, 2], ids=["always left", "all ties"])
def test_the_same_outcome_everywhere_has_no_verdict(outcome):
    data = votes_of_chance()
    assert judge(replace(data, outcome=np.full_like(data.outcome, outcome))) is None


def test_sides_that_are_the_items_have_no_verdict():
    rng = np.random.default_rng(0)
    annotator, zeros = np.arange(300) % 10, np.zeros(300, np.int64)
    for share in (0.5, 0.8):
        outcome = (rng.random(300) > share).astype(np.int64)
        data = Comparisons.from_codes(
            zeros, zeros + 1, annotator, outcome, items="ab", annotators=range(10)
        )
        assert judge(data) is None


def test_permutations_keep_the_shares_of_annotators():
    data = votes_of_chance(own_shares=True, ties=0.3, n_annotators=5)
    random_votes = RandomVotes(data, seed=0)
    permuted = random_votes.permute(3)
    annotator = data.annotator_of_comparison()
    for value in (1.0, -1.0, 0.0):
        observed = np.bincount(annotator, random_votes.outcome == value)
        for drawn in permuted.T:
            assert (np.bincount(annotator, drawn == value) == observed).all()
    assert (permuted != random_votes.outcome[:, np.newaxis]).mean() > 0.3


def test_draws_do_not_depend_on_how_many_are_computed_at_once(monkeypatch):
    data = votes_of_chance()
    random_votes = RandomVotes(data, seed=0)
    ratios = _ScoreRatios(data, random_votes)
    drawn = random_votes.permute(5)
    together = ratios.of_draws(drawn, 5)
    monkeypatch.setattr(chance, "_MAX_ENTRIES", 600)
    np.testing.assert_allclose(ratios.of_draws(drawn, 5), together)


def test_the_ratio_rises_with_every_step():
    data = at.simulate.comparers(n_items=6, n_annotators=10, tie_rate=0.4).comparisons
    random_votes = RandomVotes(data, seed=0)
    ratios = _ScoreRatios(data, random_votes)
    drawn = np.column_stack([random_votes.outcome, random_votes.permute(2)])
    values = np.array([ratios.of_draws(drawn, n) for n in range(2, 30)])
    assert (np.diff(values, axis=0) > -1e-9).all()


@pytest.fixture(scope="module")
def fit() -> at.Fit:
    return at.rank(votes_of_chance(own_shares=True, ties=0.2))


def test_a_ranking_of_chance_says_so_and_next_to_nothing_else(fit):
    assert fit.verdict == "chance"
    assert fit.converged
    items = fit.item_table().to_pydict()
    assert set(items["score"]) == {0.0}
    assert set(items["rank"]) == set(items["rank_low"]) == {1}
    assert set(items["rank_high"]) == {8}
    assert items["p_best"] == pytest.approx([1 / 8] * 8)
    assert np.median(fit.reliability) <= 0.3
    assert np.median(fit.high - fit.low) > 0.7
    assert (fit.low < 0.1).all()
    assert fit.summary().startswith(f"WARNING: {CHANCE_RANKING}\npair-gpm on ")
    assert CHANCE in CHANCE_RANKING
    assert fit.to_dict()["verdict"] == "chance"
    assert "drop" not in fit.verdict_table()["verdict"].to_pylist()
    assert set(fit.annotator_table()["evidence"].to_pylist()) == {f"comparisons {CHANCE}"}
    by_annotator = fit.reliability[fit.data.annotator_of_comparison()]
    np.testing.assert_array_equal(fit.p_serious, by_annotator)


def test_annotators_of_chance_who_always_vote_left_are_named():
    data = votes_of_chance(n_votes=500)
    first = data.annotator_of_comparison() == 0
    fit = at.rank(replace(data, outcome=np.where(first, 0, data.outcome).astype(np.int8)))
    assert fit.verdict == "chance"
    assert fit.behavior[0] == "always left"
    assert fit.reliability[0] < 0.15
    assert set(fit.behavior[1:]) == {TOO_FEW_VOTES}


def test_votes_of_chance_are_predicted_by_annotators_shares(fit):
    model = at.PairGPM().load_fit(fit)
    data = fit.data
    s = np.arange(data.n_annotators)
    predicted = model.predict_proba(np.zeros_like(s), np.ones_like(s), s)
    swapped = model.predict_proba(np.ones_like(s), np.zeros_like(s), s)
    np.testing.assert_allclose(predicted, swapped)
    left = np.bincount(data.annotator_of_comparison(), data.outcome == 0) / 30
    assert np.corrcoef(predicted[:, 0], left)[0, 1] > 0.9


def test_chance_is_saved(fit, tmp_path):
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    assert loaded.verdict == "chance"
    assert (loaded.ranking.high == 8).all()


def shuffled(data: Comparisons, seed: int) -> Comparisons:
    """Return the comparisons with other names, in another order of rows, items and annotators."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(data.n_comparisons)
    item, annotator = rng.permutation(data.n_items), rng.permutation(data.n_annotators)
    left, right, outcome = item[data.left], item[data.right], data.outcome
    if not data.sides_known:
        left, right, outcome = in_order_of_codes(left, right, outcome)
    codes = left, right, annotator[data.annotator_of_comparison()], outcome
    return Comparisons.from_codes(
        *(values[rows] for values in codes),
        items=[f"new{k}" for k in rng.permutation(data.n_items)],
        annotators=[f"q{k}" for k in rng.permutation(data.n_annotators)],
        sides_known=data.sides_known,
    )


@pytest.mark.parametrize("sides_known", [True, False])
def test_the_verdict_does_not_depend_on_names_and_rows(sides_known):
    verdicts = set()
    for seed in range(12):  # weak signals, whose verdicts vary
        crowd = at.simulate.comparers(
            n_items=8,
            n_annotators=10,
            comparisons_per_annotator=20,
            spammer_share=0.3,
            behavior="random",
            score_spread=0.7,
            seed=seed,
        )
        data = crowd.comparisons if sides_known else winners_left(crowd.comparisons)
        expected = judge(data)
        assert [judge(shuffled(data, k)) for k in range(3)] == [expected] * 3
        verdicts.add(expected)
    assert len(verdicts) > 1


def test_the_sample_of_many_votes_does_not_depend_on_rows():
    data = votes_of_chance(n_items=5, n_annotators=4, n_votes=3000)
    table = data.to_arrow()
    other = Comparisons.of(table.take(np.random.default_rng(1).permutation(3000)))
    for n_comparisons in (1000, 200):  # two annotators, and part of one
        one, same = (
            sorted(map(str, sample_votes(votes, n_comparisons, 0).to_arrow().to_pylist()))
            for votes in (data, other)
        )
        assert one == same
        assert n_comparisons <= len(one) < 1.8 * n_comparisons


def test_parts_of_chance_are_ranked_apart():
    data = votes_of_chance(n_items=4, n_votes=600)
    shift = 4 * (np.arange(600) % 3 == 0)
    both = Comparisons.from_codes(
        data.left + shift,
        data.right + shift,
        data.annotator_of_comparison(),
        data.outcome,
        items=range(8),
        annotators=range(10),
    )
    fit = at.rank(both)
    assert (fit.verdict, fit.n_parts) == ("chance", 2)
    assert (fit.ranking.high == 4).all()


def test_a_sample_of_many_votes_is_tested(monkeypatch):
    from annotruth.models.pairs.pair_gpm import model

    tested = []
    monkeypatch.setattr(model, "_SAMPLE", 200)
    monkeypatch.setattr(
        model, "judge_comparisons", lambda data, *_, **__: tested.append(data.n_comparisons)
    )
    data = votes_of_chance(n_items=5, n_annotators=100, n_votes=3000)
    at.PairGPM().fit(data)
    assert 200 <= tested[0] <= 250
