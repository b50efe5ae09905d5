"""Accuracy of all models with few labels or irregular annotators."""
