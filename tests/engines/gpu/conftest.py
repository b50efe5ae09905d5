"""Fixtures of the tests of the GPU engine."""

import pytest

from annotruth.engines.gpu import session


@pytest.fixture(params=["single", "double"])
def precision(request, monkeypatch):
    """The precision of gpm; single is that of many labels."""
    monkeypatch.setattr(session, "DOUBLE_LABELS", 1 << 22 if request.param == "double" else 0)
    return request.param
