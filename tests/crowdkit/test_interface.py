"""What all aggregators share: names, forms and errors of crowd-kit."""

import importlib
import math

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

import annotruth as at
from annotruth import crowdkit
from annotruth.crowdkit.base import Aggregator
from annotruth.errors import NotFittedError

LABELS = ["cat", "dog", "eel"]
MODELS = ["DawidSkene", "OneCoinDawidSkene", "GLAD", "MACE", "GPM", "RobustGPM"]
VOTES = ["MajorityVote", "Wawa", "ZeroBasedSkill"]
OTHERS = ["BinaryRelevance", "BradleyTerry", "GoldMajorityVote", "KOS", "MMSR", "NoisyBradleyTerry"]


def test_every_class_is_exported():
    names = sorted([*MODELS, *VOTES, *OTHERS])
    assert sorted(crowdkit.__all__) == names
    prefixed = importlib.import_module("annotruth.crowdkit.aggregation")
    for name in names:
        cls = getattr(crowdkit, name)
        assert issubclass(cls, Aggregator)
        assert getattr(prefixed, name) is cls


@pytest.mark.parametrize("name", ["base", "utils"])
def test_modules_have_the_names_of_crowd_kit(name):
    module = importlib.import_module(f"annotruth.crowdkit.{name}")
    prefixed = importlib.import_module(f"annotruth.crowdkit.aggregation.{name}")
    for member in module.__all__:
        assert getattr(prefixed, member) is getattr(module, member)


@pytest.mark.parametrize("name", [*MODELS, *VOTES])
def test_results_have_the_names_and_shapes_of_crowd_kit(name, frame):
    model = getattr(crowdkit, name)()
    n = frame["task"].nunique()
    labels = model.fit_predict(frame)
    assert labels is model.labels_
    assert (labels.name, labels.index.name, labels.shape) == ("agg_label", "task", (n,))
    assert labels.dtype == frame["label"].dtype
    probas = model.fit_predict_proba(frame)
    assert probas is model.probas_
    columns_name = {"GLAD": "variable", "MACE": None}.get(name, "label")
    assert (probas.index.name, probas.columns.name) == ("task", columns_name)
    assert sorted(probas.columns) == LABELS
    assert probas.sum(axis="columns").to_numpy() == pytest.approx(1.0)
    assert_series_equal(model.labels_, probas.idxmax(axis="columns"), check_names=False)
    skills = model.skills_
    assert (skills.name, skills.index.name, skills.shape) == ("skill", "worker", (7,))
    assert model.fit(frame) is model
    assert_frame_equal(model.probas_, probas)


@pytest.mark.parametrize("name", MODELS)
def test_the_fit_of_annotruth_is_under_a_model(name, frame):
    model = getattr(crowdkit, name)().fit(frame)
    fit = model.model_.result_
    assert fit.items().shape[0] == frame["task"].nunique()
    assert not fit.data.scale.is_ordinal
    assert len(model.loss_history_) == fit.n_iter


@pytest.mark.parametrize("name", [*MODELS, *VOTES, "MMSR", "KOS"])
def test_order_and_types_of_ids_do_not_matter(name, binary_frame, frame_of):
    numbers = {"cat": 3, "dog": 7}
    rows = binary_frame.itertuples(index=False)
    coded = frame_of([(int(r.task[1:]), int(r.worker[1:]), numbers[r.label]) for r in rows])
    found = getattr(crowdkit, name)().fit_predict(coded)
    assert found.index.dtype == found.dtype == "int64"
    expected = getattr(crowdkit, name)().fit_predict(binary_frame)
    renamed = {int(task[1:]): numbers[label] for task, label in expected.items()}
    assert found.to_dict() == renamed


@pytest.mark.parametrize("name", [*MODELS, *VOTES, "MMSR", "KOS", "BinaryRelevance"])
@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_a_missing_column_is_a_key_error(name, column, frame):
    with pytest.raises(KeyError, match=f"no column '{column}'") as caught:
        getattr(crowdkit, name)().fit_predict(frame.drop(columns=column))
    assert isinstance(caught.value, at.InputError)


