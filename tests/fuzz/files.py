"""Mutated files of every format: they are read, or refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tests.fuzz.checks import Failed, run_command
from tests.fuzz.mutations import MUTATIONS, bomb, compress, mutate
from tests.fuzz.samples import SAMPLES

from annotruth.io.formats import INPUT_FORMATS


def mutated_file(rng: np.random.Generator, folder: Path) -> str:
    """Fit a file that was changed."""
    name, content, done = mutate(SAMPLES, rng)
    kind = rng.random()
    if kind < 0.12:
        content, suffix = compress(content, rng)
        name += suffix
        done.append(suffix)
        if rng.random() < 0.5:
            content = MUTATIONS[rng.integers(3)](content, rng)
    elif kind < 0.16:
        name = f"{Path(name).stem}{Path(str(rng.choice(list(SAMPLES)))).suffix}"
    elif kind < 0.161:
        content, suffix = bomb(rng)
        name, done = f"bomb{suffix}", ["bomb"]
    path = folder / name
    path.write_bytes(content)
    what = f"{name}: {', '.join(done) or 'unchanged'}"
    arguments = ["fit", str(path), "--model", "majority"]
    if rng.random() < 0.15:
        arguments += ["--input-format", str(rng.choice(INPUT_FORMATS))]
    if rng.random() < 0.1:
        gold = folder / f"gold{Path(name).suffix}"
        gold.write_bytes(content)
        arguments += ["--gold", str(gold)]
    if rng.random() < 0.1:
        arguments += ["--memory", "64MB"]
    if rng.random() < 0.05:
        arguments[3] = "robust-gpm"
    outputs = ["--json"] if rng.random() < 0.7 else ["--out", "out", "--report", "r.html"]
    finished = run_command(*arguments, *outputs)
    if finished.code == 0 and outputs == ["--json"]:
        found = json.loads(finished.out)
        if not 0 < found["n_items"] <= found["n_labels"] >= found["n_annotators"] > 0:
            raise Failed(f"impossible counts: {found}")
    left = sorted(each.name for each in folder.iterdir() if each not in (path, folder / "gold"))
    left = [each for each in left if not each.startswith("gold")]
    if finished.code and left:
        raise Failed(f"refused, but wrote {left}")
    return f"{what} ({' '.join(arguments[2:])}: {finished.code})"
