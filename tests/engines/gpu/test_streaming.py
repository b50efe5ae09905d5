"""Labels larger than a card: fits are identical to the last bit however the items are divided."""

import numpy as np
import pyarrow.parquet
import pytest
from tests.engines.gpu.host_device import COMPILER, HostDevice, device_of

import annotruth as at
from annotruth.engines.gpu import GPUEngine, session, streaming
from annotruth.engines.gpu import device as card
from annotruth.errors import InputError
from annotruth.models.fits import make_fit

pytestmark = pytest.mark.skipif(COMPILER is None, reason="g++ is missing")

FITS = [
    ("gpm", {"acceleration": True, "tol": 1e-3}),
    ("gpm", {"behavior": "learned", "tol": 1e-2}),
    ("dawid-skene", {"tol": 1e-4}),
]


def small_device():
    """Return a device that starts no threads, as there are many small kernels."""
    return HostDevice(n_processors=1, threads=1)


@pytest.fixture(params=["host", "card"])
def device(request):
    return device_of(request.param, n_processors=1, threads=1)


def crowd(n_categories):
    labels = at.simulate.crowd(
        n_items=90, n_annotators=25, n_categories=n_categories, labels_per_item=6, seed=2
    ).labels
    return labels.with_gold({labels.items[e].as_py(): labels.scale.names[0] for e in range(9)})


def assert_identical(fit, other):
    np.testing.assert_array_equal(fit.reliability, other.reliability)
    np.testing.assert_array_equal(fit.distribution.probability, other.distribution.probability)
    assert fit.log_likelihood == other.log_likelihood
    assert fit.n_iter == other.n_iter
    if fit.low is not None:
        np.testing.assert_array_equal(fit.low, other.low)
    if fit.p_serious is not None:
        np.testing.assert_array_equal(fit.p_serious, other.p_serious)


@pytest.fixture
def stream(monkeypatch):
    """Return an engine that keeps no labels on the card, and divides them into partitions."""

    def make(n_partitions, labels, *devices, memory="1GB"):
        monkeypatch.setattr(streaming, "RESIDENT_SHARE", 0.0)
        monkeypatch.setattr(
            streaming, "LABELS_PER_PARTITION", -(-labels.n_labels // (n_partitions * len(devices)))
        )
        return GPUEngine(devices, memory=memory)

    return make


@pytest.mark.parametrize("n_categories", [4, 20])
@pytest.mark.parametrize(("model", "options"), FITS)
def test_partitions_do_not_change_a_fit(stream, device, precision, model, options, n_categories):
    labels = crowd(n_categories)
    whole = at.fit(labels, model, engine=GPUEngine(device), **options)
    for n_partitions in (1, 2, 5):
        engine = stream(n_partitions, labels, device)
        assert len(engine.open(labels).cards[0].partitions) == n_partitions
        assert_identical(whole, at.fit(labels, model, engine=engine, **options))


@pytest.mark.parametrize(("model", "options"), FITS)
def test_items_are_streamed_too_if_the_card_is_small(device, model, options):
    labels = crowd(4)
    engine = GPUEngine(device, memory="2kB")
    card = engine.open(labels).cards[0]
    assert len(card.partitions) > 5
    assert not card.arrays["label"].on_card
    whole = at.fit(labels, model, engine=GPUEngine(device), **options)
    assert_identical(whole, at.fit(labels, model, engine=engine, **options))


@pytest.mark.parametrize(("model", "options"), FITS)
def test_two_cards_give_the_same_fit(stream, precision, model, options):
    labels = crowd(4)
    whole = at.fit(labels, model, engine=GPUEngine(small_device()), **options)
    engine = stream(2, labels, small_device(), small_device())
    cards = engine.open(labels).cards
    assert [len(card.partitions) for card in cards] == [2, 2]
    assert cards[0].items.stop == cards[1].items.start > 0
    assert_identical(whole, at.fit(labels, model, engine=engine, **options))


def test_labels_on_disk_give_the_same_fit(stream, device, tmp_path, monkeypatch):
    monkeypatch.setattr(make_fit, "MAX_CANONICAL_LABELS", 0)
    table = crowd(4).to_arrow()
    pyarrow.parquet.write_table(table, tmp_path / "labels.parquet")
    labels = at.read_labels(tmp_path / "labels.parquet")
    on_disk = at.read_labels(tmp_path / "labels.parquet", memory="1MB")
    for model, options in FITS[1:]:
        whole = at.fit(labels, model, engine=GPUEngine(device), **options)
        for memory in ("1GB", "10kB"):
            engine = stream(5, labels, device, memory=memory)
            assert_identical(whole, at.fit(on_disk, model, engine=engine, **options))


def test_a_card_that_holds_no_item_is_refused():
    labels = crowd(4)
    with pytest.raises(InputError, match="choose engine='memory'"):
        at.fit(labels, "gpm", engine=GPUEngine(small_device(), memory="500B"))


def test_a_model_that_needs_all_labels_on_the_card_says_so(stream):
    labels = crowd(4)
    with pytest.raises(InputError, match="do not fit on the card"):
        stream(2, labels, small_device()).open(labels).label.sum()


@pytest.mark.parametrize("options", [{"acceleration": True}, {"behavior": "learned"}])
def test_the_layout_for_many_categories_gives_the_same_fit_of_gpm(monkeypatch, precision, options):
    labels = crowd(4)
    dense = at.fit(labels, "gpm", engine=GPUEngine(small_device()), tol=1e-3, **options)
    monkeypatch.setattr(session, "DENSE_CATEGORIES", 3)
    sparse = at.fit(labels, "gpm", engine=GPUEngine(small_device()), tol=1e-3, **options)
    assert_identical(dense, sparse)


@pytest.mark.parametrize(("model", "options"), FITS)
def test_many_categories_equal_the_reference(device, precision, model, options):
    labels = crowd(20)
    fit = at.fit(labels, model, engine=GPUEngine(device), **options)
    reference = at.fit(labels, model, engine="reference", **options)
    np.testing.assert_allclose(fit.reliability, reference.reliability, atol=2e-3)
    np.testing.assert_allclose(fit.log_likelihood, reference.log_likelihood, rtol=1e-6)
    assert (fit.label == reference.label).mean() > 0.99


def test_too_many_categories_and_annotators_are_refused(monkeypatch):
    labels = crowd(20)
    monkeypatch.setattr(card, "MAX_CATEGORIES", 19)
    with pytest.raises(InputError, match="at most 19 categories, not 20"):
        at.fit(labels, "gpm", engine=GPUEngine(small_device()))
    monkeypatch.undo()
    monkeypatch.setattr(card, "_WORD_BITS", 9)
    with pytest.raises(InputError, match="at most 16 annotators with 20 categories, not 25"):
        at.fit(labels, "gpm", engine=GPUEngine(small_device()))
