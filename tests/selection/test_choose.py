"""Model selection by held-out labels, and `fit` with the model "auto"."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth import simulate
from annotruth.models.registry import DEFAULT_MODEL, MODELS
from annotruth.selection import choose as choosing
from annotruth.selection.heldout import HeldOut

NEEDS_ORDER = {"mean", "median", "ordinal-binary", "ordinal-mixture", "subject-bias"}


@pytest.fixture(scope="module")
def made():
    return simulate.crowd(
        n_items=50, n_annotators=10, n_categories=3, behavior="repeated", spammer_share=0.3, seed=1
    )


@pytest.fixture(scope="module")
def choice(made):
    return at.choose(made.labels, folds=3)


def decide(**log_p):
    """Decide among models with these log-probabilities of four labels of four items."""
    scores = {
        name.replace("_", "-"): HeldOut(
            name.replace("_", "-"),
            np.array(p, dtype=float),
            np.arange(len(p)),
            np.arange(len(p)),
            n_unscored=0,
            converged=True,
        )
        for name, p in log_p.items()
    }
    ordered = dict(sorted(scores.items(), key=lambda pair: -pair[1].score))
    return choosing.decide(ordered, DEFAULT_MODEL)


def test_the_best_score_wins():
    model, why = decide(majority=[-1, -1, -1, -1.1], robust_gpm=[-2, -2, -2, -2.1], gpm=[-3] * 4)
    assert model == "majority"
    assert why == (
        "majority predicts held-out labels best (mean log-probability -1.0250 ± 0.0250 per label), "
        "1.0000 ± 0.0000 ahead of the default robust-gpm"
    )
    model, why = decide(majority=[-2, -2, -2, -2.1], gpm=[-3] * 4)
    assert model == "majority"
    assert why.endswith(", 0.9750 ± 0.0250 ahead of gpm")


def test_the_default_is_kept_within_one_standard_error():
    """The standard error is that of the difference, which is smaller than those of the scores."""
    best = [-1.0, -5.0, -1.0, -5.0]
    near = [-1.2, -4.9, -1.1, -4.9]  # 0.025 behind, with an error of 0.075
    model, why = decide(glad=best, robust_gpm=near)
    assert model == "robust-gpm"
    assert why.startswith("glad predicts held-out labels best (mean log-probability -3.0000 ± ")
    assert why.endswith(
        "; the default robust-gpm is within one standard error (0.0250 ± 0.0750 behind)"
    )
    always_behind = [p - 0.1 for p in best]
    assert decide(glad=best, robust_gpm=always_behind)[0] == "glad"
    # Of other models, the best one is taken.
    assert decide(glad=best, gpm=near, robust_gpm=always_behind)[0] == "glad"


def test_the_default_is_kept_if_the_error_is_unknown():
    model, why = decide(glad=[-1.0], robust_gpm=[-2.0])
    assert model == "robust-gpm"
    assert why.endswith("robust-gpm is not known to be worse (1.0000 ± unknown behind)")


def test_of_equal_models_the_first_in_the_registry_wins():
    labels = [(item, person, 1) for item in range(4) for person in "ab"]
    choice = at.choose(labels, ["glad", "gpm", "majority"], folds=2)
    tied = [name for name in MODELS if name in choice.scores]
    scores = {choice.scores[name].score for name in ("majority", "gpm")}
    assert len(scores) == 1
    assert choice.model == tied[0] == "majority"


def test_all_models_are_scored_on_the_same_labels(made, choice):
    assert set(choice.scores) == set(MODELS)
    scores = [result.score for result in choice.scores.values()]
    assert scores == sorted(scores, reverse=True)
    for result in choice.scores.values():
        np.testing.assert_array_equal(result.item, choice.scores["gpm"].item)
        assert result.n_scored == made.labels.n_labels
    assert choice.scores["gpm"].score == at.held_out("gpm", made.labels, folds=3).score
    # Only these two models have annotators who repeat one label.
    assert choice.model in ("robust-gpm", "dawid-skene")
    assert choice.model in choice.why


def test_labels_of_chance_keep_the_default():
    """Annotators' favorite labels are predicted by the default as well as by other models."""
    rng = np.random.default_rng(3)
    favorite = rng.dirichlet(np.full(4, 0.5), size=8)
    rows = [
        (item, person, "wxyz"[rng.choice(4, p=favorite[person])])
        for item in range(150)
        for person in rng.choice(8, 4, replace=False).tolist()
    ]
    choice = at.choose(rows, ["robust-gpm", "one-coin", "ibcc", "mace"])
    assert at.fit(rows).verdict == "chance"
    assert choice.model == "robust-gpm"


