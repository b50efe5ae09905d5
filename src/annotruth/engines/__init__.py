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
    AUTO,
    ENGINES,
    DistributedEngineName,
    choose_engine,
    get_engine,
    native_engine,
)

__all__ = [
    "AUTO",
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
    "choose_engine",
    "get_engine",
    "native_engine",
]
