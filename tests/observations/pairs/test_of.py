"""Comparisons from frames and plain Python data."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from annotruth.errors import InputError
from annotruth.io.readers import load_comparisons
from annotruth.observations import LEFT, RIGHT, TIE, Comparisons

ROWS = {
    "left": ["a", "b", "c"],
    "right": ["b", "c", "a"],
    "annotator": ["x", "y", "x"],
    "winner": ["left", "tie", "a"],
}
IN_SIDES = {**ROWS, "winner": ["left", "tie", "right"]}


def votes(data):
    """The comparisons as tuples, in the order of the input."""
    return [tuple(row.values()) for row in data.to_arrow().to_pylist()]


@pytest.mark.parametrize(
    ("make", "library"),
    [
        (pd.DataFrame, "pandas"),
        (lambda rows: pd.DataFrame(rows).astype("category"), "pandas"),
        (pl.DataFrame, "polars"),
        (pl.LazyFrame, "polars"),
        (pa.table, "pyarrow"),
        (lambda rows: list(zip(*rows.values(), strict=True)), "pandas"),
        (lambda rows: pd.DataFrame(rows).to_dict("records"), "pandas"),
    ],
)
def test_every_frame_gives_the_same_comparisons(make, library):
    data = Comparisons.of(make(IN_SIDES))
    assert votes(data) == list(zip(*IN_SIDES.values(), strict=True))
    assert data.frame == library
    assert data.sides_known


def test_comparisons_are_returned_as_they_are():
    data = Comparisons.of(pa.table(IN_SIDES))
    assert Comparisons.of(data) is data
    with pytest.raises(InputError, match="give their options where they are made"):
        Comparisons.of(data, columns={"left": "x"})


def test_ids_of_any_type_are_kept():
    rows = {"left": [1, 2], "right": [2, 3], "annotator": [7.0, 8.0], "winner": [1, 3]}
    data = Comparisons.of(pa.table(rows))
    assert data.items.to_pylist() == [1, 2, 3]
    assert data.outcome.tolist() == [LEFT, RIGHT]


def test_sides_of_different_types_are_compared_as_text():
    rows = {"left": [1, 2], "right": ["2", "x"], "annotator": ["u", "u"], "winner": ["2", "x"]}
    data = Comparisons.of(pa.table(rows))
    assert data.items.to_pylist() == ["1", "2", "x"]
    assert data.outcome.tolist() == [RIGHT, RIGHT]


def test_covariates_travel_with_their_comparison():
    rows = {**IN_SIDES, "length": [1, 2, 3], "long": [True, False, True]}
    data = Comparisons.of(pa.table(rows), covariates=["length", "long"])
    assert data.covariates["length"].tolist() == [1.0, 3.0, 2.0]
    assert data.covariates["long"].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("yes", [1.0, True, "TRUE", "1.0", " tie "])
def test_ties_of_winners_and_losers(yes):
    rows = {"winner": ["a", "a"], "loser": ["b", "b"], "annotator": ["x", "y"], "tie": [yes, None]}
    assert Comparisons.of(pa.table(rows)).outcome.tolist() == [TIE, LEFT]
    with pytest.raises(InputError, match="tie is 'maybe' in row 2, which is neither yes nor no"):
        Comparisons.of(pa.table({**rows, "tie": ["no", "maybe"]}))


def test_covariates_of_winners_and_losers_are_exchanged_with_the_sides():
    rows = {"winner": ["a", "b"], "loser": ["b", "a"], "annotator": ["x", "x"], "length": [5, 3]}
    data = Comparisons.of(pa.table(rows), covariates=["length"])
    assert (data.left.tolist(), data.right.tolist()) == ([0, 0], [1, 1])
    assert data.outcome.tolist() == [0, 1]
    assert data.covariates["length"].tolist() == [5.0, -3.0]


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_covariates_must_be_finite(value):
    rows = {**IN_SIDES, "length": [1.0, value, 3.0]}
    with pytest.raises(InputError, match=r"covariate 'length' has no finite number in row 2"):
        Comparisons.of(pa.table(rows), covariates=["length"])
    with pytest.raises(InputError, match=r"'length' has -1e\+200, which is too large, in row 2"):
        Comparisons.of(pa.table({**rows, "length": [1.0, -1e200, 3.0]}), covariates=["length"])


def test_covariates_must_be_numbers():
    with pytest.raises(InputError, match=r"covariate 'style' is not a number in every row"):
        Comparisons.of(pa.table({**IN_SIDES, "style": ["x", "y", "z"]}), covariates=["style"])
    with pytest.raises(InputError, match="no column 'size' for the covariate"):
        Comparisons.of(pa.table(IN_SIDES), covariates=["size"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "cannot read comparisons from int"),
        ({"a": 1}, r"cannot read comparisons from dict: .*\(left, right, annotator, winner\)"),
        ([("a", "b")], r"row 1 is \('a', 'b'\): each must be \(left, right, annotator, winner\)"),
        ([{"left": 1}, 3], "row 2 is 3: each must be a dict"),
        ([], "there are no rows"),
    ],
)
def test_other_data_are_refused(data, message):
    with pytest.raises(InputError, match=message):
        Comparisons.of(data)


@pytest.mark.parametrize(
    "given", [{"scale": "ordinal"}, {"duplicates": "keep"}, {"bins": 4}, {"memory": "1GB"}]
)
def test_options_of_labels_are_refused(given):
    (name,) = given
    said = f"{name} is for labels, not for comparisons: leave it out"
    with pytest.raises(InputError, match=said):
        Comparisons.of(pa.table(IN_SIDES), **given)


def test_options_of_files_are_refused():
    with pytest.raises(InputError, match="query is for files: leave it out"):
        load_comparisons(pa.table(IN_SIDES), query="select 1")


def test_without_gaps_leaves_out_what_has_no_comparison():
    data = Comparisons.of(pa.table({**IN_SIDES, "context": [1, 2, 3]}))
    kept = data.subset(data.annotator_of_comparison() == 1).without_gaps()
    assert kept.items.to_pylist() == ["b", "c"]
    assert kept.annotators.to_pylist() == ["y"]
    assert kept.contexts.to_pylist() == [2]
    assert votes(kept) == [("b", "c", "y", "tie", 2)]
    np.testing.assert_array_equal(kept.annotator_ptr, [0, 1])


def test_codes_must_be_as_many_and_in_range():
    with pytest.raises(InputError, match="there are 2 left items and 1 right items: give one of"):
        Comparisons.from_codes([0, 0], [1], [0], [0], items=["a", "b"], annotators=["x"])
    with pytest.raises(InputError, match=r"a code of the right items is outside 0\.\.1"):
        Comparisons.from_codes([0], [2], [0], [0], items=["a", "b"], annotators=["x"])
