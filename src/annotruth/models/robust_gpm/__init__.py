"""RobustGPM, the default model."""

from annotruth.models.robust_gpm.model import RobustGPM

__all__ = ["RobustGPM"]
