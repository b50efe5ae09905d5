"""Small datasets in the layout of the real ones."""

import numpy as np
import pytest

from annotruth import simulate
from annotruth.app.commands.simulate import simulated_tables
from annotruth.io.writers import write_tables


@pytest.fixture(autouse=True)
def _run_in_one_process(monkeypatch):
    """Start no processes; a separate test compares one with two."""
    monkeypatch.setattr("annotruth.paper.runner.usable_cores", lambda: 1)


@pytest.fixture(scope="session")
def small_datasets(tmp_path_factory):
    """A folder of simulated labels in the layout of the real ones."""
    folder = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("face", "dog")):
        simulation = simulate.crowd(n_items=40, n_annotators=8, n_categories=4, seed=seed)
        tables = simulated_tables(simulation)
        write_tables({key: tables[key] for key in ("labels", "truth")}, folder / name)
    rng = np.random.default_rng(3)
    stars = rng.integers(1, 6, size=(12, 20)) * (rng.random((12, 20)) < 0.7)
    rows = [f"{film},{user},{stars[film, user]}" for film, user in np.argwhere(stars)]
    path = folder / "movielens-100k" / "labels.csv"
    path.parent.mkdir()
    path.write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    return folder
