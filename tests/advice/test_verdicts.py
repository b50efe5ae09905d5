"""Whom to keep, and why; soft labels to train on."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import annotruth as at


def fitted(**given):
    """A fit with the given findings on three annotators of 2, 2 and 10 labels."""
    rows = [(e, s, 1 + e % 2) for e in range(10) for s in ("a", "b", "c") if s == "c" or e < 2]
    fit = at.fit(rows, "majority")
    given.setdefault("p_serious", np.ones(fit.data.n_labels))
    behavior = given.pop("behavior", None)
    return replace(
        fit,
        behavior=behavior,
        **{name: value if value is None else np.array(value) for name, value in given.items()},
    )


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
        "reason": [
            "reliability 0.90 (0.50 to 1.00) on 2 labels: not below 0.5",
            "reliability 0.20 (0.10 to 0.50) on 2 labels, repeated 2: below 0.5",
            "reliability 0.60 (0.30 to 0.80) on 10 labels: may be on either side of 0.5",
        ],
    }


def test_an_interval_that_ends_on_the_line_is_unsure():
    fit = fitted(reliability=[0.4, 0.4, 0.6], low=[0.3, 0.3, 0.5], high=[0.5, 0.49, 0.7])
    assert fit.keep()["verdict"].tolist() == ["unsure", "drop", "keep"]


def test_without_an_interval_few_labels_are_unsure():
    table = fitted(reliability=[0.9, 0.1, 0.4]).keep()
    assert table["verdict"].tolist() == ["unsure", "unsure", "drop"]
    assert table["reason"][0] == "reliability 0.90 on 2 labels: too few labels to tell"
    assert fitted(reliability=[0.9, 0.1, 0.5]).keep()["verdict"].tolist()[2] == "keep"


def test_what_the_model_calls_unclear_is_unsure():
    fit = fitted(
        reliability=[0.9, 0.1, 0.1],
        low=[0.8, 0.0, 0.0],
        high=[1.0, 0.2, 0.2],
        behavior=["too few labels to tell", "too few labels to tell", "random"],
    )
    assert fit.keep()["verdict"].tolist() == ["unsure", "unsure", "drop"]


def test_a_model_that_does_not_know_spam_from_mistakes_drops_nobody():
    table = fitted(reliability=[0.9, 0.1, 0.1], p_serious=None).keep()
    assert table["verdict"][2] == "unsure"
    assert table["reason"][2].endswith("below 0.5, but majority cannot tell why")


def test_spammers_of_a_simulated_crowd_are_dropped():
    made = at.simulate.crowd(behavior="random", spammer_share=0.2, seed=0)
    fit = at.fit(made.labels, "gpm")
    verdict = fit.verdict_table()["verdict"].to_pylist()
    assert {v for v, r in zip(verdict, made.reliability, strict=True) if r > 0.8} == {"keep"}
    spammers = [v for v, r in zip(verdict, made.reliability, strict=True) if r < 0.3]
    assert "drop" in spammers
    assert "keep" not in spammers


def test_a_model_that_judges_nobody():
    fit = at.fit([(1, "a", 1), (1, "b", 2)], "majority")
    with pytest.raises(at.AnnotruthError, match="majority says nothing of annotators"):
        fit.keep()


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
    with pytest.raises(at.AnnotruthError, match="mean gives scores, not distributions"):
        at.fit([(1, "a", 1), (1, "b", 2)], "mean").soft_labels()
