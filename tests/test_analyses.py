"""The table of analyses: a new one is a row and a module, also for updates."""

import sys
from dataclasses import replace
from types import ModuleType

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.analyses import ANALYSES, Analysis
from annotruth.errors import InputError
from annotruth.models.fits.further import FurtherKind, FurtherResults

ROWS = [(i, who, "ab"[(i + k) % 2]) for i in range(12) for k, who in enumerate("xyz")]


def analyse(options, estimator, labels, read, progress):
    """Return a fit with how many labels each annotator gave."""
    fit = estimator.fit(labels, progress=progress).result_
    table = pa.table({"annotator": labels.annotators, "n_labels": labels.labels_per_annotator})
    facts = {"headcount": options["headcount"]}
    results = FurtherResults(
        {"headcount": table}, facts, [f"headcount of {labels.n_labels} labels"]
    )
    return replace(fit, further={**fit.further, "headcount": results})


def analyse_again(before, estimator, labels, progress):
    return analyse(before.further["headcount"].facts, estimator, labels, None, progress)


@pytest.fixture
def module(monkeypatch):
    """Register an analysis and return its module."""
    module = ModuleType("annotruth.analyses.headcount")
    module.check = lambda options, estimator, engine, read: None
    module.analyse, module.analyse_again = analyse, analyse_again
    kind = FurtherKind(
        {"headcount": {"id": "annotator", "count": "n_labels"}},
        "fit with a headcount ({headcount})",
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(ANALYSES, "headcount", Analysis(kind, ("headcount",), "headcount"))
    monkeypatch.setattr("annotruth.fitting.OPTIONS", frozenset(["headcount"]))
    return module


def test_an_update_keeps_the_results_of_a_new_analysis(module, tmp_path):
    fit = at.fit(ROWS, "gpm", headcount="each")
    fit.save(tmp_path / "fit")
    updated = at.update(tmp_path / "fit", [(0, "new", "a")])
    assert updated.further["headcount"].facts == {"headcount": "each"}
    assert updated.further_table("headcount", "headcount")["n_labels"].to_pylist() == [
        12,
        12,
        12,
        1,
    ]
    assert "headcount of 37 labels" in updated.summary()


def test_an_update_refuses_an_analysis_that_cannot_be_repeated(module):
    fit = at.fit(ROWS, "gpm", headcount="each")
    del module.analyse_again
    message = r"this fit has headcount, .+: fit all labels again, with headcount"
    with pytest.raises(InputError, match=message):
        at.update(fit, [(0, "new", "a")])
    with pytest.raises(InputError, match=message):
        at.next_labels(fit, drop=["x"])


def test_two_analyses_at_once_are_refused(module):
    options = {"machines": ["x"], "by": "team", "annotators": {"annotator": ["x"], "team": ["a"]}}
    with pytest.raises(InputError, match=r"^machines and by do not go"):
        at.fit(ROWS, **options)
    with pytest.raises(InputError, match=r"^machines and by and headcount do not"):
        at.fit(ROWS, headcount="each", **options)
