"""Every kernel against its NumPy twin, on random arrays, and on any items.

A family has the arrays of its kernels by name. What both write must be equal, sums are added to, and
arrays of items and labels change within the range of items only.
"""

import numpy as np
import pytest
from tests.kernels.twins import Kernels, argument_names, assert_same

from annotruth.kernels import find_kernel
from annotruth.kernels.shared import (
    AGREEMENT_BINS,
    AGREEMENT_MOMENTS,
    CAVITY_MOMENTS,
    NEVER,
    NOT_SAMPLED,
)
from annotruth.models.scales.ordinal_steps import make_lattice

ITEMS, S, K, Z, G = 40, 11, 4, 7, 5  # items, annotators, categories, states, strategies
EMPTY = np.zeros((0, 0))


def dirichlet(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), shape[:-1])


def with_totals(table):
    return np.concatenate([table, table.sum(axis=1, keepdims=True)], axis=1)


def hashes(rng, n):
    return rng.integers(2**63, size=n).astype(np.uint64)


def not_zero(values):
    """Return an array from which it is seen whether a kernel adds to it or replaces it."""
    is_zero = values.ndim and values.dtype == np.float64 and not values.any()
    return np.full(values.shape, 0.5) if is_zero else values


def gpm(rng, labels):
    theta = np.zeros(labels.n_cells)
    Kernels("gpm").start(labels.block(), 0, ITEMS, theta)
    return {
        "theta": theta * rng.uniform(0.5, 1.0, len(theta)),
        "p_serious": np.zeros(labels.n_labels),
        "eps": rng.random(S),
        "pi": dirichlet(rng, S, K),
        "chance": 0.25,
        "serious": np.zeros(S),
        "irregular": np.zeros((S, K)),
        "totals": np.zeros(2),
        "log_likelihood": np.zeros(1),
        "slope": np.zeros(S),
    }


def dawid_skene(rng, labels):
    n = labels.n_categories
    confusion = dirichlet(rng, S, n, n).transpose(2, 0, 1).copy()
    confusion[rng.random(confusion.shape) < 0.15] = 0.0
    confusion[:, :, 2] = 1.0 / n  # so that no item is impossible
    rows = np.zeros(labels.n_labels)
    sums = np.zeros((n, S, n)), np.zeros(n)
    Kernels("dawid_skene").start(labels.block(), 0, ITEMS, rows, *sums)
    # Other things than truths may be known about items, too: here two.
    other = np.vstack([np.linspace(0.5, 2.0, n), np.linspace(3.0, 0.1, n)])
    labels.known[1::7] = [n, n + 1] * 3
    return {
        "rows": rows,
        "posterior": np.full((ITEMS, n), 7.0),
        "prior": dirichlet(rng, 1, n)[0],
        "known_truth": np.vstack([np.eye(n), other]),
        "confusion": confusion,
        "counts": np.zeros((n, S, n)),
        "classes": np.zeros(n),
        "log_likelihood": np.zeros(1),
    }


def latent_classes(rng, labels):
    return {
        "posterior": np.full((ITEMS, Z), 7.0),
        "theta": np.full((ITEMS, K), 7.0),
        "leading": np.full((ITEMS, K), 7.0),
        "spread": np.full((ITEMS, 3), 7.0),
        "p_serious": np.full(labels.n_labels, 7.0),
        "prior": dirichlet(rng, 1, Z)[0],
        "known_truth": rng.random((K, Z)),
        "confusion": rng.uniform(1e-12, 1.0, (S, K, Z)),
        "other": rng.random((K, Z, G)),
        "repeated": rng.random((K, Z, G)),
        "repeated_label": rng.integers(K, size=S),
        "place": rng.permutation(S),
        "opinions": dirichlet(rng, Z, K),
        "modes": rng.integers(K, size=Z),
        "scores": rng.random(Z),
        "serious": rng.random((S, K, Z)),
        "counts": np.zeros((S, K, Z)),
        "classes": np.zeros(Z),
        "log_likelihood": np.zeros(1),
        **{name: np.zeros((S, S)) for name in ("same", "expected", "common")},
    }


