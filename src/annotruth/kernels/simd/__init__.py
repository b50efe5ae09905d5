"""Parts of kernels written in vectors; `annotruth.kernels.simd.llvm` is the adapter to llvmlite."""

SIMD8 = 8
"""How many numbers there are in a vector of `annotruth.kernels.simd.simd8`."""
