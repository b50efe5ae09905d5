"""`annotruth reproduce` from end to end on small simulations."""

import csv

import pytest

from annotruth.paper.registry import EXPERIMENTS, find_experiments

SMALL = ("--runs", 2, "--set", "items=12", "--set", "annotators=6")
FEW_MOVIES = [
    word
    for setting in ("films=8", "users=9", "film_raters=5", "user_films=3")
    for word in ("--set", setting)
]


@pytest.mark.parametrize("name", ["exp1a", "exp1d"])
def test_table_has_the_printed_figures(run, tmp_path, name):
    code, out, err = run("reproduce", name, *SMALL, "--out", tmp_path)
    assert (code, err) == (0, "")
    assert "over 2 runs" in out
    assert "| paper |" in out.replace("  paper", " paper")
    page = (tmp_path / f"{name}.md").read_text()
    assert out.split("\n\nwritten")[0] in page
    assert "## Claims of the paper" in page
    assert "| items " in page
    with (tmp_path / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    printed = {row["measure"]: row["paper"] for row in rows if row["model"] == "gpm"}
    assert printed["rmse"] in ("0.3539", "0.4657")


def test_charts_are_written_as_svg(run, tmp_path):
    arguments = ("--runs", 2, "--set", "items=12", "--out", tmp_path)
    code, out, _ = run("reproduce", "exp1b", *arguments, "--set", "annotators=6")
    assert code == 0
    assert "written to" in out
    assert (tmp_path / "exp1b.svg").read_text().startswith("<svg")
    assert "![Exp1-b" in (tmp_path / "exp1b.md").read_text()


def test_all_without_data_runs_simulations_and_lists_what_was_left_out(run, tmp_path):
    sizes = ("--set", "items=6", "--set", "annotators=4")
    code, out, err = run("reproduce", "all", "--runs", 1, *sizes, "--out", tmp_path)
    assert code == 0
    assert [line.split(":")[1] for line in err.splitlines()] == [
        " left out dog",
        " left out face",
        " left out movie",
    ]
    assert "crowd_truth_infer" in err
    assert "grouplens" in err
    for name in ("exp1a", "exp1b", "exp1c", "exp1d"):
        assert (tmp_path / f"{name}.md").exists()
    assert "always shows superior performance" in (tmp_path / "claims.md").read_text()
    assert "# Exp1-c" in out


@pytest.mark.parametrize("name", ["face", "dog"])
def test_classes_from_real_labels(run, tmp_path, small_datasets, name):
    code, out, err = run("reproduce", name, "--data-dir", small_datasets, "--out", tmp_path)
    assert (code, err) == (0, "")
    assert "GPM" in out
    assert "0.6480" in out if name == "dog" else "0.6370" in out
    assert ("is not available" in out) == (name == "dog")


def test_scores_of_movies(run, tmp_path, small_datasets):
    arguments = ("movie", "--data-dir", small_datasets, "--out", tmp_path, "--runs", 2)
    code, out, err = run("reproduce", *arguments, *FEW_MOVIES)
    assert (code, err) == (0, "")
    assert "8 movies and 9 users are drawn anew" in out
    code, _, err = run("reproduce", *arguments)
    assert code == 2
    assert "films is 174, but only 0 have enough ratings" in err


def test_quiet_prints_nothing(run, tmp_path):
    assert run("reproduce", "exp1a", *SMALL, "--out", tmp_path, "--quiet") == (0, "", "")


BAD = {
    "unknown experiment": (("exp9",), "unknown experiment 'exp9': choose exp1a"),
    "unknown setting": (("exp1a", "--set", "speed=9"), "exp1a has no setting 'speed'"),
    "unknown setting of all": (("all", "--set", "speed=9"), "no experiment has a setting 'speed'"),
    "unknown value": (("exp1a", "--set", "f1=odd"), "f1 is 'odd': choose spammer"),
    "no runs": (("exp1a", "--runs", 0), "`--runs` is 0"),
    "too many runs": (("exp1a", "--runs", 10**20), "give a whole number from 1 to 100,000"),
    "no data": (("face",), "face needs real labels (DIR/face/labels.csv"),
    "data elsewhere": (("movie", "--data-dir", "nowhere"), "movielens-100k/labels.csv"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_2(run, tmp_path, case):
    arguments, text = BAD[case]
    code, out, err = run("reproduce", *arguments, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert text in err
    assert not (tmp_path / "out").exists()


def test_unreadable_labels_leave_no_output(run, tmp_path):
    for file in ("labels.csv", "truth.csv"):
        (tmp_path / "data" / "face").mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / "face" / file).write_text("item,annotator\n1,2\n")
    arguments = ("--data-dir", tmp_path / "data", "--out", tmp_path / "out")
    code, out, err = run("reproduce", "face", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "no column for the label" in err
    assert not (tmp_path / "out").exists()


def test_unwritable_output_is_refused(run, tmp_path):
    (tmp_path / "file").write_text("here")
    code, _, err = run("reproduce", "exp1a", *SMALL, "--out", tmp_path / "file")
    assert code == 2
    assert err.count("\n") == 1
    assert "cannot write" in err


def test_a_closed_stderr_shows_no_progress(run, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert run("reproduce", "exp1a", *SMALL, "--out", tmp_path)[0] == 0


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_its_name_and_describes_its_settings(name):
    (experiment,) = find_experiments(name)
    assert experiment.name == name
    assert all(setting.description for setting in experiment.settings.values())
    defaults = experiment.resolve({})
    assert len(experiment.conditions(defaults)) >= 1
