"""Simulated pair comparisons have the documented distributions."""

import csv
import re

import numpy as np
import pytest

from annotruth import simulate
from annotruth.errors import InputError
from annotruth.observations import LEFT, RIGHT, TIE
from annotruth.simulate import comparers

PURE = {"spammer_share": 1.0, "spammer_reliability": (0.0, 0.0)}


def all_bytes(made):
    data = made.comparisons
    arrays = (data.left, data.right, data.outcome, data.row, made.scores, made.serious)
    return [array.tobytes() for array in (*arrays, made.reliability, made.behavior, made.favourite)]


def outcome_shares(made, mask=slice(None)):
    return np.bincount(made.comparisons.outcome[mask], minlength=3) / np.sum(
        np.ones(made.comparisons.n_comparisons)[mask]
    )


def test_the_same_seed_gives_the_same_bytes():
    options = {"tie_rate": 0.3, "sharpness_spread": 0.4}
    assert all_bytes(comparers(seed=4, **options)) == all_bytes(comparers(seed=4, **options))
    assert all_bytes(comparers(seed=4)) != all_bytes(comparers(seed=5))


def test_serious_outcomes_follow_davidson():
    made = comparers(
        n_items=2,
        n_annotators=100,
        comparisons_per_annotator=2000,
        spammer_share=0.0,
        reliability=(1.0, 1.0),
        side_bias=0.3,
        tie_rate=0.5,
        seed=2,
    )
    data, score = made.comparisons, made.scores
    d = score[data.left] - score[data.right] + 0.3
    weight = np.stack([np.exp(d / 2), np.exp(-d / 2), np.full(len(d), 0.5)])
    expected = weight / weight.sum(axis=0)
    for left in (0, 1):
        rows = data.left == left
        np.testing.assert_allclose(
            outcome_shares(made, rows), expected[:, rows].mean(axis=1), atol=0.006
        )


def test_a_covariate_may_have_the_name_of_an_option():
    made = comparers(coefficients={"side_bias": 0.5, "lowest": 0.5}, side_bias=0.2)
    assert dict(made.coefficients) == {"side_bias": 0.5, "lowest": 0.5}
    with pytest.raises(InputError, match=r"side_bias.* is 'x'"):
        comparers(coefficients={"side_bias": "x"})


def test_coefficients_shift_the_outcome():
    made = comparers(
        n_items=2,
        n_annotators=50,
        spammer_share=0.0,
        score_spread=0.0,
        coefficients={"length": 3.0},
    )
    length = made.comparisons.covariates["length"]
    longer = (
        made.comparisons.outcome[np.abs(length) > 1]
        == np.where(length > 0, LEFT, RIGHT)[np.abs(length) > 1]
    )
    assert longer.mean() > 0.9


@pytest.mark.parametrize(
    ("behavior", "outcome"), [("always left", LEFT), ("always right", RIGHT), ("always tie", TIE)]
)
def test_constant_behaviors(behavior, outcome):
    made = comparers(behavior=behavior, **PURE)
    assert (made.comparisons.outcome == outcome).all()
    assert set(made.behavior) == {behavior}
    assert not made.serious.any()
    assert made.is_spammer.all()


def test_inverted_votes_are_those_of_a_serious_crowd_with_sides_swapped():
    options = {"tie_rate": 0.4, "seed": 3}
    made = comparers(behavior="inverted", **PURE, **options)
    serious = comparers(
        behavior="inverted", spammer_share=1.0, spammer_reliability=(1.0, 1.0), **options
    )
    swapped = np.array([RIGHT, LEFT, TIE])[serious.comparisons.outcome]
    np.testing.assert_array_equal(made.comparisons.outcome, swapped)