def held_out(rng, labels):
    """Folds 0 and 1, labels that are never held out, and items that are not sampled."""
    fold = rng.choice([NEVER, 0.0, 1.0], labels.n_labels)
    ends = labels.cell_ptr[labels.item_ptr]
    for e in (3, 9, 14):
        fold[ends[e] : ends[e + 1]] = NOT_SAMPLED
    fold[ends[20] : ends[21]] = 1.0  # all labels of an item are held out at once
    of_annotators = hashes(rng, S)
    of_annotators[5:9] = of_annotators[0]  # annotators who are alike
    chance = dirichlet(rng, S, K - 1)
    return {
        **latent_classes(rng, labels),
        "fold": fold,
        "held": NEVER,
        "subtypes": dirichlet(rng, AGREEMENT_BINS, 2),
        "items": np.zeros(AGREEMENT_BINS),
        "annotator_hash": of_annotators,
        "category_hash": hashes(rng, K),
        "item_hash": (hashes(rng, ITEMS) >> np.uint64(12)).astype(float),
        "hash": np.zeros(S),
        "held_share": 0.2,
        "n_folds": 3,
        "sampled_share": 0.7,
        "first_draw": 0,
        "reliability": 0.5,
        "group": np.append(np.arange(K - 1), 0),
        "chance": chance,
        "shares": rng.uniform(0.1, 0.9, (S, K - 1, 3)),
        "eps": rng.uniform(0.01, 0.99, (S, 3)),
        "log_ratio": np.zeros(3),
    }


DRAWS = {"prior": np.array([0.5, 0.2, 0.3]), "serious": np.zeros((S, 3))}


def item_states(rng, labels):
    truth = rng.random((K, Z))
    truth[:, 0] = 0.0
    return {
        **held_out(rng, labels),
        "right": np.zeros((ITEMS, K)),
        "opinion": np.zeros((ITEMS, K)),
        "known_truth": np.vstack([truth, rng.uniform(0.1, 3.0, (2, Z))]),
        "counts": with_totals(rng.uniform(0.0, 9.0, (S, K, Z))),
        "pseudo_counts": with_totals(rng.uniform(0.1, 3.0, (S, K, Z))),
        "correlation": 0.3,
        "right_labels": dirichlet(rng, Z, K),
        "first_state": np.array([0, 3, Z]),
        "correlations": np.array([0.0, 0.1, 1.0]),
        "total": np.zeros(7),
        "products": np.zeros((6, 6)),
    }


def people(rng, labels):
    tables = item_states(rng, labels)
    tables["counts"][2] = 0.0  # from which nothing is taken out
    mass = tables["counts"] + tables["pseudo_counts"]
    return {
        **tables,
        "known_truth": dirichlet(rng, K, Z),
        "log_share": np.log(mass[:, :-1] / mass[:, -1:]),
        "weight": rng.uniform(0.5, 1.0, S),
        "agreement": rng.random((Z, K)),
        "shares": dirichlet(rng, S, K),
        "states": np.zeros((S, Z)),
        "moments": np.zeros((S, CAVITY_MOMENTS)),
        "serious": dirichlet(rng, 2, Z, K).transpose(0, 2, 1).copy(),
        "factor": rng.gamma(2.0, 0.5, (S, 2, K)),
        "normaliser": rng.gamma(2.0, 0.5, (S, 2, Z)),
        "confused": np.argsort(rng.random((S, K)), axis=1),
        "careless": dirichlet(rng, S, 2, K),
        "variant": np.array([0, 1, 2, 0, 1]),
        "behavior": np.array([0, 1, 0, 1, 1]),
        "reliability": np.array([0.1, 0.5, 0.9, 0.99, 0.3]),
        "log_likelihood": np.zeros((S, G)),
        "member": (rng.random(S) < 0.6).astype(float),
        "table": rng.random((K, K)),
        "sums": np.zeros((S, K)),
    }


