"""The engines by name: the only module outside ``engines/NAME`` that knows them."""

from __future__ import annotations

import importlib
from typing import Any, Literal, TypeAlias

from annotruth.engines.protocol import Engine
from annotruth.errors import InputError
from annotruth.labels.frames import distributed_library

# name: (module, class); an engine's module loads when it is asked for.
ENGINES = {
    "memory": ("annotruth.engines.memory", "MemoryEngine"),
    "reference": ("annotruth.engines.reference", "ReferenceEngine"),
    "spark": ("annotruth.engines.spark", "SparkEngine"),
    "gpu": ("annotruth.engines.gpu", "GPUEngine"),
}


DistributedEngineName: TypeAlias = Literal["spark"]
"""The engines whose data are on other machines."""


def get_engine(name: str | Engine) -> Engine:
    """Return the engine of that name, or the engine itself."""
    if not isinstance(name, str):
        return name
    if name not in ENGINES:
        raise InputError(f"unknown engine {name!r}: choose {', '.join(ENGINES)}")
    module, cls = ENGINES[name]
    engine: Engine = getattr(importlib.import_module(module), cls)()
    return engine


def engine_name(engine: str | Engine) -> str:
    """Return the name of an engine."""
    return engine if isinstance(engine, str) else engine.name


def native_engine(data: Any) -> str | None:
    """Return the name of the engine that alone reads such a frame; None if any engine does."""
    return distributed_library(data)
