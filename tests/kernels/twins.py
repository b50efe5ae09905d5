"""Kernels beside their NumPy twins, called alike."""

import re
from functools import partial

import numpy as np

from annotruth.kernels import find_kernel
from annotruth.observations import Labels, Scale


def argument_names(name):
    """Return the names of the arguments of a compiled kernel ``family.function``."""
    return re.findall(r"(\w+): ", find_kernel(name).__nb_signature__[0][0])


class Kernels:
    """The kernels of a family, or their NumPy twins, which take the same arguments one by one."""

    def __init__(self, family, *, reference=False):
        self._family, self._reference = family, reference

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._call, f"{self._family}.{name}")

    def _call(self, name, *values):
        names = argument_names(name)
        n_place = names.index("hi") + 1 if "hi" in names else 0
        arrays = dict(zip(names[n_place:], values[n_place:], strict=True))
        return find_kernel(name, reference=self._reference)(*values[:n_place], **arrays)


Twins = partial(Kernels, reference=True)


def assert_same(results, rtol=1e-12, atol=1e-13):
    """Check that a kernel and its twin wrote the same."""
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def one_item(annotators, categories, n_categories):
    """Return one item with a label of each of the annotators."""
    return Labels.from_codes(
        np.zeros(len(categories), dtype=np.int64),
        np.asarray(annotators),
        np.asarray(categories),
        items=["item"],
        annotators=[str(s) for s in range(max(annotators) + 1)],
        scale=Scale.ordinal(list(range(n_categories))),
    )