def ordinal_binary(rng, labels):
    n = labels.n_categories - 1
    hit, false_alarm, prevalence = rng.random((S, n)), rng.random((S, n)), rng.random(n)
    probabilities = (hit, 1 - hit, false_alarm, 1 - false_alarm, prevalence, 1 - prevalence)
    names = ("hit", "miss", "false_alarm", "rejection", "prevalence", "absence")
    return {
        "theta": np.full((ITEMS, n + 1), -1.0),
        **{f"log_{name}": np.log(p) for name, p in zip(names, probabilities, strict=True)},
        **{name: np.zeros((S, n)) for name in names[:4]},
        "prevalence": np.zeros(n),
        "log_likelihood": np.zeros(n),
    }


def ordinal_mixture(rng, labels):
    lattice = make_lattice(np.array([1.0, 2.0, 4.0, 4.5]), 3.0, 3.0)
    level = rng.integers(1, len(lattice.noise) - 1, size=S)
    tables = ("prior", "shift", "anchor", "probability", "log_probability", "nodes", "edges")
    return {
        **{name: getattr(lattice, name) for name in tables},
        "gamma": lattice.difficulty,
        "levels": np.stack([level - 1, level, level + 1], axis=1),
        "tried_level": np.clip(level + 9, 0, len(lattice.noise) - 1),
        "typical_level": 30,
        "eps": rng.uniform(0.01, 0.99, S),
        "pi": dirichlet(rng, S, K),
        "chance": 0.25,
        "score": np.full((ITEMS, 3), -9.0),
        "difficulty": np.full(ITEMS, -9.0),
        "theta": np.full((ITEMS, K), -9.0),
        "p_serious": np.full(labels.n_labels, -9.0),
        "weight": np.full((ITEMS, *lattice.prior.shape), -9.0),
        "predicted": rng.uniform(0.1, 0.9, labels.n_labels),
        "serious": np.zeros(S),
        "gain": np.zeros((S, 3)),
        "irregular": np.zeros((S, K)),
        "log_likelihood": np.zeros(S),
        "slope": np.zeros(S),
    }


def subject_bias(rng, labels):
    """Votes in the middle of a fit, with some ambiguities at 0."""
    group_a2, v2 = rng.random(G), rng.uniform(0.1, 1.5, S)
    return {
        "psi": rng.uniform(1, 5, ITEMS),
        "a2": rng.uniform(0, 1.5, ITEMS) * (rng.random(ITEMS) < 0.7),
        "precision": np.zeros(ITEMS),
        "group": rng.integers(G, size=ITEMS),
        "values": np.array([1.0, 2.0, 3.5, 6.0]),
        "b": rng.normal(0, 0.4, S),
        "v2": v2,
        "group_a2": group_a2,
        "share": 0.5,
        "rounds": 3,
        "move": 0.3,
        "proposed": np.stack([v2, 2 * v2, v2 / 3]),
        "moments": np.zeros((S, 5)),
        "totals": np.zeros(2),
        "log_likelihood": np.zeros((3, S)),
    }


def subject_bias_posterior(rng, labels):
    levels = np.array([0.0, 0.3, 2.0])
    log_prior, root = np.log(np.full(3, 1 / 3)), rng.normal(size=(S, S))
    votes = subject_bias(rng, labels)
    return {
        **votes,
        "offset": votes["a2"],
        **{name: np.zeros(ITEMS) for name in ("mean", "spread")},
        "levels": levels,
        "log_prior": log_prior,
        "log_hyper": np.stack([log_prior, log_prior - np.arange(3)]),
        "v2_levels": np.array([0.1, 0.5, 2.5]),
        "variance": 0.9 * votes["v2"],
        "b_variance": 0.1 * votes["v2"],
        "b_covariance": 0.01 * root @ root.T,
        "v2_moments": rng.uniform(0.1, 1, (S, 3)),
        "log_likelihood": np.zeros((S, 3)),
        "information": np.zeros((S, 3)),
        "moments": np.zeros((S, 2)),
        "hyper": np.zeros(2),
        "coupling": np.zeros((S, S)),
    }


