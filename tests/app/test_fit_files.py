"""`annotruth fit`: input formats, and the files it writes."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

import annotruth as at
from annotruth.models.fits.notes import CHANCE_LINE


@pytest.fixture
def wide(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("item,ann,bob,cy\n1,1,2,2\n2,1,1,\n3,2,2,1\n4,1,1,1\n")
    return path


def test_the_recognised_format_is_reported(run, wide, tmp_path):
    code, out, err = run("fit", wide, "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "\nread as: matrix of items by annotators (4 rows by 3" in out
    entries = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert entries["read_as"].startswith("matrix of items by annotators (")


def test_the_input_format_can_be_given(run, wide):
    _, out, _ = run("fit", wide, "--input-format", "wide-transposed", "--json")
    assert json.loads(out)["n_annotators"] == 4
    assert json.loads(out)["n_items"] == 3
    code, _, err = run("fit", wide, "--input-format", "xml")
    assert code == 2
    assert "`annotruth fit --help-all` lists all" in err


def test_one_of_several_questions_is_chosen(run, tmp_path):
    path = tmp_path / "batch.csv"
    path.write_text("HITId,WorkerId,Answer.a,Answer.b\n1,x,1,9\n1,y,2,9\n")
    code, _, err = run("fit", path)
    assert code == 2
    assert err.count("\n") == 1
    assert (
        "several questions, a (1, 2), b (9, 9): choose one with `--question a` or `--question b`"
        in err
    )
    _, out, _ = run("fit", path, "--question", "a", "--json")
    assert json.loads(out)["n_categories"] == 2


def test_covariates_are_kept_with_a_saved_fit(run, tmp_path):
    path = tmp_path / "timed.csv"
    path.write_text("item,annotator,label,seconds,device\n1,x,1,9,web\n1,y,2,7,app\n2,x,1,,web\n")
    words = ("--model", "gpm", "--covariates", "seconds,device", "--save", tmp_path / "fit")
    assert run("fit", path, *words)[0] == 0
    covariates = at.load(tmp_path / "fit").data.covariates.labels
    assert covariates["seconds"].to_pylist() == [9, 7, None]
    assert covariates["device"].to_pylist() == ["web", "app", "web"]
    code, _, err = run("fit", path, "--covariates", "minutes")
    assert (code, "no column 'minutes'" in err) == (2, True)


@pytest.mark.parametrize(("bins", "n"), [("4", 4), ("0,20,100", 2)])
def test_numbers_are_put_into_bins(run, tmp_path, bins, n):
    path = tmp_path / "sliders.csv"
    rows = [f"{e},{s},{(e * 37 + s * 11) % 101}" for e in range(9) for s in range(4)]
    path.write_text("\n".join(["item,annotator,label", *rows]))
    code, _, err = run("fit", path)
    assert code == 0
    assert "warning: the labels are" in err
    code, out, err = run("fit", path, "--bins", bins, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["n_categories"] == n
    code, _, err = run("fit", path, "--bins", "some")
    assert code == 2
    assert "--bins takes a number of bins or edges" in err


def test_soft_labels_and_verdicts_are_written(run, wide, tmp_path):
    soft, keep = tmp_path / "soft.npz", tmp_path / "people.csv"
    code, out, _ = run("fit", wide, "--soft", soft, "--keep", keep, "--set", "tol=1")
    assert code == 0
    assert out.splitlines()[-2:] == [
        f"soft labels written to {soft}",
        f"verdicts on annotators written to {keep}",
    ]
    assert np.load(soft)["probabilities"].shape == (4, 2)
    assert keep.read_text().splitlines()[0] == '"annotator","verdict","ask","reason"'
    assert keep.read_text().count("\n") == 4


def test_soft_labels_are_of_the_chosen_read_out(run, tmp_path):
    path, soft = tmp_path / "labels.csv", tmp_path / "soft.npz"
    rows = [f"{e},{s},{'abc'[(e + (s == e % 5)) % 3]}" for e in range(60) for s in range(5)]
    path.write_text("\n".join(["item,annotator,label", *rows]))
    fit = at.fit(path)
    written = {}
    for readout in ("right", "opinion"):
        assert run("fit", path, "--soft", soft, "--soft-readout", readout, "--force")[0] == 0
        written[readout] = np.load(soft)["probabilities"]
        expected = fit.soft_labels(readout).drop(columns="item").to_numpy()
        np.testing.assert_array_equal(written[readout], expected)
    assert run("fit", path, "--soft", soft, "--force")[0] == 0
    np.testing.assert_array_equal(np.load(soft)["probabilities"], written["right"])
    assert not np.allclose(written["right"], written["opinion"])


def test_labels_of_chance_are_reported(run, tmp_path):
    rng = np.random.default_rng(0)
    path, page = tmp_path / "labels.csv", tmp_path / "report.html"
    rows = [f"{e},{s},{'abc'[rng.integers(3)]}" for e in range(100) for s in range(5)]
    path.write_text("\n".join(["item,annotator,label", *rows]))
    code, out, _ = run("fit", path, "--report", page)
    assert code == 0
    lines = out.splitlines()
    assert f"WARNING: {CHANCE_LINE}" in lines
    assert "agree no better than chance" in page.read_text()
    entries = json.loads(run("fit", path, "--json")[1])
    assert (entries["readout"], entries["verdict"]) == ("right", "chance")


def test_tables_are_written_as_json(run, wide, tmp_path):
    assert run("fit", wide, "--out", tmp_path / "out", "--format", "json", "--quiet")[0] == 0
    rows = json.loads((tmp_path / "out" / "items.json").read_text())
    assert [row["item"] for row in rows] == [1, 2, 3, 4]


SAVE_SLOWLY = """
import sys, time
from annotruth.models.storage import folder
write = folder._write_files

def slowly(*args):
    written = write(*args)
    print("written", flush=True)
    time.sleep(60)
    return written

folder._write_files = slowly
from annotruth.__main__ import main
sys.argv = ["annotruth", *sys.argv[1:]]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM")
def test_sigterm_during_a_first_save_leaves_nothing(tmp_path):
    (tmp_path / "labels.csv").write_text("item,annotator,label\na,x,1\na,y,2\nb,x,1\n")
    words = ["fit", "labels.csv", "--model", "gpm", "--quiet", "--save", "fits/first"]
    run = [sys.executable, "-c", SAVE_SLOWLY, *words]
    with subprocess.Popen(
        run, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "written\n"
        process.terminate()
        _, err = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert err == ""
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]
