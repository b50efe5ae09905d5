"""What all models that are fitted by EM have in common: what rises, known truths, refused options."""

import math
import tracemalloc
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.models.fitting import estimator, fitted

import annotruth as at
from annotruth.models.registry import get_model
from annotruth.observations import Labels, Scale

TABLE = [
    *[("a", "x", 1), ("a", "y", 1), ("a", "z", 2)],
    *[("b", "x", 2), ("b", "y", 2), ("b", "z", 2)],
    *[("c", "x", 3), ("c", "z", 1)],
]
CLASS_MODELS = ("dawid-skene", "one-coin", "ibcc", "ebcc", "mace", "bwa", "glad")
HISTORY = ("objective", "log_likelihood")


class Rising(NamedTuple):
    """How a model is fitted to labels without structure, and which of its numbers rises."""

    options: dict[str, Any]  # names to strategies or values
    rising: str = "objective"
    tol: float = 0.0
    max_iter: int = 60


RISING = {
    "gpm": Rising(
        {"behavior": st.sampled_from(["uniform", "learned"])}, "log_likelihood", 1e-9, 200
    ),
    "dawid-skene": Rising({}, "log_likelihood", max_iter=100),
    **dict.fromkeys(
        ("one-coin", "ibcc", "ebcc", "mace", "bwa"), Rising({"acceleration": st.booleans()})
    ),
    "glad": Rising({}, tol=1e-9, max_iter=100),
    "ordinal-mixture": Rising(
        {
            "behavior": st.sampled_from(["uniform", "learned"]),
            "expertise_shape": st.floats(0.1, 30.0),
            "difficulty_shape": st.floats(0.1, 30.0),
        }
    ),
    "ordinal-binary": Rising(
        {"prior": st.sampled_from([1e-6, 0.5, 1.0]), "acceleration": st.booleans()},
        tol=1e-9,
        max_iter=200,
    ),
    # Maximum likelihood, which has no prior in its objective.
    "ordinal-binary, no prior": Rising(
        {"prior": st.just(0.0), "acceleration": st.booleans()}, "log_likelihood", 1e-9, 200
    ),
    # Plain steps: an extrapolation may begin at a lower likelihood, which its step makes up for.
    "subject-bias": Rising(
        {"ambiguity": st.sampled_from(["item", "shared", "group"]), "acceleration": st.just(False)},
        "log_likelihood",
        1e-9,
        200,
    ),
}

SIZES = {
    "seed": st.integers(0, 2**32 - 1),
    "n_items": st.integers(1, 12),
    "n_annotators": st.integers(1, 8),
    "n_categories": st.integers(1, 6),
    "unused": st.integers(0, 2),
    "n_known": st.integers(0, 3),
    # Several labels by one annotator on one item: products that underflow, behaviors that are learned.
    "copies": st.sampled_from([1, 2, 6, 150]),
    "agreement": st.sampled_from([0.0, 0.0, 0.2, 0.9, 1.0]),  # from noise to unanimity
}


def labels_without_structure(rng, make_labels, *, n_known, agreement, uneven, **sizes):
    labels = make_labels(rng, **sizes)
    n_used, n_all = sizes["n_categories"], sizes["n_categories"] + sizes["unused"]
    item, label = labels.item_of_label(), labels.category_of_label()
    agrees = rng.random(len(item)) < agreement
    values = np.cumsum(rng.uniform(0.1, 3.0, n_all)) if uneven else np.arange(1.0, n_all + 1.0)
    labels = Labels.from_codes(
        item,
        labels.annotator,
        np.where(agrees, item % n_used, label),
        items=labels.items,
        annotators=labels.annotators,
        scale=Scale.ordinal(values.tolist()),
    )
    labels.known[:n_known] = rng.integers(n_all, size=n_known)[: labels.n_items]
    return labels


@pytest.mark.parametrize("case", RISING)
@given(data=st.data(), **SIZES)
def test_the_objective_rises_at_every_step(case, make_labels, data, seed, copies, **sizes):
    rng, rising, name = np.random.default_rng(seed), RISING[case], case.partition(",")[0]
    # Items with 150 labels of one annotator are beyond what scales are made for.
    copies = min(copies, 6 if name in ("ordinal-mixture", "subject-bias") else copies)
    uneven = name in ("ordinal-mixture", "subject-bias")
    labels = labels_without_structure(rng, make_labels, copies=copies, uneven=uneven, **sizes)
    options = {option: data.draw(values) for option, values in rising.options.items()}
    if options.get("ambiguity") == "group":
        options["ambiguity"] = {item: int(rng.integers(3)) for item in labels.items.to_pylist()}
    fit = fitted(name, labels, tol=rising.tol, max_iter=rising.max_iter, **options)
    history = getattr(fit.history, rising.rising)
    assert all(np.isfinite(getattr(fit.history, each)).all() for each in HISTORY)
    assert np.diff(history).min(initial=0.0) >= -1e-11 * max(1.0, np.abs(history).max())
    if name == "subject-bias":  # the objective after a step is the likelihood before the next
        np.testing.assert_allclose(fit.history.objective[:-1], history[1:-1], rtol=1e-9, atol=1e-9)
    check_results(fit, labels.n_categories)


