"""The ordinal-discrete mixture model."""

from annotruth.models.ordinal_mixture.model import OrdinalMixture

__all__ = ["OrdinalMixture"]
