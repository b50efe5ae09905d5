"""Comparisons from files: kinds of files, shapes of tables, exports of platforms, bad input."""

import gzip
import json
import sqlite3

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import annotruth as at
from annotruth.errors import AnnotruthWarning, InputError, LabelsError
from annotruth.io.readers import load_comparisons, read_comparisons

CSV = "left,right,annotator,winner\na,b,x,left\nb,c,y,tie\nc,a,x,right\n"
VOTES = [("a", "b", "x", "left"), ("b", "c", "y", "tie"), ("c", "a", "x", "right")]


def votes(data):
    """The comparisons as tuples, in the order of the input."""
    return [tuple(row.values()) for row in data.to_arrow().to_pylist()]


def table():
    return pa.table(dict(zip(CSV.split("\n")[0].split(","), zip(*VOTES, strict=True), strict=True)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.csv", CSV),
        ("v.tsv", CSV.replace(",", "\t")),
        ("v.csv", CSV.replace(",", ";")),
        ("v.csv", b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode()),
        ("v.csv.gz", gzip.compress(CSV.encode())),
        ("v.jsonl", "\n".join(json.dumps(row) for row in table().to_pylist())),
        ("v.json", json.dumps(table().to_pylist(), indent=1)),
    ],
    ids=["csv", "tsv", "semicolons", "byte order mark", "gzip", "json lines", "json"],
)
def test_kinds_of_text_files(write, name, content):
    data = read_comparisons(write(name, content))
    assert votes(data) == VOTES
    assert data.read_as == ""


@pytest.mark.parametrize("kind", ["parquet", "arrow", "sqlite"])
def test_kinds_of_other_files(tmp_path, kind):
    path = tmp_path / f"v.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(table(), path)
    elif kind == "arrow":
        pyarrow.feather.write_feather(table(), path)
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("create table other (x, y)")
            connection.execute('create table votes ("left", "right", annotator, winner)')
            connection.executemany("insert into votes values (?, ?, ?, ?)", VOTES)
        connection.close()
    assert votes(read_comparisons(path)) == VOTES


def test_ids_of_text_files_that_are_whole_numbers_are_numbers(write):
    data = read_comparisons(write("v.csv", "left,right,annotator,winner\n1,2,07,1\n"))
    assert data.items.to_pylist() == [1, 2]
    assert data.annotators.to_pylist() == ["07"]


def test_several_files_are_one_after_the_other(write, tmp_path):
    write("day-1.csv", CSV)
    write("day-2.csv", CSV.replace("x", "z"))
    for source in (str(tmp_path / "day-*.csv"), [tmp_path / "day-1.csv", tmp_path / "day-2.csv"]):
        data = read_comparisons(source)
        assert data.n_comparisons == 6
        assert data.annotators.to_pylist() == ["x", "y", "z"]
        assert data.items.to_pylist() == ["a", "b", "c"]
        assert data.read_as == "2 files"


def test_an_error_in_one_of_several_files_names_that_file_and_its_row(write, tmp_path):
    write("day-1.csv", CSV)
    write("day-2.csv", CSV + "a,a,x,left\n")
    with pytest.raises(InputError, match=r"day-2\.csv: row 4 compares item 'a' with itself"):
        read_comparisons(str(tmp_path / "day-*.csv"))


def test_files_of_different_kinds_are_refused(write, tmp_path):
    first = write("one.csv", CSV)
    second = tmp_path / "two.parquet"
    pyarrow.parquet.write_table(table(), second)
    with pytest.raises(
        InputError, match=r"this is a table with types, and .*one\.csv is a text table"
    ):
        read_comparisons([first, second])


def test_formulas_marked_for_spreadsheets_are_restored(write):
    data = read_comparisons(write("v.csv", "left,right,annotator,winner\n'=a,b,x,left\n"))
    assert "=a" in data.items.to_pylist()


def test_winners_and_losers(write):
    data = read_comparisons(
        write("v.csv", "winner,loser,annotator,tie\nb,a,x,0\na,b,y,no\na,b,y,1\na,c,x,\n")
    )
    assert not data.sides_known
    assert (data.left < data.right).all()
    winners = [(row["left"], row["right"], row["winner"]) for row in data.to_arrow().to_pylist()]
    assert winners == [
        ("b", "a", "left"),
        ("b", "a", "right"),
        ("b", "a", "tie"),
        ("a", "c", "left"),
    ]
    assert data.read_as == "winners and losers, sides not known"