def bwa(rng, labels):
    return {
        "theta": np.full((ITEMS, K), 7.0),
        "weight": rng.gamma(2.0, size=(S, K)),
        "mean": dirichlet(rng, 1, K)[0],
        "strength": 1.5,
        "squares": np.zeros((S, K)),
        "scores": np.zeros((2, K)),
        "right": np.zeros(S),
    }


def glad(rng, labels):
    alpha = rng.normal(1.0, 1.5, size=S)
    alpha[:2] = 0.0, 1e-5
    by_annotator = ("slope", "curvature", "bound", "steepest", "missing", "correct")
    return {
        "b": rng.normal(1.0, 1.0, ITEMS),
        **{name: np.full(labels.n_cells, -1.0) for name in ("total", "posterior")},
        "other": np.full(ITEMS, -1.0),
        "alpha": alpha,
        "shift": 0.3,
        "n_steps": 1,
        "n_categories": labels.n_categories,
        **{name: np.zeros(S) for name in by_annotator},
        "totals": np.zeros(3),
    }


def over_time(rng, labels):
    return {
        "posterior": dirichlet(rng, ITEMS, Z),
        "if_serious": np.zeros(labels.n_labels),
        "if_irregular": np.zeros(labels.n_labels),
        "ratios": rng.uniform(0.1, 1.0, (S, K, 3, Z)).astype(np.float32),
    }


def squarem(rng, labels):
    """Three points of distributions, some of them converged or at a bound."""
    item = labels.item_of_cell()
    points = rng.exponential(size=(3, labels.n_cells)) ** 3
    points[:, ::5] = 0.0
    points[1:, item % 4 == 0] = points[0, item % 4 == 0]
    points[:, item == 7] = 0.0  # a known truth without labels
    names = ("x0", "x1", "x")
    points = [x / np.maximum(np.bincount(item, x)[item], 1e-300) for x in points]
    return {**dict(zip(names, points, strict=True)), "copy": np.full(labels.n_cells, -1.0)}


def presence(rng, labels):
    """Sets of three labels as categories, and two types of items."""
    members = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=float)
    return {
        "posterior": np.full((ITEMS, 3), 7.0),
        "evidence": np.full((ITEMS, 3), 7.0),
        "members": members,
        "present": rng.normal(1.0, 2.0, (S, 3)),
        "absent": rng.normal(-1.0, 2.0, (S, 3)),
        "theta": rng.uniform(0.1, 0.9, (2, 3)),
        "types": np.array([0.3, 0.7]),
        "hits": np.zeros((S, 3)),
        "positives": np.zeros((S, 3)),
        "type_items": np.zeros(2),
        "type_labels": np.zeros((2, 3)),
        "log_likelihood": np.zeros(1),
    }


FAMILIES = {"robust_gpm": latent_classes, "sets": presence}
UNIFORM = {"pi": EMPTY, "irregular": EMPTY}
PROFILE = {"log_likelihood": np.zeros(S)}
ONE = {"log_likelihood": np.zeros(1)}
COUNTS = {"counts": np.zeros((S, K, K)), "classes": np.zeros(K)}
DRAWN = {**DRAWS, "counts": np.zeros((S, K - 1, 3))}
SUBTYPES = {"counts": np.zeros((S, K, 2 * K)), "classes": np.zeros(2 * K)}
BY_GROUP = {"proposed": np.ones((2, G)), "log_likelihood": np.zeros((2, G))}
ONE_LEVEL = {"levels": np.zeros(1), "log_prior": np.zeros(1), "log_hyper": np.zeros((2, 1))}

