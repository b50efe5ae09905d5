"""Further results of a fit: in its tables, summary and JSON, and saved with it."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.app.console import json_entries
from annotruth.errors import InputError
from annotruth.models.fits.further import FurtherResults, further_kinds

EXAMPLES = {"id": "gpt", "text": "a", "number": 0.5, "count": 3, "flag": True}
RESULTS = FurtherResults(
    {
        name: pa.table(
            {
                each: [EXAMPLES[holds]]
                for holds, listed in columns.items()
                for each in listed.split()
            }
        )
        for name, columns in further_kinds()["machines"].tables.items()
    },
    facts={"n_machines": 1},
    lines=["machines: gpt agrees with people"],
)


def changed(table, column, values):
    """Return a table with another column, or without it."""
    others = table.drop_columns([column])
    return others if values is None else others.append_column(column, pa.array(values))


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
    assert json_entries(fit)["machines"] == {"n_machines": 1}
    assert fit.further_table("machines", "machines")["machine"].to_pylist() == ["gpt"]


def test_what_was_not_asked_for_is_refused(fit):
    with pytest.raises(InputError, match=r"no results on over time: fit labels with a column time"):
        fit.further_table("over_time", "over_time")
    assert "further" not in replace(fit, further={}).to_dict()


def test_saved_results_come_back(fit, tmp_path):
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit").further["machines"]
    assert loaded.tables["dependence"].equals(RESULTS.tables["dependence"])
    assert (loaded.facts, loaded.lines) == (RESULTS.facts, RESULTS.lines)


@pytest.mark.parametrize(
    ("name", "column", "values"),
    [
        ("dependence", "correlation", ["high"]),
        ("machines", "weight", None),
        ("machines", "machine", [["gpt"]]),
    ],
    ids=["text for a number", "no column", "nested"],
)
def test_saved_tables_with_other_columns_are_refused(fit, tmp_path, name, column, values):
    tables = {**RESULTS.tables, name: changed(RESULTS.tables[name], column, values)}
    replace(fit, further={"machines": replace(RESULTS, tables=tables)}).save(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        at.load(tmp_path)


@pytest.mark.parametrize(
    "entry",
    [
        {"aliens": {"facts": {}, "lines": []}},
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
