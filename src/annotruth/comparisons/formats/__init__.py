"""Comparisons in exports of labelling platforms; one module per platform."""