def check_results(fit, n_categories):
    """Distributions sum to 1, and intervals contain what they are intervals of."""
    if fit.distribution is not None:
        np.testing.assert_allclose(fit.distribution.dense(n_categories).sum(axis=1), 1.0, atol=1e-9)
    if "score_low" in fit.item_columns:
        assert (fit.item_columns["score_low"] <= fit.score + 1e-9).all()
        assert (fit.item_columns["score_high"] >= fit.score - 1e-9).all()
    if fit.low is not None:
        assert ((fit.low >= 0) & (fit.low <= fit.reliability)).all()
        assert ((fit.reliability <= fit.high) & (fit.high <= 1)).all()
    for column in (*fit.item_columns.values(), *fit.annotator_columns.values()):
        assert fit.model == "ordinal-binary" or np.isfinite(np.asarray(column)).all()


@example(seed=638398, n_items=6, n_annotators=4, n_categories=5, unused=0, agreement=0.171875)
@given(
    agreement=st.floats(0.0, 1.0),
    **{
        name: values
        for name, values in SIZES.items()
        if name not in ("copies", "n_known", "agreement")
    },
)
def test_the_log_posterior_of_glad_starts_at_the_priors(make_labels, seed, **sizes):
    """From its start too, and after an extrapolation after which sums of 1e22 cancel."""
    rng = np.random.default_rng(seed)
    labels = labels_without_structure(rng, make_labels, n_known=2, copies=6, uneven=False, **sizes)
    history = fitted("glad", labels, tol=1e-9, max_iter=100).history
    n_priors = labels.n_items + labels.n_annotators
    start = history.log_likelihood[0] - 0.5 * n_priors * np.log(2 * np.pi)
    history = np.append(start, history.objective)
    assert np.diff(history).min() >= -1e-11 * max(1.0, abs(start))


@pytest.mark.parametrize("name", ["gpm", *CLASS_MODELS])
def test_known_truths_fix_items_and_assess_annotators(name):
    table = [(e, s, (e + (s in "de")) % 2) for e in range(20) for s in "abcde"]
    plain = fitted(name, table)
    gold = fitted(name, table, gold={e: 1 - e % 2 for e in range(20)})
    assert plain.label.tolist() == [0, 1] * 10
    assert gold.label.tolist() == [1, 0] * 10
    assert (gold.distribution.confidence() == 1.0).all()
    assert plain.reliability[0] > 0.7 > plain.reliability[4]
    assert gold.reliability[4] > 0.7 > gold.reliability[0]


@pytest.mark.parametrize("name", ["gpm", "ordinal-binary", *CLASS_MODELS])
def test_a_known_truth_may_be_a_category_without_labels(name):
    labels = Labels.of([("a", "x", 1), ("a", "y", 1), ("b", "x", 2)], categories=[1, 2, 3])
    fit = fitted(name, labels, gold={"a": 3})
    row = fit.items().set_index("item").loc["a"]
    assert (row.label, row.p_3, row.p_1, row.entropy) == (3, 1.0, 0.0, 0.0)
    assert np.isfinite(fit.history.log_likelihood).all()


@pytest.mark.parametrize("name", ["gpm", *CLASS_MODELS])
def test_a_tie_goes_to_the_first_category_of_the_scale(name):
    table = [("a", "x", "lo"), ("a", "y", "hi")]
    for first, second in [("lo", "hi"), ("hi", "lo")]:
        labels = Labels.of(table, categories=[first, second])
        assert fitted(name, labels).items().label.tolist() == [first]


@pytest.mark.parametrize(
    ("name", "simulated"),
    [("gpm", at.simulate.crowd), ("ordinal-mixture", at.simulate.gaussian)],
)
def test_learned_behavior_detects_and_predicts_repeated_labels(name, simulated):
    made = simulated(n_items=300, n_annotators=30, behavior="repeated", seed=3)
    model = estimator(name, made.labels, behavior="learned", max_iter=5000)
    spammers = np.flatnonzero(made.reliability < 0.3)
    assert len(spammers) > 0
    for s in spammers:
        assert model.result_.behavior[s] == f"repeated {made.repeated_label[s] + 1}"
        assert model.predict_proba([0], [s])[0].argmax() == made.repeated_label[s]
    assert set(fitted(name, made.labels).behavior) == {"serious", "irregular"}


@pytest.mark.parametrize("name", ["glad", "ordinal-mixture"])
def test_items_with_disagreement_are_more_difficult(name):
    clear = [(e, s, 1 + e % 5) for e in range(20) for s in range(8)]
    hard = [(e, s, 2 + 2 * ((e + s) % 2)) for e in range(20, 25) for s in range(8)]
    difficulty = fitted(name, clear + hard).item_columns["difficulty"]
    assert (difficulty > 0).all()
    assert difficulty[20:].min() > 1.2 * difficulty[:20].max()


