"""What the experiments simulate, draw and measure; the published program beside the paper's equations."""

from itertools import permutations

import numpy as np
import pytest

from annotruth import simulate
from annotruth.observations import Labels
from annotruth.paper import measures, real_labels, simulated
from annotruth.paper.measures import fit_gpm, run_published_program


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("items", 13),
        ("annotators", 9),
        ("categories", 4),
        ("spammers", 0.9),
        ("shape", "density"),
        ("mixing", "label"),
        ("reliable_above_half", False),
    ],
)
def test_every_setting_changes_the_crowd(name, other):
    def drawn(**given):
        settings = simulated.EXP1A.resolve({"items": 12, "annotators": 8, **given})
        simulation = simulated.simulate_crowd(settings, np.random.default_rng(1), behavior="mixed")
        return simulation.labels.to_arrow(), simulation.reliability.tolist()

    assert drawn() == drawn()
    assert drawn(**{name: other}) != drawn()


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("spammers", 0.9),
        ("mixing", "label"),
        ("reliable_above_half", False),
        ("precision", "label"),
        ("gamma", "scale"),
    ],
)
def test_every_setting_changes_the_scores(name, other):
    def drawn(**given):
        settings = simulated.EXP1D.resolve({"items": 12, "annotators": 8, **given})
        return simulated.simulate_scores(settings, np.random.default_rng(1)).labels.to_arrow()

    assert drawn() == drawn()
    assert drawn(**{name: other}) != drawn()


def test_default_sizes_are_those_of_the_paper():
    sizes = {"items": 150, "annotators": 25, "categories": 5}
    assert {**sizes, "spammers": 0.2}.items() <= simulated.EXP1A.resolve({}).items()
    assert {**sizes, "spammers": 0.25}.items() <= simulated.EXP1D.resolve({}).items()


def test_maximum_and_kind_of_iterations_can_be_set():
    labels = simulate.crowd(n_items=30, n_annotators=10, seed=2).labels
    settings = {"iteration": "paper", "max_iter": 1000}
    converged, capped, program = (
        measures.fit_gpm(labels, {**settings, **options})
        for options in ({}, {"max_iter": 2}, {"iteration": "program", "max_iter": 50})
    )
    assert converged.converged
    assert not capped.converged
    assert not np.array_equal(converged.reliability, capped.reliability)
    assert not np.array_equal(converged.reliability, program.reliability)


