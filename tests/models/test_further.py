"""Further results of a fit: in its tables, summary and JSON, and saved with it."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.app.commands.fit import json_entries
from annotruth.app.commands.rank import rank_entries
from annotruth.errors import InputError
from annotruth.models.further import FurtherResults

RESULTS = FurtherResults(
    {
        "machines": pa.table({"machine": ["gpt"], "n_labels": [3]}),
        "dependence": pa.table({"annotator": ["gpt"], "other": ["x"], "correlation": [0.5]}),
        "machine_confusion": pa.table({"machine": ["gpt"], "consensus": ["1"], "label": ["2"]}),
    },
    facts={"n_machines": 1},
    lines=["machines: gpt agrees with people"],
)


@pytest.fixture(params=["labels", "votes"])
def fit(request):
    """A fit of labels, and one of comparisons, with further results."""
    if request.param == "labels":
        made = at.fit([("a", "x", 1), ("a", "gpt", 2), ("b", "x", 2)], "gpm")
    else:
        made = at.rank([("a", "b", "x", "left"), ("b", "c", "gpt", "left")], "bradley-terry")
    return replace(made, further={"machines": RESULTS})


def test_tables_summary_and_json_have_the_results(fit):
    tables = fit.tables()
    assert list(tables)[-3:] == ["machines", "dependence", "machine_confusion"]
    assert tables["dependence"].slice(0, 1).to_pydict()["correlation"] == [0.5]
    assert fit.summary().endswith(RESULTS.lines[0])
    entries = json_entries(fit) if isinstance(fit, at.Fit) else rank_entries(fit)
    assert entries["machines"] == {"n_machines": 1}
    assert fit.further_table("machines", "machines")["machine"].to_pylist() == ["gpt"]


def test_what_was_not_asked_for_is_refused(fit):
    with pytest.raises(InputError, match=r"no results on over time: fit labels with a column time"):
        fit.further_table("over_time", "over_time")
    assert "further" not in replace(fit, further={}).to_dict()


def test_saved_results_come_back(fit, tmp_path):
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit").further["machines"]
    assert loaded.tables["dependence"].equals(RESULTS.tables["dependence"])
    assert loaded.to_dict() == RESULTS.to_dict()


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("dependence", pa.table({"annotator": ["gpt"], "other": ["x"], "correlation": ["high"]})),
        ("machines", pa.table({"n_labels": [3]})),
        ("machines", pa.table({"machine": [["gpt"]], "n_labels": [3]})),
    ],
    ids=["text for a number", "no column", "nested"],
)
def test_saved_tables_with_other_columns_are_refused(fit, tmp_path, name, table):
    tables = {**RESULTS.tables, name: table}
    replace(fit, further={"machines": replace(RESULTS, tables=tables)}).save(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        at.load(tmp_path)


@pytest.mark.parametrize(
    "entry",
    [
        {"aliens": RESULTS.to_dict()},
        {"machines": {"facts": {}}},
        {"machines": {"facts": [], "lines": []}},
        {"machines": {"facts": {}, "lines": [1]}},
        [],
    ],
    ids=["kind", "no lines", "facts", "lines", "list"],
)
def test_saved_entries_of_other_types_are_refused(fit, tmp_path, entry):
    fit.save(tmp_path)
    manifest = tmp_path / "fit.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"further": entry}))
    with pytest.raises(InputError, match="the entry further"):
        at.load(tmp_path)
