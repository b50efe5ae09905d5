"""Whole fits in fresh processes, on the card and in memory: from how many labels on the card is faster.

A process imports annotruth and makes the labels, and then times the fit, with the start of CuPy and the
compilation of kernels, which CuPy keeps on disk: the first fit on the card takes longer.
"""

import subprocess
import sys

SIZES = (100_000, 300_000, 1_000_000, 3_000_000)

FIT = """
import sys, time
from benchmarks.gpu.crowds import make_labels
import annotruth as at
model, engine, n_labels = sys.argv[1], sys.argv[2], int(sys.argv[3])
labels = make_labels(n_labels, max(n_labels // 200, 20))
begin = time.perf_counter()
fit = at.fit(labels, model, engine=engine)
print(f"{time.perf_counter() - begin:.2f} {fit.n_iter}")
"""


def fit_time(model: str, engine: str, n_labels: int) -> str:
    """Return the seconds of a fit in a new process, and its iterations."""
    command = [sys.executable, "-W", "ignore", "-c", FIT, model, engine, str(n_labels)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def time_start(n_labels: int = SIZES[-1]) -> None:
    """Print the seconds and iterations of fits up to this number of labels."""
    for model in ("gpm", "dawid-skene", "robust-gpm"):
        for n in (size for size in SIZES if size <= n_labels):
            times = [f"{engine} {fit_time(model, engine, n)}" for engine in ("memory", "gpu")]
            print(f"{model}, {n:,} labels (seconds, iterations): {'; '.join(times)}", flush=True)
