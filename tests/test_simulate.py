"""The generators: labels have the documented distributions."""

import re
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

import annotruth as at
from annotruth.errors import InputError
from annotruth.simulate import crowd, gaussian, questions
from annotruth.simulate.crowds import discretize

GENERATORS = pytest.mark.parametrize("generate", [crowd, gaussian])


def rows(simulation):
    """Codes of item, annotator and label, in the order of the generated rows."""
    labels = simulation.labels
    cell = labels.cell_of_label()
    columns = labels.item_of_cell()[cell], labels.annotator, labels.cell_category[cell]
    ordered = np.empty((3, labels.n_labels), dtype=np.int64)
    ordered[:, labels.row] = columns
    return ordered


def all_bytes(simulation):
    """Everything that was drawn, as bytes."""
    truth = simulation.distribution if simulation.distribution is not None else np.empty(0)
    arrays = (
        *rows(simulation),
        np.asarray(simulation.labels.annotators),
        truth,
        simulation.score,
        simulation.label,
        simulation.reliability,
        simulation.behavior,
        simulation.repeated_label,
        simulation.serious,
    )
    return [array.tobytes() for array in arrays]


def shares(codes, n_categories):
    return np.bincount(codes, minlength=n_categories) / codes.size


def test_sizes_ids_and_truth_fit_together():
    simulation = crowd(n_items=30, n_annotators=7, n_categories=4, seed=3)
    labels = simulation.labels
    assert labels.items.to_pylist() == list(range(1, 31))
    assert labels.annotators.to_pylist() == list(range(1, 8))
    assert labels.scale.categories.to_pylist() == [1, 2, 3, 4]
    assert labels.scale.is_ordinal
    assert labels.n_labels == simulation.serious.size == 30 * 7
    assert simulation.score == pytest.approx(simulation.distribution @ [1, 2, 3, 4])
    np.testing.assert_array_equal(simulation.label, simulation.distribution.argmax(axis=1))


def test_masses_match_the_integral_of_the_beta_density():
    density = stats.beta(2.5, 6.0).pdf
    expected = [integrate.quad(density, *ends)[0] for ends in pairwise(np.arange(6) / 5)]
    mass = discretize(np.array([[2.5]]), np.array([[6.0]]), 5)
    assert mass == pytest.approx(np.array([expected]))


def test_beta_parameters_run_from_one_to_ten():
    score = crowd(n_items=4_000, n_annotators=1, n_categories=40, seed=1).score
    mean = (score - 0.5) / 40  # of the Beta, up to the width of a bin
    a, b = np.meshgrid(*[np.linspace(1, 10, 401)] * 2)
    assert mean.mean() == pytest.approx(0.5, abs=0.01)
    assert mean.std() == pytest.approx((a / (a + b)).std(), abs=0.01)


def test_serious_labels_follow_the_distribution():
    simulation = crowd(n_items=3, n_annotators=20_000, spammer_share=0, seed=4)
    item, _, label = rows(simulation)
    for e, distribution in enumerate(simulation.distribution):
        drawn = label[(item == e) & simulation.serious]
        assert shares(drawn, 5) == pytest.approx(distribution, abs=0.015)


@GENERATORS
def test_serious_share_is_the_reliability(generate):
    simulation = generate(n_items=5_000, n_annotators=12, spammer_share=0.5, seed=5)
    _, annotator, _ = rows(simulation)
    realised = np.bincount(annotator, weights=simulation.serious) / 5_000
    assert realised == pytest.approx(simulation.reliability, abs=0.03)


@GENERATORS
def test_spammers_are_counted_and_shuffled(generate):
    crowds = [generate(n_items=1, n_annotators=40, spammer_share=0.25, seed=s) for s in range(3)]
    spammers = [np.flatnonzero(c.reliability < 0.5).tolist() for c in crowds]
    assert [len(codes) for codes in spammers] == [10, 10, 10]
    assert spammers[0] != spammers[1] != spammers[2]