def test_other_tables_are_refused():
    with pytest.raises(at.InputError, match="pass a pandas frame of task, worker, label"):
        crowdkit.MajorityVote().fit([("t1", "w1", "cat")])


@pytest.mark.parametrize("name", ["DawidSkene", "OneCoinDawidSkene", "GPM", "RobustGPM", "MACE"])
def test_true_labels_are_kept(name, frame):
    model = getattr(crowdkit, name)
    truths = pd.Series({"t00": "eel", "other": "cat"})  # of other tasks, they are left out
    assert model().fit_predict(frame)["t00"] == "cat"
    assert model().fit(frame, truths).probas_.loc["t00", "eel"] == 1.0
    assert model().fit_predict(frame, true_labels=truths[1:])["t00"] == "cat"


def test_results_before_a_fit_are_refused(frame):
    with pytest.raises(NotFittedError, match="call fit first"):
        _ = crowdkit.DawidSkene().loss_history_
    with pytest.raises(NotFittedError, match="no skills_"):
        crowdkit.Wawa().predict(frame)
    assert not hasattr(crowdkit.MajorityVote(), "alphas_")
    with pytest.raises(AttributeError, match="no attribute 'alpha'"):
        _ = crowdkit.MajorityVote().alpha


def test_missing_labels_are_no_votes(frame_of):
    frame = frame_of([("t1", "w1", "cat"), ("t1", "w2", None), ("t1", "w3", None)])
    assert crowdkit.MajorityVote().fit(frame).skills_.to_dict() == {"w1": 1.0}
    assert crowdkit.DawidSkene().fit(frame).probas_.to_dict() == {"cat": {"t1": 1.0}}


def test_glad_refuses_priors_and_has_abilities_and_easiness(frame):
    model = crowdkit.GLAD(100).fit(frame)
    assert (model.alphas_.name, model.alphas_.index.name) == ("alpha", "worker")
    assert (model.betas_.name, model.betas_.index.name) == ("beta", "task")
    assert model.alphas_[["w5", "w6"]].max() < model.alphas_[["w0", "w1"]].min()
    with pytest.raises(at.InputError, match="labels_priors is not supported: all labels are equal"):
        crowdkit.GLAD(labels_priors=pd.Series({"cat": 1.0}))


def test_glad_without_iterations_has_equal_abilities(frame_of):
    frame = frame_of([("t1", "w1", "cat"), ("t1", "w2", "cat"), ("t1", "w3", "dog")])
    model = crowdkit.GLAD(n_iter=0).fit(frame)
    assert model.alphas_.tolist() == [1.0, 1.0, 1.0]
    # The log-odds of a right label are exp(b) = e; two labels against one leave one of them.
    assert model.probas_.loc["t1", "cat"] == pytest.approx(1.0 / (1.0 + math.exp(-math.e)))


def test_binary_relevance_aggregates_each_label(frame_of):
    rows = [
        ("t2", "w1", ["house", "tree"]),
        ("t2", "w2", ["house"]),
        ("t2", "w3", ["tree", "house", "grass"]),
        ("t1", "w1", ["grass"]),
        ("t1", "w2", ["car", "tree"]),
        ("t1", "w3", []),
    ]
    base = crowdkit.DawidSkene(n_iter=7, tol=1e-3)
    model = crowdkit.BinaryRelevance(base)
    labels = model.fit_predict(frame_of(rows))
    assert (labels.name, labels.index.name) == ("agg_label", "task")
    assert labels.to_dict() == {"t2": ["house", "tree"], "t1": []}
    assert list(model.aggregators_) == ["car", "grass", "house", "tree"]
    assert {each.n_iter for each in model.aggregators_.values()} == {7}
    assert not hasattr(base, "labels_")
    assert crowdkit.BinaryRelevance().fit_predict(frame_of([])).empty
    with pytest.raises(at.InputError, match="pass one of annotruth"):
        crowdkit.BinaryRelevance(at.DawidSkene())
