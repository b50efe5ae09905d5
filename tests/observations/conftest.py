"""The same labels in every frame library."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

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
