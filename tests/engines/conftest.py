"""These tests run every compiled kernel, also on few labels."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_every_kernel):
    """All tests of this folder."""
