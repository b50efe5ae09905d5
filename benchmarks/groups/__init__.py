"""Groups of annotators: accuracy, minorities, false discoveries, held-out labels."""
