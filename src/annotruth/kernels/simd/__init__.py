"""SIMD building blocks for kernels: the only code that knows llvmlite."""
