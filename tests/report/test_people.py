"""What the report says about people where the model estimates accuracy and flags them."""

import re
from html import unescape

import numpy as np
import pytest
from tests.report.test_page import columns, shown, unpacked

import annotruth as at
from annotruth.analyses.advice.advice import advise
from annotruth.report.page import make_report
from annotruth.report.render import renderer
from annotruth.report.truth import compare_with_truth


def labels(n_good, n_random, *, n_opposed=0, n_items=120, seed=1):
    """Labels of three classes by people who are right, click at random, or name another class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_items)
    rows = []
    for s in range(n_good + n_random + n_opposed):
        given = np.where(rng.random(n_items) < 0.85, truth, rng.integers(3, size=n_items))
        if n_good <= s < n_good + n_random:
            given = rng.integers(3, size=n_items)
        if s >= n_good + n_random:
            given = (given + 1) % 3
        some = np.flatnonzero(rng.random(n_items) < 0.6)
        rows += [(f"item {e}", f"person {s}", "abc"[given[e]]) for e in some]
    return rows


@pytest.fixture(scope="module")
def flagging():
    return at.fit(labels(9, 3))


@pytest.fixture(scope="module")
def camps():
    return at.fit(labels(8, 0, n_opposed=8))


def text_of(page):
    return unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page.split("<script")[0])))


def test_accuracy_comes_before_reliability(flagging):
    table = unpacked(make_report(flagging).html())["tables"]["annotators"]
    keys = [c["key"] for c in table["columns"] if not c["hidden"]]
    assert keys.index("accuracy") < keys.index("reliability")
    assert table["sort_by"] == "accuracy"
    people = columns(table)
    assert people["accuracy"]["ends"] == ["accuracy_low", "accuracy_high"]
    assert people["accuracy"]["values"] == pytest.approx(flagging.accuracy, abs=6e-5)
    assert people["accuracy"]["rank"] < people["verdict"]["rank"] < people["reliability"]["rank"]
    assert people["agreement"]["help"].startswith("with the others' labels")


def test_colors_follow_the_verdict_and_not_a_limit(flagging):
    dropped = (advise(flagging).of_annotators.verdict == "drop").astype(int).tolist()
    assert sum(dropped) == 3
    people = shown(flagging, "annotators")
    for name in ("accuracy", "reliability"):
        assert people[name]["warn"] == dropped
        assert "limit" not in people[name]
    gpm = shown(at.fit(labels(9, 3), "gpm"), "annotators")
    assert gpm["reliability"]["limit"] == 0.5
    assert "warn" not in gpm["reliability"]


def test_charts_are_of_accuracy_and_name_the_flagged(flagging):
    chart = flagging.plot.accuracy()
    assert chart.title == "Accuracy of annotators"
    assert "flagged as careless or consistently wrong" in chart.caption
    assert chart.svg().count("drop") == 3
    assert "0.5" not in flagging.plot.reliability().caption
    assert "interval below 0.5" in at.fit(labels(9, 3), "gpm").plot.reliability().caption
    with pytest.raises(at.AnnotruthError, match=r"has no accuracy .* plot\.reliability"):
        at.fit(labels(9, 3), "gpm").plot.accuracy()


def test_the_first_screen_names_accuracies_and_no_limit_of_reliability(flagging):
    text = text_of(make_report(flagging).html())
    worst = flagging.accuracy.argmin()
    about = f"{flagging.behavior[worst]}, accuracy {flagging.accuracy[worst]:.2f}"
    n_labels = flagging.data.labels_per_annotator
    share = n_labels[flagging.spammer].sum() / n_labels.sum()
    name = flagging.data.annotators[worst]
    assert f"3 to drop, with {share:.0%} of the labels" in text
    assert f"{name} {about}" in text
    assert "Annotators to keep 9 of 12" in text
    assert f"The median accuracy is {np.median(flagging.accuracy):.2f}." in text
    for wrong in ("below 0.5", "clearly", "Reliable annotators", "median reliability"):
        assert wrong not in text.replace("p serious is below 0.5", "").replace("clearly below", "")


def test_two_camps_are_said_first_and_nobody_is_assessed(camps):
    assert camps.verdict == "camps"
    text = text_of(make_report(camps).html())
    first = text.partition("Annotators to keep")[0]
    assert "Check first. About half of the annotators contradict the others" in first
    assert "more than 40% of those who follow either side" in first
    assert "Nobody to drop: it is open which of two sides is right." in text
    for judging in ("to ask for more", "The median accuracy", "top label above 90%"):
        assert judging not in text
    assert not advise(camps).of_annotators.ask.any()


def test_gold_is_compared_with_accuracy():
    rows = labels(9, 3)
    truth = {item: label for item, who, label in rows if who == "person 0"}
    gold = dict(list(truth.items())[:20])
    found = compare_with_truth(at.fit(rows, gold=gold), None)
    shown = renderer().show(found.section)
    assert "Accuracy is estimated from all items, gold and others." in shown
