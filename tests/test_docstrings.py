"""The examples in docstrings run, and every public class has some."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import annotruth as at

ROOT = Path(__file__).resolve().parents[1]
MODULES = ["annotruth", *(m.name for m in pkgutil.walk_packages(at.__path__, "annotruth."))]


def documented_classes():
    """Return the classes in `annotruth.__all__` and those that the reference lists, by path."""
    listed = re.findall(r":: ([\w.]+)$", (ROOT / "docs/reference.md").read_text(), re.MULTILINE)
    paths = {f"annotruth.{name}" for name in at.__all__} | set(listed)
    return sorted(path for path in paths if re.fullmatch(r"[A-Z]\w*", path.split(".")[-1]))


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name.startswith("annotruth.engines.spark"):
        pytest.importorskip("pyspark")
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.FAIL_FAST)
    assert failed == 0


@pytest.mark.parametrize("path", documented_classes())
def test_public_classes_have_examples(path):
    module, _, name = path.rpartition(".")
    cls = getattr(importlib.import_module(module), name)
    assert inspect.isclass(cls)
    documentation = inspect.getdoc(cls)
    assert re.search(r"^Examples\n-+\n(.*\n)*?>>> ", documentation, re.MULTILINE), documentation
