"""The compiled sorting of the layout against its plain twin."""

import numpy as np
import pytest

from annotruth.kernels import layout
from annotruth.kernels.reference import layout as reference


def codes(seed, n, n_items, n_annotators, n_categories):
    rng = np.random.default_rng(seed)
    item = rng.permutation(np.r_[np.arange(n_items), rng.integers(n_items, size=n - n_items)])
    annotator = rng.integers(n_annotators, size=n)
    label = rng.integers(n_categories, size=n)
    return [array.astype(np.int32) for array in (item, annotator, label)]


@pytest.mark.parametrize("rows", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("n", "n_items", "n_categories"),
    [
        (1, 1, 1),
        (60, 7, 3),
        (40_000, 1, 2),
        (40_000, 3_000, 5),
        (40_000, 39_000, 4),
        (40_000, 39_000, 200),  # too many pairs in a range to be counted at once
        (40_000, 1_000, 30_000),  # more categories than a range has labels
    ],
)
def test_arrange_equals_its_twin(n, n_items, n_categories, rows):
    item, annotator, label = codes(n, n, n_items, 50, n_categories)
    results = []
    for arrange in (layout.arrange, reference.arrange):
        people, row, key = np.empty(n, np.int32), np.empty(n, rows), np.empty(n, rows)
        pointers = arrange(item, annotator, label, n_items, n_categories, people, row, key)
        results.append((*pointers, people, row, key))
    for fast, plain in zip(*results, strict=True):
        assert fast.dtype == plain.dtype
        np.testing.assert_array_equal(fast, plain)


def test_arrange_sorts_over_many_ranges():
    n, n_items = 500_000, 70_000  # enough labels for more than a hundred ranges
    item, annotator, label = codes(0, n, n_items, 50, 3)
    people, row, key = np.empty((3, n), np.int32)
    item_ptr, category, cell_ptr = layout.arrange(
        item, annotator, label, n_items, 3, people, row, key
    )
    np.testing.assert_array_equal(row, np.lexsort((np.arange(n), label, item)))
    np.testing.assert_array_equal(people, annotator[row])
    np.testing.assert_array_equal(np.diff(cell_ptr[item_ptr]), np.bincount(item))
    np.testing.assert_array_equal(np.repeat(category, np.diff(cell_ptr)), label[row])


@pytest.mark.parametrize("seed", range(20))
def test_has_repeats_equals_its_twin(seed):
    n_items, n_annotators = 4, 40
    item, annotator, label = codes(seed, 20, n_items, n_annotators, 3)
    people, row, key = np.empty((3, 20), np.int32)
    item_ptr, _, cell_ptr = reference.arrange(item, annotator, label, n_items, 3, people, row, key)
    found = layout.has_repeats(item_ptr, cell_ptr, people, n_annotators)
    assert found == reference.has_repeats(item_ptr, cell_ptr, people, n_annotators)
    pairs = set(zip(item.tolist(), annotator.tolist(), strict=True))
    assert found == (len(pairs) < 20)


@pytest.mark.parametrize("rows", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [np.int32, np.float64])
def test_put_back_equals_its_twin(rows, kind):
    rng = np.random.default_rng(6)
    row, values = rng.permutation(3_000).astype(rows), rng.integers(50, size=3_000).astype(kind)
    results = np.empty((2, 3_000), kind)
    for kernels, out in zip((layout, reference), results, strict=True):
        kernels.put_back(values, row, out)
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0][row], values)


@pytest.mark.parametrize("n", [0, 1, 5_000])
def test_renumber_equals_its_twin(n):
    given = np.random.default_rng(n).choice([9, 2, 7, 0, 4], size=n).astype(np.int32)
    results = []
    for kernels in (layout, reference):
        codes, number = given.copy(), np.full(11, -1, np.int32)
        found = kernels.renumber(codes, number)
        results.append((codes, number, found))
    for fast, plain in zip(*results, strict=True):
        np.testing.assert_array_equal(fast, plain)
    codes, number, found = results[0]
    order = list(dict.fromkeys(given.tolist()))
    assert found == len(order)
    assert number[order].tolist() == list(range(found))
    assert codes.tolist() == [order.index(code) for code in given.tolist()]
