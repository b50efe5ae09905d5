"""`annotruth rank`, and update and report of a saved ranking."""

import html
import json
import re
import shlex

import numpy as np
import pytest

import annotruth as at
from annotruth.models.pairs.registry import PAIR_MODELS


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Votes of a simulated crowd in two files, and grades."""
    monkeypatch.chdir(tmp_path)
    crowd = at.simulate.comparers(n_items=8, n_annotators=12, tie_rate=0.3, seed=1)
    votes = crowd.tables()["votes"].to_pandas()
    votes.to_csv("votes.csv", index=False)
    votes[:400].to_csv("first.csv", index=False)
    crowd.tables()["truth"].to_pandas().to_csv("grades.csv", index=False)
    return tmp_path


BT = ("--model", "bradley-terry")


def test_json_is_one_object_and_nothing_else(run, files):
    code, out, err = run("rank", "votes.csv", "--json", "--truth", "grades.csv", *BT)
    assert (code, err) == (0, "")
    entries = json.loads(out)
    assert list(entries) == [
        *("model", "n_items", "n_annotators", "n_comparisons", "n_iter", "converged"),
        *("stop_reason", "log_likelihood", "spammers", "verdict", "parts", "side_bias", "metrics"),
    ]
    assert (entries["n_items"], entries["n_comparisons"], entries["parts"]) == (8, 480, 1)
    assert set(entries["metrics"]) == {"concordance", "kendall_tau"}


def test_votes_of_chance_are_reported(run, files):
    rng = np.random.default_rng(1)
    rows = ["left,right,annotator,winner"]
    for number in range(200):
        left, right = rng.choice(8, 2, replace=False)
        rows.append(f"i{left},i{right},p{number % 10},{('left', 'right')[rng.integers(2)]}")
    (files / "coins.csv").write_text("\n".join(rows))
    code, out, _ = run("rank", "coins.csv", "--report", "coins.html")
    assert code == 0
    assert out.startswith("Can this ranking be trusted? No better than chance. ")
    assert "\nWARNING: comparisons agree no better than chance: " in out
    assert "Next: " not in out
    page = (files / "coins.html").read_text()
    assert "No better than chance" in page
    assert "Votes agree no better than chance, so ranks and reliabilities below say next to" in page
    assert "Nobody to drop: votes agree no better than chance." in page
    code, out, _ = run("rank", "coins.csv", "--json")
    assert json.loads(out)["verdict"] == "chance"


def test_the_report_names_commands_that_run(run, files):
    page = files / "ranking.html"

    def commands():
        found = re.findall("<code>annotruth ((?:next|plan) .*?)</code>", page.read_text())
        return [shlex.split(html.unescape(command)) for command in found]

    report = ("--report", "ranking.html", "--quiet", "--force")
    votes = (files / "sub" / "my votes.csv").relative_to(files)
    votes.parent.mkdir()
    table = (files / "votes.csv").read_text().replace("annotator", "judge_id", 1)
    votes.write_text(table)
    read = ("--columns", "annotator=judge_id")
    assert run("rank", str(votes), *read, *BT, *report)[0] == 0
    typed = commands()
    assert [words[0] for words in typed] == ["next", "plan"]
    assert all({str(votes), *read, *BT} <= set(words) for words in typed)
    assert [run(*words)[0] for words in typed] == [0, 0]

    assert run("rank", "votes.csv", *BT, "--save", "saved", *report)[0] == 0
    assert [words[:2] for words in commands()] == [["next", "saved"], ["plan", "saved"]]
    assert run("report", "saved", *report)[0] == 0
    assert [words[:2] for words in commands()] == [["next", "saved"], ["plan", "saved"]]


@pytest.mark.parametrize("format_", ["csv", "parquet", "json"])
def test_out_writes_four_tables_and_fit_json(run, files, format_):
    code, out, _ = run("rank", "votes.csv", "--out", "result", "--format", format_, *BT)
    assert code == 0
    assert "bradley-terry on 480 comparisons" in out
    names = {path.name for path in (files / "result").iterdir()}
    assert names == {
        "fit.json",
        *(f"{t}.{format_}" for t in ("items", "annotators", "comparisons", "wins")),
    }


def test_a_saved_ranking_is_updated_reported_and_ranked_again(run, files):
    assert run("rank", "first.csv", "--save", "fit", "--report", "r.html", *BT)[0] == 0
    assert (files / "r.html").exists()
    code, out, _ = run("update", "fit", "votes.csv")
    assert code == 0
    assert "new: 80 comparisons" in out
    assert "400 comparisons were in the fit already" in out
    assert "saved in place: fit" in out
    assert at.load("fit").data.n_comparisons == 480
    code, out, _ = run("update", "fit", "votes.csv")
    assert "nothing new: fit stays as it is" in out
    code, out, _ = run("update", "fit", "first.csv", "--save", "more", "--json")
    assert json.loads(out)["new_comparisons"] == 400
    assert at.load("fit").data.n_comparisons == 480
    assert run("report", "fit", "--report", "again.html")[0] == 0
    assert "Ranking report" in (files / "again.html").read_text()
    assert run("rank", "fit", "--model", "thurstone")[0] == 0


@pytest.mark.parametrize(
    "flags", [(), ("--models", "thurstone"), ("--columns", "left=left,right=right")]
)
def test_models_are_compared_on_a_file_of_votes(run, files, flags, monkeypatch):
    quick = {name: PAIR_MODELS[name] for name in ("bradley-terry", "thurstone")}
    monkeypatch.setattr("annotruth.ranking.PAIR_MODELS", quick)
    code, out, _ = run("compare", "votes.csv", "--json", *flags)
    assert code == 0
    assert set(json.loads(out)["scores"]) == ({"thurstone"} if "--models" in flags else set(quick))
    code, _, err = run("compare", "votes.csv", "--report", "page.html")
    assert (code, err) == (
        2,
        "annotruth: --report is for labels, and these are comparisons: leave it out\n",
    )


def test_other_engines_are_refused_in_one_line(run, files):
    code, out, err = run("rank", "votes.csv", "--set", "engine=gpu")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "on this machine's processor, not on the engine gpu: leave out `--engine`" in err
