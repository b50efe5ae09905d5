"""Labels built from batches are those built from one table."""

import numpy as np
import pyarrow as pa
import pytest

from annotruth.errors import InputError
from annotruth.observations import Labels, ReadOptions
from annotruth.observations.build import LabelBuilder
from annotruth.observations.options import ParsedLabels

ARRAYS = ("item_ptr", "cell_category", "cell_ptr", "annotator", "row")


def random_table(n=500):
    rng = np.random.default_rng(3)
    label = rng.integers(1, 6, n).tolist()
    for row in rng.integers(n, size=20):
        label[row] = None
    return pa.table(
        {
            "item": [f"item {e}" for e in rng.integers(60, size=n)],
            "annotator": rng.integers(40, size=n),
            "label": label,
        }
    )


def build(batches, **options):
    builder = LabelBuilder(ReadOptions(**options))
    for batch in batches:
        builder.add(ParsedLabels(batch))
    builder.end_source()
    return builder.finish()


def batches_of(table, rows):
    return [table.slice(start, rows) for start in range(0, table.num_rows, rows)]


@pytest.mark.parametrize("rows", [1, 7, 100, 1000])
@pytest.mark.parametrize("duplicates", ["keep", "last"])
def test_batches_build_the_labels_of_one_table(rows, duplicates):
    table = random_table()
    one = Labels.of(table, duplicates=duplicates)
    several = build(batches_of(table, rows), duplicates=duplicates)
    assert several.items.equals(one.items)
    assert several.annotators.equals(one.annotators)
    assert several.scale.names == one.scale.names
    assert several.n_dropped == one.n_dropped
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(several, name), getattr(one, name))


def test_batches_without_labels_are_dropped(rows_of):
    empty = pa.table({"item": ["z"], "annotator": ["a"], "label": pa.nulls(1, pa.string())})
    full = pa.table({"item": ["b"], "annotator": ["a"], "label": ["x"]})
    labels = build([empty, full, empty.slice(0, 0), empty])
    assert rows_of(labels) == [("b", "a", "x")]
    assert labels.n_dropped == 2


def test_levels_of_ordered_categoricals_keep_their_order_over_batches():
    levels = pa.array(["bad", "fair", "good"])
    label = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 2]), levels, ordered=True)
    table = pa.table({"item": [1, 1, 2, 2], "annotator": ["a", "b", "a", "b"], "label": label})
    labels = build(batches_of(table, 1))
    assert labels.scale.names == ["bad", "fair", "good"]
    assert labels.scale.is_ordinal


def test_rows_without_an_id_are_counted_over_all_batches():
    table = pa.table({"item": ["i", None, "j", ""], "annotator": ["a"] * 4, "label": [1, 2, 3, 4]})
    with pytest.raises(InputError, match=r"row 2 has a label but no item \(2 in all\)"):
        build(batches_of(table, 1))


def test_repeats_are_named_over_all_batches():
    table = pa.table({"item": ["i", "j", "i"], "annotator": ["a"] * 3, "label": [1, 2, 3]})
    with pytest.raises(InputError, match="labelled twice: annotator 'a' on item 'i'; pass"):
        build(batches_of(table, 1))


def test_no_batches_are_refused():
    with pytest.raises(InputError, match="there are no rows"):
        build([])
