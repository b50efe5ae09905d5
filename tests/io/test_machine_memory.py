"""How much memory there is, in containers and on systems that do not say."""

import pytest

from annotruth.io import memory


@pytest.fixture
def limits(tmp_path, monkeypatch):
    """Return a function that writes the limit of a container."""
    file = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_CONTAINER_LIMITS", (file, tmp_path / "missing"))
    return file.write_text


def test_a_container_may_have_less_memory_than_the_machine(limits):
    limits("max\n")
    machine = memory.memory_size()
    assert machine > 100_000_000
    limits("50000000\n")
    assert memory.memory_size() == memory.available_memory() == 50_000_000
    limits(f"{2 * machine}\n")
    assert memory.memory_size() == machine


def test_available_memory_is_what_the_system_reports(limits, tmp_path, monkeypatch):
    limits("max\n")
    monkeypatch.setattr(memory, "_MEMORY_INFO", tmp_path / "meminfo")
    assert memory.available_memory() == memory.memory_size()  # where it reports nothing
    (tmp_path / "meminfo").write_text("MemTotal: 90 kB\nMemFree: 5 kB\nMemAvailable:   70 kB\n")
    assert memory.available_memory() == 70 * 1024
