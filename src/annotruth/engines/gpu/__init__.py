"""The GPU engine: passes as CUDA kernels, with the data and item-side arrays on the card."""

from annotruth.engines.gpu.engine import GPUEngine

__all__ = ["GPUEngine"]
