"""`annotruth open`: what a file seems to hold, and commands that fit it."""

import json
import shlex
import sqlite3

import pyarrow as pa
import pyarrow.parquet
import pytest

import annotruth as at
from annotruth.io import opened as opened_module

VOTES = [
    (f"photo{n}", f"p{s}", "cat" if (n * s) % 3 else "dog") for n in range(6) for s in range(4)
]


def table(*names, more=()):
    """Votes under these names of columns, and further columns by name."""
    rows = [[*names, *dict(more)]]
    rows += [
        [*vote, *(values[n] for values in dict(more).values())] for n, vote in enumerate(VOTES)
    ]
    return "\n".join(",".join(map(str, row)) for row in rows) + "\n"


COMMENTS = [("it was hard to say", "", "I like this one very much")[n % 3] for n in range(24)]
MORE = {
    "comment": COMMENTS,
    "age": [20 + n % 4 for n in range(24)],
    "when": [f"2024-05-01 10:{n}:00" for n in range(10, 34)],
    "url": [f"http://example.org/{n // 4}.jpg" for n in range(24)],
    "version": [3] * 24,
}
ROLES = {"comment": "free text", "age": "trait", "when": "time", "url": "content"}
COLUMNS = "--columns item=img_name,annotator=coder_nr,label=finding"


