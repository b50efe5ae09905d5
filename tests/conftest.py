"""Crowds, commands, a browser and a database server that many tests share."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from annotruth.app import cli
from annotruth.io.readers import read_labels
from annotruth.observations import Labels, Scale

# Lines of progress, which slow machines print, are for the tests that ask for them.
os.environ.setdefault("ANNOTRUTH_PROGRESS_SECONDS", "inf")

# `--hypothesis-profile thorough`, which `make fuzz` passes, takes ten times as many random problems.
settings.register_profile("quick", max_examples=100, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("quick")


@pytest.fixture(scope="session")
def datasets() -> Path:
    """The folder of real labels, where there is one."""
    here = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("ANNOTRUTH_DATASETS", here.parent / "shared" / "datasets"))
    if not folder.is_dir():
        pytest.skip("no real labels here: set ANNOTRUTH_DATASETS to their folder")
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process; returns its exit code, stdout and stderr."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["annotruth", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        said = capsys.readouterr()
        return stopped.value.code, said.out, said.err

    return run


@pytest.fixture
def refused(run):
    """Run a command that is refused, in one line and with exit code 2; return the line."""

    def refused(*words):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        return err

    return refused


def random_labels(
    rng: np.random.Generator,
    *,
    n_items: int,
    n_annotators: int,
    n_categories: int,
    density: float = 0.6,
    unused: int = 0,
    copies: int = 1,
) -> Labels:
    """Make labels without any structure; every item and annotator has at least one.

    There are ``unused`` more categories, and each label is given ``copies`` times.
    """
    present = rng.random((n_items, n_annotators)) < density
    present[np.arange(n_items), rng.integers(n_annotators, size=n_items)] = True
    present[rng.integers(n_items, size=n_annotators), np.arange(n_annotators)] = True
    item, annotator = np.nonzero(present)
    shuffled = np.repeat(rng.permutation(len(item)), copies)
    return Labels.from_codes(
        item[shuffled],
        annotator[shuffled],
        np.repeat(rng.integers(n_categories, size=len(item)), copies),
        items=[f"item {e}" for e in range(n_items)],
        annotators=[f"annotator {s}" for s in range(n_annotators)],
        scale=Scale.ordinal(list(range(1, n_categories + unused + 1))),
    )


@pytest.fixture
def write(tmp_path):
    """Write a file of some text or bytes; returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def read(write):
    """Write a file of labels, and read them."""

    def read(text, name="labels.csv", **options):
        return read_labels(write(name, text), **options)

    return read


@pytest.fixture(scope="session")
def rows_of():
    """The (item, annotator, label) rows of Labels, in the order they came in."""
    return lambda labels: list(zip(*labels.to_arrow().to_pydict().values(), strict=True))


@pytest.fixture(scope="session")
def make_labels():
    """A maker of random labels: ``make_labels(rng, n_items=.., n_annotators=.., ...)``."""
    return random_labels


@pytest.fixture(scope="module")
def chromium():
    """A running Chromium; without one the tests skip, or fail if ANNOTRUTH_NEEDS_BROWSER is set.

    Closed after each module: no other event loop can run in the process meanwhile.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        if os.environ.get("ANNOTRUTH_NEEDS_BROWSER"):
            pytest.fail("no Chromium found, but ANNOTRUTH_NEEDS_BROWSER is set")
        pytest.skip("no Chromium found: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium refuses to run its sandbox as root, as in containers.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def postgresql_server():
    """A running PostgreSQL; without one tests skip, or fail if ANNOTRUTH_NEEDS_POSTGRESQL is set."""
    from tests.postgresql import NoServerError, postgresql_server

    try:
        with postgresql_server() as server:
            yield server
    except NoServerError as error:
        if os.environ.get("ANNOTRUTH_NEEDS_POSTGRESQL"):
            pytest.fail(f"{error}, but ANNOTRUTH_NEEDS_POSTGRESQL is set")
        pytest.skip(str(error))
