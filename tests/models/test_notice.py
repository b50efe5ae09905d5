"""What makes results say little is said in the first line of the summary."""

import numpy as np
import pytest

import annotruth as at
from annotruth.models.base_fit import (
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
