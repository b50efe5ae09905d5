"""crowd-kit's metrics, helpers and filter, by hand."""

import math

import pandas as pd
import pytest

import annotruth as at
from annotruth.coefficients import krippendorff_alpha
from annotruth.crowdkit import GLAD, KOS, MajorityVote, Wawa
from annotruth.crowdkit.base import MissingSkillError
from annotruth.crowdkit.metrics.data import alpha_krippendorff, consistency, uncertainty
from annotruth.crowdkit.metrics.workers import accuracy_on_aggregates
from annotruth.crowdkit.postprocessing import entropy_threshold
from annotruth.crowdkit.utils import (
    clone_aggregator,
    evaluate,
    evaluate_equal,
    factorize,
    get_accuracy,
    get_most_probable_labels,
    normalize_rows,
)


@pytest.fixture
def few(frame_of):
    rows = [("x", "a", "yes"), ("x", "b", "yes"), ("x", "c", "no")]
    return frame_of([*rows, ("y", "a", "no"), ("y", "b", "maybe")])


def test_consistency_is_the_posterior_of_the_aggregated_label(few):
    skills = pd.Series({"a": 0.8, "b": 0.6, "c": 0.5})
    found = consistency(few, skills, by_task=True)
    yes, no, maybe = 0.8 * 0.6 * 0.25, 0.1 * 0.2 * 0.5, 0.1 * 0.2 * 0.25
    assert found["x"] == pytest.approx(yes / (yes + no + maybe))
    maybe, no, yes = 0.1 * 0.6, 0.8 * 0.2, 0.1 * 0.2  # a tie of votes: maybe sorts first
    assert found["y"] == pytest.approx(maybe / (yes + no + maybe))
    assert consistency(few, skills) == pytest.approx(found.mean())


def test_consistency_uses_the_skills_of_the_aggregator(few):
    skills = Wawa().fit(few).skills_
    assert consistency(few, aggregator=Wawa()) == consistency(few, skills, Wawa())
    binary = few[:3]
    with pytest.raises(MissingSkillError, match="KOS estimates no skills"):
        consistency(binary, aggregator=KOS())


def test_consistency_of_contradicting_certain_workers_is_zero(few):
    assert consistency(few, pd.Series(1.0, index=["a", "b", "c"]), by_task=True)["x"] == 0.0


def test_uncertainty_is_an_entropy(few):
    by_task = uncertainty(few, aggregate=False)
    expected = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert by_task["x"] == pytest.approx(expected)
    assert by_task["y"] == pytest.approx(math.log(2))
    assert uncertainty(few) == pytest.approx((expected + math.log(2)) / 2)
    by_worker = uncertainty(few, compute_by="worker", aggregate=False)
    assert by_worker.to_dict() == pytest.approx({"a": math.log(2), "b": math.log(2), "c": 0.0})
    guess = pd.Series(1 / 3, index=["a", "b", "c"])
    assert uncertainty(few, guess) == pytest.approx(math.log(3))
    assert uncertainty(few, aggregator=MajorityVote()) == uncertainty(
        few, MajorityVote().fit(few).skills_
    )


def test_uncertainty_needs_the_column_and_all_skills(few):
    with pytest.raises(KeyError, match="no column 'day'"):
        uncertainty(few, compute_by="day")
    with pytest.raises(AssertionError, match="workers_skills has no skill of 'c': add it"):
        uncertainty(few, pd.Series({"a": 1.0, "b": 1.0}))


def test_alpha_is_krippendorffs(few, frame):
    # Of 5 labels, 2 of 6 ordered pairs per item agree in x, none in y; see the docstring.
    observed = (4 / 2 + 2 / 1) / 5
    expected = (25 - (4 + 4 + 1)) / 20
    assert alpha_krippendorff(few) == pytest.approx(1 - observed / expected)
    columns = {"item": "task", "annotator": "worker", "label": "label"}
    labels = at.Labels.of(frame, columns=columns, scale="nominal")
    assert alpha_krippendorff(frame) == pytest.approx(krippendorff_alpha(labels))
    single = pd.concat([few, few[:1].assign(task="z")])  # an item with one label does not count
    assert alpha_krippendorff(single) == alpha_krippendorff(few)
    assert math.isnan(alpha_krippendorff(few[2:4]))
    assert alpha_krippendorff(few[:2]) == 1.0