@GENERATORS
def test_random_labels_are_uniform(generate):
    simulation = generate(n_items=20_000, n_annotators=4, behavior="random", spammer_share=1)
    assert set(simulation.behavior) == {"random"}
    irregular = rows(simulation)[2][~simulation.serious]
    assert shares(irregular, 5) == pytest.approx(np.full(5, 0.2), abs=0.01)


@GENERATORS
def test_repeated_labels_are_the_fixed_label_of_the_annotator(generate):
    simulation = generate(n_items=50, n_annotators=200, behavior="repeated")
    _, annotator, label = rows(simulation)
    irregular = ~simulation.serious
    repeated = simulation.repeated_label[annotator]
    assert irregular.sum() > 1_000
    np.testing.assert_array_equal(label[irregular], repeated[irregular])
    assert shares(simulation.repeated_label, 5) == pytest.approx(np.full(5, 0.2), abs=0.1)
    assert (label != repeated)[~irregular].any()


def test_inverted_labels_follow_the_distribution_from_the_other_end():
    simulation = crowd(n_items=2, n_annotators=30_000, behavior="inverted", seed=7)
    item, _, label = rows(simulation)
    for e, distribution in enumerate(simulation.distribution):
        irregular = label[(item == e) & ~simulation.serious]
        assert shares(irregular, 5) == pytest.approx(distribution[::-1], abs=0.015)


def test_inverted_gaussian_labels_mirror_the_score():
    simulation = gaussian(n_items=300, n_annotators=200, n_categories=21, behavior="inverted")
    item, _, label = rows(simulation)
    irregular = ~simulation.serious
    error = (label + 1 + simulation.score[item] - 22)[irregular]
    assert error.mean() == pytest.approx(0, abs=0.03)
    assert error.std() < 1


@GENERATORS
def test_mixing_by_label_uses_each_behavior_a_third_of_the_time(generate):
    simulation = generate(
        n_items=2_000, n_annotators=20, n_categories=9, behavior="mixed", spammer_share=1
    )
    pure = generate(
        n_items=2_000, n_annotators=20, n_categories=9, behavior="inverted", spammer_share=1
    )
    assert set(simulation.behavior) == {"mixed"}
    _, annotator, label = rows(simulation)
    irregular = ~simulation.serious
    # A third of the labels by design; by chance 1/9 of the random and of the inverted labels,
    # because the repeated label is uniform over annotators.
    repeated = (label == simulation.repeated_label[annotator])[irregular].mean()
    assert repeated == pytest.approx(1 / 3 + 2 / 3 / 9, abs=0.03)
    # With one seed the serious draws are shared, so the inverted labels are known.
    inverted = (label == rows(pure)[2])[irregular].mean()
    assert inverted == pytest.approx(1 / 3 + 2 / 3 / 9, abs=0.03)


@GENERATORS
def test_mixing_by_annotator_gives_each_one_behavior(generate):
    options = {"n_items": 40, "n_annotators": 300, "spammer_share": 1}
    simulation = generate(behavior="mixed", mixing="annotator", **options)
    names, counts = np.unique(simulation.behavior, return_counts=True)
    assert names.tolist() == ["inverted", "random", "repeated"]
    assert counts.min() > 70
    # With one seed the serious draws are shared, so the inverted labels are known.
    opposite = rows(generate(behavior="inverted", **options))[2]
    _, annotator, label = rows(simulation)
    irregular = {n: ~simulation.serious & (simulation.behavior[annotator] == n) for n in names}
    is_repeated = label == simulation.repeated_label[annotator]
    is_inverted = label == opposite
    assert is_repeated[irregular["repeated"]].all()
    assert is_inverted[irregular["inverted"]].all()
    assert is_repeated[irregular["random"]].mean() < 0.4
    assert is_inverted[irregular["random"]].mean() < 0.4