def test_a_choice_is_frozen_and_has_a_table(choice):
    with pytest.raises(dataclasses.FrozenInstanceError):
        choice.model = "other"
    with pytest.raises(TypeError):
        choice.scores["gpm"] = None
    table = choice.table()
    assert isinstance(table, pd.DataFrame)
    assert list(table.model) == list(choice.scores)
    assert table.behind.iloc[0] == 0.0
    assert table.behind.is_monotonic_increasing
    assert choice.model in repr(choice)


def test_only_named_models_are_compared(made):
    choice = at.choose(made.labels, ["gpm", "majority", "gpm"], folds=2)
    assert set(choice.scores) == {"gpm", "majority"}
    with pytest.raises(at.InputError, match="unknown model 'oracle'"):
        at.choose(made.labels, ["oracle"])


def test_models_that_need_an_order_are_refused_on_nominal_scales(made):
    frame = made.labels.to_arrow().to_pandas()
    words = frame.assign(label=frame.label.map({1: "ant", 2: "bee", 3: "cat"}))
    choice = at.choose(words, folds=2)
    assert set(choice.refused) == NEEDS_ORDER
    assert set(choice.scores) == set(MODELS) - NEEDS_ORDER
    assert "needs an ordinal scale" in choice.refused["mean"]
    table = choice.table().set_index("model")
    assert table.refused.notna().sum() == len(NEEDS_ORDER)
    assert table.score.notna().sum() == len(MODELS) - len(NEEDS_ORDER)
    with pytest.raises(at.InputError, match=r"no model can be fitted; mean needs an ordinal scale"):
        at.choose(words, ["mean", "median"])


def test_a_model_that_needs_too_much_memory_is_refused(made, monkeypatch):
    monkeypatch.setattr("annotruth.models.confusion.estimator._MAX_BYTES", 10.0)
    choice = at.choose(made.labels, ["dawid-skene", "gpm"], folds=2)
    assert choice.model == "gpm"
    assert choice.refused["dawid-skene"].startswith("dawid-skene needs")
    assert choice.to_dict()["scores"]["dawid-skene"]["refused"] == choice.refused["dawid-skene"]


def test_many_labels_are_sampled_by_item(made, monkeypatch):
    monkeypatch.setattr(choosing, "MAX_LABELS", 499)
    monkeypatch.setattr(choosing, "SAMPLED_LABELS", 200)
    choice = at.choose(made.labels, ["gpm", "majority"], folds=2)
    assert choice.scores["gpm"].n_scored == 200
    assert choice.why.endswith(
        "; compared on 200 of 500 labels, those of a random sample of 20 of 50 items"
    )
    other = at.choose(made.labels, ["gpm", "majority"], folds=2, seed=1)
    assert other.scores["gpm"].score != choice.scores["gpm"].score
    shuffled = made.labels.to_arrow().to_pandas().sample(frac=1.0, random_state=0)
    again = at.choose(shuffled, ["gpm", "majority"], folds=2)
    assert again.scores["gpm"].score == pytest.approx(choice.scores["gpm"].score, abs=1e-6)


