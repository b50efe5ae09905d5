"""Examples in the docstrings of labels and io run."""

import doctest
import importlib
import pkgutil

import pytest

import annotruth.io
import annotruth.labels

MODULES = [
    found.name
    for package in (annotruth.labels, annotruth.io)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


def test_there_are_examples():
    with_examples = [
        name
        for name in MODULES
        if any(
            test.examples for test in doctest.DocTestFinder().find(importlib.import_module(name))
        )
    ]
    assert len(with_examples) > 10
