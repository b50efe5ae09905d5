"""Messages as platforms send them."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("pydantic")

PAYLOADS = Path(__file__).parent / "payloads"


@pytest.fixture(scope="session")
def payload():
    """A function that returns the content of a recorded message."""

    def read(platform: str, name: str):
        return json.loads((PAYLOADS / platform / f"{name}.json").read_text())

    return read


@pytest.fixture(scope="session")
def received() -> datetime:
    """When the messages arrive."""
    return datetime(2026, 11, 16, 14, tzinfo=UTC)
