"""Break the package one line at a time, and say which changes no test notices.

Run as ``python -m tests.mutants [--only TEXT] [--jobs N]`` in the root of the repository. Mutants are
applied to a copy in a temporary folder, one at a time, and only the tests named beside each are run.
The exit code is 1 if less than 95% are noticed, and 2 if these tests fail without any change.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.catalog import PACKAGE, ROOT, Mutant, read_mutants

TIMEOUT_SECONDS = 300.0  # endless loops are noticed too
NEEDED_SHARE = 0.95
_COPIED = ("src", "tests", "benchmarks", "docs", "README.md", "CONTRIBUTING.md", "pyproject.toml")
_PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE")
_FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (?:tests/)?(.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """How the tests of one mutant ended."""

    mutant: Mutant
    noticed_by: str | None  # None: by no test
    seconds: float


def copy_repository(folder: Path) -> Path:
    """Copy what tests need, with the caches of compiled code; return the copy."""
    folder.mkdir()
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name)
    return folder


def run_tests(
    copy: Path, tests: tuple[str, ...], *, timeout: float | None = None, cache: Path | None = None
) -> tuple[int, str]:
    """Run tests in a copy; return the exit code, or 1 after the timeout, and the output."""
    env = {
        **os.environ,
        "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}",
        # Two versions of a file may have the same size and time, by which Python knows them.
        "PYTHONDONTWRITEBYTECODE": "1",
        **({"NUMBA_CACHE_DIR": str(cache)} if cache else {}),
    }
    try:
        done = subprocess.run(
            [*_PYTEST, *tests],
            check=False,
            cwd=copy,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return 1, f"FAILED timeout after {timeout:.0f} s"
    return done.returncode, done.stdout


def try_mutant(mutant: Mutant, copy: Path) -> Outcome:
    """Apply a mutant, run its tests and restore the file."""
    began = time.monotonic()
    path = copy / mutant.file
    source, times = path.read_text(), path.stat()
    # Changed kernels are compiled into a cache of their own, as the cache keeps only few versions.
    cache = copy / "mutant-cache" if mutant.is_kernel else None
    path.write_text(mutant.applied_to(source))
    try:
        code, output = run_tests(copy, mutant.tests, timeout=TIMEOUT_SECONDS, cache=cache)
    finally:
        path.write_text(source)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if cache:
            shutil.rmtree(cache, ignore_errors=True)
    first = _FIRST_FAILURE.search(output)
    noticed_by = (first[1] if first else f"exit code {code}") if code else None
    return Outcome(mutant, noticed_by, time.monotonic() - began)


def check_baseline(copy: Path, mutants: list[Mutant]) -> None:
    """Exit unless the copy's package is the one tested, and all tests pass without mutants."""
    where = "import annotruth; print(annotruth.__file__)"
    env = {**os.environ, "PYTHONPATH": str(copy / "src")}
    found = subprocess.run(
        [sys.executable, "-c", where], cwd=copy, env=env, capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(found).is_relative_to(copy / PACKAGE):
        sys.exit(f"tests would import {found} instead of the copy in {copy}")
    code, output = run_tests(copy, tuple(sorted({test for m in mutants for test in m.tests})))
    if code:
        say(output)
        say("these tests fail without any mutant: make them pass first")
        sys.exit(2)


def choose(mutants: list[Mutant], text: str) -> list[Mutant]:
    """Return the mutants of a part of that name, or those with the text in their file or name."""
    chosen = [mutant for mutant in mutants if mutant.part == text]
    chosen = chosen or [mutant for mutant in mutants if text in f"{mutant.file}: {mutant.name}"]
    if not chosen:
        sys.exit(f"no mutant has {text!r} in its file or name, and no part is named so")
    return chosen


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def try_all(mutants: list[Mutant], jobs: int) -> list[Outcome]:
    """Try mutants, each in one of as many copies as there are jobs, and print the outcomes."""
    with tempfile.TemporaryDirectory(prefix="annotruth-mutants-") as folder:
        copies = [copy_repository(Path(folder, str(number))) for number in range(jobs)]
        check_baseline(copies[0], mutants)
        free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for copy in copies:
            free.put(copy)

        def run(mutant: Mutant) -> Outcome:
            copy = free.get()
            try:
                outcome = try_mutant(mutant, copy)
            finally:
                free.put(copy)
            how = f"noticed by {outcome.noticed_by}" if outcome.noticed_by else "SURVIVED"
            say(f"{mutant.part}: {mutant.name}: {how} ({outcome.seconds:.0f} s)")
            return outcome

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(run, mutants))


def main() -> None:
    """Try all mutants and print which of them no test notices."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "--only", metavar="TEXT", help="a part, or a text in the file or the name of mutants"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many mutants to try at a time")
    options = parser.parse_args()

    began = time.monotonic()
    outcomes = try_all(choose(read_mutants(), options.only or ""), options.jobs)
    survivors = [outcome.mutant for outcome in outcomes if outcome.noticed_by is None]
    share = 1.0 - len(survivors) / len(outcomes)
    minutes = (time.monotonic() - began) / 60.0
    say(
        f"{len(outcomes) - len(survivors)} of {len(outcomes)} mutants noticed "
        f"({share:.1%}) in {minutes:.0f} minutes"
    )
    for mutant in survivors:
        say(f"no test notices {mutant.name}: {mutant.file}: {mutant.old!r} -> {mutant.new!r}")
    if share < NEEDED_SHARE:
        sys.exit(f"at least {NEEDED_SHARE:.0%} must be noticed: write a test for each of these")


if __name__ == "__main__":
    main()
