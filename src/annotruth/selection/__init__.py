"""Which model predicts held-out labels best, and how models compare."""
