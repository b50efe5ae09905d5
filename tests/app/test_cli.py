"""The command line: output, exit codes and errors."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import annotruth as at
from annotruth import ranking
from annotruth.app.options import FUNCTION_ARGUMENTS
from annotruth.models.registry import MODELS


@pytest.fixture
def crowd(tmp_path, run):
    """A folder with simulated labels and their truth."""
    folder = tmp_path / "crowd"
    assert run("simulate", "--out", folder, "--items", 40, "--annotators", 12, "--quiet")[0] == 0
    return folder


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


GOOD = "item,annotator,label\na,x,1\na,y,3\nb,x,3\nb,y,3\n"


def test_fit_prints_a_summary(run, crowd):
    code, out, err = run("fit", crowd / "labels.csv")
    assert (code, err) == (0, "")
    assert "480 labels of 40 items by 12 annotators" in out


def test_fit_json_is_one_object_and_nothing_else(run, crowd):
    code, out, err = run("fit", crowd / "labels.csv", "--truth", crowd / "truth.csv", "--json")
    entries = json.loads(out)
    assert (code, err) == (0, "")
    assert list(entries) == [
        *("model", "n_items", "n_annotators", "n_labels", "n_categories", "n_iter"),
        *("converged", "stop_reason", "log_likelihood", "spammers", "readout", "verdict"),
        "metrics",
    ]
    assert (entries["model"], entries["n_items"], entries["n_categories"]) == ("robust-gpm", 40, 5)
    assert list(entries["metrics"]) == ["accuracy", "f1_macro", "plcc", "srocc", "rmse"]
    assert 0.0 < entries["metrics"]["accuracy"] <= 1.0


def test_metrics_on_a_nominal_scale_are_accuracy_and_f1(run, crowd):
    _, out, _ = run(
        *("fit", crowd / "labels.csv", "--truth", crowd / "truth.csv"),
        *("--json", "--scale", "nominal"),
    )
    assert list(json.loads(out)["metrics"]) == ["accuracy", "f1_macro"]


def test_scores_as_truth_need_an_ordinal_scale(run, write):
    labels, truth = write("l.csv", GOOD), write("t.csv", "item,label\na,1.4\nb,3\n")
    code, _, err = run("fit", labels, "--truth", truth, "--json")
    assert code == 2
    assert "if it is a score, pass scores=True (`--scale ordinal`)" in err
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
def test_out_writes_three_tables_and_fit_json(run, crowd, tmp_path, format_):
    code, _, _ = run(
        *("fit", crowd / "labels.csv", "--out", tmp_path / "deep" / "out", "--format", format_)
    )
    assert code == 0
    folder = tmp_path / "deep" / "out"
    names = {f"{name}.{format_}" for name in ("items", "annotators", "labels")}
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


def test_a_report_that_cannot_be_written_is_one_line(run, crowd):
    code, _, err = run("fit", crowd / "labels.csv", "--report", crowd / "labels.csv" / "x.html")
    assert code == 2
    assert err.startswith("annotruth: cannot write ")
    assert err.count("\n") == 1


def test_demo_writes_a_report(run, tmp_path):
    assert run("demo", "--report", tmp_path / "demo.html")[0] == 0
    assert "A simulated crowd" in (tmp_path / "demo.html").read_text()


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


def test_options_of_the_model_can_be_set(run, crowd):
    _, out, _ = run("fit", crowd / "labels.csv", "--set", "tol=10", "--json")
    assert json.loads(out)["stop_reason"] == "change of the bound per label below 10"


@pytest.mark.parametrize("name", ["model", "read", "progress", "scale", "data", "gold"])
@pytest.mark.parametrize("command", ["fit", "next", "report"])
def test_set_takes_options_of_the_model_alone(run, crowd, tmp_path, command, name):
    out = ("--out", tmp_path / "page.html") if command == "report" else ()
    code, _, err = run(command, crowd / "labels.csv", *out, "--set", f"{name}=gpm")
    assert code == 2
    text = f"annotruth: --set is for options of the model, such as tol=1e-6, and '{name}' is none"
    assert err.startswith(text)


def test_set_knows_the_arguments_of_all_functions_that_fit():
    functions = (
        *(at.fit, at.next_labels, at.plan_labels, at.rank),
        *(ranking.next_comparisons, ranking.plan_comparisons),
    )
    names = {
        each.name
        for function in functions
        for each in inspect.signature(function).parameters.values()
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    }
    assert names - {"seed"} == FUNCTION_ARGUMENTS  # models have seeds too


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


def test_categories_can_be_given_in_order(run, write):
    path = write("w.csv", "item,annotator,label\na,x,G\na,y,P\nb,x,X\nb,y,X\n")
    code, out, _ = run("fit", path, "--categories", "G,P,R,X", "--json")
    assert code == 0
    assert json.loads(out)["n_categories"] == 4


def test_names_with_a_comma_are_quoted(run, write):
    path = write("l.csv", 'item,annotator,"said, at last"\na,x,"no, never"\na,y,yes\nb,x,yes\n')
    code, out, err = run(
        *("fit", path, "--categories", '"no, never", yes', "--json"),
        *("--columns", 'item=item,"label=said, at last"'),
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["n_categories"] == 2


def test_columns_can_be_named(run, write):
    path = write("c.csv", "film,user,stars\na,x,1\na,y,2\n")
    code, out, _ = run("fit", path, "--columns", "item=film,annotator=user,label=stars", "--json")
    assert code == 0
    assert json.loads(out)["n_labels"] == 2


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
    assert "true distribution" in out
    assert "correlation with the truth" in out


def test_help_shows_examples_and_models_and_version_the_version(run):
    text = run("fit", "--help")[1]
    assert "annotruth fit labels.csv --out result" in text
    assert all(name in text for name in MODELS)
    assert run("--version")[1].startswith("annotruth 0.")


BAD_INPUT = {
    "missing file": (None, (), "no such file"),
    "empty file": ("", (), "empty"),
    "header only": ("item,annotator,label\n", (), "no rows"),
    "missing column": ("item,annotator\na,x\n", (), "no column for the label"),
    "unknown model": (GOOD, ("--model", "oracle"), "unknown model 'oracle'"),
    "label column all empty": ("item,annotator,label\na,x,\nb,y,\n", (), "empty label"),
    "ragged": ("item,annotator,label\na,x,1\nb,y\n", (), "row 2"),
    "not utf-8": (b"item,annotator,label\na,x,\xff\xfe\n", (), "UTF-8"),
    "options of no model": (GOOD, ("--model", "auto", "--set", "tol=1"), "auto chooses the model"),
    "too little to choose by": (
        "item,annotator,label\na,x,1\n",
        ("--model", "auto"),
        "add labels, or choose a model by name",
    ),
    "unknown option of the model": (GOOD, ("--set", "speed=9"), "no option 'speed'"),
    "setting without a value": (GOOD, ("--set", "tol"), "--set takes NAME=VALUE"),
    "a word for a number": (GOOD, ("--set", "tol=small"), "tol is 'small': give a number"),
    "a truth value for a number": (GOOD, ("--set", "tol=true"), "tol is True: give a number"),
    "part of an iteration": (GOOD, ("--set", "max_iter=1.5"), "max_iter is 1.5: give a whole"),
    "neither true nor false": (GOOD, ("--set", "acceleration=so"), "give true or false"),
    "unknown scale": (GOOD, ("--scale", "odd"), "'--scale'"),
    "unknown column": (GOOD, ("--columns", "item=thing"), "no column 'thing'"),
    "a role named twice": (GOOD, ("--columns", "item=item,item=label"), "names 'item' twice"),
    "a list too long": (GOOD, ("--categories", "x" * 140_000), "cannot be parsed (field larger"),
    "unknown role": (GOOD, ("--columns", "thing=item"), "unknown role 'thing'"),
    "twice": (GOOD + "a,x,2\n", (), "labelled twice: annotator 'x' on item 'a'"),
    "label outside the categories": (GOOD, ("--categories", "1,2"), "not among the categories"),
    "no such option": (GOOD, ("--speed", "9"), "--speed"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_line_and_exit_2(run, write, tmp_path, case):
    content, words, text = BAD_INPUT[case]
    path = tmp_path / "absent.csv" if content is None else write("bad.csv", content)
    code, out, err = run("fit", path, *words, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert text in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--gold", "--truth"])
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("item,label\nzzz,1\n", "has labels (first: 'zzz', 1 in all)"),
        ("item,label\na,9\n", "9"),
        ("item,label\na,1\na,2\n", "names item 'a' twice"),
        ("item,label\n", "no rows"),
        ("item,value\na,1\n", "no column for the truth"),
        ("", "empty"),
    ],
)
def test_bad_gold_and_truth_are_one_line_and_exit_2(run, write, tmp_path, option, content, text):
    labels, known = write("l.csv", GOOD), write("known.csv", content)
    code, out, err = run("fit", labels, option, known, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert text in err
    assert not (tmp_path / "out").exists()


def test_truth_and_gold_of_other_items_are_left_out_with_one_warning(run, write, tmp_path):
    labels, truth = write("l.csv", GOOD), write("t.csv", "item,label\na,1\nz,1\n")
    gold = write("g.csv", "item,label\ny,1\na,1\nz,1\n")
    page = tmp_path / "r.html"
    code, _, err = run(
        "fit", labels, "--truth", truth, "--gold", gold, "--report", page, "--model", "majority"
    )
    assert code == 0
    assert [line for line in err.splitlines() if "without labels" in line] == [
        "annotruth: warning: 2 of 3 gold truths are of items without labels and were left out",
        "annotruth: warning: 1 of 2 truths is of an item without labels and was left out",
    ]


def test_an_invalid_parquet_file_is_one_line_and_exit_2(run, write, tmp_path):
    code, _, err = run("fit", write("l.parquet", GOOD), "--out", tmp_path / "out")
    assert code == 2
    assert "Parquet" in err
    assert err.count("\n") == 1


def test_a_path_that_cannot_be_written_is_one_line_and_exit_2(run, write, tmp_path):
    labels, file = write("l.csv", GOOD), write("file", "here")
    code, out, err = run("fit", labels, "--out", file / "out")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "cannot write" in err
    assert file.read_text() == "here"


@pytest.mark.parametrize("words", [["{}"], ["l.csv", "--out", "{}"], ["l.csv", "--report", "{}"]])
def test_a_name_that_is_too_long_is_one_line_and_exit_2(run, write, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    write("l.csv", GOOD)
    code, out, err = run("fit", *(word.format("x" * 300) for word in words))
    assert (code, out) == (2, "")
    assert err == f"annotruth: {'x' * 59}…: the name is too long: choose a shorter one\n"


@pytest.mark.parametrize("flag", ["--out", "--report"])
def test_a_device_is_no_output(run, write, flag):
    code, out, err = run("fit", write("l.csv", GOOD), flag, "/dev/null")
    assert (code, out) == (2, "")
    assert err == (
        f"annotruth: {flag} /dev/null: this is neither a file nor a folder: choose another path\n"
    )


@pytest.mark.parametrize(("file", "code"), [("l.csv", 0), ("missing.csv", 2)])
def test_a_closed_stderr_changes_nothing(run, write, tmp_path, monkeypatch, file, code):
    write("l.csv", GOOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stderr", None)
    done, out, _ = run("fit", file, "--model", "majority")
    assert done == code
    assert ("majority on" in out) == (code == 0)
    assert "no such file" not in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--spammers", "2"), "spammer_share (`--spammers`) is 2.0: give a number from 0 to 1"),
        (("--items", 10**20), "n_items (`--items`) is 100000000000000000000: give a whole number"),
        (("--items", 10**9), "such a crowd needs about 2,600.0 GB of memory, and"),
        (("--categories", 10**9), "such a crowd needs about 3,000.0 GB of memory, and"),
        (
            ("--generator", "comparers", "--annotators", 10**9),
            "such a crowd needs about 4,950.0 GB of memory, and",
        ),
        (
            ("--generator", "sets", "--items", 10**9),
            "such a crowd needs about 1,360.0 GB of memory, and",
        ),
    ],
)
def test_invalid_options_of_simulate_are_refused(run, tmp_path, options, message):
    code, _, err = run("simulate", "--out", tmp_path / "s", *options)
    assert code == 2
    assert err.startswith(f"annotruth: {message}")
    assert err.count("\n") == 1
    assert not (tmp_path / "s").exists()


def test_a_simulation_without_enough_memory_says_what_to_ask_for(run, tmp_path, monkeypatch):
    def crowd(*, behavior, spammer_share, seed):
        raise MemoryError

    monkeypatch.setattr("annotruth.simulate.crowd", crowd)
    code, _, err = run("simulate", "--out", tmp_path / "s")
    assert code == 2
    assert "not enough memory for such a crowd: ask for fewer items, annotators or" in err


def test_a_closed_pipe_prints_no_traceback(write):
    command = f"{Path(sys.executable).parent / 'annotruth'} fit {write('l.csv', GOOD)} | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_ctrl_c_is_one_line_and_exit_1(run, write, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("annotruth.api.fit", interrupted)
    code, out, err = run("fit", write("l.csv", GOOD), "--out", tmp_path / "o")
    assert (code, out, err) == (1, "", "annotruth: interrupted; no file was partly written\n")
    assert not (tmp_path / "o").exists()


def test_a_full_disk_is_one_line_and_exit_1(run, write, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("annotruth.app.console.show_lines", full)
    code, _, err = run("fit", write("l.csv", GOOD))
    assert (code, err) == (1, "annotruth: cannot continue: [Errno 28] No space left on device\n")


def test_an_error_of_several_lines_is_one_line(run, write, monkeypatch):
    def fail(*_, **__):
        raise at.AnnotruthError("the first line:\n  the second line\n")

    monkeypatch.setattr("annotruth.api.fit", fail)
    code, _, err = run("fit", write("l.csv", GOOD))
    assert (code, err) == (2, "annotruth: the first line: the second line\n")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("next", "l.csv", "--nothing"), "next"),
        (("next", "l.csv", "--model"), "next"),
        (("serve", "--port"), "serve"),
        (("serve", "token", "create", "--kind"), "serve token create"),
    ],
)
def test_a_wrong_option_refers_to_the_help_of_its_command(run, words, command):
    code, _, err = run(*words)
    assert code == 2
    assert err.endswith(f"Try 'annotruth {command} --help'.\n")


@pytest.mark.parametrize("words", [("--out", ""), ("--out=",), ("--drop", ""), ("-o", "")])
def test_an_empty_value_of_an_option_is_refused(run, write, tmp_path, monkeypatch, words):
    labels = write("l.csv", GOOD)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    code, out, err = run("fit", labels, *words)
    name = words[0].rstrip("=")
    assert (code, out) == (2, "")
    assert err == (
        f"annotruth: Invalid value for '{name}': it is empty: give a value, or leave it out. "
        "Try 'annotruth fit --help'.\n"
    )
    assert not list((tmp_path / "empty").iterdir())


def test_an_unknown_value_is_named_with_those_to_choose(run):
    code, _, err = run("fit", "l.csv", "--scale", "interval")
    assert code == 2
    assert err.startswith(
        "annotruth: Invalid value for '--scale': 'interval' is not one of 'auto', "
    )


def test_without_a_command_the_help_is_printed(run):
    code, out, err = run()
    assert (code, err) == (2, "")
    assert "Usage: annotruth" in out


@pytest.mark.parametrize(
    ("error", "fact"),
    [
        (MemoryError(), "not enough memory: pass memory='1GB' (`--memory 1GB`)"),
        (MemoryError("Unable to allocate 7.45 GiB for an array"), "(the last 7.45 GiB failed)"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
    ],
)
def test_too_little_memory_is_one_line(run, write, monkeypatch, error, fact):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("annotruth.api.fit", fail)
    code, out, err = run("fit", write("labels.csv", GOOD))
    assert (code, out) == (2, "")
    assert err.startswith("annotruth: ")
    assert err.count("\n") == 1
    assert fact in err
