"""Tampered copies of saved fits: they are loaded and used, or refused in one line."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.checks import refused_or, run_command
from tests.fuzz.tampering import tampered

import annotruth as at
from annotruth.models.registry import MODELS, get_model

# One folder for all children, made when this module is imported by their parent.
_FOLDER = tempfile.TemporaryDirectory(prefix="fuzz-fits-")


def saved_fit(model: str, *, nominal: bool = True) -> Path:
    """Return the folder of a saved fit, which is made once."""
    folder = Path(_FOLDER.name) / f"{model}-{'nominal' if nominal else 'ordinal'}"
    if not folder.exists():
        rows = [
            (f"i{e}", f"a{s}", f"c{1 + (e + (s > 3) * e) % 3}"[not nominal :])
            for e in range(10)
            for s in range(6)
        ]
        fit = refused_or(lambda: at.fit(rows, model, gold={"i1": rows[6][2]}))
        fit.save(folder)
    return folder


def tampered_fit(rng: np.random.Generator, folder: Path) -> str:
    """Load a tampered fit and use all of it, or run a command on it."""
    model = str(rng.choice(["robust-gpm", *MODELS]))
    nominal = bool(rng.integers(2)) and not get_model(model).capabilities.ordinal_only
    path = folder / "fit"
    what = f"{model}: {tampered(saved_fit(model, nominal=nominal), path, rng)}"
    if rng.random() < 0.5:
        fit = refused_or(lambda: at.load(path))
        if fit is not None:
            _use(fit, folder, rng)
        return f"{what}: {'refused' if fit is None else 'loaded'}"
    commands = (
        ("report", "fit", "--out", "r.html"),
        ("next", "fit"),
        ("next", "fit", "--out", "n.csv"),
        ("plan", "fit", "--budget", "5"),
        ("update", "fit", "new.csv"),
        ("update", "fit", "new.csv", "--refit"),
    )
    (folder / "new.csv").write_text("item,annotator,label\nnew,a0,1\n")
    arguments = commands[rng.integers(len(commands))]
    done = run_command(*arguments)
    return f"{what}: {' '.join(arguments)}: {done.code}"


def _use(fit: at.Fit, folder: Path, rng: np.random.Generator) -> None:
    """Make some of the tables, save, predict, report or update."""
    category = fit.data.scale.categories[0].as_py()
    model = get_model(fit.model)().load_fit(fit)
    uses: list[Callable[[], Any]] = [
        fit.items,
        fit.annotators,
        fit.labels,
        fit.summary,
        fit.distributions,
        fit.soft_labels,
        fit.keep,
        lambda: fit.save(folder / "again"),
        lambda: fit.report(folder / "r.html"),
        lambda: at.next_labels(fit),
        lambda: model.predict_proba([0], [0]),
        lambda: at.update(fit, [("new", "a0", category)]),
    ]
    for n in rng.permutation(len(uses))[:4]:
        refused_or(uses[n])
