"""The command line: what commands print and write."""

import inspect
import json

import pyarrow.parquet as pq
import pytest

import annotruth as at
from annotruth import ranking
from annotruth.analyses import OPTIONS
from annotruth.app.values import FUNCTION_ARGUMENTS
from annotruth.io.formats import INPUT_FORMATS
from annotruth.models.registry import MODELS

GOOD = "item,annotator,label\na,x,1\na,y,3\nb,x,3\nb,y,3\n"


def test_fit_json_is_one_object_and_nothing_else(run, crowd):
    code, out, err = run("fit", crowd / "labels.csv", "--truth", crowd / "truth.csv", "--json")
    entries = json.loads(out)
    assert (code, err) == (0, "")
    assert list(entries) == [
        *("model", "n_items", "n_annotators", "n_labels", "n_categories", "n_iter"),
        *("converged", "stop_reason", "log_likelihood", "spammers", "readout", "verdict"),
        *("notes", "dependent_annotators", "metrics"),
    ]
    assert (entries["model"], entries["n_items"], entries["n_categories"]) == ("robust-gpm", 40, 5)
    assert list(entries["metrics"]) == ["accuracy", "f1_macro", "plcc", "srocc", "rmse"]
    assert 0.0 < entries["metrics"]["accuracy"] <= 1.0


def test_scores_as_truth_need_an_ordinal_scale(run, write):
    labels, truth = write("l.csv", GOOD), write("t.csv", "item,label\na,1.4\nb,3\n")
    code, _, err = run("fit", labels, "--truth", truth, "--json")
    assert code == 2
    assert "if it is a score, pass `--scale ordinal`" in err
    code, out, _ = run("fit", labels, "--truth", truth, "--json", "--scale", "ordinal")
    assert code == 0
    assert list(json.loads(out)["metrics"]) == ["plcc", "srocc", "rmse"]


def test_an_undefined_correlation_is_null(run, write):
    labels = write("l.csv", GOOD)
    truth = write("t.csv", "item,label\na,3\nb,3\n")
    code, out, _ = run("fit", labels, "--truth", truth, "--json")
    assert code == 0
    assert json.loads(out)["metrics"]["plcc"] is None


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_out_writes_tables_and_fit_json(run, crowd, tmp_path, format_):
    code, _, _ = run(
        *("fit", crowd / "labels.csv", "--out", tmp_path / "deep" / "out", "--format", format_)
    )
    assert code == 0
    folder = tmp_path / "deep" / "out"
    tables = ("items", "annotators", "labels", "dependent_annotators")
    names = {f"{name}.{format_}" for name in tables}
    assert {path.name for path in folder.iterdir()} == names | {"fit.json"}
    entries = json.loads((folder / "fit.json").read_text())
    assert entries["settings"]["tol"] == 1e-4
    assert len(entries["history"]["objective"]) == entries["n_iter"]
    assert entries["versions"].keys() >= {"annotruth", "numpy", "python"}
    if format_ == "parquet":
        assert pq.read_table(folder / "items.parquet").num_rows == 40
    else:
        assert (folder / "items.csv").read_text().count("\n") == 41


def test_report_is_one_page_named_after_the_labels(run, crowd, tmp_path):
    code, out, err = run("fit", crowd / "labels.csv", "--report", tmp_path / "new" / "report.html")
    assert (code, err) == (0, "")
    assert f"report written to {tmp_path / 'new' / 'report.html'}" in out
    text = (tmp_path / "new" / "report.html").read_text()
    assert "<h1>labels.csv</h1>" in text
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


def test_out_does_not_change_other_files(run, crowd, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert run("fit", crowd / "labels.csv", "--out", tmp_path / "out", "--force")[0] == 0
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_quiet_prints_nothing(run, crowd):
    assert run("fit", crowd / "labels.csv", "--quiet") == (0, "", "")
    with_warning = ("--set", "max-iter=2")
    assert run("fit", crowd / "labels.csv", "--quiet", *with_warning) == (0, "", "")


def test_reaching_max_iter_is_one_line_on_stderr(run, crowd):
    code, out, err = run("fit", crowd / "labels.csv", "--set", "max-iter=2", "--json")
    assert code == 0
    assert json.loads(out)["converged"] is False
    assert err.count("\n") == 1
    assert "warning: reached max_iter (2) before convergence" in err


def test_set_knows_the_arguments_of_all_functions_that_fit():
    functions = (
        *(at.fit, at.next_labels, at.plan_labels, at.rank),
        *(ranking.next_comparisons, ranking.plan_comparisons),
    )
    names = {
        each.name
        for function in functions
        for each in inspect.signature(function).parameters.values()
        if each.default is not ... and each.kind is not inspect.Parameter.VAR_KEYWORD
    }
    assert names - {"seed", "question"} == FUNCTION_ARGUMENTS | OPTIONS  # models have seeds too


def test_auto_reports_the_model_and_the_reason(run, crowd, tmp_path):
    words = ("fit", crowd / "labels.csv", "--model", "auto")
    code, out, err = run(*words, "--json", "--out", tmp_path / "out")
    entries = json.loads(out)
    assert (code, err) == (0, "")
    assert entries["chosen"]["model"] == entries["model"] in MODELS
    assert set(entries["chosen"]["scores"]) == set(MODELS)
    assert entries["model"] in entries["chosen"]["why"]
    assert json.loads((tmp_path / "out" / "fit.json").read_text())["chosen"] == entries["chosen"]
    code, out, _ = run(*words)
    assert code == 0
    assert f"chosen: {entries['chosen']['why']}" in out


def test_names_with_a_comma_are_quoted(run, write):
    path = write("l.csv", 'item,annotator,"said, at last"\na,x,"no, never"\na,y,yes\nb,x,yes\n')
    code, out, err = run(
        *("fit", path, "--categories", '"no, never", yes', "--json"),
        *("--columns", 'item=item,"label=said, at last"'),
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["n_categories"] == 2


def test_gold_fixes_the_label(run, write, tmp_path):
    labels, gold = write("l.csv", GOOD), write("g.csv", "item,label\na,3\n")
    assert run("fit", labels, "--gold", gold, "--out", tmp_path / "o", "--quiet")[0] == 0
    first = (tmp_path / "o" / "items.csv").read_text().splitlines()[1]
    assert first.startswith('"a",2,3,3,1,0')


def test_simulate_is_seeded(run, tmp_path):
    for name, seed in (("one", 5), ("two", 5), ("three", 6)):
        code, out, _ = run("simulate", "--out", tmp_path / name, "--seed", seed, "--items", 20)
        assert code == 0
        assert "500 labels of 20 items by 25 annotators" in out
    for file in ("labels.csv", "truth.csv", "annotators.csv"):
        one, two, three = ((tmp_path / n / file).read_bytes() for n in ("one", "two", "three"))
        assert one == two != three


def test_demo_prints_the_truth_beside_the_result(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo")
    assert "report written to annotruth-demo.html" in out
    assert (tmp_path / "annotruth-demo.html").exists()
    assert (code, err) == (0, "")
    assert "Annotators, least reliable first" in out
    assert "correlation with the truth" in out


def test_help_shows_examples_and_models_and_version_the_version(run):
    text = run("fit", "--help-all")[1]
    assert "annotruth fit labels.csv --out result" in text
    assert all(name in text for name in (*MODELS, *INPUT_FORMATS))
    assert run("--version")[1].startswith("annotruth 0.")
