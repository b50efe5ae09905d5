"""`annotruth next --assign`, `--predictions`, and what `--out` names in every command."""

import csv
import json
from collections import Counter

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from annotruth import simulate

HOSTILE = ["=1+1", "+cmd|'/c calc'!A1", '"quoted", and\nmore', "</script><b>", "@SUM(A1)", "plain"]


@pytest.fixture(scope="module")
def made():
    return simulate.crowd(n_items=30, n_annotators=8, labels_per_item=4, seed=4).labels.to_arrow()


@pytest.fixture
def labels(made, tmp_path):
    pc.write_csv(made, tmp_path / "labels.csv")
    return tmp_path / "labels.csv"


@pytest.fixture
def hostile(tmp_path):
    """Labels whose items and annotators are hostile texts."""
    with (tmp_path / "hostile.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "annotator", "label"])
        writer.writerows(
            (item, person, 1 + (e * s) % 5)
            for e, item in enumerate(HOSTILE)
            for s, person in enumerate(HOSTILE)
            if (e + s) % 3
        )
    return tmp_path / "hostile.csv"


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_nobody_labels_an_item_twice(run, made, labels, tmp_path):
    code, out, err = run("next", labels, "--assign", tmp_path / "a.csv", "--budget", 40)
    assert (code, err) == (0, "")
    assigned = [(row["item"], row["annotator"]) for row in read_csv(tmp_path / "a.csv")]
    assert len(assigned) == 40
    people = [pair for pair in assigned if pair[1]]
    assert len(set(people)) == len(people)
    labelled = {(str(row["item"]), str(row["annotator"])) for row in made.to_pylist()}
    assert not labelled & set(people)
    assert "Assignments, highest gain first" in out
    assert f"written to {tmp_path / 'a.csv'}" in out


def test_the_formats_assign_the_same(run, labels, tmp_path):
    names = ["a.csv", "a.parquet", "a.json", "a.jsonl"]
    for name in names:
        assert run("next", labels, "--assign", tmp_path / name, "-q") == (0, "", "")
    words = ("--assign", tmp_path / "m.csv", "--assign-format", "mturk")
    assert run("next", labels, *words, "-q") == (0, "", "")
    rows = read_csv(tmp_path / "a.csv")
    expected = Counter((int(row["item"]), int(row["annotator"] or 0)) for row in rows)
    table = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert Counter((row["item"], row["annotator"] or 0) for row in table) == expected
    tasks = json.loads((tmp_path / "a.json").read_text())
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    hits = read_csv(tmp_path / "m.csv")
    by_tool = [
        [
            (t["data"]["annotruth_item"], t["meta"]["annotators"], t["meta"]["labels"])
            for t in tasks
        ],
        [(t["annotruth_item"], t["annotruth_annotators"], t["meta"]["labels"]) for t in lines],
        [
            (
                int(hit["annotruth_item"]),
                [int(s) for s in hit["annotruth_annotators"].split(", ") if s],
                int(hit["assignments"]),
            )
            for hit in hits
        ],
    ]
    for tool in by_tool:
        spread = Counter()
        for item, people, n_labels in tool:
            spread.update((item, person) for person in people)
            spread[item, 0] += n_labels - len(people)
        assert +spread == expected


def test_labels_that_need_new_people_are_counted(run, tmp_path):
    rows = [f"{e},{s},{1 + (e * s + e) % 5}" for e in range(12) for s in range(3)]
    (tmp_path / "l.csv").write_text("\n".join(["item,annotator,label", *rows]))
    words = ("next", tmp_path / "l.csv", "--assign", tmp_path / "a.csv")
    out = run(*words)[1]
    missing = sum(row["annotator"] == "" for row in read_csv(tmp_path / "a.csv"))
    assert missing > 0
    why = "all of those to ask have labelled the item, so find new people"
    assert f"{missing} labels without an annotator: {why}" in out
    assert json.loads(run(*words, "--json", "--force")[1])["unassigned"] == missing


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.csv", ()),
        ("a.json", ()),
        ("a.jsonl", ()),
        ("m.csv", ("--assign-format", "mturk")),
    ],
)
def test_hostile_ids_are_marked_in_csv_and_whole_in_json(run, hostile, tmp_path, name, words):
    path = tmp_path / name
    code, out, _ = run("next", hostile, "--assign", path, *words)
    assert code == 0
    assert "<b>" in out
    text = path.read_text("utf-8")
    if name == "a.json":
        items = {task["data"]["annotruth_item"] for task in json.loads(text)}
    elif name == "a.jsonl":
        items = {json.loads(line)["annotruth_item"] for line in text.splitlines()}
    else:
        rows = read_csv(path)
        cells = [cell for row in rows for cell in row.values()]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
        items = {row.get("item", row.get("annotruth_item")).removeprefix("'") for row in rows}
    assert items == set(HOSTILE)


