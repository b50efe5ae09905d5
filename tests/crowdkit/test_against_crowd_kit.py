"""Results beside those of crowd-kit, where it is installed."""

import inspect

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

from annotruth import crowdkit
from annotruth.crowdkit.metrics.data import alpha_krippendorff, consistency, uncertainty

original = pytest.importorskip("crowdkit.aggregation")
pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = [name for name in crowdkit.__all__ if name not in ("GPM", "RobustGPM")]


def assert_same(found, expected):
    """Compare results with equal names; crowd-kit's order of rows depends on pandas' version."""
    if isinstance(expected, pd.DataFrame):
        found, expected = (x.sort_index().sort_index(axis="columns") for x in (found, expected))
        assert_frame_equal(found, expected, rtol=1e-6, atol=1e-7)
    elif isinstance(expected, pd.Series):
        assert_series_equal(found.sort_index(), expected.sort_index(), rtol=1e-6, atol=1e-7)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_options_are_those_of_crowd_kit(name):
    ours, theirs = (
        [(p.name, p.default) for p in inspect.signature(getattr(module, name)).parameters.values()]
        for module in (crowdkit, original)
    )
    if name == "BinaryRelevance":  # the default is an aggregator
        ours, theirs = [ours[0][0]], [theirs[0][0]]
    assert ours == theirs[: len(ours)]
    assert all(
        name.startswith(("observation", "cov", "n_", "labels_", "workers_", "tasks_"))
        for name, _ in theirs[len(ours) :]
    )


@pytest.mark.parametrize(
    ("name", "options", "results"),
    [
        ("MajorityVote", {}, ["probas_", "labels_", "skills_"]),
        ("DawidSkene", {}, ["loss_history_", "probas_", "labels_", "priors_", "errors_"]),
        ("DawidSkene", {"n_iter": 2}, ["probas_", "labels_", "priors_", "errors_"]),
        ("OneCoinDawidSkene", {}, ["loss_history_", "probas_", "labels_", "priors_", "skills_"]),
        ("MMSR", {}, ["skills_", "loss_history_"]),
        ("Wawa", {}, ["skills_"]),
        ("ZeroBasedSkill", {}, ["skills_"]),
    ],
)
def test_results_are_those_of_crowd_kit(name, options, results, frame):
    ours, theirs = (getattr(m, name)(**options).fit(frame) for m in (crowdkit, original))
    for result in results:
        assert_same(getattr(ours, result), getattr(theirs, result))


def test_labels_of_glad_are_those_of_crowd_kit(frame):
    ours, theirs = crowdkit.GLAD().fit(frame), original.GLAD().fit(frame)
    assert_same(ours.labels_, theirs.labels_)
    assert (ours.probas_ - theirs.probas_).abs().max(axis=None) < 0.2
    assert ours.probas_.columns.name == theirs.probas_.columns.name


@pytest.mark.parametrize("method", ["vb", "em"])
def test_mace_is_that_of_crowd_kit_where_ids_are_sorted(method, frame):
    # crowd-kit's M-step sorts workers and labels, which its E-step takes in order of appearance.
    rows = frame.sort_values(["worker", "label", "task"])
    ours, theirs = (m.MACE(1, 20, method).fit(rows) for m in (crowdkit, original))
    for result in ("thetas_", "spamming_", "probas_", "labels_"):
        assert_same(getattr(ours, result), getattr(theirs, result))


def test_kos_is_that_of_crowd_kit(binary_frame):
    assert_same(crowdkit.KOS().fit_predict(binary_frame), original.KOS().fit_predict(binary_frame))


def test_known_truths_and_initial_errors_are_used_as_in_crowd_kit(frame):
    truths = pd.Series({"t00": "eel", "t03": "dog", "t05": "cat"})
    index = pd.MultiIndex.from_product(
        [sorted(frame["worker"].unique()), ["cat", "dog", "eel"]], names=["worker", "label"]
    )
    values = np.random.default_rng(1).uniform(0.0, 9.0, (len(index), 3))
    errors = pd.DataFrame(values, index=index, columns=["cat", "dog", "eel"])
    for strategy, initial in (("assign", errors), ("addition", errors[:6])):
        ours, theirs = (
            m.DawidSkene(initial_error_strategy=strategy).fit(frame, truths, initial.copy())
            for m in (crowdkit, original)
        )
        for result in ("probas_", "labels_", "priors_", "errors_"):
            assert_same(getattr(ours, result), getattr(theirs, result))
    gold = (m.GoldMajorityVote().fit(frame, truths).skills_ for m in (crowdkit, original))
    assert_same(*gold)


def test_metrics_are_those_of_crowd_kit(frame):
    theirs = pytest.importorskip("crowdkit.metrics.data")
    skills = pd.Series(np.linspace(0.4, 0.9, 7), index=[f"w{s}" for s in range(7)])
    assert_same(
        consistency(frame, skills, by_task=True), theirs.consistency(frame, skills, by_task=True)
    )
    for by in ("task", "worker"):
        options = {"compute_by": by, "aggregate": False}
        assert_same(
            uncertainty(frame, skills, **options), theirs.uncertainty(frame, skills, **options)
        )
    assert alpha_krippendorff(frame) == pytest.approx(theirs.alpha_krippendorff(frame))