SQUAREM = ("copy_cells", "extrapolate_cells", "copy_items", "extrapolate_items")
OF_ITEMS = {
    name: np.random.default_rng(n).gamma(1.0, size=ITEMS)
    for n, name in enumerate(("x", "x0", "x1"))
}
OF_ITEMS["copy"] = np.full(ITEMS, -1.0)
ONE_TYPE = {"type_items": np.zeros(1), "type_labels": np.zeros((1, 3))}

CASES = [
    ("gpm.start", [{}]),
    ("gpm.step", [{}, UNIFORM]),
    ("gpm.posterior", [{}, UNIFORM]),
    ("gpm.log_likelihood_by_annotator", [PROFILE, {**PROFILE, **UNIFORM}]),
    # Four to eight classes have a step of their own.
    *(
        (f"dawid_skene.{name}", [{"K": n} for n in (3, 4, 5, 8, 9)])
        for name in ("start", "step", "posterior")
    ),
    ("robust_gpm.start", [COUNTS]),
    ("robust_gpm.leave_one_out", [{"log_likelihood": np.zeros((S, G))}]),
    *((f"robust_gpm.{name}", [{}]) for name in ("step", "count_agreements", "posterior")),
    ("robust_gpm.summarize", [{}]),
    *((f"held_out.{name}", [{"held": n} for n in (NEVER, 0, 1)]) for name in ("agreement", "step")),
    ("held_out.start", [{**SUBTYPES, "held": n} for n in (NEVER, 0, 1)]),
    *((f"held_out.{name}", [{}]) for name in ("hash_annotators", "hash_items", "assign_folds")),
    *(
        (f"held_out.{name}", [DRAWN, {**DRAWN, "first_draw": 7}, {**DRAWN, "reliability": 0.0}])
        for name in ("count_drawn", "agree")
    ),
    *((f"item_states.{name}", [{}, {"correlation": 0.0}]) for name in ("summarize", "posterior")),
    ("item_states.score", [{"held": 0}, {"held": 1}]),
    ("people.moments", [{}]),
    ("people.log_likelihood", [{}]),
    ("people.count_compared", [{"counts": np.zeros((S, K))}]),
    ("people.agreement", [{"moments": np.zeros((S, AGREEMENT_MOMENTS))}]),
    *((f"ordinal_binary.{each}", [{"K": n} for n in (5, 2, 1)]) for each in ("start", "step")),
    ("ordinal_binary.distribution", [{"K": n} for n in (5, 2, 1)]),
    ("ordinal_mixture.step", [{**ONE, **more} for more in ({}, UNIFORM)]),
    ("ordinal_mixture.step", [{**ONE, "log_probability": np.zeros((0, K, 1))}]),
    ("ordinal_mixture.summarize", [{**ONE, **more} for more in ({}, UNIFORM)]),
    *((f"ordinal_mixture.{n}", [{}, UNIFORM]) for n in ("posterior", "leave_one_out")),
    ("ordinal_mixture.log_likelihood_by_annotator", [{}, UNIFORM]),
    ("subject_bias.start", [{"moments": np.zeros((S, 2))}]),
    ("subject_bias.step", [{"rounds": n} for n in (0, 1, 3)]),
    *((f"subject_bias.{n}", [{}]) for n in ("log_likelihood_by_annotator", "shift_level")),
    ("subject_bias.set_ambiguity", [{}]),
    ("subject_bias.moments_by_group", [{"moments": np.zeros((G, 4))}]),
    ("subject_bias.log_likelihood_by_group", [BY_GROUP]),
    ("subject_bias_posterior.step", [{}, {"coupling": EMPTY}, ONE_LEVEL]),
    *(
        ("subject_bias_posterior.score_moments", [{**more, "variance": np.zeros(ITEMS)}])
        for more in ({}, {"b_covariance": EMPTY}, ONE_LEVEL)
    ),
    *((f"squarem.{name}", [{"limit": n} for n in (1.0, 9.0)]) for name in SQUAREM[:2]),
    *(
        (f"squarem.{name}", [{**OF_ITEMS, "limit": 9.0, "non_negative": n} for n in (True, False)])
        for name in SQUAREM[2:]
    ),
    ("bwa.step", [{}]),
    ("bwa.distribution", [{}]),
    ("glad.start", [{}]),
    ("glad.step", [{"n_steps": n, "K": k} for n, k in ((0, 2), (1, 4), (3, 5))]),
    ("glad.sum_correct", [{}]),
    ("over_time.label_evidence", [{}]),
    ("sets.presence.start", [{}]),
    ("sets.presence.step", [{}, {"theta": np.full((1, 3), 0.2), "types": np.ones(1), **ONE_TYPE}]),
]


