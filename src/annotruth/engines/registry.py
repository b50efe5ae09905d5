"""The engines by name: the only module outside ``engines/NAME`` that knows them."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, cast

from annotruth.engines.protocol import DistributedLabels, Engine
from annotruth.errors import InputError, shown
from annotruth.observations import LabelSummary
from annotruth.observations.frames import distributed_library

# name: (module, class); an engine's module loads when it is asked for.
ENGINES = {
    "memory": ("annotruth.engines.memory", "MemoryEngine"),
    "reference": ("annotruth.engines.memory", "ReferenceEngine"),
    "spark": ("annotruth.engines.spark", "SparkEngine"),
    "gpu": ("annotruth.engines.gpu", "GPUEngine"),
}


AUTO = "auto"
"""The value of ``engine`` for the faster one of memory and gpu, which is chosen for each fit."""

GPU_LABELS = 3_000_000
"""From so many labels on, "auto" takes a card.

On 16 cores and an H200 (`python -m benchmarks.gpu --part start`), robust-gpm took 1.58 s in memory and 1.61 s
on the card for 1,000,000 labels, and 2.29 s and 1.76 s for 3,000,000.
"""

DistributedEngineName: TypeAlias = Literal["spark"]
"""The engines whose data are on other machines."""


def get_engine(name: str | Engine) -> Engine:
    """Return the engine of that name, or the engine itself.

    "auto" is memory wherever no model is fitted, such as in reading labels.
    """
    if hasattr(name, "capabilities") and hasattr(name, "open") and not isinstance(name, type):
        return cast(Engine, name)
    if not isinstance(name, str) or name not in (*ENGINES, AUTO):
        raise InputError(f"unknown engine {shown(name)}: choose {', '.join((*ENGINES, AUTO))}")
    module, cls = ENGINES["memory" if name == AUTO else name]
    engine: Engine = getattr(importlib.import_module(module), cls)()
    return engine


def choose_engine(model: str, labels: LabelSummary) -> str:
    """Return the engine that "auto" stands for in a fit of a model."""
    if labels.n_labels < GPU_LABELS or find_spec("cupy") is None:
        return "memory"
    gpu: Any = get_engine("gpu")
    is_here = not isinstance(labels, DistributedLabels)
    return "gpu" if is_here and gpu.can_fit(model, labels) else "memory"


def native_engine(data: Any) -> str | None:
    """Return the name of the engine that alone reads such a frame; None if any engine does."""
    return distributed_library(data)
