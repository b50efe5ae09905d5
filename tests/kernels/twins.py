"""Kernels beside their NumPy twins, called alike."""

import importlib
from functools import partial

import numpy as np

from annotruth.engines.memory import argument_names, call_kernel
from annotruth.observations import Labels, Scale


class Twins:
    """The NumPy twins of a family, which take the arguments of the kernels one by one."""

    def __init__(self, family):
        self._kernels = importlib.import_module(f"annotruth.kernels.{family}")
        self._twins = importlib.import_module(f"annotruth.kernels.reference.{family}")

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name, *values):
        names, twin = argument_names(getattr(self._kernels, name)), getattr(self._twins, name)
        n_place = argument_names(twin).index("a")
        arrays = dict(zip(names[n_place:], values[n_place:], strict=True))
        call_kernel(twin, values[:n_place], arrays)


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
