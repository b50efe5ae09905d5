"""Where passes over the labels run: the seam between models and hardware."""

from annotruth.engines.base import Engine, Session, Sweep, engine_named, name_of, share_out

__all__ = ["Engine", "Session", "Sweep", "engine_named", "name_of", "share_out"]