@pytest.mark.parametrize(("lo", "hi"), [(0, ITEMS), (7, 23), (39, ITEMS)])
@pytest.mark.parametrize(
    ("kernel", "more"), [(kernel, more) for kernel, variants in CASES for more in variants]
)
def test_kernels_equal_their_twins(make_labels, kernel, more, lo, hi):
    more = dict(more)
    rng = np.random.default_rng(3)
    n_categories = more.pop("K", K)
    labels = make_labels(rng, n_items=ITEMS, n_annotators=S, n_categories=n_categories)
    labels.known[::7] = min(2, n_categories - 1)
    family = kernel.partition(".")[0]
    arrays = {**(FAMILIES.get(family) or globals()[family])(rng, labels), **more}
    arrays = {name: not_zero(np.asarray(values)) for name, values in arrays.items()}
    names = argument_names(kernel)[3:]
    results = []
    for reference in (False, True):
        given = {name: np.copy(arrays[name]) for name in names}
        given = {name: value if value.ndim else value.item() for name, value in given.items()}
        find_kernel(kernel, reference=reference)(labels.block(), lo, hi, **given)
        results.append(
            [value.view(np.uint64) if n == "rows" else value for n, value in given.items()]
        )
    assert_same(results, rtol=1e-10, atol=1e-12)
    ends = labels.cell_ptr[labels.item_ptr]
    ranges = {
        ITEMS: (lo, hi),
        labels.n_labels: ends[[lo, hi]],
        labels.n_cells: labels.item_ptr[[lo, hi]],
    }
    written = False
    for name, after in zip(names, results[0], strict=True):
        before = arrays[name]
        after = after.view(before.dtype) if name == "rows" else np.asarray(after)
        written |= not np.array_equal(before, after)
        if before.ndim and len(before) in ranges:
            outside = np.ones(len(before), dtype=bool)
            outside[slice(*ranges[len(before)])] = False
            np.testing.assert_array_equal(after[outside], before[outside], err_msg=name)
    assert written or n_categories == 1


def test_fit_tilts_equals_its_twin():
    rng = np.random.default_rng(5)
    states, counts = rng.gamma(1.0, 9.0, (S, Z)), rng.integers(0, 40, (S, K)).astype(float)
    states[1], counts[1] = 0.0, 0.0  # an annotator without labels
    given = {
        "theta": dirichlet(rng, 3, Z, K).transpose(0, 2, 1).copy(),
        "deviation": np.array([0.0, 0.5, 3.0]),
        "states": states,
        "counts": counts,
    }
    results = []
    for reference in (False, True):
        shapes = {"factor": (S, 3, K), "normaliser": (S, 3, Z)}
        shapes |= {"variance": (S, 3), "log_prior": (S, 3)}
        written = {name: np.zeros(shape) for name, shape in shapes.items()}
        find_kernel("people.fit_tilts", reference=reference)(1, S - 1, **given, **written)
        results.append(list(written.values()))
    assert_same(results, rtol=1e-8, atol=1e-10)
    factor, _, variance, log_prior = results[0]
    assert (factor[:, 0] == [[0.0]] + [[1.0]] * (S - 2) + [[0.0]]).all()
    assert (variance[1:-1, 1:] > 0.0).all()
    assert (log_prior[2:-1, 1:] < 0.0).all()
