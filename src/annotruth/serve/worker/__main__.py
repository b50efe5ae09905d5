"""Run the worker with the settings in the environment variables."""

from __future__ import annotations

import sys

from annotruth.serve.worker.loop import main

if __name__ == "__main__":
    sys.exit(main())
