"""The summary says what limits the results: of all labels in its first line, and of annotators."""

from dataclasses import replace

import numpy as np
import pytest

import annotruth as at
from annotruth.models.base_fit import TOO_FEW
from annotruth.models.fits.notes import (
    CHANCE_LINE,
    ONE_ANNOTATOR_LINE,
    ONE_CATEGORY_LINE,
    ONE_LABEL_LINE,
)

RNG = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([(e, "ann", "ab"[e % 2]) for e in range(6)], ONE_ANNOTATOR_LINE),
        ([(e, s, "a") for e in range(6) for s in range(3)], ONE_CATEGORY_LINE),
        ([(e, e % 3, "ab"[e % 2]) for e in range(6)], ONE_LABEL_LINE),
        ([(e, s, "abc"[RNG.integers(3)]) for e in range(100) for s in range(5)], CHANCE_LINE),
    ],
    ids=["one annotator", "one category", "one label per item", "chance"],
)
def test_the_first_line_warns(rows, line):
    first, second, *_ = at.fit(rows).summary().splitlines()
    assert first == f"WARNING: {line}"
    assert second.startswith("robust-gpm on ")


def test_other_labels_have_no_warning():
    fit = at.fit([(e, s, "ab"[e % 2]) for e in range(30) for s in range(3)], "majority")
    assert fit.notice() == ""
    assert fit.summary().startswith("majority on ")
    assert "WARNING" not in fit.summary()


SPAMMERS = "3 of 4 are spammers (reliability below 0.5), "


@pytest.mark.parametrize(
    ("reliability", "high", "behavior", "said"),
    [
        ([0.2, 0.3, 0.3, 0.9], [0.4, 0.7, 0.4, 1.0], "random", f"{SPAMMERS}2 of them clearly"),
        ([0.2, 0.3, 0.3, 0.9], [0.4, 0.7, 0.4, 1.0], TOO_FEW, f"{SPAMMERS}1 of them clearly"),
        ([0.2, 0.3, 0.3, 0.9], [0.6, 0.7, 0.8, 1.0], "random", f"{SPAMMERS}none of them clearly"),
        ([0.2, 0.9], [0.4, 1.0], "random", "1 of 2 is a spammer (reliability below 0.5), clearly"),
        ([0.2, 0.9], [0.6, 1.0], "random", "a spammer (reliability below 0.5), not clearly"),
        ([0.2] * 1200, [0.4] * 1200, "random", "1,200 of 1,200 are spammers"),
        ([0.2] * 1200, [0.4] * 1200, "random", "1,200 of them clearly (whole 95% interval)"),
    ],
)
def test_spammers_whose_interval_is_below_half_are_counted_apart(reliability, high, behavior, said):
    n = len(reliability)
    fit = replace(
        at.fit([(e, s, "ab"[e % 2]) for e in range(2) for s in range(n)], "gpm"),
        reliability=np.array(reliability),
        high=np.array(high),
        behavior=[behavior, *["random"] * (n - 1)],
    )
    assert said in fit.summary()
    assert ("1 has too few labels to tell" in fit.summary()) == (behavior == TOO_FEW)


def test_flagged_and_noticed_people_are_counted():
    rows = [(e, s, "ab"[e % 2]) for e in range(30) for s in range(5)]
    fit = at.fit(rows)
    flagged = np.array([True, False, False, False, False])
    behavior = ["random", "low accuracy", "partly careless", TOO_FEW, "serious"]
    fit = replace(
        fit, behavior=behavior, annotator_columns={**fit.annotator_columns, "flagged": flagged}
    )
    said = (
        "1 of 5 is a spammer (careless or consistently wrong); 1 has low accuracy; 1 is partly "
        "careless; 1 has too few labels to tell"
    )
    assert said in fit.summary()
    assert "median accuracy 1.00" in fit.summary()
