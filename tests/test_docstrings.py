"""The examples in docstrings run, and every exported class but exceptions has some."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import annotruth as at

PACKAGE = Path(at.__path__[0])


def modules_with_examples() -> list[str]:
    """Return the modules whose source has an example, without importing the others."""
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text("utf-8")]
    names = [path.relative_to(PACKAGE.parent).with_suffix("").parts for path in files]
    return [".".join(name[:-1] if name[-1] == "__init__" else name) for name in names]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name.startswith("annotruth.engines.spark"):
        pytest.importorskip("pyspark")
    if name.startswith("annotruth.serve."):
        pytest.importorskip("fastapi")
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.FAIL_FAST)
    assert failed == 0
    assert tried > 0


def test_exported_classes_have_examples():
    exported = {name: getattr(at, name) for name in at.__all__}
    classes = {name: each for name, each in exported.items() if inspect.isclass(each)}
    classes = {name: cls for name, cls in classes.items() if not issubclass(cls, Exception)}
    assert len(classes) > 20
    lacking = [name for name, each in classes.items() if not has_examples(inspect.getdoc(each))]
    assert not lacking, "without an Examples section:\n" + "\n".join(lacking)


def has_examples(docstring: str) -> bool:
    _, heading, section = docstring.partition("\nExamples\n--------\n")
    return bool(heading) and re.search(r"^>>> ", section, re.MULTILINE) is not None


def test_examples_are_recognised():
    assert has_examples("Text.\n\nExamples\n--------\nMore text:\n\n>>> 1 + 1\n2")
    assert not has_examples("Text.\n\n>>> 1 + 1\n2")
    assert not has_examples("Text.\n\nExamples\n--------\nNo code.")
