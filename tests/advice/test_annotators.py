"""Whom to keep, to drop and to ask, and why; soft labels to train on."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.analyses.advice.annotators import VERDICTS, verdict_rules


def fitted(**given):
    """A fit with the given results for three annotators of 2, 2 and 10 labels."""
    rows = [(e, s, 1 + e % 2) for e in range(10) for s in ("a", "b", "c") if s == "c" or e < 2]
    fit = at.fit(rows, "majority", scale="ordinal")
    given.setdefault("p_serious", np.ones(fit.data.n_labels))
    behavior = given.pop("behavior", None)
    return replace(
        fit,
        behavior=behavior,
        **{name: value if value is None else np.array(value) for name, value in given.items()},
    )


def verdicts(fit):
    return fit.keep()["verdict"].tolist()


def test_the_interval_decides():
    table = fitted(
        reliability=[0.9, 0.2, 0.6],
        low=[0.5, 0.1, 0.3],
        high=[1.0, 0.4999, 0.8],
        behavior=["serious", "repeated 2", "serious"],
    ).keep()
    assert table.to_dict("list") == {
        "annotator": ["a", "b", "c"],
        "verdict": ["keep", "drop", "unsure"],
        "ask": [True, False, True],
        "reason": [
            "reliability 0.90 (0.50 to 1.00) on 2 labels: not below 0.5",
            "reliability 0.20 (0.10 to 0.50) on 2 labels, repeated 2: below 0.5"
            + "; low information (0.22 of the best)",
            "reliability 0.60 (0.30 to 0.80) on 10 labels: may be on either side of 0.5",
        ],
    }


def test_an_interval_that_ends_on_the_limit_is_unsure():
    fit = fitted(reliability=[0.4, 0.4, 0.6], low=[0.3, 0.3, 0.5], high=[0.5, 0.49, 0.7])
    assert verdicts(fit) == ["unsure", "drop", "keep"]


def test_nobody_who_is_dropped_is_asked():
    fit = fitted(reliability=[0.4, 0.45, 0.4], low=[0.3, 0.3, 0.3], high=[0.49, 0.49, 0.49])
    people = at.next_labels(fit).annotators()
    assert (people["information"] > 0.8).all()
    assert not people["ask"].any()


def test_without_an_interval_few_labels_are_too_few():
    table = fitted(reliability=[0.9, 0.1, 0.4]).keep()
    assert table["verdict"].tolist() == ["too few labels", "too few labels", "drop"]
    assert table["reason"][0] == "reliability 0.90 on 2 labels: too few labels to tell"
    assert verdicts(fitted(reliability=[0.9, 0.1, 0.5]))[2] == "keep"


def test_annotators_whose_behavior_is_unclear_have_too_few_labels():
    fit = fitted(
        reliability=[0.9, 0.1, 0.1],
        low=[0.8, 0.0, 0.0],
        high=[1.0, 0.2, 0.2],
        behavior=["too few labels to tell", "too few labels to tell", "random"],
    )
    assert verdicts(fit) == ["too few labels", "too few labels", "drop"]


def test_a_model_that_cannot_tell_spam_from_mistakes_drops_nobody():
    table = fitted(reliability=[0.9, 0.1, 0.1], p_serious=None).keep()
    assert table["verdict"][2] == "unsure"
    assert "below 0.5, but majority cannot tell spam from mistakes" in table["reason"][2]


def test_spammers_of_a_simulated_crowd_are_dropped():
    made = at.simulate.crowd(behavior="random", spammer_share=0.2, seed=0)
    verdict = np.array(verdicts(at.fit(made.labels, "gpm")))
    assert set(verdict[made.reliability > 0.8]) == {"keep"}
    assert "drop" in verdict[made.reliability < 0.3]
    assert "keep" not in verdict[made.reliability < 0.3]


def test_without_a_reliability_annotators_far_below_the_median_are_unsure():
    rows = [(e, str(s), e % 3 if s < 6 else (e + 1) % 3) for e in range(30) for s in range(7)]
    rows.append((0, "new", 0))
    table = at.fit(rows, "majority", scale="nominal").keep()
    assert table["verdict"].tolist() == [*["keep"] * 6, "unsure", "too few labels"]
    assert table["ask"].tolist() == [*[True] * 6, False, True]
    assert table["reason"][6].startswith(
        "matches the recovered label on 0% of 30 labels, median 100%: far below the median"
    )
    scores = at.fit(rows, "mean", scale="ordinal").keep()
    assert scores["verdict"][6] == "unsure"
    assert not scores["ask"][6]


@pytest.mark.parametrize("model", ["gpm", "dawid-skene", "majority"])
def test_every_verdict_has_a_rule(model):
    made = at.simulate.crowd(n_items=40, n_annotators=15, labels_per_item=6, seed=3)
    fit = at.fit(made.labels, model)
    rules = verdict_rules(fit)
    assert set(verdicts(fit)) <= set(rules) <= set(VERDICTS)
    assert ("drop" in rules) == (fit.p_serious is not None)


def test_soft_labels_have_every_class_of_every_item():
    rows = [(e, s, n) for e in range(3) for s, n in (("a", e), ("b", e), ("c", (e + 7) % 150))]
    fit = at.fit(rows, "gpm", categories=list(range(150)), scale="nominal")
    table = fit.soft_labels()
    assert isinstance(table, pd.DataFrame)
    assert table.columns.tolist() == ["item", *(f"p_{n}" for n in range(150))]
    assert "p_0" not in fit.items().columns  # too many for that table
    assert np.allclose(table.drop(columns="item").sum(axis=1), 1.0)
    assert np.array_equal(table.drop(columns="item").to_numpy(), fit.distribution.dense(150))


def test_a_model_of_scores_has_no_soft_labels():
    with pytest.raises(at.AnnotruthError, match="mean estimates scores, not distributions"):
        at.fit([(1, "a", 1), (1, "b", 2)], "mean").soft_labels()


def test_labels_of_chance_drop_nobody():
    rng = np.random.default_rng(1)
    rows = [(e, s, "abc"[rng.integers(3)]) for e in range(150) for s in rng.permutation(12)[:5]]
    fit = at.fit(rows)
    assert fit.verdict == "chance"
    keep = fit.keep()
    assert "drop" not in set(keep["verdict"])
    assert set(keep["verdict"]) == {"unsure"}
    assert set(keep["reason"].str.partition(";")[0]) == {"labels agree no better than chance"}
    assert not keep["ask"].any()
