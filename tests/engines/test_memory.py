"""The in-memory engine: partitions, sums, threads."""

import threading
from contextlib import closing

import numpy as np
import pytest

from annotruth.engines import Pass, PassData, Sum, memory


def session_with(kernel, labels, threads):
    """A session in which every pass runs one kernel, given as a function."""
    session = memory.MemorySession(labels, threads)
    session._find_kernel = lambda name: kernel
    return session


def test_parts_cover_every_item_once_and_share_the_labels(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=200, n_annotators=30, n_categories=3)
    bounds = labels.partition(8)
    assert (bounds[0], bounds[-1]) == (0, 200)
    assert (np.diff(bounds) >= 0).all()
    shares = np.add.reduceat(labels.labels_per_item, bounds[:-1]) / labels.n_labels
    assert shares.max() < 1.5 / 8


def test_one_huge_item_is_one_part(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PARTITION", 1)
    labels = make_labels(np.random.default_rng(0), n_items=1, n_annotators=50, n_categories=2)
    session = memory.MemoryEngine(threads=3).open(labels)
    session.allocate("theta", per="cells")
    session.run_pass(Pass("gpm.start", ("theta",)))
    assert session.collect("theta").sum() == pytest.approx(1.0)
    session.close()


def test_sums_of_parts_never_outweigh_the_labels(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PARTITION", 1)
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=40, n_categories=2)
    n = labels.n_labels
    session = memory.MemoryEngine(threads=1).open(labels)
    parts = {n_sums: len(session._partitions(n_sums)) for n_sums in (1, n // 80, n, 4 * n, 9 * n)}
    assert parts[1] > 32
    assert parts[n // 80] * (n // 80) <= n / 4
    # Sums as many as the labels still occupy some threads, more than that ever fewer.
    assert (parts[n], parts[4 * n], parts[9 * n]) == (4, 2, 1)


@pytest.mark.parametrize(
    ("n_labels", "n_sums", "n_partitions"),
    [
        *((49_999, 1, 1), (50_000, 1, 2), (124_999, 1, 2), (250_000, 1, 4)),
        *((60_000, 1 << 19, 2), (60_000, (1 << 19) + 1, 1)),  # sums of some megabytes
    ],
)
def test_two_threads_share_fifty_thousand_labels(n_labels, n_sums, n_partitions):
    with closing(memory.MemorySession(Pairs(np.zeros(n_labels)), 1)) as session:
        assert len(session._partitions(n_sums)) == n_partitions


def test_sums_keep_their_shapes_and_come_fresh(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PARTITION", 1)
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=40, n_categories=2)

    def count(block, lo, hi, n, people, pairs):
        assert n.ctypes.data % 64 == 0
        n[0] += hi - lo
        people[block.annotator[: hi - lo]] += 1.0
        pairs += lo + np.arange(6.0).reshape(2, 3)

    results = []
    for threads in (1, 3):
        session = session_with(count, labels, threads)
        count_all = Pass(
            "count.all", sums=(Sum("n", (1,)), Sum("people", (40,)), Sum("pairs", (2, 3)))
        )
        first, again = (list(session.run_pass(count_all).values()) for _ in range(2))
        parts = session._partitions(47)
        assert len(parts) > 2
        assert [total.shape for total in first] == [(1,), (40,), (2, 3)]
        assert first[0][0] == first[1].sum() == 60
        begins = sum(lo for lo, _ in parts)
        np.testing.assert_array_equal(first[2], begins + len(parts) * np.arange(6.0).reshape(2, 3))
        first[1][:] = -1.0  # the caller's own
        assert again[1].sum() == session.run_pass(count_all)["people"].sum() == 60
        session.close()
        results.append(again)
    for one, three in zip(*results, strict=True):
        np.testing.assert_array_equal(one, three)


def test_parts_are_added_in_their_order_whichever_is_done_first():
    layout = memory._SumLayout(Pass("count.all", sums=(Sum("a", (7,)), Sum("b", (9,)))))
    rng = np.random.default_rng(0)
    parts = [10.0 ** rng.uniform(-9, 9, layout.width) for _ in range(12)]
    totals = []
    for order in (range(12), rng.permutation(12), range(11, -1, -1)):
        total = memory._OrderedTotal(layout.width)
        given_back = [sums for part in order for sums in total.add(part, parts[part])]
        assert [id(sums) for sums in given_back] == [id(sums) for sums in parts]
        totals.append(layout.views(total.sums))
    for other in totals[1:]:
        for one, same in zip(totals[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


def test_room_is_asked_for_all_sums_and_for_what_each_thread_makes(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PARTITION", 1)
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=40, n_categories=2)
    asked = []
    monkeypatch.setattr(type(labels), "check_room", lambda _, n_bytes, what: asked.append(n_bytes))
    for threads, scratch in [(1, 0), (1, 100), (3, 100), (1_000, 100)]:
        session = session_with(lambda block, lo, hi, n: None, labels, threads)
        with closing(session):
            session.run_pass(Pass("count.all", sums=(Sum("n", (1,)),), scratch=scratch))
            n_parts = len(session._partitions(1))
    sums = asked[0]
    assert 3 < n_parts < 1_000
    assert sums >= 8 * n_parts
    assert asked == [sums, sums + 800, sums + 3 * 800, sums + n_parts * 800]


def test_annotators_are_divided_into_ranges_that_cover_all(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=6, n_annotators=4, n_categories=2)
    done = np.zeros(1_000)

    def add_one(lo, hi, out):
        out[lo:hi] += 1.0

    for threads in (1, 3):
        with closing(session_with(add_one, labels, threads)) as session:
            session.run_over_annotators("count.all", 1_000, out=done)
    np.testing.assert_array_equal(done, 2.0)


def test_a_pass_takes_its_inputs_by_name_and_no_others(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=6, n_annotators=4, n_categories=2)
    with closing(memory.MemoryEngine(threads=1).open(labels)) as session:
        session.allocate("theta", per="cells")
        with pytest.raises(TypeError, match=r"the pass gpm.start takes \[\], not \['eps'\]"):
            session.run_pass(Pass("gpm.start", ("theta",)), eps=np.ones(4))


class Pairs:
    """Comparisons of pairs, one item each: data that are not labels."""

    def __init__(self, winner):
        self.winner = winner
        self.n_annotators, self.n_labels = 1, len(winner)

    def length(self, per):
        return self.n_labels

    def block(self):
        return self.winner

    def partition(self, n_partitions):
        return np.linspace(0, self.n_labels, n_partitions + 1).astype(int)

    def zeros(self, shape):
        return np.zeros(shape)

    def check_room(self, n_bytes, what):
        pass


def test_a_session_opens_any_data_that_satisfy_the_protocol():
    pairs = Pairs(np.array([0, 1, 1]))
    assert isinstance(pairs, PassData)

    def count_wins(block, lo, hi, wins):
        wins += np.bincount(block[lo:hi], minlength=2)

    with closing(session_with(count_wins, pairs, 2)) as session:
        sums = session.run_pass(Pass("pairs.wins", sums=(Sum("wins", (2,)),)))
    np.testing.assert_array_equal(sums["wins"], [1.0, 2.0])


def test_a_kernel_that_fails_on_another_thread_is_heard(make_labels, monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PARTITION", 1)
    labels = make_labels(np.random.default_rng(0), n_items=60, n_annotators=40, n_categories=2)

    failing = threading.Event()

    def fail(block, lo, hi, n):
        if threading.current_thread() is threading.main_thread():
            assert failing.wait(timeout=60)
        else:
            failing.set()
            raise RuntimeError("broken")

    session = session_with(fail, labels, 3)
    with closing(session), pytest.raises(RuntimeError, match="broken"):
        session.run_pass(Pass("fail.all", sums=(Sum("n", (1,)),)))
