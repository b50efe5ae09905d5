"""Comparing a fit on Spark with the same fit in memory."""

import numpy as np
import pyarrow as pa


def same_tables(on_spark, in_memory, tolerance=1e-9):
    """Whether items, annotators and labels say the same, in whatever order."""
    tables = {
        "items": (on_spark.items(), in_memory.item_table(), ["item"]),
        "annotators": (on_spark.annotators(), in_memory.annotator_table(), ["annotator"]),
        "labels": (on_spark.labels(), in_memory.label_table(), ["item", "annotator"]),
    }
    for frame, wanted, ids in tables.values():
        got = frame.toArrow()
        assert got.column_names == wanted.column_names
        assert got.num_rows == wanted.num_rows
        by = [(name, "ascending") for name in ids]
        got, wanted = got.sort_by(by), wanted.sort_by(by)
        for name in wanted.column_names:
            if pa.types.is_floating(wanted[name].type):
                np.testing.assert_allclose(
                    got[name], wanted[name], rtol=tolerance, atol=tolerance, err_msg=name
                )
            else:
                assert got[name].to_pylist() == wanted[name].to_pylist(), name
