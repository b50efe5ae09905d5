"""Codes of columns are the same for every Arrow type."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from annotruth.errors import InputError
from annotruth.io.readers import read_labels
from annotruth.observations import Labels, Scale, layout
from annotruth.observations.encode import BatchEncoder, Memory, encode_column

CHECKED = settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
VALUES = st.lists(st.sampled_from(["b", "a", "", "c", None]), max_size=12)


def dictionary(values, spelled):
    """Encode by hand, with words that nobody uses and words that stand twice."""
    codes = [None if value is None else spelled.index(value) for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(spelled))


@CHECKED
@given(chunks=st.lists(VALUES, max_size=4))
@pytest.mark.parametrize("arrow_type", ["string", "large_string", "string_view", "dictionary"])
def test_every_arrow_type_gives_the_same_codes(chunks, arrow_type):
    if arrow_type == "dictionary":
        spelled = [["unused", "c", "", "a", "b"], ["b", "a", "b", "", "c"]]
        arrays = [dictionary(chunk, spelled[i % 2]) for i, chunk in enumerate(chunks)]
        column = pa.chunked_array(arrays, pa.dictionary(pa.int8(), pa.string()))
    else:
        kind = getattr(pa, arrow_type)()
        column = pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind)
    rows = [value for chunk in chunks for value in chunk]

    codes, values, levels = encode_column(column)
    assert values.type == pa.string()
    assert values.to_pylist() == list(dict.fromkeys(rows))
    assert [values[code].as_py() for code in codes.tolist()] == rows
    assert codes.dtype == np.int32
    assert levels is None


@pytest.mark.parametrize("pending", [0, 1 << 26])
def test_batches_have_the_codes_of_one_column(monkeypatch, pending):
    monkeypatch.setattr(Memory, "pending_bytes", pending)
    words = [f"item-{e}" * (e % 3) for e in np.random.default_rng(0).integers(400, size=900)]
    kinds = [pa.string(), pa.large_string(), pa.string(), pa.string_view()]
    bounds = [(0, 1), (1, 500), (500, 500), (500, 900)]
    chunks = [pa.array(words[slice(*at)], kind) for at, kind in zip(bounds, kinds, strict=True)]
    encoder = BatchEncoder("item", Memory())
    parts = [encoder.add(encode_column(pa.chunked_array([chunk]))) for chunk in chunks]
    codes = np.concatenate(parts)
    encoder.renumber(codes)
    one = encode_column(pa.chunked_array([words]))
    np.testing.assert_array_equal(codes, one.codes)
    assert encoder.values().to_pylist() == one.values.to_pylist()


def test_a_null_in_a_dictionary_is_a_missing_value():
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["x", None, "y"]))
    codes, values, _ = encode_column(pa.chunked_array([words]))
    assert codes.tolist() == [0, 1, 2, 1]
    assert values.to_pylist() == ["x", None, "y"]


def test_ids_of_dropped_rows_are_left_out(rows_of):
    rows = [("z", "p", None), ("b", "q", 2), ("z", "r", 1), ("a", "p", None), ("c", "q", 3)]
    labels = Labels.of(rows)
    assert labels.items.to_pylist() == ["b", "z", "c"]
    assert labels.annotators.to_pylist() == ["q", "r"]
    assert rows_of(labels) == [row for row in rows if row[2] is not None]


def test_compiled_kernels_give_the_same_layout(monkeypatch, make_labels):
    rng = np.random.default_rng(5)
    table = make_labels(rng, n_items=300, n_annotators=20, n_categories=4).to_arrow()
    few = Labels.of(table)
    monkeypatch.setattr(layout, "MANY_ROWS", 1)
    many = Labels.of(table)
    assert many.items.equals(few.items)
    assert many.annotators.equals(few.annotators)
    for name in ("item_ptr", "cell_category", "cell_ptr", "annotator", "row"):
        assert getattr(many, name).dtype == getattr(few, name).dtype
        np.testing.assert_array_equal(getattr(many, name), getattr(few, name))
    again = Labels.of(pa.concat_tables([table, table.slice(7, 5)]))
    assert again.n_repeated == 5
    assert again.same_as(many)


@pytest.mark.parametrize(("place", "role"), [(0, "item"), (1, "annotator"), (2, "label")])
@pytest.mark.parametrize("code", [-1, 2])
def test_codes_outside_their_range_are_refused(place, role, code):
    codes = [np.array([0, 1]) for _ in range(3)]
    codes[place][1] = code
    with pytest.raises(InputError, match=rf"a code of the {role}s is outside 0\.\.1"):
        Labels.from_codes(
            *codes, items=["a", "b"], annotators=["p", "q"], scale=Scale.nominal(["x", "y"])
        )


@pytest.mark.parametrize(
    ("first", "n", "kind"),
    [
        (-128, 256, np.int8),
        (2**64 - 300, 300, np.uint64),
        (-(2**63), 90, np.int64),
        (0, 4_000_000, np.int64),  # too many for a table
    ],
)
def test_integers_have_codes_in_order_of_first_appearance(first, n, kind):
    rng = np.random.default_rng(0)
    offset = rng.integers(0, n, size=layout.MANY_ROWS + 1) // 3 * 3  # with gaps
    numbers = (offset.astype(np.uint64) + np.uint64(first % 2**64)).astype(kind)
    column = pa.chunked_array([numbers[:10], numbers[10:]])
    encoded = encode_column(column)
    expected = column.combine_chunks().dictionary_encode()
    assert encoded.values.equals(expected.dictionary)
    np.testing.assert_array_equal(encoded.codes, expected.indices.to_numpy())


@pytest.mark.parametrize("memory", [None, "1GB"])
@pytest.mark.parametrize(
    ("first", "second", "ids"),
    [
        (pa.array([1, 2], pa.int32()), pa.array([2, 2**40]), [1, 2, 2**40]),
        (pa.array([1, 2**40]), pa.array([2, 1], pa.int32()), [1, 2**40, 2]),
        (pa.array([1, 2]), pa.array([2.0, 2.5]), [1.0, 2.0, 2.5]),
        (pa.array([1.5, 2.0]), pa.array([2, 3]), [1.5, 2.0, 3.0]),
        (pa.array(["a", "b"]), pa.array(["b", "c"], pa.large_string()), ["a", "b", "c"]),
    ],
)
def test_files_whose_ids_have_different_types(tmp_path, memory, first, second, ids):
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for number, (path, column) in enumerate(zip(paths, (first, second), strict=True)):
        rows = {"item": [2 * number, 2 * number + 1], "annotator": column, "label": ["x", "y"]}
        parquet.write_table(pa.table(rows), path)
    labels = read_labels(paths, memory=memory)
    assert labels.annotators.to_pylist() == ids
    assert labels.to_arrow()["annotator"].to_pylist() == first.to_pylist() + second.to_pylist()


@pytest.mark.parametrize(
    ("first", "second"), [([1], ["1"]), (["1"], [1]), ([True], [1]), ([2**53 + 1], [0.5])]
)
def test_batches_of_types_that_have_none_in_common_are_refused(first, second):
    encoder = BatchEncoder("item", Memory())
    encoder.add(encode_column(pa.chunked_array([first])))
    with pytest.raises(
        InputError, match=r"the items are \w+, and those before are \w+: convert one"
    ):
        encoder.add(encode_column(pa.chunked_array([second])))
