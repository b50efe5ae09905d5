"""The report, `--keep`, `next` and `plan` give one advice: same items, same people, same words."""

import base64
import csv
import gzip
import json
import re

import pyarrow.csv as pc
import pytest

from annotruth import simulate
from annotruth.analyses.advice.annotators import VERDICTS
from annotruth.analyses.advice.items import ITEM_STATUS, MAX_PER_ROUND

DATASETS = {"face": "nominal", "web": "ordinal", "ftv": "ordinal"}
CROWDS = {
    "few labels": {"n_items": 200, "n_annotators": 30, "labels_per_item": 3, "seed": 1},
    "repeated": {"n_items": 60, "n_annotators": 15, "behavior": "repeated", "seed": 2},
}


def report_tables(path):
    """The tables that a report holds, as columns by name; words are looked up."""
    (packed,) = re.findall(r'id="data">([^<]*)<', path.read_text())
    tables = json.loads(gzip.decompress(base64.b64decode(packed.split("\n")[0])))["tables"]
    return {
        name: {
            column["key"]: [column["names"][code] for code in column["values"]]
            if "names" in column
            else column.get("values")
            for column in table["columns"]
        }
        for name, table in tables.items()
    }


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def check_one_advice(run, labels, folder, *options):
    """Run all commands on a file, and on a saved fit of it, and compare what they write."""
    quiet = ("--quiet", *options)
    fit = folder / "fit"
    code, _, err = run(
        *("fit", labels, "--report", folder / "r.html", "--keep", folder / "keep.csv"),
        *("--save", fit, *quiet),
    )
    assert (code, err) == (0, "")
    written = [("labels", labels, options), ("fit", fit, ())]
    for name, data, words in written:
        out, keep = folder / f"{name}-items.csv", folder / f"{name}-keep.csv"
        code, printed, err = run("next", data, "--out", out, "--keep", keep, "--json", *words)
        assert (code, err) == (0, "")
        code, planned, err = run("plan", data, "--target", "score=0.01", "--json", *words)
        if code:  # there are no scores on nominal scales
            planned = run("plan", data, "--target", "accuracy=0.99", "--json", *words)[1]
        assert json.loads(planned)["next"] == json.loads(printed)
    assert (folder / "labels-items.csv").read_bytes() == (folder / "fit-items.csv").read_bytes()
    assert (folder / "labels-keep.csv").read_bytes() == (folder / "keep.csv").read_bytes()
    assert (folder / "fit-keep.csv").read_bytes() == (folder / "keep.csv").read_bytes()

    items, people = read_csv(folder / "fit-items.csv"), read_csv(folder / "keep.csv")
    counts = json.loads(printed)
    page = (folder / "r.html").read_text()
    tables = report_tables(folder / "r.html")
    shown = dict(
        zip(
            map(str, tables["items"]["item"]),
            zip(*(tables["items"][key] for key in ("status", "add", "why")), strict=True),
            strict=True,
        )
    )
    assert shown == {row["item"]: (row["status"], int(row["add"]), row["why"]) for row in items}
    shown = dict(
        zip(
            map(str, tables["annotators"]["annotator"]),
            zip(*(tables["annotators"][key] for key in ("verdict", "ask", "reason")), strict=True),
            strict=True,
        )
    )
    assert shown == {
        row["annotator"]: (row["verdict"], int(row["ask"] == "true"), row["reason"])
        for row in people
    }
    assert counts["items"] == {
        status: sum(row["status"] == status for row in items) for status in ITEM_STATUS
    }
    assert counts["annotators"] == {
        verdict: sum(row["verdict"] == verdict for row in people) for verdict in VERDICTS
    }
    assert counts["ask"] == sum(row["ask"] == "true" for row in people)
    assert counts["add"] == sum(int(row["add"]) for row in items)
    assert max(int(row["add"]) for row in items) <= MAX_PER_ROUND
    if counts["add"]:
        assert re.search(rf"<b>{counts['add']:,}</b> labels? in this round", page)
    for status in ("needs labels", "divided", "needs no more labels"):
        assert f"<dt>{status.capitalize()}</dt><dd>{counts['items'][status]:,}<" in page
    for verdict, count in counts["annotators"].items():
        if count:  # the page may leave out what is nobody's verdict
            assert f"<dt>{verdict.capitalize()}</dt><dd>{count:,}<" in page
    if counts["add"] and counts["ask"]:
        assert f"<b>{counts['ask']:,}</b> to ask for more" in page
    return counts


@pytest.mark.parametrize("crowd", CROWDS)
def test_simulated_crowds_get_one_advice(run, tmp_path, crowd):
    labels = tmp_path / "labels.csv"
    pc.write_csv(simulate.crowd(**CROWDS[crowd]).labels.to_arrow(), labels)
    counts = check_one_advice(run, labels, tmp_path)
    assert counts["items"]["needs labels"] > 0


def test_the_readmes_crowd_gets_one_advice(run, tmp_path):
    assert run("simulate", "--out", tmp_path / "crowd", "--quiet")[0] == 0
    check_one_advice(run, tmp_path / "crowd" / "labels.csv", tmp_path)


@pytest.mark.parametrize("model", ["gpm", "majority", "mean"])
def test_other_models_give_one_advice(run, tmp_path, model):
    labels = tmp_path / "labels.csv"
    made = simulate.crowd(n_items=60, n_annotators=20, labels_per_item=6, seed=3)
    pc.write_csv(made.labels.to_arrow(), labels)
    check_one_advice(run, labels, tmp_path, "--model", model)


@pytest.mark.parametrize("name", DATASETS)
def test_real_labels_get_one_advice(run, datasets, tmp_path, name):
    labels = datasets / name / "labels.csv"
    check_one_advice(run, labels, tmp_path, "--scale", DATASETS[name])
