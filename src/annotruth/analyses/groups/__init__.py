"""Opinions of groups of annotators: each group's distribution per item, and where groups differ."""
