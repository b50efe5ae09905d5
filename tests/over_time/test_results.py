"""Results over time are saved, written, reported and advised on, and updates compute them again."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import annotruth as at
from annotruth.analyses.over_time import sequences


@pytest.fixture(scope="module")
def made():
    return at.simulate.changing(n_items=120, n_annotators=20, seed=11)


@pytest.fixture(scope="module")
def table(made):
    data = made.labels
    table = data.to_arrow()
    for name, column in data.covariates.labels.items():
        by_row = column.take(pa.array(np.argsort(data.row)))
        table = table.append_column(name, by_row)
    return table


@pytest.fixture(scope="module")
def fit(made):
    fit = at.fit(made.labels)
    assert len(fit.changes_over_time()) > 0
    return fit


def test_a_saved_fit_has_the_same_results(fit, tmp_path):
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    for name, one in fit.further["over_time"].tables.items():
        assert loaded.further_table("over_time", name).equals(one)
    assert loaded.summary() == fit.summary()
    assert loaded.further["over_time"].facts == fit.further["over_time"].facts
    np.testing.assert_array_equal(loaded.p_serious, fit.p_serious)


def test_windows_before_and_after_a_change_are_as_reliable_as_the_change_says(fit):
    windows, changes = fit.over_time(), fit.changes_over_time()
    first = changes.drop_duplicates("annotator", keep=False)  # those with one change
    assert len(first) > 0
    covered = []
    for change in first.itertuples():
        own = windows[windows["annotator"] == change.annotator]
        before, after = own[own["to"] < change.at], own[own["from"] >= change.at]
        assert before["reliability"].mean() > after["reliability"].mean() + 0.4
        for part, reliability in ((before, change.before), (after, change.after)):
            covered += list((part["low"] <= reliability) & (reliability <= part["high"]))
    assert np.mean(covered) > 0.9


def test_the_command_line_writes_tables_and_facts(run, table, tmp_path):
    pa.csv.write_csv(
        table.rename_columns([*table.column_names[:3], "when", "nr", "ms"]), tmp_path / "x.csv"
    )
    command = [
        *("fit", str(tmp_path / "x.csv"), "--json", "--scale", "ordinal"),
        *("--columns", "time=when,order=nr,seconds=ms"),
        *("--out", str(tmp_path / "out"), "--keep", str(tmp_path / "keep.csv")),
        *("--report", str(tmp_path / "report.html")),
    ]
    code, stdout, _ = run(*command)
    assert code == 0
    facts = json.loads(stdout)["over_time"]
    changes = pa.csv.read_csv(tmp_path / "out" / "changes_over_time.csv")
    assert facts["by"] == "time"
    assert facts["n_changes"] == len(changes) > 0
    assert {"over_time.csv", "crowd_over_time.csv"} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }
    keep = pa.csv.read_csv(tmp_path / "keep.csv").to_pylist()
    changed = set(changes["annotator"].to_pylist())
    noted = {row["annotator"] for row in keep if "changed on" in row["reason"]}
    assert noted == changed
    page = (tmp_path / "report.html").read_text()
    assert 'id="over_time"' in page
    assert "Reliability over each annotator" in page


def test_a_bad_time_is_one_line_and_writes_nothing(run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("item,annotator,label,time\na,x,1,2024-05-03\nb,x,2,soon\n")
    out = tmp_path / "out"
    code, _, stderr = run("fit", path, "--out", out)
    assert code == 2
    assert "time is 'soon' in row 2" in stderr
    assert len(stderr.splitlines()) == 1
    assert not out.exists()


def test_nobody_is_kept_without_reserve_who_is_a_spammer_since(fit):
    last = {row["annotator"]: row["after"] for row in fit.changes_over_time().to_dict("records")}
    verdicts = fit.keep().set_index("annotator")
    for annotator, after in last.items():
        if after < 0.5:
            assert verdicts.loc[annotator, "verdict"] in ("unsure", "drop")
        assert "changed on" in verdicts.loc[annotator, "reason"]
    others = verdicts.drop(index=list(last))
    assert not others["reason"].str.contains("changed").any()


def test_an_update_finds_changes_that_the_first_labels_do_not_show(table, fit):
    n_labels = len(table)
    half = pa.compute.less_equal(table["order"], 40)
    first = at.fit(table.filter(half), scale="ordinal")
    assert len(first.further_table("over_time", "changes_over_time")) == 0
    later = at.update(first, table.filter(pa.compute.invert(half)))
    assert later.data.n_labels == n_labels
    found = set(later.further_table("over_time", "changes_over_time")["annotator"].to_pylist())
    expected = set(fit.further_table("over_time", "changes_over_time")["annotator"].to_pylist())
    assert found == expected


def test_hostile_names_are_escaped_in_the_report(table, tmp_path):
    names = pa.array([f"<b>{name}</b>" for name in table["annotator"].to_pylist()])
    hostile = table.set_column(1, "annotator", names)
    at.fit(hostile, scale="ordinal").report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    start = page.index('id="over_time"')
    assert "<b>" not in page[start : page.index("</section>", start)]


def test_the_reference_engine_finds_the_same():
    made = at.simulate.changing(n_items=24, n_annotators=6, changing_share=0.3, seed=2)
    one, other = (at.fit(made.labels, engine=engine) for engine in ("memory", "reference"))
    first, second = (each.further_table("over_time", "over_time") for each in (one, other))
    np.testing.assert_allclose(first["reliability"], second["reliability"], atol=1e-6)


def test_a_plain_fit_loads_nothing_of_it(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys, annotruth as at;"
        "at.fit([(e, s, e % 2) for e in range(9) for s in 'abc']).summary();"
        "print([name for name in sys.modules if name.startswith('annotruth.analyses.over_time')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_saved_fit_without_an_order_is_read_again(tmp_path):
    rows = pa.table({"item": [1, 1, 2], "annotator": ["x", "y", "x"], "label": [1, 2, 1]})
    fit = at.fit(rows.append_column("seconds", pa.array([9.0, 7.0, None])))
    fit.save(tmp_path)
    for name, table in at.load(tmp_path).further["over_time"].tables.items():
        assert (len(table), table.schema) == (0, fit.further_table("over_time", name).schema)


def test_seconds_that_are_often_equal_leave_fifths_empty(tmp_path):
    rows = [(e, s, (e + (s == e % 7)) % 3) for e in range(20) for s in range(7)]
    item, annotator, label = (pa.array(column) for column in zip(*rows, strict=True))
    seconds = pa.array([2.0 if e % 2 else 5.0 for e, _, _ in rows])
    columns = {"item": item, "annotator": annotator, "label": label, "seconds": seconds}
    fit = at.fit(pa.table(columns))
    facts = fit.further["over_time"].facts["seconds"]
    assert facts["median"] == [2.0, None, 5.0, None, None]
    assert len(facts["log_ratio"]) == 5
    fit.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "fastest fifth" in page
    assert "slowest fifth" not in page


def test_times_before_those_of_the_sampled_annotators_are_in_the_first_bin(monkeypatch):
    monkeypatch.setattr(sequences, "MAX_LABELS", 60)
    monkeypatch.setattr(sequences, "_MIN_ANNOTATORS", 2)  # every second annotator is sampled
    rows = [
        {"item": item, "annotator": who, "label": item % 2, "time": item // 10 + 1}
        for item in range(40)
        for who in range(4)
    ]
    rows[1]["time"] = 0  # of an annotator who is not in the sample
    crowd = at.fit(pa.Table.from_pylist(rows)).further_table("over_time", "crowd_over_time")
    by_time = [row for row in crowd.to_pylist() if row["by"] == "time"]
    assert [(row["from"], row["to"]) for row in by_time] == [
        *(("0", "1"), ("2", "2"), ("3", "3"), ("4", "4")),
    ]
    assert sum(row["n_labels"] for row in by_time) == 160
    assert all(0.5 < row["reliability"] < 1.0 for row in by_time)
