"""The smallest tables of labels that can be fitted."""

SMALLEST = {
    "one label": [("a", "x", 1)],
    "one annotator": [("a", "x", 1), ("b", "x", 3), ("c", "x", 3)],
    "one item": [("a", "x", 1), ("a", "y", 3), ("a", "z", 3)],
    "one category": [("a", "x", 1), ("a", "y", 1), ("b", "x", 1)],
}