def test_the_labels_of_each_fold_are_left_out_once_for_all_models(made, monkeypatch):
    subset, fitted = at.Labels.subset, []

    def count(labels, kept):
        fitted.append(int(kept.sum()))
        return subset(labels, kept)

    monkeypatch.setattr(at.Labels, "subset", count)
    choice = at.choose(made.labels, ["mean", "majority"], folds=2)
    assert fitted == [250, 250]
    monkeypatch.undo()
    for name, score in choice.scores.items():
        alone = at.held_out(name, made.labels, folds=2)
        np.testing.assert_array_equal(score.log_p, alone.log_p)


def test_enough_scored_labels_need_no_further_folds(made, monkeypatch):
    reported = []
    all_folds = at.choose(made.labels, ["gpm", "majority"])
    monkeypatch.setattr(choosing, "MAX_SCORED", 150)
    choice = at.choose(made.labels, ["gpm", "majority"], progress=reported.append)
    # Two folds of 100 labels each, whose models are fitted to all other labels.
    assert choice.scores["gpm"].n_scored == 200
    assert choice.scores["gpm"].n_unscored == 300
    assert {one.stage for one in reported if "gpm" in one.stage} == {
        f"cross-validating gpm, fold {k} of 2" for k in (1, 2)
    }
    assert set(choice.scores["gpm"].log_p) <= set(all_folds.scores["gpm"].log_p)


def test_auto_fits_the_chosen_model_to_all_labels(made, tmp_path):
    reported = []
    fit = at.fit(made.labels, "auto", progress=reported.append)
    choice = at.choose(made.labels)
    assert fit.model == choice.model == fit.chosen["model"]
    assert fit.chosen == choice.to_dict()
    assert f"chosen: {choice.why}" in fit.summary()
    plain = at.fit(made.labels, choice.model)
    pd.testing.assert_frame_equal(fit.items(), plain.items())
    assert plain.chosen is None
    assert "chosen" not in plain.summary()
    assert {one.stage for one in reported} >= {"", "cross-validating gpm, fold 1 of 5"}

    fit.save(tmp_path / "fit")
    again = at.load(tmp_path / "fit")
    assert again.chosen == fit.chosen
    assert again.summary() == fit.summary()
    plain.save(tmp_path / "plain")
    assert "chosen" not in json.loads((tmp_path / "plain" / "fit.json").read_text())


def test_auto_uses_gold(made):
    truth = dict(zip(range(1, 51), (made.label + 1).tolist(), strict=True))
    with_gold = at.fit(made.labels, "auto", gold=truth)
    assert with_gold.chosen["scores"] != at.fit(made.labels, "auto").chosen["scores"]


def test_auto_with_an_annotator_prior_refuses_models_that_take_none(made):
    fit = at.fit(made.labels, "auto", annotator_prior={1: 0.9, 2: 0.1})
    assert fit.model == "robust-gpm"
    assert "robust-gpm is the only model that could be compared" in fit.chosen["why"]
    assert "takes no annotator_prior" in fit.chosen["scores"]["gpm"]["refused"]


def test_auto_takes_no_options(made):
    with pytest.raises(at.InputError, match="auto chooses the model and sets no options: name a"):
        at.fit(made.labels, "auto", tol=1e-6)


@pytest.mark.parametrize("rows", [[("a", "x", 1)], [("a", "x", 1), ("b", "x", 2)]])
def test_auto_on_too_few_labels_says_what_to_do(rows):
    with pytest.raises(at.InputError, match=r"add labels, or choose a model by name"):
        at.fit(rows, "auto")


def test_the_standard_error_of_one_item_is_unknown():
    labels = [("a", "x", 1), ("a", "y", 2), ("a", "z", 2), ("b", "x", 1), ("c", "y", 2)]
    why = at.choose(labels, ["majority", "gpm"]).why
    assert "± unknown" in why
    assert "nan" not in why
