"""The hash table of ids against its NumPy twin."""

import numpy as np
import pytest
from tests.kernels.twins import Kernels, Twins

ids, reference = Kernels("ids"), Twins("ids")
EMPTY = np.uint64(2**64 - 1)


def join(texts):
    ends = np.cumsum([0, *map(len, texts)])
    # The eight bytes after the last text are read, and must not matter.
    return ends, np.frombuffer(b"".join(texts) + b"whatever", dtype=np.uint8).copy()


def table(n_slots=256):
    slots = np.full(n_slots, EMPTY, dtype=np.uint64)
    return slots, np.zeros(200, dtype=np.int64), np.zeros(2000, dtype=np.uint8)


@pytest.fixture
def batches():
    rng = np.random.default_rng(2)
    texts = [b"", b"a", b"ab", b"b", b"\0", b"\0\0", *(f"item-{e}".encode() for e in range(60))]
    texts += [b"x" * n for n in (7, 8, 9, 15, 16, 17)]
    return [[texts[i] for i in rng.integers(len(texts), size=n)] for n in (0, 1, 40, 90, 600)]


def test_ids_get_the_codes_of_a_dictionary(batches):
    one, other = table(), table()
    known = [0, 0]
    for texts in batches:
        codes = np.empty((2, len(texts)), dtype=np.int32)
        ends, text = join(texts)
        known[0] = ids.find_or_add(ends, text, *one, known[0], codes[0])
        known[1] = reference.find_or_add(ends, text, *other, known[1], codes[1])
        assert known[0] == known[1]
        np.testing.assert_array_equal(*codes)
    assert known[0] > 40
    np.testing.assert_array_equal(one[1], other[1])
    np.testing.assert_array_equal(one[2], other[2])


def test_rehashing_keeps_all_ids(batches):
    slots, ends, text = table(128)
    codes = np.empty(90, dtype=np.int32)
    n = ids.find_or_add(*join(batches[3]), slots, ends, text, 0, codes)
    more = np.full((2, 512), EMPTY, dtype=np.uint64)
    ids.rehash(slots, more[0])
    reference.rehash(slots, more[1])
    np.testing.assert_array_equal(*more)
    again = np.empty_like(codes)
    assert ids.find_or_add(*join(batches[3]), more[0], ends, text, n, again) == n
    np.testing.assert_array_equal(again, codes)


def test_ids_with_the_same_hash_get_codes_of_their_own():
    n = 200_000
    ends, text = join([b"%d" % number for number in range(n)])
    slots = np.full(1 << 19, EMPTY, dtype=np.uint64)
    codes = np.empty(n, dtype=np.int32)
    known = np.zeros(n + 1, dtype=np.int64), np.zeros_like(text)
    assert ids.find_or_add(ends, text, slots, *known, 0, codes) == n
    np.testing.assert_array_equal(codes, np.arange(n))
    hashes = slots[slots != EMPTY] >> np.uint64(32)
    assert len(np.unique(hashes)) < n  # or the test could not fail
