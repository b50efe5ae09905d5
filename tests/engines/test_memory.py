"""The in-memory engine: parts, sums, threads."""

import numpy as np
import pytest

from annotruth.engines import Sweep, engine_named, memory
from annotruth.errors import InputError
from annotruth.labels.shards import split


def test_parts_cover_every_item_once_and_share_the_labels(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=200, n_annotators=30, n_categories=3)
    bounds = split(labels, 8)
    assert (bounds[0], bounds[-1]) == (0, 200)
    assert (np.diff(bounds) >= 0).all()
    shares = np.add.reduceat(labels.labels_per_item, bounds[:-1]) / labels.n_labels
    assert shares.max() < 1.5 / 8


def test_one_huge_item_is_one_part(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PART", 1)
    labels = make_labels(np.random.default_rng(0), n_items=1, n_annotators=50, n_categories=2)
    session = memory.MemoryEngine(threads=3).open(labels)
    session.allocate("theta", per="cells")
    session.sweep(Sweep("gpm.start", ("theta",)))
    assert session.gather("theta").sum() == pytest.approx(1.0)
    session.close()


def test_sums_of_parts_never_outweigh_the_labels(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PART", 1)
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=40, n_categories=2)
    session = memory.MemoryEngine(threads=1).open(labels)
    assert len(session._parts(n_sums=labels.n_labels)) == 1
    assert len(session._parts(n_sums=labels.n_labels // 10)) <= 10
    assert len(session._parts(n_sums=1)) > 10


def test_engines_go_by_name_or_as_they_are():
    assert isinstance(engine_named("memory"), memory.MemoryEngine)
    engine = memory.MemoryEngine(threads=1)
    assert engine_named(engine) is engine
    with pytest.raises(InputError, match="unknown engine 'abacus': choose memory or reference"):
        engine_named("abacus")
