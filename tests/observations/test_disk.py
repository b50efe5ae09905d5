"""Arrays on disk, and the memory that their pages take."""

import sys

import numpy as np
import pytest
from tests.waiting import wait_until

from annotruth.errors import InputError
from annotruth.observations.disk import Disk, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500MB", 500_000_000),
        ("1GB", 10**9),
        ("1.5GiB", 3 * 2**29),
        ("2 kib", 2048),
        ("1tb", 10**12),
        ("700", 700),
        (12345, 12345),
    ],
)
def test_sizes_are_parsed(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "much", "1.MB", "1e9", "-3", "0", "1 G B", "3PB", None])
def test_bad_sizes_are_refused(text):
    with pytest.raises(InputError, match="is not a size: write 500MB, 1GB or"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size", "text"), [(12, "12 bytes"), (1500, "1.5 kB"), (2e6, "2.0 MB"), (3.2e12, "3,200.0 GB")]
)
def test_sizes_are_formatted(size, text):
    assert format_size(size) == text


def test_arrays_are_zeros_and_writable():
    array = Disk(10**6).zeros((3, 4), np.int32)
    assert array.shape == (3, 4)
    assert not array.any()
    array[1, 2] = 7
    assert array.sum() == 7
    assert Disk(10**6).zeros(0).shape == (0,)


def test_a_column_is_appended_to_and_mapped():
    column = Disk(10**6).column(np.int16)
    for part in ([1, 2], [], [3]):
        column.append(np.array(part))
    assert len(column) == 3
    np.testing.assert_array_equal(column.to_array(), np.array([1, 2, 3], dtype=np.int16))
    assert len(Disk(10**6).column(np.int16).to_array()) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports what is in memory")
def test_released_pages_keep_what_was_written():
    disk = Disk(8_000_000)
    array = disk.zeros(8_000_000)
    array[:] = 3.0
    wait_until(lambda: resident() <= 16_000_000, "the monitor, which checks by itself")
    assert (array == 3.0).all()


def resident():
    """How much of the files is in memory, in bytes, that are mapped and have no name."""
    total, counted = 0, False
    with open("/proc/self/smaps") as smaps:  # noqa: PTH123
        for line in smaps:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                counted = "(deleted)" in line
            elif words[0] == "Rss:" and counted:
                total += 1024 * int(words[1])
    return total
