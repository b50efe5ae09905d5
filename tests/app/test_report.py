"""`annotruth report` on saved fits."""

import html
import re
import shlex

import pyarrow as pa
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
    code, out, err = run("report", tmp_path / "fit", "--report", second, "--source", "labels.csv")
    assert (code, out, err) == (0, f"report written to {second}\n", "")
    pages = [
        re.sub(r" with <code>annotruth .*?</code>", "", page.read_text())
        for page in (first, second)
    ]
    assert pages[0] == pages[1]
    assert 'id="since"' not in pages[0]


def test_the_folder_names_the_report(run, labels, tmp_path, monkeypatch):
    assert run("fit", labels, "--save", tmp_path / "my fit", "--quiet")[0] == 0
    monkeypatch.chdir(tmp_path)
    assert run("report", "my fit", "--quiet") == (0, "", "")
    assert "<h1>my fit</h1>" in (tmp_path / "report.html").read_text()


def test_labels_are_fitted_first(run, labels, tmp_path):
    code, out, err = run("report", labels, "--model", "gpm", "--report", tmp_path / "r.html")
    assert (code, out, err) == (0, f"report written to {tmp_path / 'r.html'}\n", "")
    assert "<h1>labels.csv</h1>" in (tmp_path / "r.html").read_text()


def test_truth_and_the_command_reach_the_report(run, labels, tmp_path):
    made = simulate.crowd(n_items=30, n_annotators=10, labels_per_item=5, seed=1)
    truth = {"item": made.labels.items, "label": made.label + 1}
    pc.write_csv(pa.table(truth), tmp_path / "truth.csv")
    words = ("--truth", tmp_path / "truth.csv", "--report", tmp_path / "r.html")
    assert run("fit", labels, "--model", "gpm", "--save", tmp_path / "fit", *words)[0] == 0
    for command in (None, ("report", tmp_path / "fit", *words)):
        if command:
            assert run(*command)[0] == 0
        page = (tmp_path / "r.html").read_text()
        assert 'id="truth"' in page
        assert f"<code>annotruth {command[0] if command else 'fit'} {tmp_path}" in page


def next_command(page):
    """Return the command that the first screen of a report names."""
    return html.unescape(re.search("Next: <code>(.*?)</code>", page.read_text())[1])


def test_the_next_command_makes_the_same_fit(run, crowd, tmp_path):
    page, file = tmp_path / "report.html", crowd / "my stars.csv"
    _, *rows = (crowd / "labels.csv").read_text().splitlines()
    file.write_text("\n".join(["photo,who,stars", *rows, ""]))
    words = [file, "--columns", "item=photo,annotator=who,label=stars", "--scale", "ordinal"]
    gold = tmp_path / "gold.csv"
    gold.write_text("item,label\n1,5\n2,3\n")
    words += ["--gold", gold, "--set", "tol=1e-3", "--set", "max_iter=50"]
    outputs = ["--report", page, "--keep", tmp_path / "people.csv", "--quiet", "--force"]
    model = ["--model", "gpm"]
    assigned = ["--assign", "assignments.csv"]

    assert run("fit", *words, *model, *outputs)[0] == 0
    typed = shlex.split(next_command(page))
    assert sorted(typed) == sorted(map(str, ["annotruth", "next", *words, *model, *assigned]))
    assert run(*typed[1:-2], "--assign", tmp_path / "assignments.csv")[0] == 0

    assert run("report", *words, "--report", page, "--quiet", "--force")[0] == 0
    typed = shlex.split(next_command(page))
    assert sorted(typed) == sorted(map(str, ["annotruth", "next", *words, *assigned]))


def test_the_next_command_names_the_saved_fit(run, crowd, tmp_path):
    page, saved = tmp_path / "report.html", tmp_path / "fit"
    expected = f"annotruth next {saved} --assign assignments.csv"
    labels, report = crowd / "labels.csv", ["--report", page, "--quiet"]
    assert run("fit", labels, "--scale", "ordinal", "--save", saved, *report)[0] == 0
    assert next_command(page) == expected
    assert run("update", saved, labels, *report)[0] == 0
    assert next_command(page) == expected
    assert run("report", saved, *report)[0] == 0
    assert next_command(page) == expected
