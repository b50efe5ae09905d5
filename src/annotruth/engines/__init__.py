"""Where passes over the labels run: the seam between models and hardware."""

from annotruth.engines.protocol import Engine, Pass, Session, get_engine, name_of, share_out

__all__ = ["Engine", "Pass", "Session", "get_engine", "name_of", "share_out"]
