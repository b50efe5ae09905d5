"""`annotruth compare` as a person or a script uses it."""

import json
import sys

import pytest

import annotruth as at
from annotruth.app import cli

GOOD = "item,annotator,label\n" + "".join(
    f"{e},{s},{1 + (e * s) % 3}\n" for e in range(8) for s in range(4)
)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run ``compare`` on a text or a folder; returns its exit code, stdout and stderr."""

    def run(data, *options):
        if isinstance(data, str):
            (tmp_path / "labels.csv").write_text(data)
            data = tmp_path / "labels.csv"
        arguments = ["annotruth", "compare", str(data), *map(str, options)]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err

    return run


def test_compare_prints_tables(run, tmp_path):
    truth = tmp_path / "truth.csv"
    truth.write_text("item,label\n0,1\n1,2\n")
    code, out, err = run(GOOD, "--models", "majority,mean,median", "--truth", truth)
    assert (code, err) == (0, "")
    assert "32 labels of 8 items by 4 annotators" in out
    assert out.splitlines()[0].startswith("finding: ")
    for title in ("Models", "Against the truth", "Agreement with "):
        assert f"\n{title}" in out
    assert "…" not in out


def test_json_is_one_object_and_nothing_else(run, tmp_path):
    page, table = tmp_path / "page.html", tmp_path / "models.csv"
    options = ("--models", "majority,mean", "--json", "--report", page, "--out", table)
    code, out, err = run(GOOD, *options)
    printed = json.loads(out)
    assert (code, err) == (0, "")
    assert list(printed) == [
        *("n_items", "n_annotators", "n_labels", "n_categories", "finding", "recommended"),
        *("chosen", "why", "models", "agreement"),
    ]
    assert "labels.csv: comparison of models" in page.read_text()
    assert table.read_text().startswith('"model","held_out","held_out_error"')


def test_a_saved_fit_is_compared(run, tmp_path):
    rows = [(e, s, 1 + (e * s) % 3) for e in range(8) for s in range(4)]
    at.fit(rows, "majority").save(tmp_path / "fit")
    page = tmp_path / "page.html"
    code, out, _ = run(tmp_path / "fit", "--models", "majority", "--report", page)
    assert code == 0
    assert "32 labels of 8 items by 4 annotators" in out
    assert "fit: comparison of models" in page.read_text()


def test_models_of_scores_are_not_compared_on_nominal_scales(run):
    code, out, _ = run(GOOD, "--scale", "nominal", "--models", "majority,mean,median")
    assert code == 0
    assert "not compared: mean, median (needs an ordinal scale" in out
    assert out.count("not compared") == 1


def test_files_that_annotruth_did_not_write_are_kept(run, refused, tmp_path):
    other = tmp_path / "page.html"
    other.write_text("mine")
    options = ("--models", "majority", "--report", other)
    assert f"--report {other}: the file exists" in refused(GOOD, *options)
    assert other.read_text() == "mine"
    assert run(GOOD, *options, "--force")[0] == 0
    assert run(GOOD, *options)[0] == 0  # its own pages are replaced
