"""What editors and type checkers see of the public functions: keywords by name, with types."""

import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import annotruth as at
from annotruth.models.options import AdviceKeywords, FitKeywords, RankKeywords
from annotruth.models.pairs.registry import PAIR_MODELS
from annotruth.models.registry import MODELS, find_class
from annotruth.observations.keywords import ReadKeywords, ReadKeywordsOfOne

ROOT = Path(__file__).resolve().parents[1]
READ = {field.name for field in dataclasses.fields(at.ReadOptions)}


def options_of(*classes):
    return {field.name for each in classes for field in dataclasses.fields(each)}


def test_keywords_are_the_fields_of_the_options():
    assert set(ReadKeywords.__annotations__) == READ
    assert set(ReadKeywordsOfOne.__annotations__) == READ - {"question"}
    types = {field.name: field.type for field in dataclasses.fields(at.ReadOptions)}
    assert {
        name: each.__forward_arg__ for name, each in ReadKeywords.__annotations__.items()
    } == types
    models = options_of(*(find_class(MODELS, name) for name in MODELS), at.SetModel)
    assert set(FitKeywords.__annotations__) == READ - {"question"} | models
    pairs = options_of(*(find_class(PAIR_MODELS, name) for name in PAIR_MODELS))
    assert set(RankKeywords.__annotations__) == READ | pairs


@pytest.mark.parametrize(
    ("function", "keywords"),
    [
        (at.fit, FitKeywords),
        (at.rank, RankKeywords),
        (at.update, ReadKeywords),
        (at.compare, ReadKeywords),
        (at.next_labels, AdviceKeywords),
        (at.plan_labels, AdviceKeywords),
        (at.next_comparisons, RankKeywords),
        (at.plan_comparisons, RankKeywords),
        (at.compare_rankings, ReadKeywords),
        (at.read_labels, ReadKeywords),
        (at.open_labels, ReadKeywords),
        (at.read_comparisons, ReadKeywords),
        (at.Labels.of, ReadKeywords),
        (at.Comparisons.of, ReadKeywords),
    ],
    ids=lambda each: getattr(each, "__qualname__", ""),
)
def test_signatures_list_every_keyword(function, keywords):
    parameters = inspect.signature(function).parameters.values()
    assert all(each.annotation is not inspect.Parameter.empty for each in parameters)
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    assert {each.name for each in parameters} >= set(keywords.__annotations__)


PROGRAM = """import annotruth as at
votes = [("a", "b", "ann", "left")]
reveal_type(at.fit("labels.csv", scale="ordinal", tol=1e-6))
reveal_type(at.fit("labels.csv", question="all", columns={"item": "film"}))
reveal_type(at.fit([("a", "ann", 1)], "gpm", gold=[("a", 1)], question="mood"))
reveal_type(at.rank(votes, by="language", seed=1))
reveal_type(at.update(at.rank(votes), votes))
reveal_type(at.next_labels("fit", 10, model="gpm", duplicates="keep"))
reveal_type(at.GPM().fit(votes).predict(votes))
at.fit("labels.csv", scael="ordinal")
at.rank(votes, seed="one")
at.fit("labels.csv", scale="numbers")
"""


def test_type_checkers_know_arguments_and_results(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = ["-m", "mypy", "--config-file", ROOT / "pyproject.toml", tmp_path / "program.py"]
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = [line.partition("program.py:")[2] for line in done.stdout.splitlines()]
    found = [line.replace("annotruth.", "").replace('"', "") for line in lines]
    fit, ranking = (
        "models.result.Fit[observations.table.Labels]",
        "observations.pairs.table.Comparisons",
    )
    revealed = [line.rpartition(" is ")[2] for line in found if "Revealed type" in line]
    assert revealed[:6] == [
        fit,
        "questions.result.QuestionFits",
        fit,
        f"models.result.Fit[{ranking}]",
        f"models.result.Fit[{ranking}]",
        "analyses.advice.advice.Advice",
    ], done.stdout + done.stderr
    assert "numpy.ndarray" in revealed[6]
    errors = [line for line in found if "error:" in line]
    assert {line.split(":")[0] for line in errors} == {"10", "11", "12"}, errors
