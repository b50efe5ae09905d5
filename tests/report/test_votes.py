"""What each label did for its item's label, against the fit's own probabilities."""

from dataclasses import replace

import numpy as np
import pytest
from tests.kernels.twins import Twins
from tests.report.test_page import columns, unpacked

import annotruth as at
from annotruth.models.distribution import Distribution
from annotruth.models.registry import MODELS
from annotruth.models.robust_gpm.class_results import ClassState
from annotruth.report.consensus import Consensus, ItemVotes, category_bins
from annotruth.report.page import make_report
from annotruth.report.tables import annotator_table, doubtful_labels, item_table

CLASS_MODELS = ("one-coin", "dawid-skene", "ibcc", "mace", "glad", "robust-gpm")


@pytest.fixture(scope="module")
def classes():
    made = at.simulate.crowd(
        n_items=200, n_annotators=15, n_categories=4, labels_per_item=5, spammer_share=0.2, seed=1
    )
    return at.Labels.of(made.labels.to_arrow(), scale="nominal")


def log_odds(fit):
    """The log-odds of each item's label over its runner-up, by the fit's probabilities."""
    theta, votes = fit.distribution.dense(fit.data.n_categories), ItemVotes(fit)
    rows = np.arange(len(theta))
    with np.errstate(divide="ignore"):
        return np.log(theta[rows, fit.label]) - np.log(theta[rows, votes.runner_up])


def prior_log_odds(fit):
    """What is left of them without the labels."""
    labels = np.bincount(fit.data.item_of_label(), ItemVotes(fit).log_odds)
    return log_odds(fit) - labels


@pytest.mark.parametrize("model", CLASS_MODELS)
def test_prior_odds_times_the_factors_are_the_posterior_odds(model, classes):
    fit = at.fit(classes, model)
    votes, left = ItemVotes(fit), prior_log_odds(fit)
    assert votes.kind == "odds"
    # Where the fit has a zero, or robust-gpm lowered a label that nobody gave, there are no odds.
    usable = log_odds(fit) < 15.0
    given = np.zeros((fit.data.n_items, fit.data.n_categories), dtype=bool)
    given[fit.data.item_of_cell(), fit.data.cell_category] = True
    if model == "robust-gpm":
        usable &= given[np.arange(fit.data.n_items), votes.runner_up]
    assert usable.sum() > 50
    # What is left depends on the two categories alone, and is the odds of the prior.
    prior = {
        "one-coin": lambda: fit.parameters["prior"],
        "dawid-skene": lambda: fit.parameters["prior"],
        "robust-gpm": lambda: fit.parameters["state_prior"],
    }.get(model)
    pairs = fit.label * 10 + votes.runner_up
    for pair in np.unique(pairs[usable]):
        these = left[usable & (pairs == pair)]
        assert np.ptp(these) < 1e-6
        if prior is not None:
            expected = np.log(prior()[pair // 10]) - np.log(prior()[pair % 10])
            assert these[0] == pytest.approx(expected, abs=1e-6)


def test_robust_gpm_tempers_the_labels_of_an_item(classes):
    fit = at.fit(classes, "robust-gpm")
    state = ClassState.from_fit(fit)
    state = replace(state, choice=state.choice._replace(correlation=0.3))
    prior = state.parameters.prior
    assert len(prior) == 4  # no subtypes
    posterior = np.empty((classes.n_items, 4))
    Twins("item_states").posterior(
        classes.block(), 0, classes.n_items, posterior, prior, np.eye(4), *state.counts, 0.3
    )
    tempered = replace(
        fit, parameters=state.to_arrays(), distribution=Distribution.of_dense(posterior)
    )
    first, second = tempered.label, ItemVotes(tempered).runner_up
    expected = np.log(prior[first]) - np.log(prior[second])
    assert prior_log_odds(tempered) == pytest.approx(expected, abs=1e-6)


def test_with_subtypes_the_identity_is_approximate(classes):
    fit = at.fit(classes, "ebcc")
    left = prior_log_odds(fit)
    assert np.corrcoef(log_odds(fit) - left, log_odds(fit))[0, 1] > 0.9


def test_the_runner_up_is_one_that_somebody_gave():
    fit = at.fit([("x", 0, "a"), ("x", 1, "c"), ("y", 0, "b")], "majority")
    likely = Distribution.of_dense(np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]]))
    votes = ItemVotes(replace(fit, distribution=likely))
    # Nobody gave "b" to x; nobody gave another label to y.
    assert [fit.data.scale.names[k] for k in votes.runner_up] == ["c", "c"]
    assert ItemVotes(at.fit([("x", 0, "a")], "majority")).runner_up.tolist() == [-1]


