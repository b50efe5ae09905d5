"""The in-memory engine: parts, sums, threads."""

import threading
from contextlib import closing

import numpy as np
import pytest

from annotruth.engines import Pass, get_engine, memory, share_out
from annotruth.errors import InputError
from annotruth.labels.partition import split


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
    session.run_pass(Pass("gpm.start", ("theta",)))
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
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=40, n_categories=2)

    def count(block, lo, hi, items, people, pairs):
        items[0] += hi - lo
        people[block.annotator[: hi - lo]] += 1.0
        pairs += lo + np.arange(6.0).reshape(2, 3)

    results = []
    for threads in (1, 3):
        session = memory.MemorySession(labels, threads, lambda name: count)
        sweep = Pass("count.all", (), ((1,), (40,), (2, 3)))
        first, again = session.run_pass(sweep), session.run_pass(sweep)
        parts = session._parts(47)
        assert len(parts) > 2
        assert [total.shape for total in first] == [(1,), (40,), (2, 3)]
        assert first[0][0] == first[1].sum() == 60
        begins = sum(lo for lo, _ in parts)
        np.testing.assert_array_equal(first[2], begins + len(parts) * np.arange(6.0).reshape(2, 3))
        first[1][:] = -1.0  # the caller's own
        assert again[1].sum() == session.run_pass(sweep)[1].sum() == 60
        session.close()
        results.append(again)
    for one, three in zip(*results, strict=True):
        np.testing.assert_array_equal(one, three)


def test_parts_are_added_in_their_order_whichever_is_done_first():
    layout = memory._Layout(Pass("count.all", (), ((7,), (9,)), single=1))
    rng = np.random.default_rng(0)
    parts = [10.0 ** rng.uniform(-9, 9, layout.width) for _ in range(12)]
    totals = []
    for order in (range(12), rng.permutation(12), range(11, -1, -1)):
        total = memory._Total(layout)
        given_back = [sums for part in order for sums in total.add(part, parts[part])]
        assert [id(sums) for sums in given_back] == [id(sums) for sums in parts]
        totals.append(layout.views(total.sums))
    for other in totals[1:]:
        for one, same in zip(totals[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


def test_sums_that_may_be_single_are(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PART", 1)
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=40, n_categories=2)

    def count(block, lo, hi, odd, rest):
        assert odd.ctypes.data % 64 == 0
        odd += np.arange(15.0).reshape(3, 5)
        rest += 1e-9 + np.arange(lo, lo + 4)

    session = memory.MemorySession(labels, 2, lambda name: count)
    with closing(session):
        sweep = Pass("count.all", (), ((3, 5), (4,)), single=1)
        for _ in range(2):
            odd, rest = session.run_pass(sweep)
        n_parts = len(session._parts(12))
    assert (odd.dtype, rest.dtype) == (np.float32, np.float64)
    assert n_parts > 2
    np.testing.assert_array_equal(odd, n_parts * np.arange(15.0).reshape(3, 5))
    np.testing.assert_allclose(np.diff(rest), n_parts, rtol=1e-13)
    assert rest[0] % 1 == pytest.approx(n_parts * 1e-9, rel=1e-3)


def test_room_is_asked_for_all_sums_and_for_what_each_thread_makes(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PART", 1)
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=40, n_categories=2)
    asked = []
    monkeypatch.setattr(type(labels), "check_room", lambda _, n_bytes, what: asked.append(n_bytes))
    for threads, scratch in [(1, 0), (1, 100), (3, 100), (1_000, 100)]:
        session = memory.MemorySession(labels, threads, lambda name: lambda *_: None)
        with closing(session):
            session.run_pass(Pass("count.all", (), ((1,),), scratch=scratch))
            n_parts = len(session._parts(1))
    sums = asked[0]
    assert 3 < n_parts < 1_000
    assert sums >= 8 * n_parts
    assert asked == [sums, sums + 800, sums + 3 * 800, sums + n_parts * 800]


def test_work_is_shared_out_to_threads_that_a_session_has(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=6, n_annotators=4, n_categories=2)
    for session in (memory.MemoryEngine(threads=3).open(labels), object()):
        done = []
        share_out(session, done.append, 20)
        assert sorted(done) == list(range(20))


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
        session.run_pass(Pass("fail.all", (), ((1,),)))


def test_engines_go_by_name_or_as_they_are():
    assert isinstance(get_engine("memory"), memory.MemoryEngine)
    engine = memory.MemoryEngine(threads=1)
    assert get_engine(engine) is engine
    with pytest.raises(
        InputError, match="unknown engine 'abacus': choose memory, reference, spark"
    ):
        get_engine("abacus")
