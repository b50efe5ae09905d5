"""The layout of Labels, compared with the rows."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotruth.observations import Labels, Scale
from annotruth.observations.encode import to_integers
from annotruth.observations.layout import RowCodes, find_repeats

ROWS = st.lists(
    st.tuples(
        st.integers(-3, 8), st.sampled_from("abcdef"), st.sampled_from([None, "x", "y", "z", "w"])
    ),
    min_size=1,
    max_size=40,
).filter(lambda rows: any(label is not None for _, _, label in rows))
CHECKED = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@CHECKED
@given(rows=ROWS)
def test_every_label_is_in_its_cell(rows_of, rows):
    labels = Labels.of(rows, duplicates="keep")
    kept = [row for row in rows if row[2] is not None]

    assert rows_of(labels) == kept
    assert labels.n_dropped == len(rows) - len(kept)
    assert labels.n_labels == len(kept)
    assert labels.items.to_pylist() == list(dict.fromkeys(item for item, _, _ in kept))
    assert labels.annotators.to_pylist() == list(dict.fromkeys(person for _, person, _ in kept))
    assert labels.scale.names == sorted({label for _, _, label in kept})

    cells = [
        (item, category)
        for item, category in zip(labels.item_of_cell(), labels.cell_category, strict=True)
    ]
    assert cells == sorted(set(cells))  # sorted by item, then category, each pair once
    sizes = Counter((item, label) for item, _, label in kept)
    assert np.diff(labels.cell_ptr).tolist() == [
        sizes[labels.items[int(item)].as_py(), labels.scale.names[category]]
        for item, category in cells
    ]
    for start, end in zip(labels.cell_ptr[:-1], labels.cell_ptr[1:], strict=True):
        assert (np.diff(labels.row[start:end]) > 0).all()  # rows in order within a cell
    assert labels.item_ptr[0] == labels.cell_ptr[0] == 0
    assert labels.item_ptr[-1] == labels.n_cells == len(cells)
    assert labels.cell_ptr[-1] == labels.n_labels

    per_item = Counter(item for item, _, _ in kept)
    per_person = Counter(person for _, person, _ in kept)
    assert labels.labels_per_item.tolist() == [per_item[i] for i in labels.items.to_pylist()]
    assert labels.labels_per_annotator.tolist() == [
        per_person[person] for person in labels.annotators.to_pylist()
    ]
    assert (labels.known == -1).all()


@CHECKED
@given(rows=ROWS)
def test_the_last_label_of_each_pair_is_kept(rows_of, rows):
    kept = [row for row in rows if row[2] is not None]
    last = {(item, person): number for number, (item, person, _) in enumerate(kept)}
    expected = [kept[number] for number in sorted(last.values())]
    assert rows_of(Labels.of(rows, duplicates="last")) == expected


@CHECKED
@given(pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20))
def test_repeats_and_superseded_rows_are_found(pairs):
    item, annotator = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    identical, changed, superseded = find_repeats(RowCodes(item, annotator, item), 4)
    assert identical.tolist() == [i for i, pair in enumerate(pairs) if pair in pairs[:i]]
    assert changed.tolist() == []
    assert superseded.tolist() == [i for i, pair in enumerate(pairs) if pair in pairs[i + 1 :]]


@CHECKED
@given(ids=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True))
def test_integers_in_text_become_integers(ids):
    assert to_integers(pa.array([str(value) for value in ids])).to_pylist() == ids


@CHECKED
@given(rows=ROWS, n_partitions=st.integers(1, 6))
def test_partitions_cover_all_items_in_order(rows, n_partitions):
    labels = Labels.of(rows, duplicates="keep")
    bounds = labels.partition(n_partitions)
    assert len(bounds) == n_partitions + 1
    assert bounds[0] == 0
    assert bounds[-1] == labels.n_items
    assert (np.diff(bounds) >= 0).all()


@pytest.mark.parametrize("label", ["x", 3, 2.5, True])
def test_one_annotator_one_item_one_category(rows_of, label):
    labels = Labels.of([("i", "a", label)])
    assert rows_of(labels) == [("i", "a", label)]
    assert (labels.n_items, labels.n_annotators, labels.n_categories, labels.n_cells) == (1,) * 4
    assert repr(labels).startswith("Labels(1 ")


def test_labels_are_made_of_codes(rows_of):
    rows = [(1, "b", "x"), (0, "a", "y"), (1, "a", "x")]
    labels = Labels.from_codes(
        np.array([1, 0, 1]),
        np.array([1, 0, 0]),
        np.array([0, 1, 0]),
        items=[0, 1],
        annotators=["a", "b"],
        scale=Scale.nominal(["x", "y", "z"]),
        n_dropped=2,
        frame="polars",
    )
    assert rows_of(labels) == rows
    assert labels.n_categories == 3
    assert (labels.n_dropped, labels.frame) == (2, "polars")


def test_the_block_holds_the_arrays_themselves():
    labels = Labels.of([(1, "a", "x"), (1, "b", "y"), (2, "a", "x")]).with_gold({2: "x"})
    for name, array in labels.block()._asdict().items():
        assert array is getattr(labels, name)
    assert [array.dtype for array in labels.block()] == ["i8", "i4", "i8", "i4", "i4"]


def test_labels_are_counted_by_annotator_and_category(make_labels):
    labels = make_labels(np.random.default_rng(8), n_items=20, n_annotators=6, n_categories=3)
    counts = np.zeros((6, 3), dtype=np.int64)
    np.add.at(counts, (labels.annotator, labels.category_of_label()), 1)
    np.testing.assert_array_equal(labels.labels_per_category, counts)
    np.testing.assert_array_equal(labels.labels_per_annotator, counts.sum(axis=1))
