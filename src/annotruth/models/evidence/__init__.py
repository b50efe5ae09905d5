"""Pieces around models: chance, copies, classifiers, and what single labels say about reliability."""
