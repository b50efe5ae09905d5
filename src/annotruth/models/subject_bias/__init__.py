"""The model of subject bias and inconsistency."""

from annotruth.models.subject_bias.model import SubjectBias

__all__ = ["SubjectBias"]
