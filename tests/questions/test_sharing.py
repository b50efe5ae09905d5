"""What is known of an annotator from other questions, and whether it is used."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import annotruth as at
from annotruth.observations import Labels, Scale
from annotruth.observations.columns.questions import rows_of_question
from annotruth.questions import sharing
from annotruth.questions.sharing import ReliabilityEvidence, SharedEvidence, choose_sharing
from annotruth.selection.heldout import HeldOut


def fit_of(reliability, deviation, n_labels, annotators=None, **fields):
    """A stand-in for a fit: reliabilities with intervals, and counts of labels."""
    reliability = np.asarray(reliability, dtype=float)
    half = 1.96 * np.asarray(deviation)
    names = annotators or [f"w{k}" for k in range(len(reliability))]
    codes = np.repeat(np.arange(len(reliability)), n_labels)
    data = Labels.from_codes(
        np.arange(len(codes)),
        codes,
        np.zeros(len(codes), dtype=int),
        items=list(range(len(codes))),
        annotators=names,
        scale=Scale.nominal(["x", "y"]),
    )
    entries = {"verdict": "informative", "model": "robust-gpm", **fields}
    return SimpleNamespace(
        reliability=reliability,
        low=reliability - half,
        high=reliability + half,
        data=data,
        **entries,
    )


def beta(serious, irregular):
    """The mean and the deviation of reliability after counted labels and a uniform prior."""
    a, b = serious + 1.0, irregular + 1.0
    return a / (a + b), np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))


def test_the_evidence_of_counted_labels_is_their_counts():
    pairs = np.array([(6.0, 4.0), (12.0, 8.0), (3.0, 7.0)])
    mean, deviation = np.transpose([beta(*pair) for pair in pairs])
    found = ReliabilityEvidence.of(fit_of(mean, deviation, [100, 100, 100]))
    assert found.n_labels == pytest.approx(pairs.sum(axis=1))
    assert found.serious_share == pytest.approx(pairs[:, 0] / pairs.sum(axis=1))


def test_evidence_is_never_more_than_the_labels_and_none_for_chance():
    mean, deviation = beta(30.0, 20.0)
    assert ReliabilityEvidence.of(fit_of([mean], [deviation], [12])).n_labels == pytest.approx([12])
    of_chance = fit_of([mean], [deviation], [12], verdict="chance")
    assert ReliabilityEvidence.of(of_chance).n_labels.tolist() == [0.0]
    # A posterior as wide as the uniform prior says nothing.
    assert ReliabilityEvidence.of(fit_of([0.5], [np.sqrt(1 / 12)], [12])).n_labels == pytest.approx(
        [0.0]
    )


def three_questions():
    mean, deviation = np.transpose([beta(8.0, 2.0), beta(2.0, 8.0)])
    return {
        "a": fit_of(mean, deviation, [20, 20]),
        "b": fit_of(mean[::-1], deviation[::-1], [20, 20]),
        "c": fit_of(mean, deviation, [20, 20], annotators=["w1", "w9"]),
    }


def test_the_prior_of_a_question_uses_the_other_questions_alone():
    fits = three_questions()
    evidence = SharedEvidence(fits)
    prior = {
        name: evidence.with_prior(name, fit.data, 0.5).annotator_prior for name, fit in fits.items()
    }
    # w0 answered a and b, w1 all three, w9 c alone.
    assert prior["a"] == pytest.approx(0.5 * np.array([[2, 8], [8 + 8, 2 + 2]]))
    assert prior["b"] == pytest.approx(0.5 * np.array([[8, 2], [2 + 8, 8 + 2]]))
    assert prior["c"] == pytest.approx(0.5 * np.array([[2 + 8, 8 + 2], [0, 0]]))
    # The labels of a question do not change its own prior.
    mean, deviation = np.transpose([beta(1.0, 9.0), beta(9.0, 1.0)])
    changed = {**fits, "a": fit_of(mean, deviation, [20, 20])}
    again = SharedEvidence(changed).with_prior("a", fits["a"].data, 0.5).annotator_prior
    assert again == pytest.approx(prior["a"])


def test_without_strength_labels_stay_as_they_are():
    fits = three_questions()
    assert SharedEvidence(fits).with_prior("a", fits["a"].data, 0.0) is fits["a"].data


def test_a_prior_from_elsewhere_is_added_and_all_is_at_most_100_labels():
    fits = three_questions()
    given = replace(fits["a"].data, annotator_prior=np.array([[1.0, 0.0], [200.0, 100.0]]))
    prior = SharedEvidence(fits).with_prior("a", given, 0.5).annotator_prior
    assert prior[0] == pytest.approx([1 + 1, 4])
    assert prior[1].sum() == pytest.approx(100)
    assert prior[1, 0] / prior[1, 1] == pytest.approx((200 + 8) / (100 + 2))


def test_shares_move_by_what_the_crowds_differ():
    """An annotator as reliable as the crowd of one question is expected to be so in another."""
    evidence = ReliabilityEvidence(np.array([10.0, 10.0]), np.array([0.8, 0.9]), crowd=0.8)
    counts = evidence.counts_at(0.5)
    assert counts[0] == pytest.approx([5, 5])
    assert counts.sum(axis=1) == pytest.approx([10, 10])
    odds = (0.9 / 0.1) / (0.8 / 0.2)
    assert counts[1, 0] / counts[1, 1] == pytest.approx(odds)


def test_annotators_are_matched_across_types_of_ids():
    mean, deviation = beta(8.0, 2.0)
    fits = {
        "a": fit_of([mean], [deviation], [20], annotators=[7]),
        "b": fit_of([mean], [deviation], [20], annotators=["7"]),
    }
    prior = SharedEvidence(fits).with_prior("a", fits["a"].data, 1.0).annotator_prior
    assert prior == pytest.approx(np.array([[8, 2]]))


def scored(monkeypatch, gain_at):
    """Let held-out scores be a function of the strength; returns the strengths that were tried."""
    tried = []

    def with_prior(self, question, labels, strength, *, same_for_all=False):
        if same_for_all:
            return -strength
        if question == "a":
            tried.append(strength)
        return strength

    def score(estimator, strength, fold, progress, **_):
        place = np.arange(len(fold))
        noise = 0.1 * (strength > 0) * (-1.0) ** (place // 2)
        log_p = -1.0 + gain_at(strength) + noise
        return HeldOut("robust-gpm", log_p, place, place % 2, n_unscored=0, converged=True)

    monkeypatch.setattr(SharedEvidence, "correlation_p_value", lambda self: 0.1)
    monkeypatch.setattr(SharedEvidence, "with_prior", with_prior)
    monkeypatch.setattr(sharing, "score_folds", score)
    monkeypatch.setattr(
        sharing, "assign_folds", lambda labels, n, seed: np.arange(labels.n_labels) % n
    )
    return tried


@pytest.mark.parametrize(
    ("gain_at", "strength", "tried"),
    [
        (lambda s: s, 1.0, [0.0, 0.1, 0.25, 0.5, 1.0]),
        (lambda s: 0.5 - abs(s - 0.25), 0.25, [0.0, 0.1, 0.25, 0.5]),
        (lambda s: -s, 0.0, [0.0, 0.1]),
        (lambda s: 0.001 * s, 0.0, [0.0, 0.1, 0.25, 0.5, 1.0]),
        (abs, 0.0, [0.0, 0.1, 0.25, 0.5, 1.0]),  # as good with a prior that is the same for all
    ],
    ids=[
        *("more is better", "a quarter is best", "none is better", "within a standard error"),
        "the crowd's mean is as good",
    ],
)
def test_the_best_strength_is_taken_if_better_by_a_standard_error(
    monkeypatch, gain_at, strength, tried
):
    fits = three_questions()
    found = scored(monkeypatch, gain_at)
    chosen = choose_sharing(fits, dict.fromkeys(fits), SharedEvidence(fits))
    assert chosen.strength == strength
    assert (chosen.gain > chosen.error) == (strength > 0 or gain_at is abs)
    assert found == tried
    assert list(chosen.scores) == tried


def questions_of(*reliabilities, **fields):
    """Questions that the same annotators answered, with these reliabilities."""
    return {
        f"q{k}": fit_of(values, [0.1] * len(values), [20] * len(values), **fields)
        for k, values in enumerate(reliabilities)
    }


def test_reliabilities_that_are_alike_in_all_questions_correlate():
    rng = np.random.default_rng(5)
    one = rng.uniform(0.2, 0.9, 30)
    alike = questions_of(one, one**2, 0.5 * one)  # their scales do not matter
    assert SharedEvidence(alike).correlation_p_value() == pytest.approx(1 / 200)
    opposite = questions_of(one, 1.0 - one)
    assert SharedEvidence(opposite).correlation_p_value() > 0.9


def test_reliabilities_that_have_nothing_in_common_correlate_as_often_as_the_p_value_says():
    rng = np.random.default_rng(6)
    p_values = [
        SharedEvidence(questions_of(*rng.uniform(0.2, 0.9, (3, 8)))).correlation_p_value()
        for _ in range(300)
    ]
    assert 0.05 <= np.mean(np.array(p_values) <= 0.1) <= 0.15


def test_a_question_in_which_all_annotators_are_alike_does_not_correlate():
    fits = questions_of(np.linspace(0.2, 0.9, 20), np.full(20, 0.7))
    assert SharedEvidence(fits).correlation_p_value() == 1.0


@pytest.mark.parametrize(("correlation", "is_shared"), [(0.0, False), (1.0, True)])
def test_a_crowd_is_shared_if_there_is_something_to_share(correlation, is_shared):
    made = at.simulate.questions(
        scales=["nominal"] * 3,
        n_items=120,
        n_annotators=30,
        labels_per_item=5,
        correlation=correlation,
        seed=4,
    )
    sharing = at.fit(made.table, question="all").sharing
    assert (sharing.strength > 0) == is_shared
    assert ("do not correlate" in sharing.why) != is_shared
    assert (sharing.gain is None) != is_shared  # nothing is compared without a correlation


def crowd_to_share(seed):
    return at.simulate.questions(
        scales=["ordinal"] * 3,
        n_items=60,
        n_annotators=20,
        n_categories=5,
        labels_per_item=6,
        correlation=1.0,
        seed=seed,
    )


@pytest.fixture(scope="module")
def shared_crowd():
    return crowd_to_share(seed=1)


def test_shared_reliabilities_are_closer_to_the_truth():
    squares = {0.0: [], 1.0: []}  # of errors, by strength
    for seed in (1, 2, 3):
        questions = crowd_to_share(seed).questions
        fits = {name: at.fit(each.labels) for name, each in questions.items()}
        evidence = SharedEvidence(fits)
        for strength, of_strength in squares.items():
            for name, fit in fits.items():
                made = at.fit(evidence.with_prior(name, fit.data, strength)).reliability
                of_strength.append((made - questions[name].reliability) ** 2)
    error = {strength: np.sqrt(np.mean(each)) for strength, each in squares.items()}
    assert error[1.0] < 0.9 * error[0.0]


def test_a_fit_that_shares_nothing_is_that_of_the_question_alone(monkeypatch, shared_crowd):
    nothing = sharing.Sharing(0.0, "it does not predict better")
    monkeypatch.setattr("annotruth.questions.fitting.choose_sharing", lambda *_: nothing)
    together = at.fit(shared_crowd.table, question="all")
    for name in together:
        alone = at.fit(rows_of_question(shared_crowd.table, "question", name))
        assert np.array_equal(together[name].reliability, alone.reliability)
        assert together[name].log_likelihood == alone.log_likelihood


def test_a_chosen_strength_is_that_of_the_refitted_priors(monkeypatch, shared_crowd):
    chosen = sharing.Sharing(0.5, "said so", 0.1, 0.01, {0.0: -1.1, 0.5: -1.0})
    monkeypatch.setattr("annotruth.questions.fitting.choose_sharing", lambda *_: chosen)
    together = at.fit(shared_crowd.table, question="all")
    alone = {
        name: at.fit(rows_of_question(shared_crowd.table, "question", name)) for name in together
    }
    evidence = SharedEvidence(alone)
    for name, fit in alone.items():
        prior = evidence.with_prior(name, fit.data, 0.5).annotator_prior
        assert together[name].data.annotator_prior == pytest.approx(prior)
        assert not np.array_equal(together[name].reliability, fit.reliability)
    assert "said so" in together.summary()


def test_why_nothing_is_shared_is_said(simulation):
    table = simulation.table
    reasons = {
        at.fit(
            table, "dawid-skene", question="all"
        ).sharing.why: "dawid-skene takes no annotator prior",
        at.fit(table.slice(0, 200), question="all").sharing.why: "one question",
    }
    assert all(part in why for why, part in reasons.items())
    apart = table.set_column(
        2,
        "annotator",
        [
            [
                f"{q}{w}"
                for q, w in zip(
                    *(table[k].to_pylist() for k in ("question", "annotator")), strict=True
                )
            ]
        ],
    )
    assert "nobody answered two questions" in at.fit(apart, question="all").sharing.why


def test_simulated_reliabilities_correlate_as_asked():
    for correlation, low, high in ((0.0, -0.15, 0.15), (0.5, 0.3, 0.65), (1.0, 0.999, 1.0)):
        made = at.simulate.questions(
            scales=["ordinal", "nominal"], n_items=800, n_annotators=400, correlation=correlation
        ).questions
        one, two = (each.reliability for each in made.values())
        assert low <= np.corrcoef(one, two)[0, 1] <= high
        assert np.mean(one < 0.5) == pytest.approx(0.25, abs=0.06)


def test_simulated_labels_are_right_as_often_as_asked():
    made = at.simulate.questions(scales=["nominal"], n_items=2000, accuracy=0.7, seed=1)
    question = made.questions["q1"]
    labels = question.labels
    right = (labels.category_of_label() == question.label[labels.item_of_label()])[
        question.serious[labels.row]
    ]
    assert right.mean() == pytest.approx(0.7, abs=0.02)
    with pytest.raises(at.InputError, match="unknown scale 'x'"):
        at.simulate.questions(scales=["x"])
    with pytest.raises(at.InputError, match="correlation is 2"):
        at.simulate.questions(correlation=2)
