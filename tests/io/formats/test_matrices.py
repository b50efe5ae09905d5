"""Matrices of items by annotators: with names, without, and transposed."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import annotruth as at

PEOPLE = ("ann", "bob", "cy")


def matrix(votes, *, empty="", corner="stimulus"):
    said = {(item, person): label for item, person, label in votes}
    rows = [[corner, *PEOPLE]]
    rows += [[item, *(said.get((item, p), empty) for p in PEOPLE)] for item in range(1, 7)]
    return [[str(cell) for cell in row] for row in rows]


def text(rows, separator=","):
    return "\n".join(separator.join(row) for row in rows)


def transpose(rows):
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("empty", ["", "nan", "NaN", " "])
@pytest.mark.parametrize("corner", ["stimulus", "item", "", "clip"])
def test_items_in_rows(same, votes, empty, corner):
    fit = same(text(matrix(votes, empty=empty, corner=corner)), "wide.csv", votes)
    assert fit.data.read_as == (
        "matrix of items by annotators (6 rows by 3 columns, rows are items, columns annotators; "
        "if not, pass input_format='wide-transposed', 1 empty cell)"
    )
    assert fit.data.n_dropped == 0


@pytest.mark.parametrize("name", ["gold", "Mean", "majority_vote", "Ground Truth"])
def test_columns_of_truths_and_means_are_no_annotators(write, scores, name):
    rows = matrix(scores)
    path = write(text([[*row, name if n == 0 else row[1]] for n, row in enumerate(rows)]), "w.csv")
    labels = at.read_labels(path)
    assert labels.annotators.to_pylist() == list(PEOPLE)
    assert f"not {name}, by name; else pass input_format='wide'" in labels.read_as
    forced = at.read_labels(path, input_format="wide")
    assert forced.annotators.to_pylist() == [*PEOPLE, name]
    assert "by name" not in forced.read_as


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
def test_numbers_and_separators(same, scores, separator):
    same(text(matrix(scores), separator), "wide.txt", scores)


def test_decimals_of_integers_are_integers(same, scores):
    decimals = [(item, person, float(label)) for item, person, label in scores]
    same(text(matrix(decimals, empty="nan")), "wide.csv", scores)


def test_annotators_in_rows_by_the_name_of_the_first_column(write, votes):
    labels = at.read_labels(write(text(transpose(matrix(votes, corner="subject"))), "wide.csv"))
    assert labels.annotators.to_pylist() == list(PEOPLE)
    assert sorted(labels.to_arrow().to_pylist(), key=str) == sorted(
        [{"item": i, "annotator": a, "label": x} for i, a, x in votes], key=str
    )
    assert "pass input_format='wide'," in labels.read_as


def test_annotators_in_rows_by_option(write, votes):
    path = write(text(transpose(matrix(votes, corner=""))), "wide.csv")
    assert at.read_labels(path).n_annotators == 6
    assert at.read_labels(path, input_format="wide-transposed").n_annotators == 3


def test_annotators_may_be_numbered(same, scores):
    rows = matrix(scores, corner="")
    rows[0][1:] = ["1", "2", "3"]
    named = dict(zip(PEOPLE, (1, 2, 3), strict=True))
    same(text(rows), "wide.csv", [(item, named[p], label) for item, p, label in scores])


def test_a_first_row_longer_than_the_window(write):
    names = [f"{n:0200}" for n in range(1000)]
    rows = [
        ["subject", *names],
        *([f"p{s}", *("12"[(s * e) % 3 == 0] for e in range(1000))] for s in range(9)),
    ]
    labels = at.read_labels(write(text(rows), "wide.csv"))
    assert (labels.n_items, labels.n_annotators) == (1000, 9)


def test_sliders_share_a_range_and_no_values(same):
    rng = np.random.default_rng(0)
    votes = [
        (item, person, round(float(rng.uniform(0, 100)), 2))
        for item in range(1, 7)
        for person in PEOPLE
    ]
    same(text(matrix(votes)), "w.csv", votes, bins=5, long_options={"bins": 5})


def test_a_matrix_in_parquet(tmp_path, scores):
    rows = transpose(matrix(scores))
    path = tmp_path / "wide.parquet"
    columns = {name: [float(cell or "nan") for cell in cells] for name, *cells in rows}
    table = pa.table(columns | {"stimulus": [int(e) for e in columns["stimulus"]]})
    pa.parquet.write_table(table, path)
    found, expected = at.read_labels(path), at.Labels.of(scores)
    assert found.items.to_pylist() == expected.items.to_pylist()
    assert found.cell_category.tolist() == expected.cell_category.tolist()


WIDE, NO_COLUMN = {"input_format": "wide"}, "no column for the"


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("t.csv", "film,user,stars\na,x,1\na,y,2\nb,x,1\n", {}, NO_COLUMN),
        ("t.csv", "clip,who,points\n1,1,2\n1,2,1\n2,1,2\n2,2,2\n", {}, NO_COLUMN),
        ("t.csv", "id,user_id,mark\n1,1,2\n2,2,1\n3,1,2\n", {}, NO_COLUMN),
        ("t.csv", "name,age,height\nann,30,170\nbob,40,180\ncy,50,190\n", {}, NO_COLUMN),
        ("t.csv", "item,annotator\na,x\n", {}, NO_COLUMN),
        ("t.csv", "item,annotator,mark\n1,1,1\n2,2,2\n", {}, NO_COLUMN),
        ("t.csv", "rater_1,rater_2,n\n1,1,1880\n1,2,789\n", {}, NO_COLUMN),
        ("w.csv", "item,a,b\n1,,\n2,,\n", WIDE, "every row has an empty label (4 in all)"),
        ("w.csv", "item,a\n1,2\n", WIDE, "at least two of labels"),
        ("w.csv", "item,a,b\n", WIDE, "no rows"),
        ("w.csv", "item,a,b\n1,1,2\n2,1\n", WIDE, "row 2 (line 3) has 2 fields"),
        ("w.json", "{}", {"input_format": "mace"}, "is CSV, and this file is not"),
        ("w.jsonl", '{"rater_1": 1}\n', {"input_format": "wide-counted"}, "at least two columns"),
    ],
)
def test_other_tables_are_no_matrices(refused, name, content, options, message):
    assert message in refused(content, name, **options)


def test_a_matrix_without_names(same, scores):
    """As MACE reads it, and as the demonstration of ITU-T P.913 writes it."""
    counted = [(item, 1 + PEOPLE.index(person), label) for item, person, label in scores]
    for empty, decimals in (("", ""), ("nan", ".0")):
        rows = [row[1:] for row in matrix(scores, empty=empty)[1:]]
        rows = [[cell + decimals * cell.isdigit() for cell in row] for row in rows]
        fit = same(text(rows), "votes.csv", counted)
        assert "matrix of labels without names (6 rows by 3 columns" in fit.data.read_as


def test_a_matrix_without_names_may_begin_with_an_empty_cell(same):
    same(",1,1\n1,,1\n1,1,1\n", "votes.csv", [
        (1, 2, 1), (1, 3, 1), (2, 1, 1), (2, 3, 1), (3, 1, 1), (3, 2, 1), (3, 3, 1)
    ])  # fmt: skip


@pytest.mark.parametrize("first", ["5,,4", "5,5,4", "4,3,4"])
def test_a_first_row_of_labels_is_recognised(write, first):
    path = write(f"{first}\n4,3,4\n3,4,4\n", "votes.csv")
    assert at.read_labels(path).n_items == 3


def test_a_matrix_without_names_may_begin_with_a_column_of_numbers(write):
    labels = at.read_labels(write("1,3,2\n2,1,3\n3,2,2\n", "votes.csv"))
    assert (labels.n_items, labels.n_labels) == (3, 9)


def test_an_ambiguous_matrix_needs_the_option_input_format(write):
    path = write("3,4\n1,1\n2,1\n", "votes.csv")
    with pytest.raises(at.InputError, match="no column"):
        at.read_labels(path)
    assert at.read_labels(path, input_format="mace").n_labels == 6


@pytest.mark.parametrize("rows", [["3,4,3", "2,2,2"], ["3,4,nan", "2,2,2", "2,NA,2"]])
def test_items_without_names_where_columns_are_named_as_annotators(write, rows):
    path = write("\n".join(["rater_1,rater_2,rater_3", *rows]), "wide.csv")
    labels = at.read_labels(path)
    assert labels.items.to_pylist() == list(range(1, len(rows) + 1))
    assert labels.annotators.to_pylist() == ["rater_1", "rater_2", "rater_3"]
    assert labels.scale.names == ["2", "3", "4"]
    assert "rows are items, numbered from 1" in labels.read_as


def test_items_without_names_by_option(write):
    path = write("A01,A02\n0.0,\n,1.0\n1.0,1.0\n", "wide.csv")
    with pytest.raises(at.InputError, match="no column for the item"):
        at.read_labels(path)
    labels = at.read_labels(path, input_format="wide-counted")
    assert labels.to_arrow().to_pylist() == [
        {"item": 1, "annotator": "A01", "label": 0},
        {"item": 2, "annotator": "A02", "label": 1},
        {"item": 3, "annotator": "A01", "label": 1},
        {"item": 3, "annotator": "A02", "label": 1},
    ]


@pytest.mark.parametrize("blank", ["-1", "-1.0"])
@pytest.mark.parametrize("corner", ["item", None])
def test_minus_one_beside_classes_from_zero_means_no_label(write, blank, corner):
    """As in Snorkel's matrices of labels."""
    rows = [["x1", "0", blank, "2"], ["x2", blank, "1", "1"], ["x3", blank, "2", "0"]]
    if corner is None:
        rows = [row[1:] for row in rows]
    else:
        rows = [[corner, "lf_a", "lf_b", "lf_c"], *rows]
    labels = at.read_labels(write(text(rows), "matrix.csv"))
    assert labels.n_labels == 6
    assert labels.scale.names == ["0", "1", "2"]
    assert "3 cells of -1, which mean no label" in labels.read_as
    kept = at.read_labels(write(text(rows), "matrix.csv"), categories=[-1, 0, 1, 2])
    assert kept.n_labels == 9


