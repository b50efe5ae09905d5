"""What other people's labels say about annotators: few passes per fit, which run in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from annotruth.engines.gpu.session import GPUSession
from annotruth.kernels import people as kernels


def _run_in_memory(
    kernel: Callable[..., None], names: tuple[str, ...], session: GPUSession, *inputs: Any
) -> dict[str, Any]:
    """Run a kernel over the labels in memory; return the sums by name, where the card computes."""
    sums = {name: np.zeros(session.sum_shape(name)) for name in names}
    kernel(session.labels.block(), 0, session.n_items, *inputs, *sums.values())
    return {name: session.to_engine(total) for name, total in sums.items()}


moments = partial(_run_in_memory, kernels.moments, ("states", "moments"))
log_likelihood = partial(_run_in_memory, kernels.log_likelihood, ("log_likelihood",))
count_compared = partial(_run_in_memory, kernels.count_compared, ("counts",))
agreement = partial(_run_in_memory, kernels.agreement, ("sums", "moments"))
