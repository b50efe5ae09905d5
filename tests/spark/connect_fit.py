"""Fit on a Connect session, and compare with memory."""

from comparing import same_tables
from pyspark.sql import SparkSession

import annotruth as at
from annotruth import simulate

spark = SparkSession.builder.remote("local[2]").getOrCreate()
table = simulate.crowd(n_items=30, n_annotators=8, n_categories=3, seed=2).labels.to_arrow()
frame = spark.createDataFrame(table)
assert "connect" in type(frame).__module__
for name in ("gpm", "dawid-skene"):
    with at.fit(frame, name, tol=0.1) as found:
        same_tables(found, at.fit(table, name, tol=0.1))
spark.stop()
