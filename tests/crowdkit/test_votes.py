"""Weighted votes, KOS and MMSR, on labels that can be counted by hand."""

import math

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.crowdkit import KOS, MMSR, GoldMajorityVote, MajorityVote, Wawa, ZeroBasedSkill

ROWS = [
    ("t1", "w1", "cat"),
    ("t1", "w2", "cat"),
    ("t1", "w3", "dog"),
    ("t2", "w1", "dog"),
    ("t2", "w3", "cat"),
    ("t3", "w3", "dog"),
]


@pytest.fixture
def few(frame_of):
    return frame_of(ROWS)


def test_the_majority_vote_counts_votes_and_agreement(few):
    model = MajorityVote().fit(few)
    assert model.probas_.loc["t1"].to_dict() == pytest.approx({"cat": 2 / 3, "dog": 1 / 3})
    # A tie: the label that sorts first.
    assert model.labels_.to_dict() == {"t1": "cat", "t2": "cat", "t3": "dog"}
    assert model.skills_.to_dict() == pytest.approx({"w1": 1 / 2, "w2": 1.0, "w3": 2 / 3})


def test_repeated_labels_are_votes_but_count_once_for_skills(frame_of):
    rows = [("t1", "w1", "b"), ("t1", "w1", "b"), ("t1", "w2", "a"), ("t2", "w1", "a")]
    model = MajorityVote().fit(frame_of([*rows, ("t2", "w2", "c"), ("t2", "w3", "c")]))
    assert model.labels_.to_dict() == {"t1": "b", "t2": "c"}
    assert model.skills_["w1"] == 1 / 2


def test_skills_are_weights(few):
    skills = pd.Series({"w1": 0.2, "w2": 0.1, "w3": 0.9})
    model = MajorityVote().fit(few, skills)
    assert model.probas_.loc["t1", "dog"] == pytest.approx(0.9 / 1.2)
    assert model.labels_.tolist() == ["dog", "cat", "dog"]
    # Not the weights: the agreement with the result.
    assert model.skills_.to_dict() == {"w1": 0.0, "w2": 0.0, "w3": 1.0}


def test_missing_skills(few):
    skills = pd.Series({"w1": 0.2, "w3": 0.1})
    with pytest.raises(
        at.InputError, match="1 labels are of workers without a skill, such as 'w2'"
    ):
        MajorityVote().fit(few, skills)
    model = MajorityVote(on_missing_skill="ignore").fit(few, skills)
    assert model.probas_.loc["t1", "cat"] == pytest.approx(2 / 3)
    assert list(model.skills_.index) == ["w1", "w3"]
    model = MajorityVote(default_skill=0.7, on_missing_skill="value").fit(few, skills)
    assert model.probas_.loc["t1", "cat"] == pytest.approx(0.9)
    with pytest.raises(at.InputError, match="1 tasks have no worker with a skill, such as 't3'"):
        MajorityVote(on_missing_skill="ignore").fit(few, skills[:1])
    with pytest.raises(at.InputError, match="pass both or neither"):
        MajorityVote(on_missing_skill="value").fit(few, skills)
    with pytest.raises(at.InputError, match="choose error, ignore or value"):
        MajorityVote(on_missing_skill="drop").fit(few, skills)


def test_votes_without_weight_have_no_shares(frame_of):
    frame = frame_of([("t1", "w1", "dog"), ("t1", "w2", "cat")])
    model = MajorityVote().fit(frame, pd.Series({"w1": 0.0, "w2": 0.0}))
    assert model.probas_.isna().all(axis=None)
    assert model.labels_["t1"] == "cat"


def test_wawa_weights_by_agreement_with_the_majority(few):
    model = Wawa()
    assert model.fit(few).skills_.to_dict() == pytest.approx({"w1": 1 / 2, "w2": 1.0, "w3": 2 / 3})
    probas = model.predict_proba(few)
    assert probas.loc["t1", "cat"] == pytest.approx(1.5 / (1.5 + 2 / 3))
    assert model.predict(few)["t2"] == "cat"
    with pytest.raises(at.InputError, match="workers without a skill"):
        model.predict(few.assign(worker="new"))


