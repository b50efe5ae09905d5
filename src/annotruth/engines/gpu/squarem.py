"""SQUAREM's passes on the card."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.engines.gpu.session import GPUSession


def copy_cells(session: GPUSession, x: str, copy: str) -> dict[str, Any]:
    """Copy an array of one number per cell."""
    session.array(copy)[...] = session.array(x)
    return {}


def extrapolate_cells(
    session: GPUSession, x: str, x0: str, x1: str, limit: float
) -> dict[str, Any]:
    """Extrapolate the items' distributions."""
    arrays = [session.array(name) for name in (x, x0, x1)]
    session.run("squarem.extrapolate_cells", np.int64(session.n_items), *arrays, np.float32(limit))
    return {}
