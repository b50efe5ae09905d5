"""From a Parquet file to labels on the card, in stages, with integers and with strings as ids."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import annotruth as at
from annotruth.engines.gpu import GPUEngine
from benchmarks.gpu.timing import stage

PER_ITEM, PER_ANNOTATOR, N_CATEGORIES = 10, 200, 5


def make_table(n_rows: int, *, strings: bool) -> pa.Table:
    """Return labels in random order; ids are integers, or strings of about 12 characters."""
    rng = np.random.default_rng(0)
    row, n_annotators = rng.permutation(n_rows), n_rows // PER_ANNOTATOR
    item = pa.array(row // PER_ITEM)
    # Ten annotators per item, all of them different.
    first = row // PER_ITEM * 7919
    annotator = pa.array((first + row % PER_ITEM * (n_annotators // PER_ITEM)) % n_annotators)
    if strings:
        item = pc.binary_join_element_wise("item", pc.cast(item, pa.string()), "-")
        annotator = pc.binary_join_element_wise("worker", pc.cast(annotator, pa.string()), "-")
    label = pa.array(rng.integers(N_CATEGORIES, size=n_rows, dtype=np.int8))
    return pa.table({"item": item, "annotator": annotator, "label": label})


def time_parquet(n_labels: int = 20_000_000) -> None:
    """Time the stages from a file of this many rows to a fit."""
    for strings in (False, True):
        print(f"{n_labels:,} rows, {'strings' if strings else 'integers'} as ids", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "labels.parquet"
            pq.write_table(make_table(n_labels, strings=strings), path)
            with stage("pyarrow reads the table"):
                pq.read_table(path)
            with stage("labels"):
                labels = at.read_labels(path)
        with stage("copied to the card"):
            session = GPUEngine().open(labels)
        session.close()
        with stage("a fit of gpm on the card"):
            at.fit(labels, "gpm", engine="gpu")
