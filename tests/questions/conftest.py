"""Labels of several questions, and their fits."""

import pyarrow.csv
import pytest

import annotruth as at

HOSTILE = ("../../tone", "<script>alert(1)</script>", "a/b\\c \u202e&\x01 'q'")


@pytest.fixture(scope="session")
def simulation():
    return at.simulate.questions(
        scales=["nominal", "ordinal"], n_items=40, n_annotators=12, correlation=1.0, seed=2
    )


@pytest.fixture(scope="session")
def fits(simulation):
    """The fits of two questions by a model that shares nothing."""
    return at.fit(simulation.table, "gpm", question="all")


@pytest.fixture(scope="session")
def hostile():
    """The fits of questions whose names would run as code, or lead elsewhere, if used as they are."""
    rows = [
        {"question": name, "item": f"i{e}", "annotator": f"w{s}", "label": "xy"[(e + s) % 2]}
        for name in HOSTILE
        for e in range(8)
        for s in range(4)
    ]
    return at.fit(pyarrow.Table.from_pylist(rows), "gpm", question="all")


@pytest.fixture
def votes(tmp_path, simulation):
    """A file of labels of two questions."""
    path = tmp_path / "votes.csv"
    pyarrow.csv.write_csv(simulation.table, path)
    return path
