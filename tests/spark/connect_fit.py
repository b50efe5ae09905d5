"""Fit on a Spark Connect session, and compare the results with those in memory."""

from comparison import assert_same_tables
from pyspark.sql import SparkSession

import annotruth as at
from annotruth import simulate

spark = SparkSession.builder.remote("local[2]").getOrCreate()
table = simulate.crowd(n_items=30, n_annotators=8, n_categories=3, seed=2).labels.to_arrow()
frame = spark.createDataFrame(table)
assert "connect" in type(frame).__module__
for name in ("gpm", "dawid-skene"):
    with at.fit(frame, name, tol=0.1) as fit:
        assert_same_tables(fit, at.fit(table, name, tol=0.1))
spark.stop()
