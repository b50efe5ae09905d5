"""What the experiments draw and measure."""

from itertools import permutations

import numpy as np
import pytest

from annotruth import simulate
from annotruth.paper import classes, crowds, exp1a, exp1d, measuring, movie


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
def test_every_setting_of_a_crowd_reaches_it(name, other):
    def drawn(**given):
        settings = exp1a.EXPERIMENT.resolve({"items": 12, "annotators": 8, **given})
        made = crowds.crowd(settings, np.random.default_rng(1), behavior="mixed")
        return made.labels.to_arrow(), made.reliability.tolist()

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
def test_every_setting_of_scores_reaches_them(name, other):
    def drawn(**given):
        settings = exp1d.EXPERIMENT.resolve({"items": 12, "annotators": 8, **given})
        return crowds.gaussian(settings, np.random.default_rng(1)).labels.to_arrow()

    assert drawn() == drawn()
    assert drawn(**{name: other}) != drawn()


def test_the_papers_sizes_are_the_defaults():
    sizes = {"items": 150, "annotators": 25, "categories": 5}
    assert {**sizes, "spammers": 0.2}.items() <= exp1a.EXPERIMENT.resolve({}).items()
    assert {**sizes, "spammers": 0.25}.items() <= exp1d.EXPERIMENT.resolve({}).items()


def test_the_cap_and_the_iteration_of_gpm_can_be_set():
    labels = simulate.crowd(n_items=30, n_annotators=10, seed=2).labels
    settings = {"iteration": "paper", "max_iter": 1000}
    settled, capped, program = (
        measuring.gpm(labels, {**settings, **how})
        for how in ({}, {"max_iter": 2}, {"iteration": "program", "max_iter": 50})
    )
    assert settled.converged
    assert not capped.converged
    assert not np.array_equal(settled.reliability, capped.reliability)
    assert not np.array_equal(settled.reliability, program.reliability)


def test_reliability_is_measured_in_every_way_f1_may_be_counted():
    # Two spammers, one found; three serious, one called a spammer.
    found = measuring.of_reliability([0.1, 0.2, 0.7, 0.8, 0.9], [0.3, 0.6, 0.4, 0.8, 0.9])
    assert found["f1_spammer"] == pytest.approx(1 / 2)
    assert found["f1_serious"] == pytest.approx(2 / 3)
    assert found["f1_macro"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert found["f1_weighted"] == pytest.approx((2 * 1 / 2 + 3 * 2 / 3) / 5)
    assert found["rmse"] == pytest.approx(np.sqrt((0.04 + 0.16 + 0.09) / 5))


def test_a_measure_without_a_value_is_none():
    assert measuring.of_scores([1.0, 2.0], [3.0, 3.0])["plcc"] is None


def test_leads_on_real_labels_are_differences_of_accuracy(real_looking):
    found = classes.run_on(real_looking / "face")
    assert "gpm" in found
    for model, other in permutations(found, 2):
        gap = found[model]["accuracy"] - found[other]["accuracy"]
        assert found[model][f"ahead of {other}"] == pytest.approx(gap)
        assert found[model][f"error of {other}"] >= 0


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
    return movie.ratings_of(path)


def draw(ratings, **given):
    settings = movie.EXPERIMENT.resolve(
        {"films": 3, "users": 2, "film_raters": 3, "user_films": 2, **given}
    )
    return movie.draw(ratings, settings, np.random.default_rng(0))


def test_a_films_score_is_the_mean_of_all_its_ratings(ratings):
    drawn = draw(ratings)
    # The fourth film has one rater only and is never drawn.
    score = dict(zip(drawn.labels.items.to_pylist(), drawn.score.tolist(), strict=True))
    means = {"film 0": 10 / 3, "film 1": 2.0, "film 2": 3.0}
    assert score == pytest.approx({film: means[film] for film in score})
    for row in drawn.labels.to_arrow().to_pylist():
        assert STARS[int(row["item"][-1]), int(row["annotator"][-1])] == row["label"]


def test_a_films_score_may_be_that_of_others_alone(ratings):
    drawn = draw(ratings, truth="others")
    users = [int(name[-1]) for name in drawn.labels.annotators.to_pylist()]
    for film, score in zip(drawn.labels.items.to_pylist(), drawn.score, strict=True):
        stars = np.delete(STARS[int(film[-1])], users)
        assert score == pytest.approx(stars[stars > 0].mean())


def test_classes_may_be_scored_by_their_label(real_looking):
    settings = movie.EXPERIMENT.resolve({"films": 8, "users": 9, "film_raters": 5, "user_films": 3})
    runs = {
        how: movie.run({}, {**settings, "class_score": how}, np.random.default_rng(0), real_looking)
        for how in ("expectation", "label")
    }
    same = {model: runs["label"][model] == runs["expectation"][model] for model in runs["label"]}
    assert same["gpm"]
    # Where a model is certain of every class, both are the same.
    assert not all(same[model] for model in movie.DISCRETE)


def test_tables_are_of_plain_em():
    labels = simulate.crowd(n_items=20, n_annotators=8, seed=0).labels
    for model in ("gpm", "dawid-skene", "glad", "ordinal-binary"):
        assert measuring.fitted(labels, model).settings["acceleration"] is False
    assert "acceleration" not in measuring.fitted(labels, "majority").settings
