"""Benchmarks import what they need from the package; running them takes too long for a test."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OTHER_PACKAGES = {"crowdkit", "sureal"}

IMPORT_ALL = """
import importlib, json, sys
failures = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        failures[name] = [error.name, str(error)]
print(json.dumps(failures))
"""


def test_every_benchmark_imports():
    folder = ROOT / "benchmarks"
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted(folder.rglob("*.py"))
        if path.name != "__init__.py"
    ]
    assert "benchmarks.passes" in modules
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *modules],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    failures = json.loads(done.stdout)
    # Other packages are installed by `make bench` only.
    broken = {name: text for name, (gone, text) in failures.items() if gone not in OTHER_PACKAGES}
    assert not broken
