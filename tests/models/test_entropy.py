"""Our logarithms are SciPy's."""

import numpy as np
from scipy import special

from annotruth.models.entropy import entr, xlogy

SHARES = np.r_[0.0, 5e-324, 1e-300, 1e-9, np.linspace(0.0, 1.0, 101)]


def test_entr_is_scipys():
    np.testing.assert_allclose(entr(SHARES), special.entr(SHARES), rtol=1e-15)
    assert not np.signbit(entr(np.zeros(2))).any()


def test_xlogy_is_scipys():
    x, y = np.meshgrid(SHARES, SHARES)
    np.testing.assert_allclose(xlogy(x, y), special.xlogy(x, y), rtol=1e-15)
