"""The same labels in every frame library, and the rows of Labels."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from annotruth.observations import Labels

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "polars lazy": lambda columns: pl.LazyFrame(columns, strict=False),
    "pyarrow": pa.table,
    "arrow batch": pa.record_batch,
    "tuples": lambda columns: list(zip(*columns.values(), strict=True)),
}


@pytest.fixture(params=FRAMES)
def frame(request):
    """A function from item, annotator and label columns to a frame of some library."""
    return FRAMES[request.param]


@pytest.fixture
def rows_of():
    """The (item, annotator, label) rows of Labels, in the order they came in."""

    def rows(labels: Labels) -> list[tuple]:
        cell = labels.cell_of_label()
        item = labels.item_of_cell()[cell]
        category = labels.cell_category[cell]
        found = {
            int(row): (
                labels.items[int(i)].as_py(),
                labels.annotators[int(a)].as_py(),
                labels.scale.categories[int(c)].as_py(),
            )
            for row, i, a, c in zip(labels.row, item, labels.annotator, category, strict=True)
        }
        assert sorted(found) == list(range(labels.n_labels))
        return [found[row] for row in range(labels.n_labels)]

    return rows
