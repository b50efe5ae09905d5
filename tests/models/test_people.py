"""What labels say about the people who gave them: accuracies, flags, notices and camps."""

from contextlib import closing

import numpy as np
import pytest

import annotruth as at
from annotruth.engines import get_engine
from annotruth.models.people import ItemStates
from annotruth.models.people.passes import PeoplePasses
from annotruth.models.people.posterior import PeoplePosterior
from annotruth.models.people.strategies import (
    LEVELS,
    STRATEGIES,
    careless_labels,
    find_confusions,
    fit_tilts,
    learn_skills,
    skill_weights,
)
from annotruth.models.people.verdicts import _control_discoveries

CLASSES = np.array(list("abcd"))


def crowd(*, seed=0, n_items=200, n_people=20, per_item=6, skill=0.85, n_classes=3):
    """Return rows of serious people, the classes of items, and a generator."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    rows = []
    for e in range(n_items):
        for s in rng.permutation(n_people)[:per_item]:
            right = rng.random() < skill
            rows.append((e, f"p{s}", truth[e] if right else rng.integers(n_classes)))
    return rows, truth, rng


def fit_of(rows, **options):
    return at.fit([(e, who, CLASSES[label]) for e, who, label in rows], scale="nominal", **options)


def row_of(fit, who):
    return fit.annotators().set_index("annotator").loc[who]


def added(make, n=60, **options):
    """Return the fit of a crowd and one more annotator, "new", with n labels."""
    rows, truth, rng = crowd(**options)
    items = rng.permutation(len(truth))[:n]
    return fit_of([*rows, *((e, "new", make(truth[e], rng)) for e in items)])


CARELESS = {
    "random": lambda truth, rng: rng.integers(3),
    "repeated": lambda truth, rng: 1,
    "own shares": lambda truth, rng: rng.choice(3, p=[0.6, 0.3, 0.1]),
    "consistently wrong": lambda truth, rng: (truth + 1) % 3,
}


@pytest.mark.parametrize("make", CARELESS.values(), ids=CARELESS)
def test_careless_and_consistently_wrong_people_are_flagged(make):
    fit = added(make)
    new = row_of(fit, "new")
    assert new.spammer
    assert new.p_spammer > 0.95
    assert new.evidence > 2
    assert new.reliability < 0.5
    assert fit.spammer.sum() == 1
    if make is CARELESS["consistently wrong"]:
        assert new.behavior == "consistently wrong"


def strict(truth, rng):
    """Labels of a serious person who needs much to say "a"."""
    p = np.where(np.arange(3) == truth, 0.85, 0.075) * np.array([np.exp(-2.0), 1.0, 1.0])
    return rng.choice(3, p=p / p.sum())


@pytest.mark.parametrize("seed", range(4))
def test_strict_people_are_serious(seed):
    new = row_of(added(strict, n=120, seed=seed), "new")
    assert not new.spammer
    assert new.reliability > 0.5
    assert new.agreement > 0.3


def test_somebody_who_says_the_frequent_label_to_easy_items_is_not_accused():
    """Nobody is flagged whose agreement is clearly above that of the own labels shuffled."""
    rows, truth, rng = crowd(n_items=300, n_classes=2)
    lazy = [(e, "new", truth[e] if rng.random() < 0.15 else 0) for e in range(300)]
    new = row_of(fit_of([*rows, *lazy]), "new")
    assert new.agreement > 0.1
    assert new.p_spammer > 0.8
    assert new.evidence > 1
    assert not new.spammer


def test_half_careless_people_are_noticed_and_not_flagged():
    def half(truth, rng):
        return truth if rng.random() < 0.5 else rng.integers(3)

    new = row_of(added(half, n=200), "new")
    assert new.behavior in ("low accuracy", "partly careless")
    assert not new.spammer


def test_three_labels_are_too_few():
    rows, truth, _ = crowd()
    new = row_of(fit_of([*rows, *((e, "new", (truth[e] + e) % 3) for e in range(3))]), "new")
    assert new.behavior == "too few labels to tell"


def test_accuracy_covers_the_real_one():
    covered, errors = [], []
    for seed in range(6):
        rows, truth, _ = crowd(seed=seed, skill=0.6 + 0.06 * seed)
        fit = fit_of(rows)
        table = fit.annotators().set_index("annotator")
        for who, group in table.iterrows():
            real = np.mean([truth[e] == label for e, other, label in rows if other == who])
            covered.append(group.accuracy_low <= real <= group.accuracy_high)
            errors.append(abs(group.accuracy - real))
    assert np.mean(covered) > 0.88
    assert np.mean(errors) < 0.04


def colluders(share, seed=0):
    """Return rows of a crowd of which a share agrees on one wrong label per item."""
    rows, truth, rng = crowd(seed=seed, n_people=20)
    n = round(20 * share / (1 - share))
    wrong = (truth + rng.integers(1, 3, size=len(truth))) % 3
    items = [rng.permutation(len(truth))[:60] for _ in range(n)]
    return [*rows, *((e, f"x{s}", wrong[e]) for s, chosen in enumerate(items) for e in chosen)]


def test_half_that_collude_leave_nobody_assessed():
    fit = fit_of(colluders(0.5))
    assert fit.verdict == "camps"
    assert not fit.spammer.any()
    assert set(fit.behavior) == {"no verdict"}
    first = fit.summary().splitlines()[0]
    assert first.startswith("WARNING: ")
    assert "no verdicts on people" in first


def test_a_minority_that_colludes_is_flagged_and_nobody_else():
    fit = fit_of(colluders(0.25))
    flagged = fit.annotators().query("spammer").annotator
    assert len(flagged) >= 4
    assert flagged.str.startswith("x").all()


def test_labels_of_chance_judge_nobody():
    rng = np.random.default_rng(1)
    fit = fit_of([(e, f"p{s}", rng.integers(3)) for e in range(100) for s in range(8)])
    assert fit.verdict == "chance"
    assert not fit.spammer.any()
    assert set(fit.behavior) == {"no verdict"}


def test_at_most_a_twentieth_of_the_flagged_is_expected_to_be_fine():
    p_careless = np.array([0.99, 0.80, 0.999, 0.85, 0.97])
    chosen = _control_discoveries(p_careless, 0.05)
    assert chosen.tolist() == [True, False, True, True, True]
    assert (1 - p_careless[chosen]).mean() <= 0.05
    assert _control_discoveries(p_careless, 0.01).tolist() == [True, False, True, False, False]


def test_agreement_is_that_of_shuffled_labels_on_average():
    """Mean and variance of the agreement over all permutations of the own labels, as by shuffling."""
    rows, _, rng = crowd(n_items=30, n_people=5, per_item=4)
    labels = at.Labels.of([(e, who, CLASSES[label]) for e, who, label in rows])
    n = labels.n_categories
    states = ItemStates(
        np.full(n, 1 / n), np.eye(n), *(np.ones((5, n + 1, n)),) * 2, 0.0, np.eye(n), np.eye(n),
        np.arange(n),
    )  # fmt: skip
    with closing(get_engine("reference").open(labels)) as session:
        found = PeoplePasses(session, labels, states).agreement()
    cell = labels.cell_of_label()
    item, label = labels.item_of_cell()[cell], labels.cell_category[cell]
    counts = np.zeros((labels.n_items, n))
    np.add.at(counts, (item, label), 1)
    own = labels.annotator == 0
    others = counts[item[own]] - np.eye(n)[label[own]]
    others /= others.sum(axis=1, keepdims=True)
    place = np.arange(own.sum())
    drawn = [others[place, rng.permutation(label[own])].sum() for _ in range(4000)]
    total = others[place, label[own]].sum()
    assert found.chance[0] * own.sum() == pytest.approx(np.mean(drawn), abs=0.05)
    assert found.variance[0] == pytest.approx(np.var(drawn), rel=0.08)
    assert found.z[0] == pytest.approx((total - np.mean(drawn)) / np.std(drawn), rel=0.1)


def test_tilts_solve_their_equation(make_labels):
    rng = np.random.default_rng(2)
    theta = rng.dirichlet(np.ones(3), 4).T
    states, counts = rng.gamma(2.0, 10.0, (5, 4)), rng.integers(0, 40, (5, 3)).astype(float)
    states *= (counts.sum(axis=1) / states.sum(axis=1))[:, np.newaxis]
    with closing(
        get_engine("memory").open(make_labels(rng, n_items=5, n_annotators=5, n_categories=3))
    ) as session:
        tilts = fit_tilts(session, theta[np.newaxis], np.array([0.5]), states, counts)
    tilt, log_prior = np.log(tilts.factor[:, 0]), tilts.log_prior
    tilted = theta * np.exp(tilt)[:, :, np.newaxis]
    expected = np.einsum("sz,snz->sn", states, tilted / tilted.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(counts - expected - tilt / 0.25, 0.0, atol=5e-3)
    assert (log_prior < 0).all()


def test_exchanged_labels_are_assigned():
    counts = np.stack([np.eye(3) * 9 + 1, np.roll(np.eye(3), 1, axis=0) * 9 + 1])
    confused, log_prior = find_confusions(counts, np.eye(3))
    assert confused.tolist() == [[0, 1, 2], [2, 0, 1]]
    assert np.isinf(log_prior).tolist() == [True, False]
    reversed_scale, _ = find_confusions(counts, None)
    assert reversed_scale[0].tolist() == [2, 1, 0]


def test_careless_labels_are_distributions():
    careless = careless_labels(np.array([[9.0, 1.0], [0.0, 8.0], [0.0, 0.0]]))
    np.testing.assert_allclose(careless.distribution.sum(axis=2), 1.0)
    assert careless.repeated[:2].tolist() == [0, 1]
    assert (careless.regret <= 1e-12).all()
    assert np.exp(careless.log_prior).sum() == pytest.approx(1.0)


def test_skills_are_learned_from_people():
    prior = skill_weights(0.0, 0.16)
    assert prior.argmax() == 2
    skilled = np.tile(np.array([0.0, 0.0, 0.01, 0.09, 0.9]) * prior, (200, 1))
    learned = learn_skills(skilled / skilled.sum(axis=1, keepdims=True), prior)
    assert learned.argmax() > 2
    np.testing.assert_allclose(learn_skills(np.empty((0, 5)), prior), prior)


def test_intervals_of_reliabilities_contain_them():
    levels = np.array([[0.0] * 7 + [1.0], [0.9, 0.1] + [0.0] * 6, [0.125] * 8])
    posterior = PeoplePosterior(levels, np.zeros((3, 4)), *(np.zeros(3),) * 2, levels, None)
    low, high = posterior.interval()
    assert ((low <= posterior.reliability) & (posterior.reliability <= high)).all()
    assert high[0] == 1.0
    assert high[1] < 0.3
    assert low[2] < 0.1
    assert high[2] > 0.9
    assert len(STRATEGIES.reliability) > len(LEVELS)


def test_people_who_were_serious_at_first_are_not_flagged_against_plain_counts():
    """The evidence is for careless labels, but their agreement is clearly above chance."""
    rows, truth, rng = crowd()
    items = rng.permutation(len(truth))[:110]
    given = np.where(np.arange(110) < 25, truth[items], rng.integers(3, size=110))
    new = row_of(
        fit_of([*rows, *((e, "new", label) for e, label in zip(items, given, strict=True))]), "new"
    )
    assert new.p_spammer > 0.9
    assert new.evidence > 2
    assert new.agreement > 0.1
    assert not new.spammer