def test_random_votes_are_uniform_and_tie_only_where_there_are_ties():
    size = {"n_annotators": 200, "behavior": "random"}
    np.testing.assert_allclose(
        outcome_shares(comparers(tie_rate=0.2, **size, **PURE)), 1 / 3, atol=0.02
    )
    np.testing.assert_allclose(outcome_shares(comparers(**size, **PURE)), [0.5, 0.5, 0], atol=0.02)
    assert "always tie" not in comparers(n_annotators=300, **PURE).behavior


def test_a_favourite_wins_whenever_it_is_shown():
    made = comparers(n_items=5, behavior="favours one item", **PURE)
    data = made.comparisons
    favourite = made.favourite[data.annotator_of_comparison()]
    assert (data.outcome[data.left == favourite] == LEFT).all()
    assert (data.outcome[data.right == favourite] == RIGHT).all()
    others = data.outcome[(data.left != favourite) & (data.right != favourite)]
    assert 0.4 < others.mean() < 0.6


def test_spammers_have_their_share_and_reliability():
    made = comparers(n_annotators=30, spammer_share=0.3, spammer_reliability=(0.1, 0.2))
    assert made.is_spammer.sum() == 9
    assert (made.reliability[made.is_spammer] <= 0.2).all()
    assert (made.reliability[~made.is_spammer] >= 0.9).all()
    assert set(made.behavior[~made.is_spammer]) == {"serious"}


def test_pairs_are_of_different_items_of_one_context():
    made = comparers(n_items=7, n_contexts=3, n_annotators=100)
    data = made.comparisons
    assert (data.left != data.right).all()
    assert (data.left % 3 == data.right % 3).all()
    np.testing.assert_array_equal(data.context, data.left % 3)
    np.testing.assert_allclose([made.scores[k::3].mean() for k in range(3)], 0, atol=1e-12)
    pairs = {(int(a), int(b)) for a, b in zip(data.left, data.right, strict=True)}
    assert len(pairs) == 3 * 2 + 2 + 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_items": 1}, "n_items is 1: give a whole number from 2 to 1,000,000,000"),
        ({"n_contexts": 0}, "n_contexts is 0: give a whole number from 1 to"),
        ({"n_contexts": 16}, "30 items make at most 15 contexts"),
        ({"spammer_share": 2}, "spammer_share is 2: give a number from 0 to 1"),
        ({"reliability": (0.9, 0.1)}, "give the lowest and highest, from 0 to 1"),
        ({"reliability": 0.9}, "give the lowest and highest, from 0 to 1"),
        ({"tie_rate": -1}, "tie_rate is -1: give a number of at least 0"),
        ({"side_bias": float("nan")}, "side_bias is nan: give a number"),
        ({"coefficients": {"length": "x"}}, "length is 'x': give a number"),
        ({"behavior": "repeated"}, "unknown behavior 'repeated': choose random, always left"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        comparers(**options)


def test_the_tables_hold_the_comparisons_in_the_order_of_the_input():
    made = comparers(n_items=6, n_annotators=4, n_contexts=2, tie_rate=0.5)
    tables = made.tables()
    votes = tables["votes"].to_pydict()
    data = made.comparisons
    names = {LEFT: "left", RIGHT: "right", TIE: "tie"}
    assert votes["winner"] == [names[code] for code in data.outcome[np.argsort(data.row)]]
    assert votes["context"] == [1 + (item - 1) % 2 for item in votes["left"]]
    assert tables["truth"].column_names == ["item", "score"]
    assert tables["annotators"]["behavior"].to_pylist() == made.behavior.tolist()


def test_the_command_writes_votes(run, tmp_path):
    options = ("--generator", "comparers", "--items", 9, "--annotators", 5)
    code, out, _ = run("simulate", "--out", tmp_path / "p", *options, "--tie-rate", "0.5")
    assert code == 0
    assert "200 comparisons of 9 items by 5 annotators" in out
    with (tmp_path / "p" / "votes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    made = simulate.comparers(n_items=9, n_annotators=5, tie_rate=0.5)
    assert [row["winner"] for row in rows] == made.tables()["votes"]["winner"].to_pylist()
