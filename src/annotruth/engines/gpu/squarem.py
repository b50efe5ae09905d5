"""SQUAREM's passes on the card."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.engines.gpu.session import GPUSession
from annotruth.engines.gpu.streaming import (
    BEGIN,
    CardPartition,
    first_label,
    n_items,
    n_labels,
    reads,
    updates,
    writes,
)


def copy_cells(session: GPUSession, x: str, copy: str) -> dict[str, Any]:
    """Copy an array of one number per cell."""

    def n_entries(partition: CardPartition) -> np.int64:
        return (
            n_items(partition) * session.n_categories if session.is_dense else n_labels(partition)
        )

    session.run_over_items("squarem.copy_cells", n_entries, reads(x), writes(copy))
    return {}


def extrapolate_cells(
    session: GPUSession, x: str, x0: str, x1: str, limit: float
) -> dict[str, Any]:
    """Extrapolate the items' distributions."""
    session.run_over_items(
        "squarem.extrapolate_cells",
        reads(BEGIN),
        first_label,
        n_items,
        updates(x),
        updates(x0),
        reads(x1),
        session.real(limit),
    )
    return {}
