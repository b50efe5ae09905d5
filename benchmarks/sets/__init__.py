"""Sets of labels beside crowd-kit's BinaryRelevance(DawidSkene)."""