@pytest.mark.parametrize("name", ["gpm", "glad"])
def test_memory_does_not_grow_with_items_times_classes(name):
    rng = np.random.default_rng(0)
    n_items = 100_000
    item = np.repeat(np.arange(n_items), 2)
    labels = Labels.from_codes(
        item,
        np.tile([0, 1], n_items),
        rng.integers(1000, size=len(item)),
        items=np.arange(n_items),
        annotators=["x", "y"],
        scale=Scale.nominal(list(range(1000))),
    )
    labels.known[0] = 999
    tracemalloc.start()
    fit = fitted(name, labels, max_iter=2)
    fit.item_table()
    fit.distribution_table()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n_items * 1000 * 8 / 10
    shares = np.add.reduceat(fit.distribution.probability, fit.distribution.ptr[:-1])
    assert shares[0] == pytest.approx(1.0)
    if name == "glad":  # classes that nobody chose are not stored
        assert shares[1:].max() < 1.0
    assert fit.label[0] == 999


EVERY = ("gpm", "robust-gpm", *CLASS_MODELS, "ordinal-binary", "ordinal-mixture", "subject-bias")


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": -1}, "tol must be 0 or more"),
        ({"tol": math.nan}, "tol must be 0 or more"),
        ({"tol": math.inf}, "tol must be 0 or more, and finite, not inf"),
        ({"max_iter": 0}, "max_iter must be 1 or more"),
        ({"max_iter": 10**20}, "max_iter is 100000000000000000000: integers must be below"),
        ({"engine": "abacus"}, "unknown engine 'abacus'"),
        ({"engine": 2}, "unknown engine 2: choose memory"),
        ({"shrink": 1}, "has no option 'shrink': it has"),
    ],
)
def test_options_of_the_loop_are_checked(name, options, message):
    with pytest.raises(at.InputError, match=message):
        at.fit(TABLE, name, **options)


GROUPS = pd.Series([1, 2, 2, 3], index=list("abca"))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        *(
            (name, {"behavior": "odd"}, "unknown behavior 'odd': choose uniform or learned")
            for name in ("gpm", "ordinal-mixture")
        ),
        *(
            (name, {option: value}, f"{option} must be above 0, and finite, not {value}")
            for name, option in [
                *(("ibcc", option) for option in ("alpha", "diagonal", "off_diagonal")),
                *(("ebcc", option) for option in ("subtype_prior", "diagonal", "off_diagonal")),
                *(("mace", option) for option in ("alpha", "beta", "spam_prior")),
                *(("bwa", option) for option in ("pseudo_labels", "strength")),
                *(("ordinal-mixture", f"{of}_shape") for of in ("expertise", "difficulty")),
            ]
            for value in (0.0, math.inf, math.nan)
        ),
        *(
            (
                "ordinal-binary",
                {"prior": value},
                f"prior must be 0 or more, and finite, not {value}",
            )
            for value in (-1.0, math.nan, math.inf)
        ),
        ("mace", {"n_init": 0}, "n_init must be 1 or more, not 0"),
        ("mace", {"seed": -1}, "seed must be 0 or more, not -1"),
        ("ebcc", {"n_subtypes": 0}, "n_subtypes must be from 1 to 1,000, not 0"),
        ("robust-gpm", {"truth": "both"}, "unknown truth 'both'"),
        ("subject-bias", {"ambiguity": "content"}, "unknown ambiguity 'content': choose 'item' or"),
        (
            "subject-bias",
            {"ambiguity": ["a"]},
            "ambiguity cannot be read from list: give a mapping",
        ),
        ("subject-bias", {"ambiguity": pd.DataFrame({"a": [1]})}, "cannot be read from DataFrame"),
        ("subject-bias", {"ambiguity": {}}, r"ambiguity gives item 'a' no group \(3 such items\)"),
        ("subject-bias", {"ambiguity": {"a": 1, "b": None, "c": 1}}, r"item 'b' no group \(1 such"),
        ("subject-bias", {"ambiguity": GROUPS}, "item 'a' into groups 1 and 3: name one group"),
    ],
)
def test_options_of_one_model_are_checked(name, options, message):
    with pytest.raises(at.InputError, match=message):
        get_model(name)(**options).fit(TABLE)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("robust-gpm", {"truth": "opinions"}),
        *((name, {}) for name in ("mean", "median", "ordinal-mixture", "subject-bias")),
    ],
)
def test_scores_need_an_ordinal_scale(name, options):
    match = "needs an ordinal scale, and these 2 categories have no order: list"
    with pytest.raises(at.InputError, match=f"{name}.* {match}"):
        get_model(name)(**options).fit([("a", "x", "cat"), ("a", "y", "dog")])


@pytest.mark.parametrize("model", [at.GPM, 5])
def test_a_model_that_is_neither_name_nor_estimator_is_refused(model):
    with pytest.raises(at.InputError, match="pass a name, or an estimator such as"):
        at.fit(TABLE, model)
