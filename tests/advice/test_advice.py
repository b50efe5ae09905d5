"""Which items need labels, which need no more, whom to ask."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.analyses.advice.advice import advise
from annotruth.analyses.advice.annotators import VERDICTS
from annotruth.analyses.advice.items import ITEM_STATUS, LEAST_GAIN, MAX_PER_ROUND, Reasons
from annotruth.models import em
from annotruth.models.registry import MODELS


@pytest.mark.parametrize(
    ("ordinal", "options"), [(True, {"truth": "opinions"}), (True, {}), (False, {})]
)
def test_divided_items_need_no_labels_and_uncertain_ones_do(three_kinds_of_items, ordinal, options):
    items = at.next_labels(three_kinds_of_items(0, ordinal=ordinal), budget=60, **options).items()
    add, status, why = items["add"], items["status"], items["why"]
    kind = items["item"].str.split(" ").str[0]
    assert add[kind == "divided"].sum() == 0
    assert add[kind == "certain"].sum() == 0
    assert add[kind == "uncertain"].sum() == 60
    assert (status[kind == "divided"] == "divided").mean() > 0.7
    assert why[status == "divided"].str.startswith("divided between ").all()
    assert (status[kind == "certain"] == "needs no more labels").mean() > 0.9
    assert (status[(kind == "uncertain") & (add > 0)] == "needs labels").all()


@pytest.mark.parametrize("model", MODELS)
def test_every_model_gives_advice_without_another_fit(model, monkeypatch):
    made = at.simulate.crowd(n_items=40, n_annotators=15, labels_per_item=5, seed=1)
    fit = at.fit(made.labels, model)

    def refuse(*args, **kwargs):
        raise AssertionError("advice must not run EM")

    monkeypatch.setattr(em, "run_em", refuse)
    for module in list(__import__("sys").modules.values()):
        if getattr(module, "__name__", "").startswith("annotruth.models") and hasattr(
            module, "run_em"
        ):
            monkeypatch.setattr(module, "run_em", refuse)
    advice = advise(fit)
    items, people = advice.items(), advice.annotators()
    assert set(items["status"]) <= set(ITEM_STATUS)
    assert set(people["verdict"]) <= set(VERDICTS)
    assert (items["status"] == "needs labels").any()
    assert ((items["add"] > 0) == (items["status"] == "needs labels")).all()
    assert items["add"].max() <= MAX_PER_ROUND
    assert np.isfinite(items["gain"]).all()
    assert np.isfinite(people["information"]).all()
    assert (people["ask"] == (people["verdict"] != "drop") & (people["information"] >= 0.5)).all()
    assert len(advice.assignments()) == advice.n_add


@pytest.mark.parametrize("model", MODELS)
def test_a_saved_fit_gives_the_same_advice(model, tmp_path):
    made = at.simulate.crowd(n_items=30, n_annotators=10, labels_per_item=5, seed=2)
    fit = at.fit(made.labels, model)
    fit.save(tmp_path / "fit")
    before, after = at.next_labels(fit), at.next_labels(tmp_path / "fit")
    pd.testing.assert_frame_equal(before.items(), after.items())
    pd.testing.assert_frame_equal(before.annotators(), after.annotators())


def test_a_fit_takes_no_options_for_labels(tmp_path):
    fit = at.fit([("a", "x", 1), ("a", "y", 2)])
    for options in ({"gold": {"a": 1}}, {"scale": "nominal"}, {"model": "gpm"}, {"tol": 1e-3}):
        with pytest.raises(at.InputError, match="only for labels"):
            at.next_labels(fit, **options)
    with pytest.raises(at.InputError, match="no saved fit in"):
        at.next_labels(tmp_path)


def test_gain_does_not_follow_entropy(three_kinds_of_items):
    advice = at.next_labels(three_kinds_of_items(0, ordinal=True), truth="opinions")
    items, entropy = advice.items(), advice.fit.items()["entropy"]
    divided = items["item"] == "divided 0"
    uncertain = items["item"] == "uncertain 0"  # few labels, which agree
    assert entropy[divided].item() > entropy[uncertain].item() - 0.2
    assert items["gain"][uncertain].item() > 10 * items["gain"][divided].item()


def test_without_a_budget_all_labels_worth_it_are_asked_for(three_kinds_of_items):
    rows = three_kinds_of_items(1, ordinal=False)
    some, every = at.next_labels(rows, 20), at.next_labels(rows)
    assert (some.n_add, every.budget) == (20, None)
    assert every.n_add > 20
    assert (every.add >= some.add).all()
    assert ((every.add > 0) == (every.of_items.gain >= LEAST_GAIN)).all()
    rich = at.next_labels(rows, 10**6)
    assert rich.n_add == every.n_add
    assert "for the next round" in rich.summary()
    for column in ("status", "why"):  # they do not depend on the budget
        assert (some.items()[column] == every.items()[column]).all()


def test_where_no_label_is_worth_it_the_rest_of_a_budget_is_not_for_the_next_round():
    rows = [(e, s, "ab"[e % 2]) for e in range(30) for s in range(12)]
    advice = at.next_labels(rows, 50)
    assert advice.n_add == 0
    _, said, *_ = advice.summary().splitlines()
    assert said == "add no labels: one more is expected to gain less than 0.001 on every item"


def test_more_labels_per_item_gain_less():
    gains = [
        at.next_labels(
            at.simulate.crowd(n_items=100, n_annotators=40, labels_per_item=n, seed=1).labels
        ).of_items.gain.mean()
        for n in (3, 20, 40)
    ]
    assert gains[0] > 2 * gains[1] > 2 * gains[2]


def test_spammers_are_not_asked_and_reliable_annotators_are():
    made = at.simulate.crowd(
        n_items=200, n_annotators=30, labels_per_item=8, behavior="repeated", seed=4
    )
    people = at.next_labels(made.labels).annotators()
    assert not people["ask"][made.reliability < 0.3].any()
    assert people["ask"][made.reliability > 0.9].all()
    dropped = people[people["verdict"] == "drop"]
    assert len(dropped) >= 2
    assert (made.reliability[dropped.index] < 0.5).all()
    evidence = "repeated .*times likelier if labels do not follow .*for example .*low information"
    assert dropped["reason"].str.contains(evidence).all()
    assert np.corrcoef(people["information"], made.reliability)[0, 1] > 0.8


def test_a_new_annotator_has_too_few_labels():
    made = at.simulate.crowd(n_items=60, n_annotators=20, labels_per_item=6, seed=2)
    rows = made.labels.to_arrow().to_pandas()
    new = pd.DataFrame({"item": [1, 2], "annotator": [99, 99], "label": [3, 3]})
    people = at.next_labels(pd.concat([rows, new])).annotators().set_index("annotator")
    assert people["verdict"][99] == "too few labels"
    assert "on 2 labels: too few labels to tell" in people["reason"][99]


def test_an_item_of_known_truth_needs_no_labels():
    made = at.simulate.crowd(n_items=30, n_annotators=15, labels_per_item=3, seed=2)
    before = at.next_labels(made.labels).items()
    after = at.next_labels(made.labels, gold={5: 3}).items()
    assert before["add"][4] > 0
    assert after["add"][4] == 0
    assert (after["status"][4], after["why"][4]) == ("known truth", "its truth was given")


def test_assignments_name_annotators_who_have_not_labelled_the_item():
    made = at.simulate.crowd(n_items=40, n_annotators=15, labels_per_item=3, seed=3)
    advice = at.next_labels(made.labels, 50)
    work = advice.assignments()
    assert len(work) == 50
    labelled = set(
        made.labels.to_arrow().select(["item", "annotator"]).to_pandas().itertuples(False)
    )
    assert not labelled & set(work.dropna().astype(int).itertuples(False))
    ask = advice.annotators().set_index("annotator")["ask"]
    assert ask[work["annotator"].dropna().astype(int)].all()
    assert advice.assignments(max_per_annotator=2)["annotator"].value_counts().max() == 2


def test_only_items_that_all_of_those_to_ask_have_labelled_are_assigned_to_nobody():
    made = at.simulate.crowd(n_items=100, n_annotators=10, labels_per_item=6, seed=0)
    advice = at.next_labels(made.labels, 50)
    work = advice.assignments()
    to_ask = set(advice.annotators().query("ask")["annotator"])
    rows = made.labels.to_arrow().to_pandas()
    for item, missing in work[work["annotator"].isna()].groupby("item"):
        done = set(rows.loc[rows["item"] == item, "annotator"])
        now = set(work.loc[work["item"] == item, "annotator"].dropna())
        assert to_ask <= done | now, (item, len(missing))
    share = 50 / len(to_ask)
    assert work["annotator"].value_counts().max() <= np.ceil(4 / 3 * share) + 1
    some = advice.assignments(max_per_annotator=int(np.ceil(4 / 3 * share)))
    assert some["annotator"].isna().sum() > work["annotator"].isna().sum()


def test_where_everybody_is_dropped_new_annotators_are_needed():
    made = at.simulate.crowd(n_items=20, n_annotators=6, labels_per_item=3, seed=3)
    fit = at.fit(made.labels, "gpm")
    dropped = replace(
        fit,
        reliability=np.full(6, 0.1),
        low=np.zeros(6),
        high=np.full(6, 0.2),
        behavior=["random"] * 6,
    )
    advice = advise(dropped)
    assert set(advice.of_annotators.verdict) == {"drop"}
    assert not advice.of_annotators.ask.any()
    assert advice.n_add > 0
    assert advice.assignments()["annotator"].isna().all()
    assert advice.of_annotators.why_nobody("labelled the item") == (
        "none of the annotators should be asked, so find new people"
    )


def test_tables_come_in_the_callers_library():
    made = at.simulate.crowd(n_items=20, n_annotators=10, labels_per_item=3, seed=3)
    advice = at.next_labels(pl.from_arrow(made.labels.to_arrow()))
    assert isinstance(advice.items(), pl.DataFrame)
    assert advice.items().columns == [
        *("item", "n_labels", "status", "add", "why", "uncertainty", "gain"),
    ]
    assert isinstance(advice.annotators(), pl.DataFrame)
    assert advice.annotators().columns == [
        *("annotator", "n_labels", "verdict", "ask", "reason", "information", "reliability"),
    ]
    assert isinstance(advice.assignments(), pl.DataFrame)


@pytest.mark.parametrize("model", [None, "majority", "gpm", "mean"])
@pytest.mark.parametrize(
    "rows",
    [
        [("a", "x", 1)],
        [("a", "x", 1), ("a", "y", 2)],
        [("a", "x", 1), ("b", "x", 2), ("c", "x", 1)],
    ],
    ids=["one label", "one item", "one annotator"],
)
def test_the_smallest_data_give_advice(rows, model):
    advice = at.next_labels(rows, 5, model=model)
    assert 0 <= advice.n_add <= 5
    assert np.isfinite(advice.of_items.gain).all()
    assert advice.summary()


def test_names_with_bars_are_written_whole():
    sets = pa.array(["a|a|b|b", "a|b", "a|b|b", "b"])
    assert Reasons.of_sets(sets, ["a", "a|b", "b"]).uncertain.to_pylist() == [
        "top label undecided: a, a|b or b",
        "top label undecided: a or b",
        "top label undecided: a|b or b",
        "top label b, distribution uncertain",
    ]


@pytest.mark.parametrize("budget", [0, -3, 2.5, True])
def test_a_budget_that_is_no_number_of_labels_is_refused(budget):
    with pytest.raises(at.InputError, match="give a whole number of labels from 1"):
        at.next_labels([("a", "x", 1), ("a", "y", 2)], budget)


def test_a_load_that_is_no_number_of_labels_is_refused():
    advice = at.next_labels([("a", "x", 1), ("a", "y", 2)])
    with pytest.raises(at.InputError, match="max_per_annotator is 0: give a whole number from 1"):
        advice.assignments(max_per_annotator=0)
