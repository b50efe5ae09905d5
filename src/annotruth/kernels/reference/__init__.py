"""Plain NumPy twins of the compiled kernels: what they compute, in the words of the equations.

Each file is named after the family it twins, has functions of the same names and arguments, and
is the oracle of the tests. They allocate freely and are for small data.
"""
