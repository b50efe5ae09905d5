"""Passes and whole fits on a GPU, beside those on this machine's cores, in one run.

    python -m benchmarks.gpu                     # passes on the card; needs 60 GB of memory
    python -m benchmarks.gpu --labels 10000000   # fewer labels
    python -m benchmarks.gpu --part robust-gpm   # whole fits of the default model
    python -m benchmarks.gpu --part opinions     # the same where opinions differ; needs 60 GB of memory
    python -m benchmarks.gpu --part start        # from how many labels on the card is faster
    python -m benchmarks.gpu --part parquet      # from a file to the card

Labels are simulated, 10 per item and 5 categories.
"""

from __future__ import annotations

import argparse

from benchmarks.gpu.opinions import time_opinions
from benchmarks.gpu.parquet import time_parquet
from benchmarks.gpu.passes import time_passes
from benchmarks.gpu.robust_gpm import time_robust_gpm
from benchmarks.gpu.start import time_start

# Each takes the number of labels, and has a default.
PARTS = {
    "passes": time_passes,
    "robust-gpm": time_robust_gpm,
    "opinions": time_opinions,
    "start": time_start,
    "parquet": time_parquet,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--part", choices=PARTS, default="passes")
    parser.add_argument("--labels", type=int)
    arguments = parser.parse_args()
    run = PARTS[arguments.part]
    if arguments.labels is None:
        run()
    else:
        run(arguments.labels)


if __name__ == "__main__":
    main()