RANKED = [("a", "b", "x", "left"), ("a", "c", "x", "left"), ("b", "c", "x", "tie")]


@pytest.mark.parametrize(
    "text",
    [
        "annotator,item,rank\nx,c,2\nx,a,1\nx,b,2\nx,d,\n",
        "annotator,ranking\nx,a > b = c\n",
        'annotator,ranking\nx,"[""a"", [""b"", ""c""]]"\n',
    ],
)
def test_rankings_become_all_pairs(write, text):
    data = read_comparisons(write("v.csv", text))
    made = {frozenset(row[:2]): (row[0], row[3]) for row in votes(data)}
    assert len(made) == 3
    assert made[frozenset("bc")][1] == "tie"
    for other in "bc":
        first, winner = made[frozenset(("a", other))]
        assert winner == ("left" if first == "a" else "right")
    assert not data.sides_known
    assert data.read_as == "rankings, each as all pairs of its items"


def test_items_that_are_only_ranked_alone_are_counted(write):
    text = "annotator,context,item,rank\nx,1,a,1\nx,1,b,2\nx,2,c,1\ny,2,a,1\n"
    data = read_comparisons(write("v.csv", text))
    assert data.items.to_pylist() == ["a", "b"]
    assert data.read_as == (
        "rankings, each as all pairs of its items, 1 item ranked alone and left out"
    )


def test_rankings_in_columns_have_ten_pairs_of_five_items(write):
    text = "worker,rank_1,rank_2,rank_3,rank_4,rank_5\nx,e,d,c,b,a\ny,a,b,,d,c\n"
    data = read_comparisons(write("v.csv", text))
    assert data.comparisons_per_annotator.tolist() == [10, 6]
    assert data.read_as.startswith("ranks of 5 items per row, each row as up to 10 pairs")
    for left, right, annotator, winner in votes(data):
        order = "edcba" if annotator == "x" else "abdc"
        assert winner == ("left" if order.index(left) < order.index(right) else "right")


def test_rankings_are_separated_by_context(write):
    text = "annotator,context,item,rank\nx,1,a,1\nx,1,b,2\nx,2,b,1\nx,2,c,2\n"
    data = read_comparisons(write("v.csv", text))
    assert [row[4] for row in votes(data)] == [1, 2]
    with pytest.raises(InputError, match=r"annotator 'x' ranks item 'b' twice in one ranking"):
        read_comparisons(write("v.csv", text.replace("context", "other")))


def test_identical_rows_are_repeated_votes_unless_their_time_is_the_same(write):
    text = "left,right,annotator,winner\na,b,x,left\na,b,x,left\n"
    data = read_comparisons(write("v.csv", text))
    assert (data.n_comparisons, data.n_repeated) == (2, 0)
    text = "left,right,annotator,winner,time,len\na,b,x,left,5,1\na,b,x,left,5,1\na,b,x,left,6,2\n"
    data = read_comparisons(write("v.csv", text), covariates=["len"])
    assert (data.n_comparisons, data.n_repeated) == (2, 1)
    assert data.covariates["len"].tolist() == [1.0, 2.0]


TASK = {"text1": "a", "text2": "b", "model_a": "m", "model_b": "n", "prompt": "p"}


def annotation(selected, who=3, **more):
    value = {"selected": selected}
    result = [{"from_name": "pw", "to_name": "t", "type": "pairwise", "value": value}]
    return {"completed_by": who, "result": result, **more}


def test_label_studio(write):
    tasks = [
        {"id": 1, "data": TASK, "annotations": [annotation("left"), annotation("right", 4)]},
        {"id": 2, "data": TASK, "annotations": [annotation("left", was_cancelled=True)]},
    ]
    data = read_comparisons(write("v.json", json.dumps(tasks)))
    assert votes(data) == [("m", "n", 3, "left", "p"), ("m", "n", 4, "right", "p")]
    assert data.read_as == (
        "Label Studio export (2 tasks, question pw, left = model_a, right = model_b, 1 cancelled "
        "annotation left out)"
    )
    columns = {"left": "text1", "right": "text2"}
    data = read_comparisons(write("v.json", json.dumps(tasks)), columns=columns)
    assert votes(data)[0][:2] == ("a", "b")
    with pytest.raises(InputError, match="columns names the annotator, which this export has"):
        read_comparisons(write("v.json", json.dumps(tasks)), columns={"annotator": "none"})


