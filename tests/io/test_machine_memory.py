"""How much memory there is, in containers and on systems that do not say."""

import pytest

from annotruth.io import content


@pytest.fixture
def limits(tmp_path, monkeypatch):
    """Return a function that writes the limit of a container."""
    file = tmp_path / "memory.max"
    monkeypatch.setattr(content, "_CONTAINER_LIMITS", (file, tmp_path / "missing"))
    return file.write_text


def test_a_container_may_have_less_memory_than_the_machine(limits):
    limits("max\n")
    machine = content.memory_size()
    assert machine > 100_000_000
    limits("50000000\n")
    assert content.memory_size() == content.available_memory() == 50_000_000
    limits(f"{2 * machine}\n")
    assert content.memory_size() == machine


def test_available_memory_is_what_the_system_reports(limits, tmp_path, monkeypatch):
    limits("max\n")
    monkeypatch.setattr(content, "_MEMORY_INFO", tmp_path / "meminfo")
    assert content.available_memory() == content.memory_size()  # where it reports nothing
    (tmp_path / "meminfo").write_text("MemTotal: 90 kB\nMemFree: 5 kB\nMemAvailable:   70 kB\n")
    assert content.available_memory() == 70 * 1024
