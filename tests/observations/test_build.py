"""Labels built from batches are those built from one table."""

import numpy as np
import pyarrow as pa
import pytest

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