def test_mturk(write):
    text = (
        "HITId,WorkerId,AssignmentStatus,Input.img1,Input.img2,Answer.better\n"
        "h,w1,Approved,a.png,b.png,left\nh,w2,Rejected,a.png,b.png,right\n"
    )
    data = read_comparisons(write("v.csv", text))
    assert votes(data) == [("a.png", "b.png", "w1", "left")]
    assert data.read_as == "MTurk batch results (1 rejected left out)"


SUREAL = """
dataset_name = "x"
dis_videos = [
    {"asset_id": 0, "path": "p", "os": {("Ann", 1): 1, ("Bob", 1): 0.5}},
    {"asset_id": 1, "path": "q", "os": {("Ann", 0): 0, ("Eve", 0): 1}},
]
"""


def test_sureal(write):
    path = write("v.py", SUREAL)
    data = read_comparisons(path)
    assert votes(data) == [(0, 1, "Ann", "left"), (0, 1, "Bob", "tie"), (0, 1, "Eve", "right")]
    assert not data.sides_known
    as_json = {"dis_videos": [{"asset_id": 0, "os": {"('Ann', 1)": 1}}, {"asset_id": 1, "os": {}}]}
    assert votes(read_comparisons(write("v.json", json.dumps(as_json)))) == [(0, 1, "Ann", "left")]
    with pytest.raises(InputError, match=r"comparisons with other videos.*`annotruth rank`"):
        at.read_labels(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('("Ann", 1): 1', '("Ann", 1): 7', "a score of video 0 is 7: give 1, 0 or 0.5"),
        ('("Ann", 1)', '("Ann", 9)', r"has the key \('Ann', 9\).*from 0 to 1"),
        ('("Ann", 1)', '"Ann"', "has the key 'Ann'"),
        ("dis_videos", "videos", "there is no list dis_videos"),
    ],
)
def test_bad_sureal_datasets(write, old, new, message):
    with pytest.raises(InputError, match=message):
        read_comparisons(write("v.py", SUREAL.replace(old, new)))


@pytest.mark.parametrize("scores", [[3, 4, 5], {"Ann": 3, "Bob": 4}])
def test_a_sureal_dataset_of_scores_is_of_labels(write, scores):
    dataset = {"dis_videos": [{"asset_id": n, "os": scores} for n in range(2)]}
    with pytest.raises(LabelsError, match=r"scores of one video each.*annotruth\.fit"):
        read_comparisons(write("v.json", json.dumps(dataset)))


NO_RANK = r"every ranking is empty \(2 rows\): nothing to rank"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the file is empty"),
        ("left,right,annotator,winner\n", {}, "there are no rows, only column names: nothing to"),
        ("item,annotator,label\na,x,1\n", {}, "these are labels .*annotruth.fit"),
        (
            "foo,bar\n1,2\n",
            {},
            "columns={'left': 'NAME', 'right': 'NAME', 'annotator': 'NAME', 'winner': 'NAME'}",
        ),
        ("model_a,model_b,winner\na,b,tie\n", {}, "columns={'annotator': 'none'}"),
        (CSV + "a,b\n", {}, r"row 4 \(line 5\) has 2 fields where the header has 4"),
        (CSV.encode() + b"\xff\xfe,b,x,left\n", {}, "UTF-8"),
        (
            CSV.encode("utf-16")[:-1],
            {},
            "the text begins as UTF-16 does, but is not: save the file",
        ),
        ("left,left,right,annotator,winner\na,a,b,x,left\n", {}, "two columns are named 'left'"),
        ("annotator,ranking\nx,\ny,\n", {}, NO_RANK),
        ("annotator,ranking\nx,[]\ny,>\n", {}, NO_RANK),
        ("annotator,rank1,rank2\nx,,\ny,,\n", {}, NO_RANK),
        ("item,annotator,rank\na,x,\nb,x,\n", {}, NO_RANK),
        ("annotator,item,rank\n,,\nx,b,2\nx,c,3\nx,,1\n", {}, r"row 4 has a rank but no item \("),
        ("annotator,item,rank\nx,b,2\nx,c,3\n,a,1\n", {}, r"row 3 has a rank but no annotator \("),
        ("annotator,rank1,rank2\n,,\nx,a,b\n,a,b\n", {}, r"row 3 has a rank but no annotator \("),
        ("annotator,ranking\nx,a > b > c\n,a > b\n", {}, r"row 2 has a rank but no annotator \("),
        (CSV, {"query": "select 1"}, "this is not a database"),
        (CSV, {"question": "q"}, "has no questions"),
        (CSV, {"max_size": "10"}, "max_size="),
    ],
)
def test_bad_files_get_one_line_that_names_the_file(write, text, options, message):
    path = write("v.csv", text)
    with pytest.raises(InputError, match=message) as error:
        read_comparisons(path, **options)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_format": "wide"}, "input_format is for labels"),
        ({"colums": {}}, "unknown option 'colums'"),
        ({}, "no such file"),
    ],
)
def test_options_that_do_not_apply_are_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        read_comparisons(tmp_path / "nothing.csv", **options)


