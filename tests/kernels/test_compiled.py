"""What `compiled` compiles: one code per kernel, and entry points only where they are used."""

import numba
import numpy as np
import pytest

from annotruth.kernels.compiled import compiled


@compiled
def _add(values, more):
    for i in range(len(values)):
        values[i] += more
    return values.sum()


@compiled
def add_constants(values, more):
    return _add(values, 1) + _add(values, 2) + _add(values, more=more)


def test_a_kernel_is_compiled_once_for_all_constants():
    assert add_constants(np.zeros(2), 3) == 2 * (1 + 3 + 6)
    assert [tuple(map(str, args)) for args in _add.overloads] == [
        (str(numba.types.Array(numba.float64, 1, "C")), "int64")
    ]


@pytest.mark.parametrize("is_compiled", [False, True])
def test_python_cannot_call_a_private_kernel(is_compiled):
    if is_compiled:
        add_constants(np.zeros(2), 3)
    with pytest.raises(TypeError, match=r"_add is for kernels only: call _add\.py_func"):
        _add(np.zeros(2), 1)
    assert _add.py_func(np.zeros(2), 1) == 2.0
