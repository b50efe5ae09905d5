"""Dawid and Skene's model."""

from annotruth.models.dawid_skene.model import DawidSkene

__all__ = ["DawidSkene"]
