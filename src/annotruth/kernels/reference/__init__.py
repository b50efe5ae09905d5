"""NumPy twins of the compiled kernels: the equations, as plainly as possible.

Each file has the name of the family it belongs to, and functions of the same names. A twin takes a block
and a range of items as the kernel does, and as ``a`` all other arguments of the kernel by name.
The twins are the oracle of the tests and run in ``engine="reference"``. They allocate freely and are
for small data.
"""
