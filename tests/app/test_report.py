"""`annotruth report` on saved fits."""

import pyarrow.csv as pc
import pytest

from annotruth import simulate


@pytest.fixture
def labels(tmp_path):
    made = simulate.crowd(n_items=30, n_annotators=10, labels_per_item=5, seed=1)
    pc.write_csv(made.labels.to_arrow(), tmp_path / "labels.csv")
    return tmp_path / "labels.csv"


@pytest.mark.parametrize("model", ["robust-gpm", "gpm", "mean"])
def test_a_saved_fit_has_the_report_of_the_fit(run, labels, tmp_path, model):
    first, second = tmp_path / "first.html", tmp_path / "second.html"
    options = ("--model", model, "--save", tmp_path / "fit", "--report", first, "--quiet")
    assert run("fit", labels, *options)[0] == 0
    code, out, err = run("report", tmp_path / "fit", "--out", second, "--source", "labels.csv")
    assert (code, out, err) == (0, f"report written to {second}\n", "")
    assert first.read_bytes() == second.read_bytes()


def test_a_folder_without_a_fit_is_refused(run, tmp_path):
    code, out, err = run("report", tmp_path, "--out", tmp_path / "report.html")
    assert (code, out) == (2, "")
    assert "no saved fit in" in err
    assert not (tmp_path / "report.html").exists()


def test_the_folder_names_the_report(run, labels, tmp_path, monkeypatch):
    assert run("fit", labels, "--save", tmp_path / "my fit", "--quiet")[0] == 0
    monkeypatch.chdir(tmp_path)
    assert run("report", "my fit", "--quiet") == (0, "", "")
    assert "<h1>my fit</h1>" in (tmp_path / "report.html").read_text()
