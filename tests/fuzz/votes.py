"""Pair comparisons: mutated files, and frames with odd column types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from tests.fuzz.checks import Failed, refused_or
from tests.fuzz.columns import COMMON, KINDS
from tests.fuzz.mutations import compress, mutate

import annotruth as at
from annotruth.observations import Comparisons

_TASK = {
    "id": 1,
    "data": {"text1": "a", "text2": "b"},
    "annotations": [
        {
            "completed_by": 3,
            "result": [{"from_name": "pw", "type": "pairwise", "value": {"selected": "left"}}],
        }
    ],
}
_RECORDS = [
    {"left": "a", "right": "b", "annotator": 1, "winner": "left"},
    {"left": "c", "right": "b", "annotator": 2, "winner": "b"},
]
SAMPLES = {
    "sides.csv": "left,right,annotator,winner,context,time,len\na,b,x,left,p,1,2\n"
    "b,c,y,tie,q,2,3\nc,a,x,right,p,3,1\n",
    "arena.tsv": "model_a\tmodel_b\twinner\tjudge\nx\ty\tmodel_a\t1\ny\tz\ttie (bothbad)\t2\n",
    "winners.csv": "winner,loser,annotator,tie\nb,a,x,0\na,b,y,1\n",
    "ranks.csv": "annotator,context,item,rank\nx,1,a,1\nx,1,b,2\nx,2,b,1\nx,2,c,2\n",
    "columns.csv": "worker,rank_1,rank_2,rank_3\nx,e,d,c\ny,a,b,\n",
    "rankings.csv": 'annotator,ranking\nx,a > b = c\ny,"[""a"", [""b"", 3]]"\n',
    "mturk.csv": "HITId,WorkerId,AssignmentStatus,Input.img1,Input.img2,Answer.better\n"
    "h,w1,Approved,a.png,b.png,left\nh,w2,Rejected,a.png,b.png,right\n",
    "sureal.py": "dis_videos = [{'asset_id': 0, 'os': {('Ann', 1): 1, ('Bob', 1): 0.5}},\n"
    " {'asset_id': 1, 'os': {('Ann', 0): 0}}]\n",
    "sureal.json": json.dumps({"dis_videos": [{"asset_id": 0, "os": {"('A', 1)": 1}}, {"os": {}}]}),
    "studio.json": json.dumps([_TASK]),
    "lines.jsonl": "\n".join(map(json.dumps, _RECORDS)),
    "list.json": json.dumps(_RECORDS),
}


def odd_votes(rng: np.random.Generator, folder: Path) -> str:
    """Read comparisons from a file that was changed, or from a frame with columns of any type."""
    return _file(rng, folder) if rng.random() < 0.6 else _frame(rng)


def _file(rng: np.random.Generator, folder: Path) -> str:
    name, content, done = mutate({name: text.encode() for name, text in SAMPLES.items()}, rng)
    if rng.random() < 0.1:
        content, suffix = compress(content, rng)
        name += suffix
    path = folder / name
    path.write_bytes(content)
    options: dict[str, Any] = {"covariates": ["len"]} if rng.random() < 0.2 else {}
    if rng.random() < 0.1:
        options["columns"] = {"annotator": "none"}
    _check(refused_or(lambda: at.read_comparisons(path, **options)))
    return f"{name}: {', '.join(done) or 'unchanged'} {options or ''}"


def _frame(rng: np.random.Generator) -> str:
    kinds = [str(rng.choice(list(KINDS) if rng.random() < 0.5 else COMMON)) for _ in range(3)]
    left = rng.integers(8, size=30)
    right = (left + rng.integers(1, 8, size=30)) % 8
    items, others = ([KINDS[kinds[0]](int(n), rng) for n in side] for side in (left, right))
    people = [KINDS[kinds[1]](int(n), rng) for n in rng.integers(5, size=30)]
    match rng.integers(3):
        case 0:
            winner = [str(word) for word in rng.choice(["left", "right", "tie"], size=30)]
        case 1:
            winner = [
                one if rng.random() < 0.5 else two for one, two in zip(items, others, strict=True)
            ]
        case _:
            winner = [KINDS[kinds[2]](int(n), rng) for n in rng.integers(3, size=30)]
    columns = {"left": items, "right": others, "annotator": people, "winner": winner}
    make = (
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda rows: list(zip(*rows.values(), strict=True)),
    )
    place = int(rng.integers(len(make)))
    what = f"frame {place} of {', '.join(kinds)}"
    try:
        frame = make[place](columns)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return f"{what}: no such frame"
    data = refused_or(lambda: Comparisons.of(frame))
    _check(data)
    if data is not None and data.n_comparisons + data.n_dropped != 30:
        raise Failed(f"{what}: {data.n_comparisons} comparisons and {data.n_dropped} dropped of 30")
    return what


def _check(data: Comparisons | None) -> None:
    """Raise unless comparisons are of different items and their table can be made."""
    if data is None:
        return
    if (data.left == data.right).any() or data.to_arrow().num_rows != data.n_comparisons:
        raise Failed(f"impossible comparisons: {data}")
