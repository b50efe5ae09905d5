"""Engines are known by name to the registry and the command line only."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

import annotruth as at
from annotruth.engines import ENGINES, get_engine, native_engine
from annotruth.engines.memory import MemoryEngine
from annotruth.models.gpm import GPM
from annotruth.models.registry import Capabilities

PACKAGE = Path(at.__file__).parent
MAY_KNOW_SPARK = (
    "__init__.py",  # exports SparkEngine
    "app/",
    "engines/registry.py",
    "engines/spark/",
    "observations/frames.py",  # refuses distributed frames instead of collecting them
)


def code_words(source):
    """Return the names and strings of a module's code, without its docstrings."""
    tree = ast.parse(source)
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word):
                yield word
            case ast.FunctionDef(name=word) | ast.ClassDef(name=word) | ast.alias(name=word):
                yield word
            case ast.ImportFrom(module=str(word)):
                yield word
            case ast.Constant(value=str(word)) if id(node) not in docstrings:
                yield word
            case _:
                pass


def test_code_words_leave_out_docstrings():
    source = '"""Spark."""\nfrom a.spark import b\ndef f():\n    """Spark."""\n    return "c"\n'
    assert set(code_words(source)) == {"a.spark", "b", "f", "c"}


def test_no_other_module_names_spark():
    found = {
        str(path.relative_to(PACKAGE)): words
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(MAY_KNOW_SPARK)
        and (words := [word for word in code_words(path.read_text()) if "spark" in word.lower()])
    }
    assert not found


@pytest.mark.parametrize("name", ["memory", "reference"])
def test_engines_are_found_by_name(name):
    engine = get_engine(name)
    assert engine.name == name
    assert get_engine(engine) is engine


@pytest.mark.parametrize("engine", ["tpu", 1.5, None, MemoryEngine])
def test_an_unknown_engine_is_refused_with_the_choices(engine):
    text = f"unknown engine {engine!r}: choose {', '.join(ENGINES)}"
    with pytest.raises(at.InputError, match=re.escape(text)):
        get_engine(engine)


def test_data_in_memory_belong_to_no_engine():
    assert native_engine([("a", "x", 1)]) is None
    assert native_engine("labels.csv") is None


@pytest.mark.parametrize("need", ["out_of_core", "classifier", "over_time"])
def test_a_model_is_refused_on_an_engine_without_what_it_needs(monkeypatch, need):
    monkeypatch.setattr(GPM, "capabilities", Capabilities(needs=(need,)))
    engine = MemoryEngine()
    engine.capabilities = replace(MemoryEngine.capabilities, **{need: True})
    rows = [("a", "x", 1), ("a", "y", 1), ("b", "x", 2)]
    assert at.fit(rows, "gpm", engine=engine).data.n_labels == 3
    engine.capabilities = replace(MemoryEngine.capabilities, **{need: False})
    message = r"gpm is not fitted on the engine memory, which .+: choose engine='memory'"
    with pytest.raises(at.InputError, match=message):
        at.fit(rows, "gpm", engine=engine)
