"""CUDA C++ kernels, one file per model family, compiled where a GPU is found.

Each file has one CUDA function per kernel of the family of the same name in `annotruth.kernels`, whose
NumPy twins are its test oracle too.
"""
