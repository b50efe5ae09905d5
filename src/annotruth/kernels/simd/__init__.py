"""Parts of kernels written in vectors; `annotruth.kernels.simd.llvm` is the adapter to llvmlite."""
