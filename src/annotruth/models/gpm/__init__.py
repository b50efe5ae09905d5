"""GPM, the paper's model."""

from annotruth.models.gpm.model import GPM

__all__ = ["GPM"]