def test_reliability_is_measured_by_every_variant_of_f1():
    # Two spammers, one detected; three serious, one called a spammer. One half is serious.
    measured = measures.measure_reliability([0.1, 0.2, 0.5, 0.8, 0.9], [0.3, 0.5, 0.4, 0.8, 0.9])
    assert measured["f1_spammer"] == pytest.approx(1 / 2)
    assert measured["f1_serious"] == pytest.approx(2 / 3)
    assert measured["f1_macro"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert measured["f1_weighted"] == pytest.approx((2 * 1 / 2 + 3 * 2 / 3) / 5)
    assert measured["rmse"] == pytest.approx(np.sqrt((0.04 + 0.09 + 0.01) / 5))


def test_a_measure_without_a_value_is_none():
    assert measures.measure_scores([1.0, 2.0], [3.0, 3.0])["plcc"] is None


def test_leads_are_differences_of_accuracy(small_datasets):
    rng = np.random.default_rng(0)
    results = real_labels.compare_classes("face", {}, {}, rng, small_datasets)
    assert "gpm" in results
    for model, other in permutations(results, 2):
        lead = results[model]["accuracy"] - results[other]["accuracy"]
        assert results[model][f"ahead of {other}"] == pytest.approx(lead)
        assert results[model][f"error of {other}"] >= 0


STARS = np.array(
    [
        [5, 4, 0, 1],
        [2, 2, 2, 2],
        [1, 0, 3, 5],
        [0, 0, 0, 4],
    ]
)


@pytest.fixture
def ratings(tmp_path):
    path = tmp_path / "labels.csv"
    rows = [f"film {film},user {user},{STARS[film, user]}" for film, user in np.argwhere(STARS)]
    path.write_text("\n".join(["item,annotator,label", *rows]))
    return real_labels.read_ratings(path)


def draw(ratings, **given):
    settings = real_labels.MOVIE.resolve(
        {"films": 3, "users": 2, "film_raters": 3, "user_films": 2, **given}
    )
    return real_labels.draw_ratings(ratings, settings, np.random.default_rng(0))


def test_score_of_a_movie_is_the_mean_of_all_its_ratings(ratings):
    sample = draw(ratings)
    # The fourth film has one rater only and is never drawn.
    score = dict(zip(sample.labels.items.to_pylist(), sample.score.tolist(), strict=True))
    means = {"film 0": 10 / 3, "film 1": 2.0, "film 2": 3.0}
    assert score == pytest.approx({film: means[film] for film in score})
    for row in sample.labels.to_arrow().to_pylist():
        assert STARS[int(row["item"][-1]), int(row["annotator"][-1])] == row["label"]


def test_score_of_a_movie_may_exclude_the_drawn_users(ratings):
    sample = draw(ratings, truth="others")
    users = [int(name[-1]) for name in sample.labels.annotators.to_pylist()]
    for film, score in zip(sample.labels.items.to_pylist(), sample.score, strict=True):
        stars = np.delete(STARS[int(film[-1])], users)
        assert score == pytest.approx(stars[stars > 0].mean())


def test_classes_may_be_scored_by_their_label(small_datasets):
    settings = real_labels.MOVIE.resolve(
        {"films": 8, "users": 9, "film_raters": 5, "user_films": 3}
    )
    runs = {
        by: real_labels.compare_scores(
            {}, {**settings, "class_score": by}, np.random.default_rng(0), small_datasets
        )
        for by in ("expectation", "label")
    }
    same = {model: runs["label"][model] == runs["expectation"][model] for model in runs["label"]}
    assert same["gpm"]
    # Where a model is certain of every class, both are the same.
    assert not all(same[model] for model in real_labels.DISCRETE)


def test_tables_use_plain_em():
    labels = simulate.crowd(n_items=20, n_annotators=8, seed=0).labels
    for model in ("gpm", "dawid-skene", "glad", "ordinal-binary"):
        assert measures.fit_model(labels, model).settings["acceleration"] is False
    assert "acceleration" not in measures.fit_model(labels, "majority").settings


# Two items, two annotators: item 1 has labels a and b, item 2 has a twice.
LABELS = [(1, "x", "a"), (1, "y", "b"), (2, "x", "a"), (2, "y", "a")]


def test_both_iterations_have_the_same_fixed_point_with_many_labels():
    labels = simulate.crowd(n_items=60, n_annotators=60, seed=4).labels
    ours = fit_gpm(labels, {"iteration": "paper", "max_iter": 1000})
    theirs = run_published_program(labels, max_iter=5000, tol=1e-7)
    assert theirs.converged
    np.testing.assert_allclose(theirs.reliability, ours.reliability, atol=0.02)
    np.testing.assert_allclose(theirs.distribution.sum(axis=1), 1.0)


def test_first_step_by_hand():
    estimate = run_published_program(Labels.of(LABELS), max_iter=1)
    # Shares are 1/2 on item 1 and 1 on item 2, so mu = .25/(.25+.25) and .5/(.5+.25).
    np.testing.assert_allclose(estimate.reliability, [(1 / 2 + 2 / 3) / 2] * 2)
    np.testing.assert_allclose(estimate.distribution, [[0.5, 0.5], [1.0, 0.0]])
    assert not estimate.converged


def test_divisor_is_that_of_the_previous_step():
    # The second step sees theta = 1/2 and 4/3 of item 1 and 2: sums of mu, divided by 1.
    estimate = run_published_program(Labels.of(LABELS), max_iter=2)
    eps = (1 / 2 + 2 / 3) / 2
    mu = [eps * theta / (eps * theta + (1 - eps) / 2) for theta in (1 / 2, 4 / 3)]
    np.testing.assert_allclose(estimate.reliability, [sum(mu) / 2] * 2)
