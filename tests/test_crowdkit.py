"""Programs written for crowd-kit, with only the import changed."""

import importlib
import inspect

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth import crowdkit

NAMES = ["MajorityVote", "DawidSkene", "GLAD", "GPM", "RobustGPM"]
LABELS = ["cat", "dog", "eel"]


@pytest.fixture(scope="module")
def frame():
    """Labels of seven workers, two of whom guess; no task has a tie."""
    rng = np.random.default_rng(5)
    rows = []
    for task in range(40):
        truth = task % 3
        votes = np.where(rng.random(7) < [0.9, 0.85, 0.9, 0.8, 0.9, 0.34, 0.34], truth, -1)
        votes = np.where(votes < 0, rng.integers(3, size=7), votes)
        top = np.sort(np.bincount(votes, minlength=3))
        if top[-1] > top[-2]:
            rows += [(f"t{task}", f"w{s}", LABELS[v]) for s, v in enumerate(votes)]
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def test_the_readme_example_of_crowd_kit_runs(frame, tmp_path):
    frame.to_csv(tmp_path / "results.csv", index=False)
    from annotruth.crowdkit import DawidSkene

    df = pd.read_csv(tmp_path / "results.csv")
    aggregated_labels = DawidSkene(n_iter=100).fit_predict(df)
    assert aggregated_labels.name == "agg_label"
    assert set(aggregated_labels) == set(LABELS)
    assert DawidSkene(100).fit_predict(df).equals(aggregated_labels)


@pytest.mark.parametrize("name", NAMES)
def test_results_have_the_names_and_shapes_of_crowd_kit(name, frame):
    model = getattr(crowdkit, name)()
    n = frame["task"].nunique()
    labels = model.fit_predict(frame)
    assert (labels.name, labels.index.name, labels.shape) == ("agg_label", "task", (n,))
    probas = model.fit_predict_proba(frame)
    assert (probas.index.name, probas.columns.name, probas.shape) == ("task", "label", (n, 3))
    assert list(probas.columns) == LABELS
    assert probas.sum(axis=1).to_numpy() == pytest.approx(1.0)
    skills = model.skills_
    assert (skills.name, skills.index.name, skills.shape) == ("skill", "worker", (7,))
    assert model.fit(frame) is model
    assert model.labels_.equals(labels)


def test_dawid_skene_has_priors_errors_and_a_history(frame):
    model = crowdkit.DawidSkene(100).fit(frame)
    assert (model.priors_.name, model.priors_.index.name) == ("prior", "label")
    assert model.errors_.index.names == ["worker", "label"]
    assert model.errors_.groupby("worker").sum().to_numpy() == pytest.approx(1.0)
    assert list(model.errors_.columns) == LABELS
    assert model.loss_history_ == sorted(model.loss_history_)
    assert len(model.loss_history_) == model.model_.result_.n_iter + 1


def test_glad_has_abilities_and_easiness(frame):
    model = crowdkit.GLAD(100).fit(frame)
    assert (model.alphas_.name, model.alphas_.index.name) == ("alpha", "worker")
    assert (model.betas_.name, model.betas_.index.name) == ("beta", "task")


def test_majority_vote_has_skills(frame):
    model = crowdkit.MajorityVote().fit(frame)
    is_right = frame["label"].to_numpy() == model.labels_[frame["task"]].to_numpy()
    expected = pd.Series(is_right).groupby(frame["worker"].to_numpy()).mean()
    assert model.skills_.to_numpy() == pytest.approx(expected[model.skills_.index].to_numpy())


@pytest.mark.parametrize("name", ["DawidSkene", "GPM", "RobustGPM"])
def test_true_labels_are_kept(name, frame):
    wrong = pd.Series({"t0": "eel"})
    model = getattr(crowdkit, name)
    assert model().fit_predict(frame)["t0"] == "cat"
    assert model().fit_predict(frame, true_labels=wrong)["t0"] == "eel"
    assert model().fit(frame, wrong).probas_.loc["t0", "eel"] == 1.0


def test_numbers_are_classes_and_repeated_labels_are_votes():
    rows = [(1, "a", 2), (1, "a", 2), (1, "b", 3), (2, "b", 3)]
    model = crowdkit.MajorityVote().fit(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    assert model.labels_.to_dict() == {1: 2, 2: 3}
    assert not model.model_.result_.data.scale.is_ordinal


def test_reaching_the_maximum_number_of_iterations_warns(frame):
    with pytest.warns(at.ConvergenceWarning):
        crowdkit.DawidSkene(2, tol=0.0).fit(frame)


def test_unsupported_options_are_refused(frame):
    with pytest.raises(at.InputError, match="labels_priors is not supported"):
        crowdkit.GLAD(labels_priors=pd.Series({"cat": 1.0}))
    with pytest.raises(at.InputError, match="not weighted by given skills"):
        crowdkit.MajorityVote().fit_predict(frame, skills=pd.Series({"w0": 1.0}))
    with pytest.raises(at.AnnotruthError, match="not fitted yet"):
        _ = crowdkit.DawidSkene().loss_history_


@pytest.fixture(scope="module")
def original():
    """crowd-kit, where it is installed."""
    return pytest.importorskip("crowdkit.aggregation")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ["MajorityVote", "DawidSkene", "GLAD"])
def test_options_and_labels_are_those_of_crowd_kit(original, name, frame):
    theirs, ours = getattr(original, name), getattr(crowdkit, name)
    options = [
        [(p.name, p.default) for p in inspect.signature(cls).parameters.values()]
        for cls in (ours, theirs)
    ]
    assert options[0] == options[1]
    labels = theirs().fit_predict(frame)
    assert ours().fit_predict(frame)[labels.index].tolist() == labels.tolist()
    probas = theirs().fit_predict_proba(frame)
    found = ours().fit_predict_proba(frame).loc[probas.index, probas.columns]
    assert np.abs(found.to_numpy() - probas.to_numpy()).max() < (0.2 if name == "GLAD" else 0.01)


def test_every_class_is_exported():
    module = importlib.import_module("annotruth.crowdkit")
    assert sorted(module.__all__) == sorted(NAMES)
