"""The kernels of the layout against their NumPy twins."""

import numpy as np
import pytest
from tests.kernels.twins import Kernels, Twins

layout, reference = Kernels("layout"), Twins("layout")


def sort(kernels, codes, n_items, n_categories, dtype=np.int32):
    """Return the pointers, the annotators and rows in their order, and the keys."""
    n = len(codes[0])
    annotator, row, key = np.empty(n, np.int32), np.empty(n, dtype), np.empty(n, dtype)
    n_cells = kernels.sort_labels(*codes, n_items, n_categories, annotator, row, key)
    made = (np.empty(n_items + 1, np.int64), np.empty(n_cells, np.int32))
    cell_ptr = np.empty(n_cells + 1, np.int64)
    kernels.find_cells(key, n_categories, *made, cell_ptr)
    return *made, cell_ptr, annotator, row, key


def codes(seed, n, n_items, n_annotators, n_categories):
    rng = np.random.default_rng(seed)
    item = rng.permutation(np.r_[np.arange(n_items), rng.integers(n_items, size=n - n_items)])
    annotator = rng.integers(n_annotators, size=n)
    label = rng.integers(n_categories, size=n)
    return [array.astype(np.int32) for array in (item, annotator, label)]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("n", "n_items", "n_categories"),
    [
        (1, 1, 1),
        (60, 7, 3),
        (40_000, 1, 2),
        (40_000, 3_000, 5),
        (40_000, 39_000, 4),
        (40_000, 1_000, 30_000),  # more categories than a range has labels
    ],
)
def test_sort_labels_equals_its_twin(n, n_items, n_categories, dtype):
    made = codes(n, n, n_items, 50, n_categories)
    results = [sort(one, made, n_items, n_categories, dtype) for one in (layout, reference)]
    for actual, expected in zip(*results, strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


def test_labels_are_sorted_over_many_ranges():
    n, n_items = 500_000, 70_000  # enough labels for more than a hundred ranges
    item, annotator, label = codes(0, n, n_items, 50, 3)
    made = sort(layout, (item, annotator, label), n_items, 3)
    item_ptr, category, cell_ptr, annotator_out, row, _ = made
    np.testing.assert_array_equal(row, np.lexsort((np.arange(n), label, item)))
    np.testing.assert_array_equal(annotator_out, annotator[row])
    np.testing.assert_array_equal(np.diff(cell_ptr[item_ptr]), np.bincount(item))
    np.testing.assert_array_equal(np.repeat(category, np.diff(cell_ptr)), label[row])


@pytest.mark.parametrize("seed", range(20))
def test_has_duplicates_equals_its_twin(seed):
    n_items, n_annotators = 4, 40
    item, annotator, label = codes(seed, 20, n_items, n_annotators, 3)
    made = sort(reference, (item, annotator, label), n_items, 3)
    item_ptr, _, cell_ptr, annotator_out, *_ = made
    result = layout.has_duplicates(item_ptr, cell_ptr, annotator_out, n_annotators)
    assert result == reference.has_duplicates(item_ptr, cell_ptr, annotator_out, n_annotators)
    pairs = set(zip(item.tolist(), annotator.tolist(), strict=True))
    assert result == (len(pairs) < 20)


@pytest.mark.parametrize("cells", [(0, 0), (0, 5), (3, 11)])
def test_count_labels_equals_its_twin(cells):
    _, category, cell_ptr, annotator_out, *_ = sort(reference, codes(1, 300, 6, 4, 3), 6, 3)
    counts = np.zeros((2, 4, 3), np.int64)
    for kernels, result in zip((layout, reference), counts, strict=True):
        kernels.count_labels(cell_ptr, category, *cells, annotator_out, result)
    np.testing.assert_array_equal(*counts)
    assert counts[0].sum() == cell_ptr[cells[1]] - cell_ptr[cells[0]]


@pytest.mark.parametrize("n", [0, 1, 5_000])
def test_renumber_equals_its_twin(n):
    before = np.random.default_rng(n).choice([9, 2, 7, 0, 4], size=n).astype(np.int32)
    results = []
    for kernels in (layout, reference):
        codes, number = before.copy(), np.full(11, -1, np.int32)
        n_codes = kernels.renumber(codes, number)
        results.append((codes, number, n_codes))
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(actual, expected)
    codes, number, n_codes = results[0]
    order = list(dict.fromkeys(before.tolist()))
    assert n_codes == len(order)
    assert number[order].tolist() == list(range(n_codes))
    assert codes.tolist() == [order.index(code) for code in before.tolist()]
