"""Estimators, one paper a file, on one EM loop."""
