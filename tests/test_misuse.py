"""Arguments of the wrong kind give an error of this package, on one line of a readable length."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import annotruth as at

LABELS = [("a", "x", 1), ("a", "y", 2), ("b", "x", 1), ("b", "y", 1), ("c", "x", 2), ("c", "y", 2)]
VOTES = [("a", "b", "x", "left"), ("b", "c", "y", "right"), ("a", "c", "x", "left")]
FRAME = pd.DataFrame(LABELS, columns=["item", "annotator", "label"])
ODD = {
    "none": None,
    "true": True,
    "zero": 0,
    "nan": float("nan"),
    "empty": "",
    "long": "a" * 10_000,
    "long name": "x" * 300,
    "zero character": "no/such\0file",
    "bytes": b"x",
    "list": [],
    "nested": [[]],
    "pairs": [("a", "b")],
    "dicts": [{"item": "a"}],
    "dict": {"a": 1},
    "set": set(),
    "object": object(),
    "matrix": np.zeros((2, 2)),
    "number": np.array(5),
    "frame": FRAME,
    "empty frame": pd.DataFrame(),
    "series": pd.Series([1, 2]),
    "table": pa.table({}),
    "class": at.GPM,
    "estimator": at.GPM(),
    "huge": 10**400,
    "labels": LABELS,
    "votes": VOTES,
}
OPTIONS = (
    *("gold", "drop", "columns", "scale", "categories", "duplicates", "bins", "annotator_prior"),
    *("covariates", "content", "question", "memory", "max_size", "truth", "tol", "max_iter"),
    *("engine", "query", "input_format", "classifier"),
)
ESTIMATORS = {
    name: each
    for name in dir(at)
    if inspect.isclass(each := getattr(at, name)) and hasattr(each, "fit")
}


@pytest.fixture(scope="module")
def fit():
    return at.fit(LABELS, "gpm")


def check(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        message = ""
        try:
            call()
        except at.AnnotruthError as error:
            message = str(error)
    assert "\n" not in message
    assert len(message) <= 2_001


@pytest.mark.parametrize("kind", ODD)
def test_functions_refuse_odd_arguments(kind, fit):
    odd = ODD[kind]
    for call in (
        lambda: at.fit(odd),
        lambda: at.fit(LABELS, odd),
        lambda: at.rank(odd),
        lambda: at.rank(VOTES, odd),
        lambda: at.held_out(odd, LABELS),
        lambda: at.held_out("gpm", odd),
        lambda: at.load(odd),
        lambda: at.evaluate(fit, odd),
        lambda: at.evaluate(odd, {"a": 1}),
        lambda: at.update(fit, odd),
        lambda: at.update(odd, LABELS),
        lambda: at.next_labels(odd),
        lambda: at.read_labels(odd),
        lambda: at.read_comparisons(odd),
        lambda: at.compare(odd),
        lambda: fit.soft_labels(odd),
        lambda: fit.distributions(odd),
    ):
        check(call)


@pytest.mark.parametrize("kind", ODD)
def test_options_of_odd_kinds_are_refused(kind):
    for name in OPTIONS:
        check(lambda name=name: at.fit(LABELS, "majority", **{name: ODD[kind]}))
    check(lambda: at.fit(LABELS, truth=ODD[kind]))


@pytest.mark.parametrize("kind", ODD)
def test_estimators_refuse_odd_data(kind):
    for estimator in ESTIMATORS.values():
        check(lambda estimator=estimator: estimator().fit(ODD[kind]))


@pytest.mark.parametrize("progress", [1, "x", []])
def test_progress_must_be_a_function(progress):
    with pytest.raises(at.InputError, match=r"progress is .*: give a function"):
        at.fit(LABELS, progress=progress)


def test_estimators_of_comparisons_take_frames():
    votes = pd.DataFrame(VOTES, columns=["left", "right", "annotator", "winner"])
    assert at.BradleyTerry().fit(votes).result_.data.n_comparisons == 3
    with pytest.raises(at.InputError, match="these are labels"):
        at.BradleyTerry().fit(FRAME)


def test_long_names_are_shortened_in_messages():
    name = "column " * 3_000 + "y" * 5_000
    with pytest.raises(at.InputError) as caught:
        at.fit(pd.DataFrame({name: [1], "annotator": [2]}))
    assert len(str(caught.value)) <= 2_001
    for text in (f"{'x' * 5_000}: rename it", "x " * 5_000 + "x: rename it"):
        assert len(str(at.InputError(text))) <= 2_001
        assert str(at.InputError(text)).endswith("x: rename it")
