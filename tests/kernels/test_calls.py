"""How kernels are found and called."""

import numpy as np
import pytest

from annotruth.kernels import find_kernel


def test_arrays_of_another_type_are_refused():
    theta = {"float32": np.zeros(1, np.float32), "gaps": np.zeros(4)[::2], "axes": np.zeros((1, 1))}
    read_only = np.zeros(1)
    read_only.flags.writeable = False
    block = (
        np.zeros(1, np.int64),
        *[np.zeros(0, t) for t in (np.int32, np.int64, np.int32, np.int32)],
    )
    for one in (*theta.values(), read_only):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            find_kernel("gpm.start")(block, 0, 0, theta=one)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        find_kernel("gpm.start")(block[:4], 0, 0, theta=np.zeros(1))
    find_kernel("gpm.start")(block, 0, 0, theta=np.zeros(1))