@pytest.mark.parametrize(
    "header",
    [
        "worker,left,right,label",
        "question,model_a,model_b,winner,judge",
        "winner,loser,annotator",
        "question,worker,left,right,label",
    ],
)
def test_labels_are_not_read_from_comparisons(write, header):
    row = ",".join("abcde"[: header.count(",") + 1])
    path = write("v.csv", f"{header}\n{row}\n{row}\n")
    with pytest.raises(InputError, match=r"these are comparisons of pairs .*annotruth.rank"):
        at.fit(path)
    with pytest.raises(InputError, match=r"these are comparisons of pairs"):
        at.fit(pa.table({name: ["p", "q"] for name in header.split(",")}))


def test_labels_with_the_places_of_boxes_are_labels(write):
    path = write("v.csv", "task,worker,label,left,right,top\n1,x,cat,3,4,5\n2,x,dog,3,4,5\n")
    assert at.read_labels(path).n_labels == 2


def test_annotators_are_left_out(write, tmp_path):
    path = write("v.csv", CSV)
    data = read_comparisons(path, drop=["x"])
    assert votes(data) == [("b", "c", "y", "tie")]
    assert data.items.to_pylist() == ["b", "c"]
    assert data.left_out == "1 annotator left out: x; 2 comparisons"
    write("drop.txt", "x\nnobody\n")
    with pytest.warns(AnnotruthWarning, match="1 of 2 annotators to leave out has no comparisons"):
        assert load_comparisons(path, drop=tmp_path / "drop.txt").n_comparisons == 1
    with pytest.raises(InputError, match="no annotator to leave out has a comparison"):
        read_comparisons(path, drop=["nobody"])
    assert load_comparisons(read_comparisons(path), drop=["y"]).n_comparisons == 2


def test_hostile_ids_are_kept_and_shown_on_one_line(write):
    rows = [
        {"left": "<b>\x1b[31m\n", "right": "\u202ex", "annotator": "\t'; drop", "winner": "left"}
    ]
    path = write("v.json", json.dumps(rows))
    data = read_comparisons(path)
    assert data.items.to_pylist() == ["<b>\x1b[31m\n", "\u202ex"]
    rows[0]["winner"] = "\x1b]0;x\x07"
    with pytest.raises(InputError) as error:
        read_comparisons(write("v.json", json.dumps(rows)))
    assert str(error.value).isprintable()


def test_public_sets(datasets):
    data = read_comparisons(datasets / "pairs-passage" / "comparisons.csv")
    assert (data.n_comparisons, data.n_items, data.n_annotators) == (11_763, 472, 624)
    assert not data.sides_known
    data = read_comparisons(datasets / "pairs-llmfao" / "comparisons.csv")
    assert data.describe() == "8,931 comparisons of 59 items by 124 annotators"
    assert len(data.contexts) == 13
    data = read_comparisons(datasets / "pairs-lightfield" / "comparisons.csv")
    assert (data.n_comparisons, data.n_items, data.n_annotators) == (26_580, 350, 29)
