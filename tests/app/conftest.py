"""Files of labels for the command line."""

import pytest


@pytest.fixture
def crowd(tmp_path, run):
    """A folder with simulated labels and their truth."""
    folder = tmp_path / "crowd"
    assert run("simulate", "--out", folder, "--items", 40, "--annotators", 12, "--quiet")[0] == 0
    return folder
