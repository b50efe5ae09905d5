"""Where passes over the data run: the seam between models and hardware."""

from annotruth.engines.protocol import (
    BuildTables,
    DistributedEngine,
    DistributedFrame,
    DistributedFrames,
    DistributedLabels,
    DistributedSession,
    Engine,
    EngineCapabilities,
    Input,
    Pass,
    PassData,
    Session,
    Sum,
)
from annotruth.engines.registry import (
    ENGINES,
    DistributedEngineName,
    engine_name,
    get_engine,
    native_engine,
)

__all__ = [
    "ENGINES",
    "BuildTables",
    "DistributedEngine",
    "DistributedEngineName",
    "DistributedFrame",
    "DistributedFrames",
    "DistributedLabels",
    "DistributedSession",
    "Engine",
    "EngineCapabilities",
    "Input",
    "Pass",
    "PassData",
    "Session",
    "Sum",
    "engine_name",
    "get_engine",
    "native_engine",
]
