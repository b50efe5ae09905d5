"""The in-memory engine: parts, sums, threads."""

import threading
from contextlib import closing

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
    n = labels.n_labels
    session = memory.MemoryEngine(threads=1).open(labels)
    parts = {n_sums: len(session._parts(n_sums)) for n_sums in (1, n // 80, n, 4 * n, 9 * n)}
    assert parts[1] > 32
    assert parts[n // 80] * (n // 80) <= n / 4
    # Sums as many as the labels still occupy some threads, more than that ever fewer.
    assert (parts[n], parts[4 * n], parts[9 * n]) == (4, 2, 1)


def test_sums_keep_their_shapes_and_come_fresh(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PART", 1)
    monkeypatch.setattr(memory, "_SUMS_AT_ONCE", 30)
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=40, n_categories=2)

    def count(block, lo, hi, items, people, pairs):
        items[0] += hi - lo
        people[block.annotator[: hi - lo]] += 1.0
        pairs += lo + np.arange(6.0).reshape(2, 3)

    results = []
    for threads in (1, 3):
        session = memory.MemorySession(labels, threads, lambda name: count)
        sweep = Sweep("count.all", (), ((1,), (40,), (2, 3)))
        first, again = session.sweep(sweep), session.sweep(sweep)
        parts = session._parts(47)
        assert len(parts) > 2
        assert [total.shape for total in first] == [(1,), (40,), (2, 3)]
        assert first[0][0] == first[1].sum() == 60
        begins = sum(lo for lo, _ in parts)
        np.testing.assert_array_equal(first[2], begins + len(parts) * np.arange(6.0).reshape(2, 3))
        first[1][:] = -1.0  # the caller's own
        assert again[1].sum() == session.sweep(sweep)[1].sum() == 60
        session.close()
        results.append(again)
    for one, three in zip(*results, strict=True):
        np.testing.assert_array_equal(one, three)


def test_a_kernel_that_fails_on_another_thread_is_heard(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PART", 1)
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=40, n_categories=2)

    failing = threading.Event()

    def fail(block, lo, hi, total):
        if threading.current_thread() is threading.main_thread():
            assert failing.wait(timeout=60)
        else:
            failing.set()
            raise RuntimeError("broken")

    session = memory.MemorySession(labels, 3, lambda name: fail)
    with closing(session), pytest.raises(RuntimeError, match="broken"):
        session.sweep(Sweep("fail.all", (), ((1,),)))


def test_engines_go_by_name_or_as_they_are():
    assert isinstance(engine_named("memory"), memory.MemoryEngine)
    engine = memory.MemoryEngine(threads=1)
    assert engine_named(engine) is engine
    with pytest.raises(
        InputError, match="unknown engine 'abacus': choose memory, reference, spark"
    ):
        engine_named("abacus")
