"""Dawid and Skene's kernels against their NumPy twins."""

import numpy as np
import pytest
from tests.kernels.twins import Kernels, Twins, assert_same, one_item

dawid_skene, reference = Kernels("dawid_skene"), Twins("dawid_skene")

BOTH = (dawid_skene, reference)
WIDTHS = pytest.mark.parametrize("n_classes", [3, 5])


def add_classes(prior, confusion, n_classes):
    """Return the parameters with further classes, which no item has and nobody names."""
    n = n_classes - len(prior)
    return np.pad(prior, (0, n)), np.pad(confusion, ((0, n), (0, 0), (0, n)))


def known_truth(prior):
    """Return the likelihood of known truths, and of two other things that may be known."""
    n = len(prior)
    other = np.vstack([np.linspace(0.5, 2.0, n), np.linspace(3.0, 0.1, n)])
    return np.vstack([np.eye(n), other])


def start_rows(labels):
    """Return what `start` writes for each label."""
    rows = np.zeros(labels.n_labels)
    counts = np.zeros((labels.n_categories, labels.n_annotators, labels.n_categories))
    classes = np.zeros(labels.n_categories)
    dawid_skene.start(labels.block(), 0, labels.n_items, rows, counts, classes)
    return rows


def random_parameters(rng, labels):
    """Return confusion as labels x annotators x classes, with zeros, and every item possible."""
    n = labels.n_categories
    confusion = rng.dirichlet(np.ones(n), size=(labels.n_annotators, n)).transpose(2, 0, 1).copy()
    confusion[rng.random(confusion.shape) < 0.15] = 0.0
    confusion[:, :, 2] = 1.0 / n
    return rng.dirichlet(np.ones(n)), confusion


def run_step(kernels, labels, prior, confusion):
    sums = np.zeros(confusion.shape), np.zeros(len(prior)), np.zeros(1)
    inputs = start_rows(labels), prior, known_truth(prior), confusion
    kernels.step(labels.block(), 0, labels.n_items, *inputs, *sums)
    return sums


def run_posterior(kernels, labels, prior, confusion):
    posterior, log_likelihood = np.full((labels.n_items, len(prior)), 7.0), np.zeros(1)
    args = (start_rows(labels), posterior, prior, known_truth(prior), confusion, log_likelihood)
    kernels.posterior(labels.block(), 0, labels.n_items, *args)
    return posterior, log_likelihood


def test_a_step_over_more_items_than_are_processed_at_once(make_labels):
    rng = np.random.default_rng(0)
    labels = make_labels(rng, n_items=5000, n_annotators=6, n_categories=5)
    parameters = random_parameters(rng, labels)
    fast, plain = (run_step(kernels, labels, *parameters) for kernels in BOTH)
    assert_same((fast, plain), rtol=1e-11)


def test_rows_are_where_the_classes_of_a_label_begin(make_labels):
    rng = np.random.default_rng(3)
    labels = make_labels(rng, n_items=40, n_annotators=9, n_categories=4)
    _, confusion = random_parameters(rng, labels)
    cell = labels.cell_of_label()
    for j, row in enumerate(start_rows(labels).view(np.uint64)):
        np.testing.assert_array_equal(
            confusion.ravel()[int(row) : int(row) + labels.n_categories],
            confusion[labels.cell_category[cell[j]], labels.annotator[j]],
        )


@WIDTHS
@pytest.mark.parametrize("kernels", BOTH)
def test_thousands_of_labels_on_an_item_do_not_underflow(kernels, n_classes):
    # Half of the labels are of class 0 and half of class 1: each product becomes as small as
    # 1e-1400, and their ratio is that of the prior, 4 to 1.
    n = 2000
    labels = one_item(range(n), np.repeat([0, 1], n // 2), n_classes)
    confusion = np.empty((3, n, 3))
    confusion[0], confusion[1], confusion[2] = [0.55, 0.05, 0.0], [0.05, 0.55, 0.0], [0.4, 0.4, 1.0]
    prior, confusion = add_classes(np.array([0.4, 0.1, 0.5]), confusion, n_classes)
    counts, classes, log_likelihood = run_step(kernels, labels, prior, confusion)
    posterior, again = run_posterior(kernels, labels, prior, confusion)
    for distribution in (classes, posterior[0], counts[0, 5]):
        np.testing.assert_allclose(distribution[:2], [0.8, 0.2], rtol=1e-10)
        np.testing.assert_array_equal(distribution[2:], 0.0)
    expected = 1000 * np.log(0.55 * 0.05) + np.log(0.5)
    np.testing.assert_allclose([log_likelihood[0], again[0]], expected, rtol=1e-12)


@pytest.mark.parametrize("kernels", BOTH)
def test_an_unlikely_class_wins_if_the_others_are_impossible(kernels):
    labels = one_item(range(401), [0] * 400 + [1], 2)
    confusion = np.empty((2, 401, 2))
    confusion[0], confusion[1] = [1.0, 0.1], [0.0, 0.9]
    _, classes, log_likelihood = run_step(kernels, labels, np.array([0.5, 0.5]), confusion)
    np.testing.assert_array_equal(classes, [0.0, 1.0])
    assert log_likelihood[0] == pytest.approx(
        np.log(0.5) + 400 * np.log(0.1) + np.log(0.9), rel=1e-12
    )


@pytest.mark.parametrize("kernels", BOTH)
def test_probabilities_may_be_as_small_as_floats_are(kernels):
    labels = one_item(range(4), [0, 0, 0, 0], 2)
    confusion = np.full((2, 4, 2), 5e-324)
    confusion[0, :, 1] = [1e-99, 1e-300, 1e-99, 1e-300]
    _, classes, log_likelihood = run_step(kernels, labels, np.array([0.5, 0.5]), confusion)
    np.testing.assert_allclose(classes, [0.0, 1.0], atol=1e-90)
    assert log_likelihood[0] == pytest.approx(
        np.log(0.5) + 2 * np.log(1e-99) + 2 * np.log(1e-300), rel=1e-12
    )


@WIDTHS
@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize(("known", "expected"), [(-1, [0.3, 0.7]), (0, [1.0, 0.0])])
def test_impossible_labels_leave_the_prior_or_the_known_truth(kernels, known, expected, n_classes):
    labels = one_item(range(2), [0, 1], n_classes)
    labels.known[0] = known
    prior, confusion = add_classes(np.array([0.3, 0.7]), np.zeros((2, 2, 2)), n_classes)
    _, classes, log_likelihood = run_step(kernels, labels, prior, confusion)
    np.testing.assert_allclose(classes[:2], expected, rtol=1e-15)
    posterior, again = run_posterior(kernels, labels, prior, confusion)
    np.testing.assert_allclose(posterior[0, :2], expected, rtol=1e-15)
    assert log_likelihood[0] == again[0] == -np.inf
