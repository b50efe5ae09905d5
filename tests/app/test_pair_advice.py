"""`annotruth next` and `annotruth plan` of saved rankings and files of comparisons."""

import json

import pyarrow.csv
import pytest

import annotruth as at
from annotruth import simulate

BRADLEY_TERRY = ["--model", "bradley-terry"]


@pytest.fixture(autouse=True)
def votes(tmp_path, monkeypatch):
    """Votes and a saved ranking in the current folder."""
    monkeypatch.chdir(tmp_path)
    made = simulate.comparers(n_items=9, n_annotators=10, comparisons_per_annotator=12, seed=2)
    pyarrow.csv.write_csv(made.tables()["votes"], "votes.csv")
    at.rank("votes.csv", "bradley-terry").save("ranking")


def test_next_of_a_ranking_and_of_its_votes_is_the_same(run):
    of_fit = run("next", "ranking", "--budget", 6, "--json")
    of_votes = run("next", "votes.csv", *BRADLEY_TERRY, "--budget", 6, "--json")
    assert (of_fit[0], of_fit[2]) == (0, "")
    assert of_fit == of_votes
    assert json.loads(of_fit[1])["add"] == 6


def test_votes_are_known_without_a_model(run, monkeypatch):
    monkeypatch.setattr("annotruth.ranking.DEFAULT_PAIR_MODEL", "bradley-terry")
    done = run("next", "votes.csv", "--budget", 2, "--quiet", "--assign", "a.csv")
    assert done == (0, "", "")
    assert len(pyarrow.csv.read_csv("a.csv")) == 2


def test_tables_are_written(run):
    code, out, _ = run(
        *("next", "ranking", "--budget", 4, "--out", "o", "--keep", "k.csv", "--assign", "a.csv")
    )
    assert code == 0
    assert "ask for 4 comparisons" in out
    assert "Comparisons with the highest gain" in out
    assert "written to a.csv" in out
    comparisons = pyarrow.csv.read_csv("o/comparisons.csv")
    assert comparisons.column_names == ["left", "right", "annotator", "gain", "why"]
    assert pyarrow.csv.read_csv("a.csv").equals(comparisons.select([0, 1, 2]))
    assert pyarrow.csv.read_csv("k.csv").column_names == ["annotator", "verdict", "ask", "reason"]
    assert pyarrow.csv.read_csv("o/annotators.csv").num_rows == 10


def test_plan_of_a_ranking(run):
    code, out, _ = run("plan", "ranking", "--target", "tau=0.3")
    assert code == 0
    assert "by the annotators to ask: reached already\nnext round: this target needs no more" in out
    _, out, _ = run("plan", "votes.csv", *BRADLEY_TERRY, "--target", "score=5", "--json")
    assert json.loads(out)["evenly"]["per_item"] == 0.0
