"""Comparison of a fit on Spark with the same fit in memory."""

import numpy as np
import pyarrow as pa


def assert_same_tables(on_spark, in_memory, tolerance=1e-9):
    """Items, annotators and labels are the same, whatever the order of the rows."""
    tables = {
        "items": (on_spark.items(), in_memory.item_table(), ["item"]),
        "annotators": (on_spark.annotators(), in_memory.annotator_table(), ["annotator"]),
        "labels": (on_spark.labels(), in_memory.label_table(), ["item", "annotator"]),
    }
    for frame, expected, ids in tables.values():
        table = frame.toArrow()
        assert table.column_names == expected.column_names
        assert table.num_rows == expected.num_rows
        order = [(name, "ascending") for name in ids]
        table, expected = table.sort_by(order), expected.sort_by(order)
        for name in expected.column_names:
            if pa.types.is_floating(expected[name].type):
                np.testing.assert_allclose(
                    table[name], expected[name], rtol=tolerance, atol=tolerance, err_msg=name
                )
            else:
                assert table[name].to_pylist() == expected[name].to_pylist(), name
