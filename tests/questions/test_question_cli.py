"""`annotruth fit --question all`, and commands that are given its folder."""

import json

import pytest
from pyarrow import csv

import annotruth as at


@pytest.fixture
def saved(tmp_path, fits):
    fits.save(tmp_path / "saved")
    return tmp_path / "saved"


def test_all_outputs_are_written(run, tmp_path, votes):
    files = {name: tmp_path / name for name in ("out", "save", "r.html", "keep.csv", "soft.csv")}
    words = ("--question", "all", "--model", "gpm", "--out", files["out"], "--save", files["save"])
    more = ("--report", files["r.html"], "--keep", files["keep.csv"], "--soft", files["soft.csv"])
    code, out, err = run("fit", votes, *words, *more)
    assert (code, err) == (0, "")
    assert out.startswith("2 questions: 400 labels by 12 annotators\n")
    assert "gpm takes no annotator prior" in out
    names = {"items", "annotators", "labels", "distributions", "overview"}
    assert {path.stem for path in files["out"].glob("*.csv")} == names
    for name in names:
        assert csv.read_csv(files["out"] / f"{name}.csv").column_names[0] == "question"
    assert csv.read_csv(files["soft.csv"]).column_names == ["question", "item", "label", "p"]
    assert set(csv.read_csv(files["keep.csv"])["question"].to_pylist()) == {"q1", "q2"}
    assert list(at.load(files["save"])) == ["q1", "q2"]
    # Everything is replaced by a second run, except files that are not annotruth's alone.
    code, _, err = run("fit", votes, *words, "--report", files["r.html"])
    assert (code, err) == (0, "")
    assert list(at.load(files["save"])) == ["q1", "q2"]


def test_json_is_one_object(run, tmp_path, votes, simulation):
    truth = tmp_path / "truth.csv"
    lines = [f"q1,{k + 1},c{code + 1}" for k, code in enumerate(simulation.questions["q1"].label)]
    truth.write_text("\n".join(["question,item,label", *lines]) + "\n")
    code, out, _ = run(
        "fit", votes, "--question", "all", "--model", "gpm", "--json", "--truth", truth
    )
    found = json.loads(out)
    assert code == 0
    assert list(found) == ["questions", "sharing"]
    assert found["questions"]["q2"]["n_labels"] == 200
    assert "metrics" not in found["questions"]["q2"]
    assert 0 < found["questions"]["q1"]["metrics"]["accuracy"] <= 1
    assert found["sharing"]["strength"] == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--engine", "spark"), "leave out --engine spark"),
        (("--memory", "1GB"), "leave out memory"),
        (("--predictions", "p.json"), "--predictions is for one question"),
        (("--soft", "s.npz"), "are a long table"),
        (("--scale", "ordinal"), "question 'q1': "),
    ],
)
def test_what_several_questions_lack_is_refused_in_one_line(
    run, tmp_path, monkeypatch, votes, words, text
):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    code, out, err = run("fit", votes, "--question", "all", "--out", "out", *words)
    assert (code, out) == (2, "")
    assert text in err
    assert len(err.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


def test_the_report_of_saved_fits_is_on_all_questions(run, tmp_path, saved):
    code, _, err = run("report", saved, "--report", tmp_path / "r.html")
    assert (code, err) == (0, "")
    assert '<section id="q2"' in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("next",),
        ("plan", "--target", "accuracy=0.9"),
        ("compare",),
        ("update",),
        ("fit",),
    ],
    ids=lambda words: words[0],
)
def test_other_commands_ask_for_the_folder_of_a_question(run, saved, votes, words):
    command, *options = words
    more = [votes] if command == "update" else []
    code, out, err = run(command, saved, *more, *options)
    assert (code, out) == (2, "")
    assert f"holds the fits of several questions: name the folder of one, such as {saved}/q1" in err
    assert len(err.splitlines()) == 1


def test_a_question_of_saved_fits_is_updated_alone(run, saved, votes, fits):
    code, out, _ = run("update", saved / "q2", votes, "--question", "q2")
    assert code == 0
    assert "200 labels were in the fit already" in out
    assert at.load(saved).summary() == fits.summary()


def test_one_fit_is_not_saved_over_several(refused, saved, votes):
    assert "holds other files and no saved fit of annotruth" in refused(
        "fit", votes, "--question", "q1", "--save", saved
    )
    assert "holds the fits of several questions" in refused(
        "fit", votes, "--question", "q1", "--save", saved, "--force"
    )
    assert list(at.load(saved)) == ["q1", "q2"]
