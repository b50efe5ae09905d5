"""NumPy twins of the compiled kernels: the equations, as plainly as possible.

Each file has the name of the family it belongs to, and functions of the same names and arguments.
The twins are the oracle of the tests and run in ``engine="reference"``. They allocate freely and are
for small data.
"""