def test_tasks_carry_content_and_their_labels_come_back_to_the_items(run, made, tmp_path):
    fit, texts = (
        tmp_path / "fit",
        pa.array([f"Clip {item}: =1" for item in made["item"].to_pylist()]),
    )
    pc.write_csv(made.append_column("text", texts), tmp_path / "labels.csv")
    words = ("fit", tmp_path / "labels.csv", "--content", "text", "--save", fit, "-q")
    assert run(*words) == (0, "", "")
    assert run("next", fit, "--budget", 9, "--assign", tmp_path / "t.json", "-q") == (0, "", "")
    tasks = json.loads((tmp_path / "t.json").read_text())
    result = {"from_name": "label", "to_name": "text", "type": "rating", "value": {"rating": 3}}
    for n, task in enumerate(tasks):
        assert task["data"]["text"] == f"Clip {task['data']['annotruth_item']}: =1"
        people = task["meta"]["annotators"]
        task["id"] = 1000 + n  # Label Studio numbers its tasks
        task["annotations"] = [{"completed_by": s, "result": [result]} for s in people]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    code, out, _ = run("update", fit, tmp_path / "export.json")
    assert code == 0
    n_asked = sum(len(task["meta"]["annotators"]) for task in tasks)
    assert (
        n_asked >= 8
    )  # those who should be asked have labelled an item already, or are asked enough
    assert f"new: {n_asked} labels, 0 items, 0 annotators" in out


def test_predictions_are_written_by_fit_update_and_next(run, labels, tmp_path):
    names = ("--label-studio", "name=quality,to_name=clip")
    fit, first = tmp_path / "fit", tmp_path / "1.json"
    code, out, _ = run("fit", labels, "--save", fit, "--predictions", first, *names)
    assert (code, f"written to {first}" in out) == (0, True)
    assert run("next", fit, "--predictions", tmp_path / "2.json", *names, "-q") == (0, "", "")
    assert first.read_text() == (tmp_path / "2.json").read_text()
    (result,) = json.loads(first.read_text())[0]["predictions"][0]["result"]
    assert (result["from_name"], result["to_name"], result["type"]) == ("quality", "clip", "rating")
    (tmp_path / "new.csv").write_text("item,annotator,label\n1,new,3\n2,new,4\n")
    words = ("update", fit, tmp_path / "new.csv", "--predictions", tmp_path / "3.json", "-q")
    assert run(*words) == (0, "", "")
    assert len(json.loads((tmp_path / "3.json").read_text())) == 30


@pytest.mark.parametrize("option", ["--assign", "--predictions", "--keep", "--out"])
def test_existing_files_are_replaced_only_with_force(run, refused, labels, tmp_path, option):
    path = tmp_path / "mine.json"
    path.write_text("mine")
    assert "the file exists" in refused("next", labels, option, path)
    assert path.read_text() == "mine"
    assert run("next", labels, option, path, "--force", "-q") == (0, "", "")
    assert json.loads(path.read_text())


def test_out_is_a_folder_or_a_file_in_every_command(run, labels, tmp_path):
    assert run("fit", labels, "-o", tmp_path / "fit-tables", "-q")[0] == 0
    assert run("fit", labels, "-o", tmp_path / "items.csv", "-q")[0] == 0
    one = (tmp_path / "items.csv").read_bytes()
    assert one == (tmp_path / "fit-tables" / "items.csv").read_bytes()

    assert run("next", labels, "-o", tmp_path / "advice", "-q")[0] == 0
    assert run("next", labels, "-o", tmp_path / "next.csv", "-q")[0] == 0
    assert (tmp_path / "next.csv").read_bytes() == (tmp_path / "advice" / "items.csv").read_bytes()
    written = {path.name for path in (tmp_path / "advice").iterdir()}
    assert written == {"items.csv", "annotators.csv", "assignments.csv", "fit.json"}
    assert run("next", labels, "-o", tmp_path / "advice", "-q") == (0, "", "")  # its own tables

    models = ("--models", "majority,gpm", "-q")
    assert run("compare", labels, "-o", tmp_path / "compared", *models)[0] == 0
    assert run("compare", labels, "-o", tmp_path / "models.csv", *models)[0] == 0
    assert {path.name for path in (tmp_path / "compared").iterdir()} == {
        *("models.csv", "agreement.csv"),
    }
    columns = read_csv(tmp_path / "models.csv")[0].keys()
    assert columns == read_csv(tmp_path / "compared" / "models.csv")[0].keys()
