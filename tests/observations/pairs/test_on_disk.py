"""Comparisons on disk: the same codes and the same results as in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest
from pyarrow import parquet

import annotruth as at
from annotruth import simulate
from annotruth.errors import InputError
from annotruth.io.readers import read_comparisons

MEMORY = "300kB"  # of which a batch has 300 rows


@pytest.fixture(scope="module")
def sides():
    made = simulate.comparers(
        n_items=30, n_annotators=50, comparisons_per_annotator=40, tie_rate=0.3, seed=3
    )
    table = made.comparisons.to_arrow()
    return table.take(pa.array(np.random.default_rng(0).permutation(table.num_rows)))


@pytest.fixture(scope="module")
def winners(sides):
    """The votes with ids as winners, a context, and some rows without a winner."""
    won = pc.if_else(pc.equal(sides["winner"], "right"), sides["right"], sides["left"])
    is_tie = pc.equal(sides["winner"], "tie")
    winner = pc.if_else(is_tie, "tie", won.cast(pa.string()))
    skipped = pa.array(np.arange(sides.num_rows) % 7 == 0)
    return (
        sides.drop_columns("winner")
        .append_column("winner", pc.if_else(skipped, None, winner))
        .append_column("context", pc.utf8_slice_codeunits(won.cast(pa.string()), 0, 1))
    )


@pytest.fixture(scope="module")
def losers(sides):
    right_won = pc.equal(sides["winner"], "right")
    columns = {
        "winner": pc.if_else(right_won, sides["right"], sides["left"]),
        "loser": pc.if_else(right_won, sides["left"], sides["right"]),
        "annotator": pc.binary_join_element_wise("ann", sides["annotator"].cast(pa.string()), "-"),
        "tie": pc.equal(sides["winner"], "tie"),
    }
    return pa.table(columns)


def write(table, path):
    (pa.csv.write_csv if path.suffix == ".csv" else parquet.write_table)(table, path)
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("shape", ["sides", "winners", "losers"])
def test_codes_are_those_of_memory(shape, suffix, tmp_path, request):
    path = write(request.getfixturevalue(shape), tmp_path / f"votes{suffix}")
    expected, mapped = read_comparisons(path), read_comparisons(path, memory=MEMORY)
    assert mapped.on_disk
    assert not expected.on_disk
    for name in ("left", "right", "outcome", "annotator_ptr", "row", "context"):
        assert np.array_equal(getattr(mapped, name), getattr(expected, name)), name
    assert mapped.items.equals(expected.items)
    assert mapped.annotators.equals(expected.annotators)
    assert mapped.to_arrow().equals(expected.to_arrow())
    assert mapped.to_arrow(slice(5, 9)).equals(expected.to_arrow().slice(5, 4))
    assert (mapped.n_dropped, mapped.read_as) == (expected.n_dropped, expected.read_as)
    assert np.array_equal(mapped.comparisons_per_item, expected.comparisons_per_item)


def test_several_files_are_read_one_after_the_other(sides, tmp_path):
    for name, rows in (("a", slice(0, 900)), ("b", slice(900, 2000))):
        write(sides[rows], tmp_path / f"{name}.csv")
    mapped = read_comparisons(tmp_path / "*.csv", memory=MEMORY)
    expected = read_comparisons(tmp_path / "*.csv")
    assert mapped.to_arrow().equals(expected.to_arrow())
    assert mapped.read_as == expected.read_as


def test_ties_that_say_more_are_named_wherever_they_are(sides, tmp_path):
    winner = sides["winner"].to_pylist()
    winner[-1] = "both_bad"
    table = sides.set_column(sides.column_names.index("winner"), "winner", pa.array(winner))
    path = write(table, tmp_path / "votes.csv")
    mapped, expected = read_comparisons(path, memory=MEMORY), read_comparisons(path)
    assert mapped.read_as == expected.read_as
    assert expected.read_as.endswith("'both_bad' counts as a tie")
    write(sides, tmp_path / "first.csv")
    both = read_comparisons([tmp_path / "first.csv", path])
    assert "'both_bad' counts as a tie" in both.read_as


@pytest.mark.parametrize("model", ["bradley-terry", "thurstone", "crowd-bt", "pair-gpm"])
def test_fits_are_those_of_memory(model, sides, tmp_path):
    path = write(sides, tmp_path / "votes.parquet")
    memory = "2MB" if model == "pair-gpm" else MEMORY
    mapped, expected = at.rank(path, model, memory=memory), at.rank(path, model)
    assert mapped.scores.mean == pytest.approx(expected.scores.mean, abs=1e-9)
    assert mapped.comparison_table().equals(expected.comparison_table())
    assert mapped.annotator_table().equals(expected.annotator_table())
    assert (
        mapped.tables()["comparisons"].slice(7, 5).equals(expected.comparison_table().slice(7, 5))
    )


def test_pair_gpm_says_how_much_memory_it_needs(sides, tmp_path):
    path = write(sides, tmp_path / "votes.parquet")
    with pytest.raises(InputError, match=r"the votes of pair-gpm alone take .*`--memory`"):
        at.rank(path, memory=MEMORY)


def test_a_subset_is_in_memory(winners, tmp_path):
    path = write(winners, tmp_path / "votes.parquet")
    expected, mapped = read_comparisons(path), read_comparisons(path, memory=MEMORY)
    keep = np.arange(expected.n_comparisons) % 3 == 0
    subset = mapped.subset(keep)
    assert not subset.on_disk
    assert subset.n_comparisons == subset.votes.n_labels == keep.sum()
    assert subset.to_arrow().equals(expected.subset(keep).to_arrow())


def test_pairs_are_counted_in_several_turns(sides, monkeypatch, tmp_path):
    monkeypatch.setattr("annotruth.models.pairs.graph._COUNTED_AT_ONCE", 100)
    few = write(sides[:500], tmp_path / "votes.parquet")  # fewer votes than pairs of items
    mapped = at.rank(few, "bradley-terry", memory=MEMORY)
    monkeypatch.undo()
    assert mapped.scores.mean == pytest.approx(at.rank(few, "bradley-terry").scores.mean, abs=1e-9)


def test_rows_are_named_across_batches(sides, tmp_path):
    winner = np.array(sides["winner"].to_pylist(), dtype=object)
    winner[[450, 900]] = "nobody", "no one"
    table = sides.drop_columns("winner").append_column("winner", pa.array(winner))
    path = write(table, tmp_path / "votes.csv")
    with pytest.raises(InputError) as expected:
        read_comparisons(path)
    assert "'nobody' (row 451), 'no one' (row 901)" in str(expected.value)
    with pytest.raises(InputError) as error:
        read_comparisons(path, memory=MEMORY)
    assert str(error.value) == str(expected.value)


def test_an_item_twice_is_named_with_its_row(sides, tmp_path):
    right = np.array(sides["right"].to_pylist())
    right[700] = sides["left"][700].as_py()
    table = sides.set_column(1, "right", pa.array(right))
    with pytest.raises(InputError, match=r"row 701 compares item '?\d+'? with itself"):
        read_comparisons(write(table, tmp_path / "votes.csv"), memory=MEMORY)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"annotator": [1], "item": [1], "rank": [1]}, {}, "one row per comparison"),
        ({"left": [1], "right": [2], "annotator": [1], "winner": ["tie"]}, {"drop": ["1"]}, "drop"),
        (
            {"left": [1], "right": [2], "annotator": [1], "winner": ["tie"], "x": [1]},
            {"covariates": ["x"]},
            "do not take covariates",
        ),
        ({"left": [1], "right": [2], "annotator": [1], "winner": [None]}, {}, "an empty winner"),
    ],
)
def test_what_is_not_read_within_a_memory_limit(columns, options, message, tmp_path):
    path = write(pa.table(columns), tmp_path / "votes.csv")
    with pytest.raises(InputError, match=message):
        read_comparisons(path, memory="1GB", **options)