@GENERATORS
@pytest.mark.parametrize("labels_per_item", [None, 3, 12])
def test_same_seed_same_bytes(generate, labels_per_item):
    def draw(seed):
        return all_bytes(
            generate(n_items=40, n_annotators=20, labels_per_item=labels_per_item, seed=seed)
        )

    assert draw(11) == draw(11) == draw(np.random.default_rng(11)) == draw(np.int64(11))
    assert draw(11) != draw(12)
    rng = np.random.default_rng(11)
    assert draw(rng) != draw(rng)


@GENERATORS
@pytest.mark.parametrize(("n_annotators", "k"), [(1_000, 1), (1_000, 6), (30, 20), (12, 12)])
def test_sparse_items_get_k_distinct_annotators(generate, n_annotators, k):
    simulation = generate(n_items=500, n_annotators=n_annotators, labels_per_item=k, seed=9)
    item, annotator, _ = rows(simulation)
    np.testing.assert_array_equal(np.bincount(item), np.full(500, k))
    assert np.unique(item * n_annotators + annotator).size == 500 * k


def test_annotators_without_a_label_are_left_out():
    simulation = crowd(n_items=10, n_annotators=500, labels_per_item=2, behavior="repeated")
    labels = simulation.labels
    assert labels.n_annotators < 21
    assert labels.labels_per_annotator.min() >= 1
    assert max(labels.annotators.to_pylist()) > 100
    for aligned in (simulation.reliability, simulation.behavior, simulation.repeated_label):
        assert aligned.shape == (labels.n_annotators,)
    _, annotator, label = rows(simulation)
    irregular = ~simulation.serious
    assert irregular.any()
    np.testing.assert_array_equal(label[irregular], simulation.repeated_label[annotator[irregular]])


@pytest.mark.parametrize(("gamma", "rate", "spread"), [("rate", 5, 0.13), ("scale", 1 / 5, 0.0075)])
def test_gaussian_errors_have_a_gamma_precision_per_item(gamma, rate, spread):
    simulation = gaussian(
        n_items=400, n_annotators=400, n_categories=401, spammer_share=0, seed=6, gamma=gamma
    )
    item, annotator, label = rows(simulation)
    item, annotator = item[simulation.serious], annotator[simulation.serious]
    error = (label + 1)[simulation.serious] - simulation.score[item]
    # The mean of 1 / Gamma(10, rate) is rate / 9; rounding adds 1/12.
    assert error.mean() == pytest.approx(0, abs=0.02)
    assert error.var() == pytest.approx(rate / 9 + 1 / 12, rel=0.07)
    # 1 / Gamma(10, rate) has a standard deviation of rate / (9 sqrt 8), that is 0.196 or 0.0079.
    for group, varies in ((item, True), (annotator, False)):
        variances = np.bincount(group, weights=error**2) / np.bincount(group)
        assert (variances.std() > spread) == varies


def test_gaussian_truth_is_uniform_and_its_label_the_nearest():
    simulation = gaussian(n_items=5_000, n_annotators=1, n_categories=5)
    assert simulation.distribution is None
    assert stats.kstest(simulation.score, stats.uniform(1, 4).cdf).pvalue > 1e-4
    assert np.abs(simulation.label + 1 - simulation.score).max() <= 0.5


