"""The package as a whole: its front door stays small and light."""

import re
import subprocess
import sys

import pytest

import annotruth as at


def modules_after(statement: str) -> set[str]:
    """The modules loaded once a fresh interpreter has run the statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["annotruth", "annotruth.app.cli", "annotruth.__main__"])
def test_importing_the_package_or_its_command_line_loads_nothing_heavy(module):
    loaded = modules_after(f"import {module}")
    heavy = {"numpy", "pandas", "polars", "pyarrow", "altair", "sklearn"}
    assert not loaded & heavy


def test_loading_the_models_loads_neither_pandas_nor_scikit_learn_nor_charts():
    models = "import annotruth; annotruth.Labels.of; annotruth.GPM"
    assert not modules_after(models) & {"pandas", "polars", "altair", "sklearn"}


LIGHT = {"pandas", "polars", "narwhals", "sklearn", "altair", "rich"}


@pytest.mark.parametrize(
    ("model", "unneeded"),
    [
        ([], LIGHT),
        (["--model", "gpm"], LIGHT),
        (["--model", "majority"], LIGHT | {"scipy"}),
    ],
    ids=["default", "gpm", "majority"],
)
def test_a_fit_from_file_to_files_loads_no_more_than_it_needs(tmp_path, model, unneeded):
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\n1,a,x\n1,b,y\n2,a,x\n2,b,\n")
    words = ["fit", str(path), "--quiet", "--out", str(tmp_path / "out"), *model]
    fit = f"from annotruth.app.cli import app; app({words!r}, standalone_mode=False)"
    assert not modules_after(fit) & unneeded
    assert (tmp_path / "out" / "items.csv").exists()


def test_a_comparison_loads_no_pandas(tmp_path):
    path = tmp_path / "labels.csv"
    rows = [
        f"{item},{who},{'xy'[(item + (who == item)) % 2]}" for item in range(8) for who in range(4)
    ]
    path.write_text("\n".join(["item,annotator,label", *rows]))
    words = ["compare", str(path), "--quiet", "--models", "majority,dawid-skene"]
    compare = f"from annotruth.app.cli import app; app({words!r}, standalone_mode=False)"
    assert "pandas" not in modules_after(compare)


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "annotruth", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_package_runs_as_a_module():
    shown = run_module("--version")
    assert (shown.returncode, shown.stdout) == (0, f"annotruth {at.__version__}\n")
    refused = run_module("fit", "no-such-file.csv")
    assert refused.returncode == 2
    assert refused.stderr == "annotruth: no-such-file.csv: no such file: check the path\n"


@pytest.mark.parametrize("name", at.__all__)
def test_every_public_name_is_there(name):
    assert getattr(at, name) is not None
    assert name in dir(at)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = at.nonsense


def test_the_version_is_the_installed_one():
    from importlib.metadata import version

    assert at.__version__ == version("annotruth")


ROWS = [("a", "ann", 1), ("a", "bob", 2), ("b", "ann", 1)]


@pytest.mark.parametrize("path", [None, 5, b"fit", "", "a\0b"])
def test_what_is_no_path_is_refused(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit = at.fit(ROWS, "majority")
    for use in (fit.save, fit.report, at.load, lambda each: at.update(each, ROWS)):
        with pytest.raises(at.InputError, match="give a path"):
            use(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"categories": 5}, "categories must be a list of at least one category, not 5"),
        ({"columns": 5}, "columns is 5: give a mapping from role to column name"),
        ({"machines": 5}, "machines is a list of ids: pass machines=[5]"),
        ({"warm_start": 5}, "the folder of a saved fit is 5: give a path"),
    ],
)
def test_options_of_another_type_are_refused(options, text):
    with pytest.raises(at.InputError, match=re.escape(text)):
        at.fit(ROWS, **options)


def test_a_saved_fit_is_evaluated_and_what_is_no_fit_is_refused(tmp_path):
    fit = at.fit(ROWS, "majority")
    fit.save(tmp_path)
    truth = {"a": 1, "b": 1}
    assert at.evaluate(tmp_path, truth) == at.evaluate(fit, truth)
    with pytest.raises(at.InputError, match=r"fit is \[\]: give one fit, or the folder of a saved"):
        at.evaluate([], truth)
