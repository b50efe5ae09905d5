"""What models and NumPy twins need of the kernels loads without Numba."""

import os
import subprocess
import sys
from pathlib import Path

import annotruth

FITS = """
import sys, warnings
import annotruth as at
from annotruth.models.registry import MODELS, get_model

warnings.simplefilter("ignore")
labels = [(i, s, 1 + (i * s + s) % 3) for i in range(9) for s in range(5)]
iterative = [name for name in MODELS if hasattr(get_model(name), "engine")]
for name in iterative:
    at.fit(labels, name, engine="reference")
print(len(iterative), *sorted({"llvmlite", "numba"} & set(sys.modules)))
"""


def test_the_reference_engine_fits_every_model_without_numba():
    env = {**os.environ, "PYTHONPATH": str(Path(annotruth.__file__).parents[1])}
    command = [sys.executable, "-c", FITS]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    n_models, *loaded = done.stdout.split()
    assert int(n_models) > 5
    assert not loaded
