"""What the experiments simulate, draw and measure."""

from itertools import permutations

import numpy as np
import pytest

from annotruth import simulate
from annotruth.paper import measures, real_labels, simulated
from annotruth.paper.error_curves import EXP1B


@pytest.mark.parametrize(
    ("experiment", "draw"),
    [
        (
            simulated.EXP1A,
            lambda *given: simulated.simulate_crowd(*given, behavior="mixed"),
        ),
        (simulated.EXP1D, simulated.simulate_scores),
    ],
    ids=["crowd", "scores"],
)
def test_every_setting_changes_the_crowd(experiment, draw):
    def drawn(**given):
        settings = experiment.resolve({"items": 12, "annotators": 8, **given})
        return draw(settings, np.random.default_rng(1)).labels.to_arrow()

    others = {"items": 13, "annotators": 9, "categories": 4, "spammers": 0.9, "mixing": "label"}
    assert drawn() == drawn()
    for name, other in others.items():
        assert drawn(**{name: other}) != drawn()


def test_default_sizes_are_those_of_the_paper():
    sizes = {"items": 150, "annotators": 25, "categories": 5}
    assert {**sizes, "spammers": 0.2}.items() <= simulated.EXP1A.resolve({}).items()
    assert {**sizes, "spammers": 0.25}.items() <= simulated.EXP1D.resolve({}).items()


@pytest.mark.parametrize("experiment", [simulated.EXP1A, simulated.EXP1D, EXP1B])
def test_maximum_of_iterations_can_be_set(experiment):
    settings = experiment.resolve({"items": 12, "annotators": 8, "max_iter": 2})
    (condition, *_) = experiment.conditions(settings)
    results = experiment.run(condition, settings, np.random.default_rng(1), None)
    assert results["gpm"]["converged"] == 0.0


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


def test_tables_use_plain_em():
    labels = simulate.crowd(n_items=20, n_annotators=8, seed=0).labels
    for model in ("gpm", "dawid-skene", "glad", "ordinal-binary"):
        assert measures.fit_model(labels, model).settings["acceleration"] is False
    assert "acceleration" not in measures.fit_model(labels, "majority").settings
