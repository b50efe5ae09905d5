"""The ordinal mixture model."""

from annotruth.models.ordinal_mixture.model import OrdinalMixture

__all__ = ["OrdinalMixture"]
