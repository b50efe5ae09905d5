"""The adapter to llvmlite: the only one, and ready for pointers without types."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import annotruth

PACKAGE = Path(annotruth.__file__).parent

SUMS = """
import numpy as np
from annotruth.kernels.simd.simd8 import sum_by_cell

out = np.empty(2)
sum_by_cell(np.array([0, 3, 4]), 0, 2, np.arange(16.0), out)
print(out.tolist())
"""


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_only_two_files_know_the_inside_of_the_compiler():
    knowing = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for module in imported_modules(path)
        if module.split(".")[0] == "llvmlite" or module.startswith("numba.")
    }
    assert knowing == {"kernels/compiled.py", "kernels/simd/llvm.py"}


def test_vectors_work_with_pointers_without_types(tmp_path):
    env = {
        **os.environ,
        "LLVMLITE_ENABLE_IR_LAYER_TYPED_POINTERS": "0",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": str(PACKAGE.parent),
    }
    command = [sys.executable, "-c", SUMS]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[3.0, 3.0]\n"


def test_nothing_outside_the_kernels_knows_the_width_of_vectors():
    knowing = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "kernels" not in path.parts
        and any(".simd" in module for module in imported_modules(path))
    ]
    assert not knowing
