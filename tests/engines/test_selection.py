"""Sessions of some items: the same sums as a pass that skips the others."""

from contextlib import closing

import numpy as np
import pytest

from annotruth.engines import Input, Pass, Sum, get_engine
from annotruth.engines.selection import SelectedItems
from annotruth.kernels.shared import NOT_SAMPLED


@pytest.fixture
def labels(make_labels):
    return make_labels(np.random.default_rng(0), n_items=60, n_annotators=12, n_categories=3)


def test_selected_items_have_their_cells_labels_and_known_truths(labels):
    kept = np.arange(labels.n_items) % 3 == 1
    selected, whole = SelectedItems(labels, kept), labels.block()
    block = selected.block()
    assert (selected.length("items"), selected.n_annotators) == (20, labels.n_annotators)
    assert selected.n_labels == selected.length("labels") == labels.labels_per_item[kept].sum()
    for number, e in enumerate(np.flatnonzero(kept)):
        cells = slice(*block.item_ptr[number : number + 2])
        own_cells = slice(*whole.item_ptr[e : e + 2])
        assert block.cell_category[cells].tolist() == whole.cell_category[own_cells].tolist()
        ptr, own_ptr = block.cell_ptr[cells], whole.cell_ptr[own_cells]
        assert (ptr - ptr[0]).tolist() == (own_ptr - own_ptr[0]).tolist()
        own_labels = slice(whole.cell_ptr[own_cells.start], whole.cell_ptr[own_cells.stop])
        own = whole.annotator[own_labels].tolist()
        assert (
            block.annotator[block.cell_ptr[cells.start] : block.cell_ptr[cells.stop]].tolist()
            == own
        )
        assert block.known[number] == whole.known[e]


def test_partitions_of_selected_items_cover_every_item_once(labels):
    selected = SelectedItems(labels, np.arange(labels.n_items) % 2 == 0)
    bounds = selected.partition(4)
    assert (bounds[0], bounds[-1]) == (0, 30)
    shares = np.diff(selected.block().cell_ptr[selected.block().item_ptr[bounds]])
    assert shares.sum() == selected.n_labels
    assert shares.max() < 0.5 * selected.n_labels


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_a_session_without_items_has_the_sums_of_passes_that_skip_them(labels, engine):
    rng = np.random.default_rng(1)
    skipped = np.repeat(rng.random(labels.n_items) < 0.7, labels.labels_per_item)
    fold = np.where(skipped, NOT_SAMPLED, rng.integers(-1, 3, labels.n_labels)).astype(float)
    shape = (labels.n_annotators, labels.n_categories, labels.n_categories)
    start = Pass(
        "held_out.start",
        ("fold",),
        (Input("held"), Input("subtypes")),
        (Sum("counts", shape, annotator_axis=0), Sum("classes", shape[1:2])),
    )
    with closing(get_engine(engine).open(labels)) as session:
        session.put("fold", fold, per="labels")
        session.put("number", np.arange(labels.n_items, dtype=float), per="items")
        fewer = session.without_items("fold", NOT_SAMPLED)
        kept = np.unique(labels.item_of_label()[~skipped])
        assert fewer.collect("number").tolist() == kept.tolist()
        assert fewer.collect("fold").tolist() == fold[~skipped].tolist()
        sums = [
            one.run_pass(start, held=1, subtypes=np.ones((1001, 1))) for one in (session, fewer)
        ]
    for name, expected in sums[0].items():
        assert expected.any()
        assert sums[1][name] == pytest.approx(expected, rel=1e-12, abs=1e-12)