@GENERATORS
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_items": 0}, "n_items is 0: give a whole number from 1 to 1,000,000,000"),
        ({"n_items": True}, "n_items is True: give a whole number from 1 to"),
        ({"n_items": 10**20}, "n_items is 100000000000000000000: give a whole number"),
        ({"n_annotators": 2.5}, "n_annotators is 2.5: give a whole number from 1"),
        ({"n_categories": 1}, "n_categories is 1: give a whole number from 2 to"),
        (
            {"labels_per_item": 26},
            "labels_per_item is 26: give a whole number from 1 to the number of",
        ),
        ({"labels_per_item": 0}, "labels_per_item is 0: "),
        ({"spammer_share": 1.2}, "spammer_share is 1.2: give a number from 0 to 1"),
        ({"spammer_share": float("nan")}, "spammer_share is nan: "),
        ({"spammer_share": "a lot"}, "spammer_share is 'a lot': "),
        ({"behavior": "lazy"}, "unknown behavior 'lazy': choose random, repeated, inverted, mixed"),
        ({"mixing": "item"}, "unknown mixing 'item': choose label, annotator"),
        ({"seed": -1}, "seed is -1: give a whole number from 0"),
        ({"seed": True}, "seed is True: give a whole number from 0"),
        ({"seed": None}, "seed is None: "),
    ],
)
def test_invalid_options_are_refused(generate, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        generate(**options)


def test_options_of_one_generator_are_checked():
    with pytest.raises(InputError, match=r"labels_per_item is 99: "):
        questions(labels_per_item=99)
    with pytest.raises(InputError, match="unknown gamma 'mean': choose rate, scale"):
        gaussian(gamma="mean")


def test_groups_have_their_sizes_and_share_opinions_except_where_they_differ():
    simulated = at.simulate.groups(
        n_items=40, sizes={"x": 3, "y": 5, "z": 2}, differing_share=0.25, seed=1
    )
    assert np.bincount(simulated.group).tolist() == [3, 5, 2]
    assert simulated.differs.sum() == 10
    spread = np.ptp(simulated.distributions, axis=0).max(axis=1)
    assert (spread[simulated.differs] > 1e-6).all()
    assert (spread[~simulated.differs] < 1e-12).all()
    crowd = np.tensordot([0.3, 0.5, 0.2], simulated.distributions, axes=1)
    np.testing.assert_allclose(simulated.crowd.distribution, crowd)
    assert simulated.annotators["group"].to_pylist() == ["x"] * 3 + ["y"] * 5 + ["z"] * 2
    assert simulated.labels.covariates.annotators["group"].to_pylist()[-1] == "z"


def test_serious_labels_follow_the_opinion_of_the_group():
    simulated = at.simulate.groups(
        n_items=200,
        sizes={"x": 30, "y": 30},
        differing_share=1.0,
        spammer_share=0.0,
        least_reliability=1.0,
        seed=0,
    )
    labels = simulated.crowd.labels
    value = labels.scale.values[labels.category_of_label()]
    for code in (0, 1):
        of_group = simulated.group[labels.annotator] == code
        item = labels.item_of_label()[of_group]
        mean = np.bincount(item, value[of_group]) / np.bincount(item)
        own, other = (simulated.distributions[g] @ labels.scale.values for g in (code, 1 - code))
        assert np.corrcoef(mean, own)[0, 1] > 0.9
        assert np.corrcoef(mean, other)[0, 1] < 0.3


def test_a_shift_moves_all_items_of_a_group():
    simulated = at.simulate.groups(n_items=50, differing_share=0.0, shift=1.0, seed=3)
    scores = simulated.distributions @ np.arange(1.0, 6.0)
    difference = scores[0] - scores[1]
    assert (np.sign(difference) == np.sign(difference[0])).all()


def test_the_same_seed_gives_the_same_labels():
    one, other = (at.simulate.groups(n_items=20, labels_per_item=6, seed=5) for _ in range(2))
    assert one.labels.same_as(other.labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": {"x": 3}}, "sizes has 1 group"),
        ({"sizes": {"x": 3, "y": 0}}, r"sizes\['y'\] is 0"),
        ({"differing_share": 2}, "differing_share is 2"),
        ({"shift": -1.0}, "shift is -1.0"),
        ({"least_reliability": 0.2}, "least_reliability is 0.2"),
        ({"behavior": "lazy"}, "unknown behavior 'lazy'"),
        ({"labels_per_item": 400}, "labels_per_item is 400"),
    ],
)
def test_impossible_groups_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        at.simulate.groups(**options)
