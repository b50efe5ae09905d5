"""Fits with a classifier's probabilities."""

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.models.evidence.classifier import (
    Calibration,
    choose_calibration,
    judge_classifier,
    known_items,
)
from annotruth.observations import Labels

N = 3


def crowd(seed=0, n_items=300, per_item=2, n_annotators=20):
    """Return true classes, and labels of annotators who are right half of the time to always."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(N, size=n_items)
    accuracy = rng.uniform(0.5, 0.9, n_annotators)
    item = np.repeat(np.arange(n_items), per_item)
    who = np.concatenate([rng.permutation(n_annotators)[:per_item] for _ in range(n_items)])
    wrong = (truth[item] + rng.integers(1, N, len(item))) % N
    label = np.where(rng.random(len(item)) < accuracy[who], truth[item], wrong)
    rows = [(int(e), f"w{s}", "abc"[n]) for e, s, n in zip(item, who, label, strict=True)]
    return truth, Labels.of(rows, categories=["a", "b", "c"], scale="nominal")


def scores(truth, strength, seed=1, sharpness=1.0):
    """Return probabilities that follow the truth as much as ``strength`` says."""
    logits = np.random.default_rng(seed).normal(size=(len(truth), N))
    logits[np.arange(len(truth)), truth] += strength
    powers = np.exp(sharpness * strength * logits)
    return powers / powers.sum(axis=1, keepdims=True)


def accuracy(fit, truth):
    return (fit.label == truth).mean()


def nll(fit, truth):
    p = fit.distribution.dense(N)[np.arange(len(truth)), truth]
    return -np.log(np.maximum(p, 1e-6)).mean()


def test_a_good_classifier_helps():
    truth, labels = crowd()
    without = at.fit(labels)
    fit = at.fit(labels, classifier=scores(truth, 2.0))
    assert accuracy(fit, truth) > accuracy(without, truth) + 0.08
    assert nll(fit, truth) < 0.7 * nll(without, truth)


def test_overconfidence_is_seen_through():
    truth, labels = crowd()
    modest = at.fit(labels, classifier=scores(truth, 1.2))
    boastful = at.fit(labels, classifier=scores(truth, 1.2, sharpness=8.0))
    assert nll(boastful, truth) < nll(modest, truth) + 0.05
    assert judge_classifier(boastful).weight < 0.6


def test_a_classifier_that_names_the_wrong_classes_consistently_is_understood():
    truth, labels = crowd()
    fit = at.fit(labels, classifier=np.roll(scores(truth, 2.0), 1, axis=1))
    assert accuracy(fit, truth) > accuracy(at.fit(labels), truth) + 0.05
    assert judge_classifier(fit).accuracy < 0.2


@pytest.mark.parametrize("kind", ["noise", "constant"])
def test_a_useless_classifier_changes_nothing(kind):
    truth, labels = crowd()
    useless = scores(np.random.default_rng(7).permutation(truth), 2.0)
    if kind == "constant":
        useless = np.tile([0.8, 0.1, 0.1], (len(truth), 1))
    fit, without = at.fit(labels, classifier=useless), at.fit(labels)
    np.testing.assert_array_equal(fit.distribution.probability, without.distribution.probability)
    np.testing.assert_array_equal(fit.reliability, without.reliability)
    assert judge_classifier(fit).weight == 0.0
    assert "not used, because" in fit.summary()


def test_items_without_a_prediction_keep_the_plain_prior():
    truth, labels = crowd()
    some = scores(truth, 2.0)
    table = pd.DataFrame(some, columns=["p_a", "p_b", "p_c"]).assign(item=range(len(truth)))
    fit = at.fit(labels, classifier=table.iloc[:200])
    assert judge_classifier(fit).n_items == 200
    full = at.fit(labels, classifier=table)
    rest = slice(200, None)
    assert (full.label[rest] == truth[rest]).mean() > (fit.label[rest] == truth[rest]).mean()
    # A label that nobody gave is not chosen by the plain prior, but may be by the classifier.
    given = labels.observed_shares() > 0
    assert given[np.arange(200, 300), fit.label[rest]].all()
    assert not given[np.arange(200), fit.label[:200]].all()


def test_known_truths_stay_certain():
    truth, labels = crowd()
    wrong = int((truth[0] + 1) % N)
    labels = labels.with_gold({0: "abc"[wrong]})
    fit = at.fit(labels, classifier=scores(truth, 2.0))
    assert fit.distribution.dense(N)[0].tolist() == np.eye(N)[wrong].tolist()


def test_the_reference_engine_agrees():
    truth, labels = crowd(n_items=150)
    predictions = scores(truth, 2.5)
    fits = [
        at.fit(labels, classifier=predictions, engine=engine) for engine in ("memory", "reference")
    ]
    dense = [fit.distribution.dense(N) for fit in fits]
    np.testing.assert_allclose(dense[0], dense[1], atol=1e-6)
    assert judge_classifier(fits[0]).weight > 0.1


def test_a_saved_fit_has_the_classifier(tmp_path):
    truth, labels = crowd(n_items=100)
    fit = at.fit(labels, classifier=scores(truth, 2.0))
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    np.testing.assert_array_equal(loaded.data.classifier, fit.data.classifier)
    assert judge_classifier(loaded) == judge_classifier(fit)
    assert loaded.summary() == fit.summary()
    again = at.fit(tmp_path / "fit")
    np.testing.assert_allclose(again.distribution.dense(N), fit.distribution.dense(N), atol=1e-9)
    assert at.fit(tmp_path / "fit", "gpm").data.classifier is None


def test_an_updated_fit_keeps_the_classifier():
    truth, labels = crowd(n_items=100)
    fit = at.fit(labels, classifier=scores(truth, 2.0))
    updated = at.update(fit, [(0, "new", "a"), (500, "new", "b"), (500, "w1", "b")])
    assert np.isnan(updated.data.classifier[-1]).all()
    assert judge_classifier(updated).n_items == 100
    assert judge_classifier(updated).weight > 0.2


def test_predictions_and_advice_use_the_classifier():
    truth, labels = crowd(n_items=100)
    fit = at.fit(labels, classifier=scores(truth, 2.5))
    codes = np.arange(100)
    model = at.RobustGPM().load_fit(fit)
    predicted = model.predict_proba(codes, np.zeros(100, dtype=int))
    assert (predicted.argmax(axis=1) == fit.label).mean() > 0.9
    assert model.latent_classes().item_likelihood.shape == (100, N)
    asked = (fit.distribution.confidence() < 0.8).sum()
    plain = at.fit(labels)
    assert asked < (plain.distribution.confidence() < 0.8).sum()
    status = at.next_labels(fit).items()["status"]
    assert (status == "needs labels").sum() < (
        at.next_labels(plain).items()["status"] == "needs labels"
    ).sum()


def test_what_labels_add_to_the_odds_is_what_the_classifier_leaves():
    truth, labels = crowd(n_items=150)
    fit = at.fit(labels, classifier=scores(truth, 1.5))
    model = at.RobustGPM().load_fit(fit)
    n_states = len(fit.parameters["state_prior"])
    assert n_states == N  # without subtypes the odds are exact
    first, second = np.zeros(150, dtype=int), np.ones(150, dtype=int)
    added = np.bincount(labels.item_of_label(), model.label_log_odds(first, second))
    known = np.log(fit.parameters["state_prior"] * model.latent_classes().item_likelihood)
    after = np.log(fit.distribution.dense(N))
    np.testing.assert_allclose(
        added + known[:, 0] - known[:, 1], after[:, 0] - after[:, 1], atol=1e-6
    )


def test_labels_of_chance_calibrate_nothing():
    rng = np.random.default_rng(0)
    rows = [(e, s, "abc"[rng.integers(N)]) for e in range(150) for s in range(4)]
    fit = at.fit(rows, classifier=scores(rng.integers(N, size=150), 2.0))
    assert fit.verdict == "chance"
    assert judge_classifier(fit).weight == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "gpm"}, "gpm takes no classifier: .*choose robust-gpm"),
        ({"model": "auto"}, "auto compares models without a classifier: name one"),
        ({"engine": "spark"}, "the engine spark takes no classifier: .*choose engine='memory'"),
        (
            {"engine": "gpu"},
            "the engine gpu takes no classifier: .*choose engine='memory'",
        ),
        ({"truth": "opinions", "scale": "ordinal"}, "opinions differ: pass truth='class'"),
    ],
)
def test_what_cannot_use_a_classifier_says_so(options, message):
    truth, labels = crowd(n_items=30)
    numbers = labels.to_arrow().to_pandas().assign(label=labels.category_of_label())
    with pytest.raises(InputError, match=message):
        at.fit(numbers, **options, classifier=scores(truth, 1.0))


def test_labels_on_disk_take_no_classifier(tmp_path):
    truth, labels = crowd(n_items=30)
    labels.to_arrow().to_pandas().to_csv(tmp_path / "labels.csv", index=False)
    with pytest.raises(InputError, match="leave out memory"):
        at.fit(tmp_path / "labels.csv", memory="1GB", classifier=scores(truth, 1.0))


def test_calibration_recovers_what_predictions_mean():
    # Half of the predictions of class 0 are of items of class 1; all others are right.
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=4000)
    predicted = np.where((truth == 1) & (rng.random(4000) < 0.5), 0, truth)
    evidence = np.where(truth[:, np.newaxis] == np.arange(2), 0.9, 0.1)
    found = choose_calibration(np.eye(2)[predicted], evidence, np.array([0.5, 0.5]))
    meaning = found.likelihood * 0.5
    share = (truth[predicted == 0] == 0).mean()
    # The evidence is certain of the class only to 90%, which EM takes into account.
    assert meaning[0, 0] == pytest.approx((share - 0.1) / 0.8 if share < 0.9 else 1.0, abs=0.2)
    assert meaning[1, 1] > 0.95


def test_few_predictions_are_not_used():
    evidence = np.where(np.arange(10)[:, np.newaxis] % 2 == np.arange(2), 0.9, 0.1)
    predictions = np.eye(2)[np.arange(10) % 2]
    assert not choose_calibration(predictions, evidence, np.array([0.5, 0.5])).is_used


def test_subtypes_of_a_class_have_its_likelihood():
    labels = Labels.of([("a", "ann", "x"), ("b", "ann", "y")])
    labels = labels.with_classifier(np.array([[1.0, 0.0], [0.0, 1.0]]))
    calibration = Calibration(1.0, np.array([[1.6, 0.4], [0.4, 1.6]]))
    known = known_items(labels, np.repeat(np.eye(2), 3, axis=1), calibration)
    assert known.labels.known.tolist() == [2, 3]
    np.testing.assert_allclose(known.table[2], [1.6] * 3 + [0.4] * 3, atol=1e-5)