def test_minus_one_beside_zero_and_one_is_ambiguous(refused, write):
    content = "item,a,b\nx1,0,-1\nx2,-1,1\nx3,1,1\n"
    message = refused(content, "matrix.csv")
    assert "pass categories=[-1, 0, 1] for a class, or categories=[0, 1]" in message
    path = write(content, "matrix.csv")
    assert at.read_labels(path, categories=["-1", "0", "1"]).n_labels == 6
    assert at.read_labels(path, categories=["0", "1"]).n_labels == 4


@pytest.mark.parametrize("cells", ["-2,-1,0,1,2", "-1,-1,-1,-1,-1", "-1,0.5,1,2,1", "-1,a,b,a,b"])
def test_minus_one_is_a_label_beside_others(write, cells):
    rows = [["item", *"abcde"], ["x1", *cells.split(",")], ["x2", *cells.split(",")[::-1]]]
    assert at.read_labels(write(text(rows), "matrix.csv"), input_format="wide").n_labels == 10


def test_repetitions_below_each_other_are_refused_with_what_to_do(tmp_path):
    rows = "5,nan,5,4,2\n1,3,5,2,5\n3,5,5,5,4\n1,4,3,4,5\n4,5,nan,3,4\n2,2,1,1,2\n"
    path = tmp_path / "votes.csv"
    path.write_text(f"{rows},\n{rows}")
    with pytest.raises(
        at.InputError,
        match=r"after 6 rows .* as a file, name all of them, and pass duplicates=.keep",
    ):
        at.read_labels(path)
    parts = [tmp_path / "part-1.csv", tmp_path / "part-2.csv"]
    for part in parts:
        part.write_text(rows)
    assert at.read_labels(parts, duplicates="keep").n_labels == 56