def test_zero_based_skill_approaches_the_agreement(few):
    start = ZeroBasedSkill(n_iter=0, eps=0.01).fit(few)
    assert start.skills_.tolist() == [0.51, 0.51, 0.51]
    one = ZeroBasedSkill(n_iter=1, lr_init=0.5).fit(few)
    first = 0.5 + 1e-5
    assert one.skills_["w1"] == pytest.approx(first + 0.5 * (1 / 2 - first))
    # The rate is halved in the second iteration.
    two = ZeroBasedSkill(n_iter=2, lr_init=0.5, lr_steps_to_reduce=2).fit(few)
    before = one.skills_["w2"]
    assert two.skills_["w2"] == pytest.approx(before + 0.25 * (1.0 - before))


def test_gold_majority_vote_weights_by_accuracy(few):
    truths = pd.Series(["dog", "cat", "cat"], index=["t1", "t2", "t2"])
    model = GoldMajorityVote().fit(few, truths)
    assert model.skills_.to_dict() == {"w1": 0.0, "w2": 0.0, "w3": 1.0}
    assert model.skills_.name == "skill"
    assert model.predict(few).to_dict() == {"t1": "dog", "t2": "cat", "t3": "dog"}
    both = pd.Series(["dog", "cat"], index=["t1", "t1"])  # any of a task's true labels is right
    assert GoldMajorityVote().fit(few, both).skills_.tolist() == [1.0, 1.0, 1.0]


def test_gold_majority_vote_of_no_rows(frame_of):
    assert GoldMajorityVote().fit_predict_proba(frame_of([]), pd.Series(dtype=float)).empty


@pytest.fixture
def adversaries(frame_of):
    """Sixteen tasks: three workers are right, two give the other label."""
    rows = []
    for t in range(16):
        right, wrong = ("no", "yes") if t % 3 else ("yes", "no")
        rows += [(f"t{t:02d}", worker, right) for worker in ("w0", "w1", "w2")]
        rows += [(f"t{t:02d}", worker, wrong) for worker in ("w3", "w4")]
    return frame_of(rows)


def test_kos_finds_who_gives_the_opposite_label(adversaries):
    majority = MajorityVote().fit_predict(adversaries)
    assert KOS(n_iter=20).fit_predict(adversaries).tolist() == majority.tolist()
    # Without iterations, the draws alone are the weights of votes.
    few = adversaries[:5]
    draws = np.random.RandomState(3).normal(1.0, 1.0, 5)
    is_first = np.dot(draws, [1, 1, 1, -1, -1]) >= 0
    assert KOS(n_iter=0, random_state=3).fit_predict(few).tolist() == ["yes" if is_first else "no"]


def test_kos_takes_two_labels(frame, frame_of):
    with pytest.raises(at.InputError, match="KOS is for two labels, not 3"):
        KOS().fit(frame)
    assert KOS().fit_predict(frame_of([])).empty


def test_messages_of_kos_do_not_overflow(frame_of):
    rows = [(t, w, "yes" if w else "no") for t in range(60) for w in range(60)]
    assert set(KOS(n_iter=1000).fit_predict(frame_of(rows))) == {"yes"}


def test_mmsr_gives_adversaries_a_negative_weight(adversaries):
    model = MMSR()
    scores = model.fit_predict_score(adversaries)
    assert scores is model.scores_
    # The skill 1 is reduced by 1 / sqrt(16): the probability of a right label is 7/8.
    weights = [math.log(7.0)] * 3 + [-math.log(7.0)] * 2
    assert model.skills_.tolist() == pytest.approx(weights)
    assert scores.loc["t00"].to_dict() == pytest.approx({"yes": 3.0, "no": -2.0})
    assert model.predict(adversaries).equals(MajorityVote().fit_predict(adversaries))
    assert model.loss_history_[-1] < 1e-10


def test_mmsr_needs_two_labels(frame_of):
    with pytest.raises(at.InputError, match="MMSR needs two labels or more, not 1"):
        MMSR().fit(frame_of([("t1", "w1", "cat"), ("t1", "w2", "cat")]))
    with pytest.raises(at.InputError, match="MMSR needs workers with common tasks"):
        MMSR().fit(frame_of([("t1", "w1", "cat"), ("t2", "w2", "dog")]))
    two = frame_of([(t, w, "ab"[t % 2]) for t in range(4) for w in ("w1", "w2")])
    assert MMSR().fit_predict(two).tolist() == ["a", "b", "a", "b"]