def test_the_runner_up_is_the_most_likely_of_those_given():
    fit = at.fit([("x", s, label) for s, label in enumerate("aaabbc")], "majority")
    votes = ItemVotes(fit)
    assert [fit.data.scale.names[k] for k in votes.runner_up] == ["b"]
    assert votes.p_runner_up == pytest.approx([2 / 6])


@pytest.mark.parametrize(
    ("model", "kind"),
    [("gpm", "serious"), ("majority", "vote"), ("mean", "vote"), ("bwa", "weight"),
     ("subject-bias", "none"), ("ordinal-mixture", "serious")],
)  # fmt: skip
def test_what_labels_count_by(model, kind):
    rows = [(e, s, 1 + (e * 7 + s * (e % 3)) % 4) for e in range(12) for s in range(6)]
    assert ItemVotes(at.fit(rows, model, scale="ordinal")).kind == kind


def test_the_page_holds_every_label_of_its_items(crowd):
    page = unpacked(make_report(crowd).html(), part=1)
    table = crowd.data
    assert page["rows"] == list(range(60))
    assert page["annotator"] == table.annotator.tolist()
    assert page["p_serious"] == np.round(100 * crowd.p_serious).astype(int).tolist()
    assert "weight" not in page


def test_of_some_items_the_labels_are_those_items(classes):
    fit = at.fit(classes, "one-coin")
    votes, items = ItemVotes(fit), np.array([3, 10])
    page = votes.of_page(items, np.array([3, 7, 10]), np.arange(4))
    assert page["rows"] == [0, 2]
    mask = np.isin(fit.data.item_of_label(), items)
    who = fit.data.annotator[mask]
    assert [
        page["others"][k - 4] if k >= 4 else str(fit.data.annotators[k]) for k in page["annotator"]
    ] == [str(fit.data.annotators[int(s)]) for s in who]
    assert np.array(page["weight"]) / 100 == pytest.approx(
        votes.log_odds[mask] / np.log(10), abs=0.006
    )


def test_labels_that_do_not_fit_are_left_out_with_a_note(crowd):
    packed, labels = (
        len(part)
        for part in make_report(crowd).html().split('id="data">')[1].split("<")[0].split("\n")
    )
    text = make_report(crowd, max_bytes=packed + labels - 500).html()
    kept = len(unpacked(text, part=1)["rows"])
    assert 1 <= kept < 60
    assert len(columns(unpacked(text)["tables"]["items"])["item"]["values"]) == 60
    assert f"Who said what is in this page for the {kept} most difficult of these items" in text


@pytest.mark.parametrize("scale", ["nominal", "ordinal"])
@pytest.mark.parametrize("model", MODELS)
def test_every_column_has_a_help_text(model, scale):
    rows = [(e, s, 1 + (e * 7 + s * (e % 3)) % 4) for e in range(12) for s in range(6)]
    try:
        fit = at.fit(rows, model, scale=scale)
    except at.InputError:
        pytest.skip(f"{model} needs an order")
    consensus, advice = Consensus(fit), at.next_labels(fit)
    tables = [
        annotator_table(fit, consensus, advice, category_bins(fit.data, 8)),
        item_table(fit, consensus, advice, 12),
    ]
    doubtful = doubtful_labels(fit, consensus, advice)
    tables += [] if doubtful is None else [doubtful.table]
    without = [c["key"] for table in tables for c in table.columns if len(c["help"].split()) < 2]
    assert without == []
    titles = [[c["title"] for c in table.columns] for table in tables]
    assert all(len(set(names)) == len(names) for names in titles)


def test_doubtful_labels_of_dropped_annotators_are_counted_not_listed(crowd):
    advice = at.next_labels(crowd)
    doubtful = doubtful_labels(crowd, Consensus(crowd), advice)
    dropped = advice.of_annotators.verdict == "drop"
    is_doubtful = crowd.p_serious < 0.5
    assert doubtful.n_labels == is_doubtful.sum()
    assert doubtful.n_dropped_labels == (is_doubtful & dropped[crowd.data.annotator]).sum() > 0
    named = columns(vars(doubtful.table))["annotator"]["values"]
    counts = columns(vars(doubtful.table))["doubtful"]["values"]
    assert not set(named) & set(np.array(crowd.data.annotators.to_pylist())[dropped])
    assert sum(counts) == doubtful.n_labels - doubtful.n_dropped_labels
    assert f"{doubtful.n_dropped_labels} of them are by" in make_report(crowd).html()
