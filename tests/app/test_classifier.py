"""`annotruth fit --classifier`."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def files(tmp_path):
    """Labels of two annotators who are right most of the time, and a classifier."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=120)
    rows = [
        (
            f"i{e}",
            f"w{rng.integers(9) if s else 9}",
            "xy"[truth[e] if rng.random() < 0.8 else 1 - truth[e]],
        )
        for e in range(120)
        for s in range(2)
    ]
    labels = tmp_path / "labels.csv"
    pd.DataFrame(rows, columns=["item", "annotator", "label"]).to_csv(labels, index=False)
    p = np.where(rng.random(120) < 0.95, truth, 1 - truth) * 0.8 + 0.1
    table = pd.DataFrame({"item": [f"i{e}" for e in range(120)], "p_x": 1 - p, "p_y": p})
    table.to_csv(tmp_path / "p.csv", index=False)
    return labels, tmp_path / "p.csv"


def test_the_summary_the_object_and_the_report_say_how_good_it_is(run, files, tmp_path):
    labels, p = files
    code, out, _ = run("fit", labels, "--classifier", p, "--report", tmp_path / "r.html")
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("classifier: "))
    assert "of 120 items; weight 0." in line
    assert line.removeprefix("classifier: ") in (tmp_path / "r.html").read_text()
    code, out, _ = run("fit", labels, "--classifier", p, "--json")
    entry = json.loads(out)["classifier"]
    assert entry["n_items"] == 120
    assert entry["accuracy"] > 0.9
    assert 0.3 < entry["weight"] <= 1.0


def test_a_bad_file_is_refused_by_name_and_nothing_is_written(run, files, tmp_path):
    labels, p = files
    pd.read_csv(p).assign(p_x=2.0).to_csv(p, index=False)
    code, out, err = run("fit", labels, "--classifier", p, "--out", tmp_path / "out")
    assert code == 2
    assert not out
    assert f"{p}: the classifier's probabilities of item 'i0' sum to" in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
