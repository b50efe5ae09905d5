"""How many categories and latent states RobustGPM takes, by their number and by memory."""

from __future__ import annotations

from annotruth.labels import LabelSummary
from annotruth.models.robust_gpm.opinions import count_shapes

_MAX_CATEGORIES = 128
_MAX_BYTES = 8e9
# Tables of annotators x categories x states: the likelihood, partitions' counts, their update.
_N_TABLES = 8


def has_room(labels: LabelSummary) -> bool:
    """Whether the labels are within the model's limits of categories and memory."""
    return not size_problem(labels)


def size_problem(labels: LabelSummary) -> str:
    """Return which limit the labels exceed; empty if none."""
    n_annotators, n = labels.n_annotators, labels.n_categories
    n_states = max(n, count_shapes(n)) if labels.scale.is_ordinal else n
    if n > _MAX_CATEGORIES:
        return f"they have {n:,} categories, and it takes at most {_MAX_CATEGORIES}"
    n_bytes = _N_TABLES * 8 * n_annotators * n * n_states
    if n_bytes > _MAX_BYTES:
        return (
            f"its tables of {n_annotators:,} annotators x {n:,} categories would take "
            f"{n_bytes / 1e9:.1f} GB, and the limit is {_MAX_BYTES / 1e9:.0f} GB"
        )
    return ""


def max_states(labels: LabelSummary) -> int:
    """Return how many latent states fit into memory."""
    per_state = _N_TABLES * 8 * labels.n_annotators * labels.n_categories
    return int(_MAX_BYTES // per_state)
