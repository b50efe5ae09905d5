"""Tables and summary of a fit of comparisons, and saving it."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather
from scipy.special import ndtr
from tests.fuzz.tampering import change_column, data_folder, read_entries, write_entries
from tests.models.pairs.rank_fits import full_fit, plain_fit

import annotruth as at
from annotruth.models.pairs.posterior import ScorePosterior, ranking_by_part
from annotruth.models.pairs.summary import notices, score_line
from annotruth.report.page import make_report

COLUMNS = ("left", "right", "annotator", "winner")

TWO_PARTS = [("a", "b", "x", "left"), ("a", "b", "y", "left"), ("c", "d", "x", "right")] * 4


@pytest.fixture(scope="module")
def fit():
    return full_fit()


def test_ranks_are_those_within_a_part():
    posterior = ScorePosterior(np.array([3.0, 0.0, 2.0, 1.0]), np.eye(4) / 1e4)
    ranking = ranking_by_part(posterior, np.array([0, 1, 1, 0]))
    assert ranking.rank.tolist() == [1, 2, 1, 2]
    assert ranking.low.tolist() == ranking.high.tolist() == [1, 2, 1, 2]
    assert ranking.p_best.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_intervals_of_ranks_are_the_shortest_with_95_percent():
    # The second and third are close; the first is first in 98.5% of draws.
    posterior = ScorePosterior(np.array([2.0, 1.0, 0.9, -1.0]), 0.1 * np.eye(4))
    assert posterior.rank_interval.tolist() == [[1, 1], [2, 3], [2, 3], [4, 4]]
    wide = ScorePosterior(np.arange(9.0), 4.0 * np.eye(9))
    low, high = wide.rank_interval.T
    inside = (low <= wide._ranks_of_draws) & (wide._ranks_of_draws <= high)
    assert (inside.mean(axis=0) >= 0.95).all()
    assert ((low <= wide.rank) & (wide.rank <= high)).all()
    shorter = (low[:-1] + 1 <= wide._ranks_of_draws[:, :-1]) & (
        wide._ranks_of_draws[:, :-1] <= high[:-1]
    )
    assert (shorter.mean(axis=0) < 0.95).all()


def test_the_table_of_items_is_best_first_part_by_part():
    rows = plain_fit(*TWO_PARTS).item_table()
    assert rows["item"].to_pylist() == ["a", "b", "d", "c"]
    assert rows["rank"].to_pylist() == [1, 2, 1, 2]
    assert rows["part"].to_pylist() == [1, 1, 2, 2]
    assert "part" not in plain_fit(*TWO_PARTS[:2]).item_table().column_names


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (TWO_PARTS, {}, "falls into 2 parts, the largest of 2 items"),
        (TWO_PARTS, {}, "part 2 (2 items): "),
        ([("a", "b", "x", "left"), ("b", "a", "x", "left")], {}, "by one annotator"),
        ([("a", "b", "x", "left"), ("c", "b", "y", "left")], {}, "everybody always chose the left"),
        ([("a", "b", "x", "right"), ("c", "b", "y", "right")], {}, "chose the right item"),
        ([("a", "b", "x", "tie"), ("c", "b", "y", "tie")], {}, "every comparison is a tie"),
        (
            [("a", "b", "x", "left"), ("b", "c", "y", "right")],
            {},
            "2 items were compared only once",
        ),
        ([("a", "b", "x", "left"), ("a", "c", "y", "left")], {}, "little is known of their scores"),
        (
            [*TWO_PARTS, ("a", "b", "w", "left"), ("a", "e", "w", "right")],
            {},
            "1 item was compared only once: little is known of its score\n",
        ),
        (
            [("Fox", "b", "x", "left"), ("b", " fox ", "y", "right")],
            {},
            "items ' fox ' and 'Fox' differ only in spaces, capitals or Unicode form",
        ),
        (
            [("a", "b", "caf\u00e9", "left"), ("b", "a", "cafe\u0301", "right")],
            {},
            "if they are one annotator",
        ),
        (TWO_PARTS, {"sides_known": False}, "side bias: not known"),
        ([("a", "b", "x", "left"), ("b", "a", "y", "right")] * 20, {}, "a leads: score"),
        (
            [("a", "b", "x", "left"), ("b", "a", "y", "left")] * 3,
            {},
            "tied for first: a, b (1 is in the 95% intervals",
        ),
        (TWO_PARTS, {}, "bradley-terry says nothing about them"),
    ],
)
def test_the_summary_says_what_limits_the_results(rows, options, said):
    assert said in plain_fit(*rows, **options).summary()


def test_winners_and_losers_never_say_everybody_chose_a_side():
    rows = [("a", "b", "x", "left"), ("b", "c", "y", "left")]
    assert "everybody" not in plain_fit(*rows, sides_known=False).summary()


def test_the_summary_names_leaders_sides_spammers_and_covariates(fit):
    text = fit.summary()
    assert "tied for first: " in text or " leads: score" in text
    assert "the left one is preferred" in text
    assert f"{fit.n_spammers} of 20 are spammers" in text
    assert "behavior of spammers: " in text
    assert "1 has too few votes to tell" in text
    assert "covariate length: +0.2 log odds per unit (95% interval +0.1 to +0.3)" in text


@pytest.mark.parametrize(
    ("covariates", "said"),
    [
        ({"length": [0, 0, 0]}, "covariate length is 0 in every comparison"),
        ({"length": [2, 2, 2]}, "the influences of length, the side bias cannot be separated"),
        (
            {"length": [1, 2, 4], "other": [1, 0, 0], "size": [3, 6, 12]},
            "the influences of length, size cannot be separated",
        ),
        ({"length": [1, 2, 4], "size": [1, 2, -4]}, ""),
    ],
)
def test_covariates_that_cannot_be_separated_are_said(covariates, said):
    rows = [("a", "b", "x", "left"), ("b", "a", "y", "left"), ("a", "b", "y", "right")]
    votes = {name: [row[k] for row in rows] for k, name in enumerate(COLUMNS)}
    fit = at.rank(pa.table({**votes, **covariates}), covariates=list(covariates))
    assert said in fit.summary()
    assert ("covariate" in "".join(notices(fit))) == bool(said)


def test_a_model_that_does_not_use_covariates_says_so():
    rows = {name: [value] for name, value in zip(COLUMNS, ("a", "b", "x", "left"), strict=True)}
    fit = at.rank(pa.table({**rows, "length": [1]}), "bradley-terry", covariates=["length"])
    assert "covariates: bradley-terry does not use them; pair-gpm does" in fit.summary()


def test_a_saved_fit_is_the_same_again(fit, tmp_path):
    fit.save(tmp_path / "fit")
    again = at.load(tmp_path / "fit")
    assert again.kind == "comparisons"
    assert again.summary() == fit.summary()
    for name in ("items", "annotators", "comparisons"):
        assert getattr(again, name)().equals(getattr(fit, name)())
    assert again.to_dict() == fit.to_dict()
    assert again.parameters.keys() == fit.parameters.keys()


def test_covariates_variances_and_contexts_are_saved(fit, tmp_path):
    n = fit.data.n_comparisons
    data = replace(
        fit.data,
        covariates={"length": np.arange(float(n))},
        contexts=fit.data.items,
        context=(np.arange(n) % fit.data.n_items).astype(np.int32),
    )
    diagonal = ScorePosterior(fit.scores.mean, np.diag(fit.scores.covariance))
    replace(fit, data=data, scores=diagonal).save(tmp_path)
    again = at.load(tmp_path)
    assert again.data.covariates["length"].tolist() == list(range(n))
    assert again.data.context.tolist() == data.context.tolist()
    assert again.scores.covariance.shape == (12,)


def test_rank_fits_and_label_fits_are_kept_apart(fit, tmp_path):
    fit.save(tmp_path / "ranks")
    labels = at.fit([("a", "x", 1), ("a", "y", 2)], "majority")
    labels.save(tmp_path / "labels")
    with pytest.raises(at.InputError, match="a fit of comparisons, not of labels"):
        at.fit(tmp_path / "ranks")
    with pytest.raises(at.InputError, match="a fit of comparisons, not of labels"):
        at.fit(fit)
    for given in (labels, tmp_path / "labels"):
        with pytest.raises(at.InputError, match="a fit of labels, not of comparisons"):
            at.rank(given)


@pytest.mark.parametrize(
    ("table", "column", "value", "said"),
    [
        ("comparisons", "left", 99, "left has a code outside 0..11"),
        ("comparisons", "right", -1, "right has a code outside"),
        ("comparisons", "outcome", 3, "outcome has a code outside 0..2"),
        ("comparisons", "annotator", 19, "not sorted by annotator"),
        ("comparisons", "row", 1, "a row is there twice"),
        ("comparisons", "p_serious", 1.5, "p_serious has a value outside 0..1"),
        ("items", "score", float("nan"), "score has a value that is not finite"),
        ("items", "part", 5, "part has a code outside"),
        ("annotators", "reliability", -0.5, "reliability has a value outside 0..1"),
    ],
)
def test_tampered_rank_fits_are_refused(fit, tmp_path, table, column, value, said):
    fit.save(tmp_path)
    path = data_folder(tmp_path) / f"{table}.arrow"
    values = feather.read_table(path, memory_map=False)[column].to_pylist()
    change_column(tmp_path, table, column, [value, *values[1:]])
    with pytest.raises(at.InputError, match=said):
        at.load(tmp_path)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"side_bias": [1.0]}, "the entry side_bias"),
        ({"parts": 2}, "parts is not the number of parts|code outside"),
        ({"kind": "nonsense"}, "unexpected entry"),
        ({"model": "gpm"}, "the entry model in fit.json is 'gpm'"),
        ({"settings": {"nonsense": 1}}, "has no option 'nonsense'"),
        ({"coefficients": {"x": [1, 2]}}, "the entry coefficients"),
    ],
)
def test_wrong_entries_are_refused(fit, tmp_path, entries, said):
    fit.save(tmp_path)
    write_entries(tmp_path, read_entries(tmp_path) | entries)
    with pytest.raises(at.InputError, match=said):
        at.load(tmp_path)


def test_verdicts_need_reliabilities(fit):
    verdicts = fit.verdict_table()
    assert verdicts.column_names == ["annotator", "verdict", "reason"]
    assert verdicts["verdict"].to_pylist()[-1] == "too few votes"
    assert "drop" in verdicts["verdict"].to_pylist()
    with pytest.raises(at.AnnotruthError, match="rank with model='pair-gpm'"):
        plain_fit(*TWO_PARTS).keep()


def test_grades_are_compared_by_order(fit):
    grades = dict(zip(fit.data.items.to_pylist(), fit.scores.mean.tolist(), strict=True))
    assert at.evaluate(fit, grades)["concordance"] == pytest.approx(1.0)
    reverse = {item: -grade for item, grade in grades.items()}
    assert at.evaluate(fit, reverse) == pytest.approx({"concordance": 0.0, "kendall_tau": -1.0})
    with pytest.raises(at.InputError, match="grades must be numbers"):
        at.evaluate(fit, dict.fromkeys(grades, "good"))
    with pytest.warns(at.AnnotruthWarning, match="no two items of the truth have different grades"):
        assert np.isnan(at.evaluate(fit, dict.fromkeys(grades, 1.0))["kendall_tau"])


def test_an_update_adds_votes_and_an_export_of_all_only_new_ones():
    rows = [("a", "b", "x", "left"), ("b", "c", "x", "tie"), ("a", "c", "y", "left")]
    before = at.rank(rows, "bradley-terry")
    after = at.update(before, [("a", "b", "x", "left"), ("d", "a", "z", "left")])
    assert after.data.n_comparisons == 5
    export = at.update(before, [*rows, ("d", "a", "z", "left")])
    assert export.data.n_comparisons == 4
    assert export.data.items.to_pylist() == ["a", "b", "c", "d"]
    assert at.update(before, rows) is before
    same = at.rank([*rows, ("d", "a", "z", "left")], "bradley-terry")
    scores = dict(zip(same.data.items.to_pylist(), same.scores.mean, strict=True))
    assert np.allclose(export.scores.mean, [scores[item] for item in "abcd"], atol=1e-3)


def test_votes_without_a_context_are_saved_and_not_counted_twice(tmp_path):
    rows = [("a", "b", "x", "left"), ("a", "b", "y", "right"), ("b", "c", "x", "left")]
    names = (*COLUMNS, "context")
    contexts = ("p1", None, None)
    votes = [
        dict(zip(names, (*row, c), strict=True)) for row, c in zip(rows, contexts, strict=True)
    ]
    at.rank(votes, "bradley-terry").save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    assert loaded.comparison_table()["context"].to_pylist() == list(contexts)
    later = [*votes, {**votes[0], "annotator": "z"}]
    assert at.update(loaded, later).data.n_comparisons == 4


def test_what_changed_is_said():
    from annotruth.analyses.advice.changes import rank_changes

    before = at.rank([("a", "b", "x", "left"), ("b", "c", "x", "left")], "bradley-terry")
    after = at.update(before, [("c", "a", f"p{k}", "left") for k in range(9)])
    changed = rank_changes(before, after, n_repeated=2)
    assert "new: 9 comparisons, 0 items, 9 annotators" in changed.summary()
    assert "c: 3 -> 1" in changed.summary()
    assert json.dumps(changed.to_dict())


def test_who_clearly_prefers_a_side_is_said(fit):
    """The limit is Bonferroni's: 1.54 times as wide as the 95% interval for 20 annotators."""
    n = fit.data.n_annotators
    bias = np.zeros(n)
    serious = np.flatnonzero(~fit.spammer)[:3]
    spammer = np.flatnonzero(fit.spammer)[0]
    bias[serious], bias[spammer] = [0.32, -0.9, 0.3], 2.0
    columns = {"side_bias": bias, "side_bias_low": bias - 0.2, "side_bias_high": bias + 0.2}
    biased = replace(fit, annotator_columns=columns)
    left, right = (fit.data.annotators[int(s)].as_py() for s in serious[:2])
    assert (
        f"2 annotators clearly prefer a side: {right} (right, -0.90 log odds), "
        f"{left} (left, +0.32 log odds)\n"
    ) in biased.summary()
    reasons = biased.verdict_table()["reason"].to_pylist()
    said = [s for s, reason in enumerate(reasons) if "prefers the" in reason]
    assert said == sorted(serious[:2])
    assert ", prefers the right side: " in reasons[serious[1]]
    assert "prefer a side" not in replace(fit, annotator_columns={}).summary()


def test_scores_of_thurstone_are_no_log_odds():
    rows = [("a", "b", "x", "left")] * 40 + [("b", "a", "y", "left")] * 30
    rows += [("a", "b", "y", "right"), ("a", "b", "x", "tie")]
    fit = at.rank(rows, "thurstone")
    (bias, *_), threshold = fit.side_bias, fit.parameters["tie"][0]
    left, right = ndtr(bias - threshold), ndtr(-bias - threshold)
    said = f"the left one is preferred {left / (left + right):.0%} of the time, ties apart, "
    assert f"{said}{bias:+.2f} standard deviations (95%" in fit.summary()
    better, worse = ndtr(1 - threshold), ndtr(-1 - threshold)
    assert f"better item {better / (better + worse):.0%} of the time" in score_line(fit)
    assert "log odds: with a difference of 1" in score_line(at.rank(rows, "bradley-terry"))
    assert "log odds" not in make_report(fit).html()
