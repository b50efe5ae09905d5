"""Values, names and numbers in messages."""

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.errors import counted, listed, shown


def test_long_lists_show_the_first_names():
    assert listed([]) == "none"
    assert listed(["a", 2]) == "a, 2"
    assert listed(range(1_000_000), max_names=3) == "0, 1, 2 and 999,997 more"
    assert listed(["x" * 1000]) == "x" * 39 + "…" + "x" * 20


def test_long_values_are_shortened():
    assert shown("x" * 1000) == "'" + "x" * 55 + "...'"


def test_counts_have_singular_and_plural():
    assert counted(1, "item") == "1 item"
    assert counted(1200, "item") == "1,200 items"
    assert counted(1, "category", "categories") == "1 category"


def test_a_single_label_is_described_in_the_singular():
    summary = at.fit([("a", "x", "cat"), ("a", "y", None)]).summary()
    assert "on 1 label of 1 item by 1 annotator, 1 nominal category" in summary
    assert "1 row had no label and was dropped" in summary


def test_messages_with_many_categories_or_columns_stay_short():
    rows = [(n, "x", f"c{n}") for n in range(5000)]
    with pytest.raises(at.InputError, match="and 4,990 more") as refused:
        at.fit(rows, "majority", gold={1: "other"})
    assert len(str(refused.value)) < 300
    with pytest.raises(at.InputError, match="and 190 more") as refused:
        at.fit(pa.table({f"column {n}": [1] for n in range(200)}))
    assert len(str(refused.value)) < 400
