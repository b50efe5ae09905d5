"""The engine for labels in Spark: partitions in files, and passes that Spark's tasks run."""

from annotruth.engines.spark.engine import SparkEngine
from annotruth.engines.spark.labels import SparkLabels

__all__ = ["SparkEngine", "SparkLabels"]
