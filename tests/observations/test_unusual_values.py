"""Values that Python has and Arrow has not: one line says which."""

from datetime import date

import pandas as pd
import polars as pl
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.observations import Labels

LARGE = 10**5000  # Python does not write integers of so many digits


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        ([(LARGE, "ann", 1), (2, "bob", 1)], r"'item' .* a number of very many digits \(row 1\)"),
        ([("a", "ann", 1), ("a", "bob", LARGE)], r"'label' .* very many digits \(row 2\)"),
        ([("a", "ann", 1), ("a", "b\ud800", 1)], r"'annotator' .* 'b\\ud800' \(row 2\)"),
        ([("a", "ann", 1), (LARGE, "bob", 1)], "mixes str and int"),
        ([("a", "ann", date(2020, 1, 1)), ("a", "bob", 1)], r"mixes date and int \(row 2: 1\)"),
    ],
)
def test_values_that_cannot_be_read_are_named(rows, fact):
    with pytest.raises(InputError, match=fact):
        Labels.of(rows)


def test_surrogates_in_a_frame_are_named():
    frame = pd.DataFrame(
        {"item": ["a", "\ud800"], "annotator": ["x", "y"], "label": [1, 2]}, dtype=object
    )
    with pytest.raises(InputError, match=r"'\\ud800' \(row 2\)"):
        Labels.of(frame)
    frame.columns = pd.Index(["\ud800", "annotator", "label"], dtype=object)
    with pytest.raises(InputError, match=r"no column for the item \(found: \\ud800, "):
        Labels.of(frame)


@pytest.mark.parametrize("category", [LARGE, "\ud800"], ids=["large", "surrogate"])
def test_categories_that_cannot_be_read_are_named(category):
    with pytest.raises(InputError, match=r"categor.*(very many digits|'\\ud800')"):
        Labels.of([("a", "ann", "x")], categories=["x", category])


@pytest.mark.parametrize("library", [pd, pl])
def test_labels_that_differ_after_nul_are_refused(library):
    # Frame libraries end the name of a column at NUL, so p_a\\0b and p_a\\0c would be one.
    frame = library.DataFrame(
        {"item": ["x", "x"], "annotator": ["ann", "bob"], "label": ["a\0b", "a\0c"]}
    )
    with pytest.raises(InputError, match=r"label 'a\\x00b' contains a NUL character: remove it"):
        at.fit(frame)
