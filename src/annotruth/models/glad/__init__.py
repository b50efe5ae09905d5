"""The GLAD model."""

from annotruth.models.glad.model import GLAD

__all__ = ["GLAD"]
