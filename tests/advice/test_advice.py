"""Which items need labels, which have enough, whom to ask."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import annotruth as at


@pytest.mark.parametrize(
    ("ordinal", "options"), [(True, {"truth": "opinions"}), (True, {}), (False, {})]
)
def test_divided_items_stop_and_open_ones_go_on(three_sorts, ordinal, options):
    items = at.next_labels(three_sorts(0, ordinal=ordinal), budget=60, **options).items()
    add, why = items["add"], items["why"]
    sort = items["item"].str.split(" ").str[0]
    assert add[sort == "divided"].sum() == 0
    assert add[sort == "settled"].sum() == 0
    assert add[sort == "open"].sum() == 60
    assert (why[sort == "divided"] == "divided, and known to be").mean() > 0.7
    assert (why[sort == "settled"] == "settled").all()
    assert why[(sort == "open") & (add > 0)].str.startswith("open ").all()


def test_it_is_not_the_entropy_that_asks_for_labels(three_sorts):
    advice = at.next_labels(three_sorts(0, ordinal=True), truth="opinions")
    items, entropy = advice.items(), advice.fit.items()["entropy"]
    divided = items["item"].str.startswith("divided 0")
    certain = items["item"].str.startswith("open 0")  # few labels, which agree
    assert entropy[divided].item() > entropy[certain].item() - 0.2
    assert items["gain"][certain].item() > 10 * items["gain"][divided].item()


def test_without_a_budget_all_that_is_worth_it_is_asked_for(three_sorts):
    rows = three_sorts(1, ordinal=False)
    some, every = at.next_labels(rows, 20), at.next_labels(rows)
    assert (some.n_add, every.budget) == (20, None)
    assert every.n_add > 20
    assert (every.add >= some.add).all()
    assert ((every.add > 0) == ~every.done).all()
    rich = at.next_labels(rows, 10**6)
    assert rich.n_add == every.n_add
    assert "of the budget would change little" in rich.summary()


def test_others_gain_more_where_the_budget_is_short(three_sorts):
    items = at.next_labels(three_sorts(1, ordinal=False), 1).items()
    assert (items["why"] == "others gain more").sum() > 5


def test_more_labels_of_the_same_kind_gain_less():
    made = at.simulate.crowd(n_items=100, n_annotators=40, seed=1)
    few, many = (
        at.simulate.crowd(n_items=100, n_annotators=40, labels_per_item=n, seed=1) for n in (3, 20)
    )
    gains = [at.next_labels(m.labels).gain.mean() for m in (few, many, made)]
    assert gains[0] > 2 * gains[1] > 2 * gains[2]


def test_spammers_are_not_asked_and_the_reliable_are():
    made = at.simulate.crowd(
        n_items=200, n_annotators=30, labels_per_item=8, behavior="repeated", seed=4
    )
    people = at.next_labels(made.labels).annotators()
    ask = people["ask"].to_numpy()
    assert set(ask[made.reliability < 0.3]) == {"stop"}
    assert "stop" not in ask[made.reliability > 0.9]
    assert people["why"][made.reliability < 0.3].str.contains("repeated .*: tells little").all()
    assert np.corrcoef(people["worth"], made.reliability)[0, 1] > 0.8


def test_somebody_hardly_known_is_worth_a_try():
    made = at.simulate.crowd(n_items=60, n_annotators=20, labels_per_item=6, seed=2)
    rows = made.labels.to_arrow().to_pandas()
    newcomer = pd.DataFrame({"item": [1, 2], "annotator": [99, 99], "label": [3, 3]})
    people = at.next_labels(pd.concat([rows, newcomer])).annotators().set_index("annotator")
    assert people["ask"][99] == "try"
    assert people["why"][99] == "too few labels to tell: try known items"


def test_an_item_whose_truth_is_known_gets_none():
    made = at.simulate.crowd(n_items=30, n_annotators=15, labels_per_item=3, seed=2)
    before = at.next_labels(made.labels).items()
    after = at.next_labels(made.labels, gold={5: 3}).items()
    assert before["add"][4] > 0
    assert after["add"][4] == 0
    assert after["why"][4] == "truth known"


def test_assignments_name_people_who_have_not_seen_the_item():
    made = at.simulate.crowd(n_items=40, n_annotators=15, labels_per_item=3, seed=3)
    advice = at.next_labels(made.labels, 50)
    work = advice.assignments()
    assert len(work) == 50
    seen = set(made.labels.to_arrow().select(["item", "annotator"]).to_pandas().itertuples(False))
    assert not seen & set(work.dropna().astype(int).itertuples(False))
    ask = advice.annotators().set_index("annotator")["worth"]
    assert (ask[work["annotator"].dropna().astype(int)] >= 0.5).all()
    assert advice.assignments(most=2)["annotator"].value_counts().max() == 2


def test_tables_come_in_the_callers_library():
    made = at.simulate.crowd(n_items=20, n_annotators=10, labels_per_item=3, seed=3)
    advice = at.next_labels(pl.from_arrow(made.labels.to_arrow()))
    assert isinstance(advice.items(), pl.DataFrame)
    assert advice.items().columns == ["item", "n_labels", "add", "uncertainty", "gain", "why"]
    assert isinstance(advice.annotators(), pl.DataFrame)
    assert isinstance(advice.assignments(), pl.DataFrame)


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "x", "yes")],
        [("a", "x", 1), ("a", "y", 2)],
        [("a", "x", 1), ("b", "x", 2), ("c", "x", 1)],
    ],
    ids=["one label", "one item", "one annotator"],
)
def test_little_is_no_error(rows):
    advice = at.next_labels(rows, 5)
    assert 0 <= advice.n_add <= 5
    assert np.isfinite(advice.gain).all()
    assert advice.summary()


@pytest.mark.parametrize("budget", [0, -3, 2.5, True])
def test_a_budget_is_a_number_of_labels(budget):
    with pytest.raises(at.InputError, match="give a whole number of labels from 1"):
        at.next_labels([("a", "x", 1), ("a", "y", 2)], budget)


def test_a_load_is_a_number_of_labels():
    advice = at.next_labels([("a", "x", 1), ("a", "y", 2)])
    with pytest.raises(at.InputError, match="most is 0: give a whole number from 1"):
        advice.assignments(most=0)


def test_options_are_those_of_robust_gpm():
    with pytest.raises(at.InputError, match="robust-gpm has no option 'speed'"):
        at.next_labels([("a", "x", 1), ("a", "y", 2)], speed=9)
