"""Small real-looking data and a way to run commands."""

import numpy as np
import pytest

from annotruth import simulate
from annotruth.app.commands.simulate import simulated_tables
from annotruth.io.writers import write_tables


@pytest.fixture(autouse=True)
def _in_one_process(monkeypatch):
    """Spare the start of processes; what they change has a test of its own."""
    monkeypatch.setattr("annotruth.paper.runner.usable_cores", lambda: 1)


@pytest.fixture(scope="session")
def real_looking(tmp_path_factory):
    """A folder laid out as the real labels are, with simulated ones."""
    folder = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("face", "dog")):
        made = simulate.crowd(n_items=40, n_annotators=8, n_categories=4, seed=seed)
        write_tables(
            {key: table for key, table in simulated_tables(made).items() if key != "annotators"},
            folder / name,
        )
    rng = np.random.default_rng(3)
    stars = rng.integers(1, 6, size=(12, 20)) * (rng.random((12, 20)) < 0.7)
    rows = [f"{film},{user},{stars[film, user]}" for film, user in np.argwhere(stars)]
    path = folder / "movielens-100k" / "labels.csv"
    path.parent.mkdir()
    path.write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    return folder