@pytest.fixture
def shown(run, tmp_path, monkeypatch):
    """Open a file of some content; return the object that the command prints."""
    monkeypatch.chdir(tmp_path)

    def shown(content, name, *words):
        if isinstance(content, str):
            (tmp_path / name).write_text(content)
        code, out, err = run("open", name, *words, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return shown


def roles(found):
    return {each["column"]: each["role"] for each in found["columns"]}


def test_a_long_table_and_its_other_columns(shown, run):
    found = shown(table("item", "annotator", "label", more=MORE), "labels.csv")
    labels = {"item": "item", "annotator": "annotator", "label": "label"}
    assert roles(found) == {**labels, **ROLES, "version": "constant"}
    assert found["holds"] == "24 labels of 6 items by 4 annotators, 2 nominal categories"
    assert (found["categories"], found["n_rows"], found["problem"]) == (["cat", "dog"], 24, "")
    assert found["commands"] == [found["command"]] == ["annotruth fit labels.csv"]
    age = found["columns"][4]
    assert (age["n_distinct"], age["share_empty"], age["examples"]) == (4, 0.0, "20, 21, 22")
    out = run("open", "labels.csv")[1]
    assert "labels.csv: text, columns separated by commas, UTF-8, 24 rows" in out
    assert "next: annotruth fit labels.csv" in out


CASES = {
    "votes.csv": (table("img_name", "coder_nr", "finding", more=MORE), [COLUMNS]),
    "votes.tsv": (table("img_name", "coder_nr", "finding").replace(",", "\t"), [COLUMNS]),
    "votes.jsonl": (
        "".join(
            json.dumps(dict(zip(("img_name", "coder_nr", "finding"), vote, strict=True))) + "\n"
            for vote in VOTES
        ),
        [COLUMNS],
    ),
    "votes.json": (
        json.dumps(
            [dict(zip(("img_name", "coder_nr", "finding"), vote, strict=True)) for vote in VOTES]
        ),
        [COLUMNS],
    ),
    "a file's.csv": (table("item", "worker", "rel", more={"note": COMMENTS}), [""]),
    "two.csv": (
        table("item", "worker", "rel", more={"fluent": [n * n % 5 for n in range(24)]}),
        ["--question rel", "--question fluent", "--question all"],
    ),
    "batch.csv": (
        table("HITId", "WorkerId", "Answer.rel", more={"Answer.comment": COMMENTS}),
        [""],
    ),
    "twice.csv": (table("item", "worker", "label") + "photo0,p1,cat\n", ["--duplicates last"]),
    "matrix.csv": ("item,ann,bob,cy\n1,x,y,x\n2,y,y,y\n3,x,x,y\n", [""]),
    "questions.csv": (
        "question,item,annotator,label\n"
        + "".join(f"{q},{','.join(vote)}\n" for q in ("a", "b") for vote in VOTES),
        ["--question a", "--question b", "--question all"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_commands_run(shown, run, name):
    """The first and the last of them: the last is that of all questions, where there are several."""
    content, flags = CASES[name]
    found = shown(content, name)
    expected = [f"annotruth fit {shlex.quote(name)} {each}".rstrip() for each in flags]
    assert found["commands"] == expected
    for command in {expected[0], expected[-1]}:
        code, _, err = run(*shlex.split(command)[1:], "--model", "majority", "--quiet")
        assert (code, err) == (0, "")


def test_a_choice_says_what_is_unclear(shown, run):
    found = shown(CASES["two.csv"][0], "two.csv")
    assert roles(found) == {
        "item": "item",
        "worker": "annotator",
        "rel": "label",
        "fluent": "label",
    }
    assert found["problem"].startswith("no column for the label (found: item, worker, rel")
    code, out, err = run("fit", "two.csv")
    assert (code, out) == (2, "")
    assert err.endswith("see `annotruth open two.csv`\n")
    assert "to choose: no column for the label" in run("open", "two.csv")[1]


def test_rows_that_do_not_count(shown):
    rows = "photo0,p9,\nphoto1,p1,cat\nphoto0,p1,dog\n"
    found = shown(table("item", "annotator", "label") + rows, "labels.csv")
    assert found["n_rows"] == 27
    assert found["unused"][0] == "1 row without a label"
    assert len(found["unused"]) == 2  # a later label for the same item


def test_sets_of_labels_are_counted_as_fit_counts_them(shown, run):
    cells = ("cat|dog", "cat", "dog|bird", "bird", "dog", "cat|bird")
    rows = [f"{item},{who},{cells[n % 6]}" for n, (item, who, _) in enumerate(VOTES)]
    found = shown("\n".join(["item,annotator,label", *rows]), "sets.csv")
    assert found["holds"] == "24 answers of 6 items by 4 annotators, sets of 3 labels"
    assert sorted(found["categories"]) == ["bird", "cat", "dog"]
    assert found["holds"] in run("fit", "sets.csv")[1]


PANDALM = [
    {"idx": n, "cmp_key": key, "response1": "", "response2": "", "annotator1": n, "annotator2": 1}
    for n, key in enumerate(("a_b", "b_c", "c_a"))
]
AGGREGATED = "_unit_id,_golden,_trusted_judgments,mood,mood:confidence\n" + "".join(
    f"{n},FALSE,3,{('good', 'bad')[n % 2]},0.6\n" for n in range(8)
)
SUREAL = "ref_videos = []\ndis_videos = " + repr(
    [{"asset_id": n, "os": [1 + n, 2, 3]} for n in range(3)]
)


@pytest.mark.parametrize(
    ("name", "content", "kind", "n_rows", "names"),
    [
        ("pandalm.json", json.dumps(PANDALM), "JSON", 6, {"left", "right", "annotator", "winner"}),
        ("report.csv", AGGREGATED, "text", 8, {"_unit_id", "mood", "mood:confidence"}),
        ("dataset.py", SUREAL, "Python file", 9, {"item", "annotator", "label"}),
    ],
)
def test_rows_and_columns_of_what_is_no_plain_table(shown, name, content, kind, n_rows, names):
    found = shown(content, name)
    assert found["kind"].startswith(kind)
    assert found["n_rows"] == n_rows
    assert names <= set(roles(found))
    assert bool(found["commands"]) == (name != "report.csv")


@pytest.mark.parametrize("kind", ["parquet", "feather", "sqlite", "xlsx", "gz", "zip"])
def test_other_kinds_of_files(shown, tmp_path, kind):
    columns = dict(zip(("img_name", "coder_nr", "finding"), zip(*VOTES, strict=True), strict=True))
    path, frame = tmp_path / f"votes.{kind}", pa.table(columns)
    options, title = [COLUMNS], {"parquet": "Parquet", "feather": "Arrow", "xlsx": "Excel"}
    if kind == "parquet":
        pa.parquet.write_table(frame, path)
    elif kind == "feather":
        pyarrow_feather = pytest.importorskip("pyarrow.feather")
        pyarrow_feather.write_feather(frame, str(path))
    elif kind == "sqlite":
        options = [""]
        with sqlite3.connect(path) as connection:
            connection.execute("create table votes (item, worker, label)")
            connection.executemany("insert into votes values (?, ?, ?)", VOTES)
        connection.close()
    elif kind == "xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in [list(columns), *VOTES]:
            book.active.append(row)
        book.save(path)
    else:
        frame.to_pandas().to_csv(path, index=False, compression={"gz": "gzip"}.get(kind, kind))
    found = shown(None, path.name)
    assert found["commands"] == [f"annotruth fit {path.name} {options[0]}".rstrip()]
    assert len(found["columns"]) == 3
    assert title.get(kind, "") in found["kind"]


def test_of_a_large_file_the_first_rows_are_looked_at(shown, run, tmp_path, monkeypatch):
    monkeypatch.setattr(opened_module, "MAX_ROWS", 12)
    text = table("item", "annotator", "label", more={"note": ['"two\nlines"'] * 24})
    found = shown(text, "labels.csv")
    assert (found["n_rows"], found["is_part"]) == (12, True)
    assert found["holds"].startswith("12 labels of 3 items")
    assert "the first 12 rows of more" in run("open", "labels.csv")[1]
    columns = dict(zip(("item", "annotator", "label"), zip(*VOTES, strict=True), strict=True))
    pa.parquet.write_table(pa.table(columns), tmp_path / "labels.parquet", row_group_size=5)
    assert shown(None, "labels.parquet")["n_rows"] == 12
    monkeypatch.setattr(opened_module, "MAX_ROWS", 24)
    assert shown(text, "labels.csv")["is_part"] is False
    assert shown(None, "labels.parquet")["is_part"] is False


def test_comparisons(shown, run):
    rows = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "b")] * 5
    votes = [
        f"{one},{two},p{n % 3},{(one, two, 'tie')[n % 3]}" for n, (one, two) in enumerate(rows)
    ]
    text = "\n".join(["left,right,annotator,winner", *votes])
    found = shown(text, "votes.csv")
    assert found["command"] == "annotruth rank votes.csv"
    assert found["holds"].startswith("20 comparisons of 4 items")
    odd = shown(text.replace("left,right,annotator,winner", "one,other,coder_nr,best"), "odd.csv")
    columns = "left=one,right=other,annotator=coder_nr,winner=best"
    assert odd["command"] == f"annotruth rank odd.csv --columns {columns}"
    assert run(*odd["command"].split()[1:], "--quiet")[0] == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"\x00\x01\x02", "is NUL, so this is not text"),
        (b"item,label\n\xff\xfe,1\n", "not UTF-8"),
        (b"one column\n1\n", "has only one column"),
        (b'{"item": 1', "JSON"),
        (b"item,annotator,label\n1,2\n", "has 2 fields where the header has 3"),
        (None, "no such file"),
    ],
)
def test_what_cannot_be_opened_is_one_line(run, tmp_path, content, words):
    path = tmp_path / "labels.csv"
    if content is not None:
        path.write_bytes(content)
    if content == b'{"item": 1':
        path = path.rename(tmp_path / "labels.json")
    code, out, err = run("open", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_a_table_without_labels_is_a_problem_and_no_failure(shown, run):
    found = shown("name,size\na,1\nb,2\nc,3\n", "things.csv")
    assert found["commands"] == []
    assert "no column for the item and the annotator and the label" in found["problem"]
    assert "problem: no column" in run("open", "things.csv")[1]


def test_options_are_kept_in_the_command(shown):
    text = table("img_name", "who", "finding", more={"mood": ["sad", "gay"] * 12})
    columns = "item=img_name,annotator=who,label=mood"
    found = shown(text, "v.csv", "--columns", columns)
    assert found["command"] == f"annotruth fit v.csv --columns {columns}"
    assert roles(found)["mood"] == "label"


def test_in_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text(table("item", "annotator", "label"))
    opened = at.open_labels("labels.csv")
    assert list(opened.columns["role"]) == ["item", "annotator", "label"]
    assert opened.command == "annotruth fit labels.csv"
    assert list(opened.columns) == [
        *("column", "role", "why", "n_distinct", "share_empty", "examples"),
    ]
    with pytest.raises(at.InputError, match="unknown option 'colums'"):
        at.open_labels("labels.csv", colums={})
