"""Dawid and Skene's models and MACE beside plain versions of crowd-kit's equations."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from scipy.special import digamma, xlogy

import annotruth as at
from annotruth.crowdkit import MACE, DawidSkene, OneCoinDawidSkene

LABELS = ["cat", "dog", "eel"]


def codes_of(frame):
    """Return task, worker and label codes; tasks and workers in order of appearance."""
    task, worker = (pd.factorize(frame[name])[0] for name in ("task", "worker"))
    return task, worker, pd.factorize(frame["label"], sort=True)[0]


def confusion_matrices(counts, posterior, codes):
    matrices = np.maximum(counts, 1e-10)  # workers x labels x classes
    return matrices / matrices.sum(axis=1, keepdims=True)


def one_coin_matrices(counts, posterior, codes):
    task, worker, label = codes
    skill = np.bincount(worker, posterior[task, label]) / np.bincount(worker)
    n = counts.shape[2]
    wrong = (1.0 - skill) / (n - 1)
    return np.where(np.eye(n) == 1.0, skill[:, None, None], wrong[:, None, None])


def plain_em(frame, n_iter, matrices_of, initial=0.0):
    """Return the last posteriors, prior and matrices, and the losses, of n_iter iterations."""
    codes = task, worker, label = codes_of(frame)
    n = label.max() + 1
    posterior = np.zeros((task.max() + 1, n))
    np.add.at(posterior, (task, label), 1.0)
    posterior /= posterior.sum(axis=1, keepdims=True)

    def m_step(initial):
        counts = np.zeros((worker.max() + 1, n, n))
        np.add.at(counts, (worker, label), posterior[task])
        return posterior.mean(axis=0), matrices_of(counts + initial, posterior, codes)

    prior, matrices = m_step(initial)
    losses = []
    for _ in range(n_iter):
        log = np.tile(np.log(prior), (len(posterior), 1))
        np.add.at(log, task, np.log(matrices[worker, label]))
        posterior = np.exp(log - log.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior, matrices = m_step(0.0)
        joint = (posterior[task] * (np.log(matrices[worker, label]) + np.log(prior))).sum()
        losses.append((joint - xlogy(posterior, posterior).sum()) / len(frame))
    return posterior, prior, matrices, losses


@pytest.mark.filterwarnings("ignore::annotruth.ConvergenceWarning")
@pytest.mark.parametrize("n_iter", [0, 1, 4])
@pytest.mark.parametrize(
    ("cls", "matrices_of"),
    [(DawidSkene, confusion_matrices), (OneCoinDawidSkene, one_coin_matrices)],
)
def test_iterations_are_those_of_crowd_kit(cls, matrices_of, n_iter, frame):
    model = cls(n_iter, tol=0.0).fit(frame)
    posterior, prior, matrices, losses = plain_em(frame, n_iter, matrices_of)
    assert model.probas_.to_numpy() == pytest.approx(posterior, abs=1e-8)
    assert (model.priors_.name, list(model.priors_.index)) == ("prior", LABELS)
    assert model.priors_.to_numpy() == pytest.approx(prior, abs=1e-8)
    assert model.loss_history_ == pytest.approx(losses, abs=1e-8)
    assert model.errors_.index.names == ["worker", "label"]
    order = list(frame["worker"].unique())
    for (worker, label), row in model.errors_.iterrows():
        expected = matrices[order.index(worker), LABELS.index(label)]
        assert row.to_numpy() == pytest.approx(expected, abs=1e-8)


def test_it_stops_when_the_loss_increases_by_less_than_the_tolerance(frame):
    losses = DawidSkene(tol=1e-4).fit(frame).loss_history_
    assert losses[-1] - losses[-2] < 1e-4 <= losses[-2] - losses[-3]
    with pytest.warns(at.ConvergenceWarning):
        DawidSkene(2, tol=0.0).fit(frame)


def test_errors_are_of_the_labels_a_worker_gave(frame_of):
    rows = [("t1", "b", "cat"), ("t1", "a", "dog"), ("t2", "b", "cat"), ("t2", "a", "cat")]
    errors = DawidSkene().fit(frame_of(rows)).errors_
    assert errors.index.tolist() == [("b", "cat"), ("a", "dog"), ("a", "cat")]
    assert (errors.loc["b"] == 1.0).all(axis=None)
    assert errors.columns.name is None


@pytest.fixture
def counts(frame):
    """Counts of earlier labels of each worker."""
    workers = sorted(frame["worker"].unique())
    index = pd.MultiIndex.from_product([workers, LABELS], names=["worker", "label"])
    values = np.random.default_rng(2).uniform(0.0, 20.0, (len(index), 3))
    return pd.DataFrame(values, index=index, columns=LABELS)


def by_appearance(counts, frame):
    return counts.loc[list(frame["worker"].unique())].to_numpy().reshape(-1, 3, 3)


@pytest.mark.filterwarnings("ignore::annotruth.ConvergenceWarning")
def test_initial_errors_are_added_to_the_start(frame, counts):
    model = DawidSkene(2, tol=0.0, initial_error_strategy="addition")
    found = model.fit_predict_proba(frame, initial_error=counts)
    initial = by_appearance(counts, frame)
    expected = plain_em(frame, 2, confusion_matrices, initial)[0]
    assert found.to_numpy() == pytest.approx(expected, abs=1e-8)
    # Some workers suffice; without a strategy they are not used.
    model.fit(frame, initial_error=counts.loc[["w1"]])
    is_given = frame["worker"].unique() == "w1"
    expected = plain_em(frame, 2, confusion_matrices, initial * is_given[:, None, None])[0]
    assert model.probas_.to_numpy() == pytest.approx(expected, abs=1e-8)
    unused = DawidSkene(2, tol=0.0).fit(frame, initial_error=counts).probas_
    assert_frame_equal(unused, DawidSkene(2, tol=0.0).fit(frame).probas_)


def test_initial_errors_can_replace_the_start(frame, counts):
    model = DawidSkene(0, initial_error_strategy="assign")
    errors = counts / counts.groupby("worker").sum()
    for given in (counts, errors):
        found = model.fit(frame, initial_error=given).errors_
        assert_frame_equal(found.sort_index(), errors.loc[found.index].sort_index())


def test_initial_errors_that_are_refused(frame, counts):
    model = DawidSkene(initial_error_strategy="assign")
    with pytest.raises(ValueError, match=r"sum of each worker's error matrix .* should be 1\.0"):
        model.fit(frame, initial_error=counts / 100)
    with pytest.raises(ValueError, match="no row of worker 'w6' and label"):
        model.fit(frame, initial_error=counts.drop("w6"))
    with pytest.raises(ValueError, match="name its levels worker and label"):
        model.fit(frame, initial_error=counts.rename_axis(["annotator", "label"]))
    with pytest.raises(ValueError, match="choose 'assign' or 'addition'"):
        DawidSkene(initial_error_strategy="add").fit(frame, initial_error=counts)


def test_no_rows_give_empty_results(frame_of):
    for cls in (DawidSkene, OneCoinDawidSkene):
        model = cls().fit(frame_of([]))
        assert model.probas_.empty
        assert model.errors_.empty
        assert (model.labels_.name, model.priors_.name) == ("agg_label", "prior")
    model = OneCoinDawidSkene().fit(frame_of([("t1", "w1", "cat")]))
    assert model.labels_.to_dict() == {"t1": "cat"}


def plain_mace(frame, n_iter, method, draws):
    """Return spamming and thetas, workers x labels, after n_iter iterations from the draws."""
    task, worker, label = codes_of(frame)
    spamming, thetas = draws
    n = thetas.shape[1]
    for _ in range(n_iter):
        guessed = spamming[worker, 0] * thetas[worker, label]
        right = np.arange(n) == label[:, None]
        likelihood = guessed[:, None] + spamming[worker, 1, None] * right
        posterior = np.ones((task.max() + 1, n))
        np.multiply.at(posterior, task, likelihood)
        posterior /= posterior.sum(axis=1, keepdims=True)
        known = posterior[task, label] * spamming[worker, 1] / (guessed + spamming[worker, 1])
        by_spam = np.zeros_like(thetas)
        np.add.at(by_spam, (worker, label), 1.0 - known)
        states = np.stack([by_spam.sum(axis=1), np.bincount(worker, known)], axis=1)
        if method == "vb":
            states += np.array([0.7, 0.4])
            spamming, thetas = geometric_means(states), geometric_means(by_spam + 10.0)
        else:
            spamming, thetas = shares(states + 0.01 / n), shares(by_spam + 0.01 / n)
    return spamming, thetas


def shares(x):
    return x / x.sum(axis=1, keepdims=True)


def geometric_means(x):
    return np.exp(digamma(x) - digamma(x.sum(axis=1, keepdims=True)))


@pytest.mark.parametrize("n_iter", [0, 3])
@pytest.mark.parametrize("method", ["vb", "em"])
def test_mace_follows_its_equations(method, n_iter, frame):
    model = MACE(1, n_iter, method, alpha=0.7, beta=0.4, default_noise=0.2, random_state=4)
    model.fit(frame)
    by_appearance = list(frame["label"].unique())
    place = [by_appearance.index(label) for label in LABELS]
    draws = [1.0 + 1.2 * np.random.RandomState(4).uniform(size=(7, n)) for n in (2, 3)]
    start = shares(draws[0]), shares(draws[1])[:, place]
    spamming, thetas = plain_mace(frame, n_iter, method, start)
    assert model.spamming_ == pytest.approx(spamming, abs=1e-9)
    assert list(model.probas_.columns) == by_appearance
    assert model.thetas_[:, place] == pytest.approx(thetas, abs=1e-9)


def test_mace_keeps_the_best_of_its_restarts(frame):
    starts = [MACE(1, 2, random_state=3 + number).fit(frame) for number in range(4)]
    found = [start.model_.result_.log_likelihood for start in starts]
    assert len(set(found)) == 4
    best = MACE(4, 2, random_state=3).fit(frame)
    assert best.model_.result_.log_likelihood == max(found)


def test_options_of_mace_that_are_refused():
    with pytest.raises(at.InputError, match="choose 'vb' or 'em'"):
        MACE(method="mcmc")
    with pytest.raises(at.InputError, match="n_restarts must be 1 or more"):
        MACE(n_restarts=0)