def test_alpha_takes_a_distance_and_labels_that_are_sets(frame_of):
    dog, cat, both = frozenset(["dog"]), frozenset(["cat"]), frozenset(["dog", "cat"])
    frame = frame_of([("x", "a", dog), ("x", "b", both), ("y", "a", cat), ("y", "b", cat)])

    def jaccard(label, other):
        return 1.0 - len(label & other) / len(label | other)

    observed = 2 * 0.5 / 4
    expected = 2 * (0.5 + 2 * 0.5 + 2 * 1.0) / 12
    assert alpha_krippendorff(frame, jaccard) == pytest.approx(1 - observed / expected)
    assert MajorityVote().fit_predict(frame)["y"] == cat


def test_accuracy_on_aggregates(few):
    assert accuracy_on_aggregates(few) == 3 / 5
    assert accuracy_on_aggregates(few, by="worker").to_dict() == {"a": 0.5, "b": 1.0, "c": 0.0}
    known = pd.Series({"x": "no"})
    assert accuracy_on_aggregates(few, aggregates=known, by="task").to_dict() == {"x": 1 / 3}
    assert accuracy_on_aggregates(few, Wawa()) == get_accuracy(few, Wawa().fit_predict(few))


def test_accuracy_is_weighted(few):
    weighted = few.assign(weight=[1.0, 2.0, 3.0, 1.0, 1.0])
    truths = pd.Series({"x": "no", "y": "no"})
    assert get_accuracy(weighted, truths) == 4 / 8
    assert get_accuracy(weighted, truths, by="true_label").to_dict() == {"no": 0.5}


def test_entropy_threshold_removes_workers_of_one_label(frame_of):
    rows = [(t, "a", "yes" if t % 2 else "no") for t in range(6)]
    rows += [(t, "b", "yes" if t % 3 else "no") for t in range(6)]
    rows += [(t, "c", "yes") for t in range(3)] + [(0, "d", "no")]
    frame = frame_of(rows).assign(note="kept")
    kept = entropy_threshold(frame)
    assert list(kept.columns) == ["task", "worker", "label", "note"]
    assert sorted(kept["worker"].unique()) == ["a", "b", "d"]
    assert sorted(entropy_threshold(frame, min_answers=1)["worker"].unique()) == ["a", "b"]
    assert entropy_threshold(frame, min_answers=7).equals(frame)
    with pytest.warns(at.AnnotruthWarning, match="Removed >= 1/2 of answers"):
        assert entropy_threshold(frame, percentile=60)["worker"].unique().tolist() == ["a", "d"]


def test_helpers():
    proba = normalize_rows(pd.DataFrame({"a": [3.0, 1.0], "b": [1.0, 1.5]}, index=["x", "y"]))
    assert proba["a"].tolist() == [0.75, 0.4]
    assert get_most_probable_labels(proba).to_dict() == {"x": "a", "y": "b"}
    assert get_most_probable_labels(pd.DataFrame()).empty
    values, codes = factorize(pd.Series(["b", "a", "b"]).to_numpy())
    assert (values.tolist(), codes.tolist()) == (["a", "b"], [1, 0, 1])
    clone = clone_aggregator(GLAD(n_iter=3))
    assert (type(clone), clone.n_iter) == (GLAD, 3)


def test_evaluate():
    truth = pd.DataFrame({"task": ["x", "y"], "label": ["cat", "dog"]})
    predicted = pd.DataFrame({"task": ["y", "x"], "label": ["dog", "a"]})
    assert evaluate(truth, predicted, evaluate_equal) == 0.5
    assert evaluate(truth, predicted) == 1.0  # "a" is in "cat"
    with pytest.raises(at.InputError, match="2 tasks have a true label, but 1 of these a pred"):
        evaluate(truth, predicted[:1])
