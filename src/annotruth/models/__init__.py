"""Models: estimators, their EM loop, and their results."""
