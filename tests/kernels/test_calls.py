"""How kernels are found and called."""

import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.kernels.twins import argument_names

from annotruth.kernels import _native, find_kernel

ROOT = Path(__file__).parents[2]


def kernels_of(module, prefix=""):
    """Return the names of the compiled kernels, such as ``gpm.step``."""
    for name, value in vars(module).items():
        if isinstance(value, ModuleType):
            yield from kernels_of(value, f"{prefix}{name}.")
        elif not name.startswith("_"):
            yield prefix + name


@pytest.mark.parametrize("name", list(kernels_of(_native)))
def test_every_kernel_has_a_twin_with_the_same_arguments(name):
    family, function = name.rsplit(".", 1)
    twin = getattr(importlib.import_module(f"annotruth.kernels.reference.{family}"), function)
    *names, last = inspect.signature(twin).parameters
    taken = argument_names(name)
    assert taken[: len(names)] == names
    if last != "a":  # the others as attributes of one object
        assert taken == [*names, last]


def test_arrays_of_another_type_are_refused():
    theta = {"float32": np.zeros(1, np.float32), "gaps": np.zeros(4)[::2], "axes": np.zeros((1, 1))}
    read_only = np.zeros(1)
    read_only.flags.writeable = False
    block = (
        np.zeros(1, np.int64),
        *[np.zeros(0, t) for t in (np.int32, np.int64, np.int32, np.int32)],
    )
    for one in (*theta.values(), read_only):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            find_kernel("gpm.start")(block, 0, 0, theta=one)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        find_kernel("gpm.start")(block[:4], 0, 0, theta=np.zeros(1))
    find_kernel("gpm.start")(block, 0, 0, theta=np.zeros(1))


FITS = """
import json, sys
import annotruth as at
from annotruth.models.registry import MODELS, get_model

labels = [(i, s, 1 + (i * s + s) % 3) for i in range(9) for s in range(5)]
iterative = [name for name in MODELS if hasattr(get_model(name), "engine")]
fits = {name: at.fit(labels, name, engine="memory").log_likelihood for name in iterative}
json.dump(fits, sys.stdout)
"""


def test_without_a_compiler_the_twins_run_and_one_line_says_so(tmp_path):
    pytest.importorskip("scikit_build_core")
    site = tmp_path / "site"
    build_dir = f"-Cbuild-dir={tmp_path / 'build'}"
    options = "--quiet --no-index --no-build-isolation --no-deps --no-compile --target"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options.split(), site, build_dir, ROOT],
        env={**os.environ, "CXX": "/bin/false"},
        capture_output=True,
        check=True,
    )
    assert not list(site.rglob("_native*"))

    def run(*command, path=str(site)):
        env = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(
            [sys.executable, *command], env=env, capture_output=True, text=True, check=True
        )

    labels = tmp_path / "labels.csv"
    rows = [f"{item},{annotator},{item % 2}" for item in range(4) for annotator in "abc"]
    labels.write_text("\n".join(["item,annotator,label", *rows]))
    done = run("-m", "annotruth", "fit", labels, "-o", tmp_path / "results")
    (line,) = done.stderr.splitlines()
    assert "without its compiled kernels" in line
    slow, fast = (json.loads(run("-c", FITS, **path).stdout) for path in ({}, {"path": ""}))
    assert len(slow) > 5
    assert slow == pytest.approx(fast, rel=1e-6)
