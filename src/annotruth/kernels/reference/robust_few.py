"""Plain twin of the pass over items of few kinds: that over items of any number of them."""

from annotruth.kernels.reference.robust_gpm import step

__all__ = ["step"]
