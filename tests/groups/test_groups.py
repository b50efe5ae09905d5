"""Fits with groups: opinions of groups, annotators of a minority, tables, errors, command line."""

import json

import numpy as np
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.errors import InputError


def hellinger(p, q):
    return np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=-1) / 2)


@pytest.fixture(scope="module")
def simulated():
    """Four groups with 5 labels per item each, which differ on a fifth of the items."""
    return at.simulate.groups(
        n_items=100,
        sizes=dict.fromkeys("abcd", 10),
        differing_share=0.2,
        labels_per_item=20,
        seed=0,
    )


@pytest.fixture(scope="module")
def fit(simulated):
    return at.fit(simulated.crowd.labels, annotators=simulated.annotators, by="group")


def group_shares(fit):
    table = fit.further_table("groups", "groups")
    names = [f"p_{name}" for name in fit.data.scale.names]
    return np.stack([table[name].to_numpy() for name in names], axis=1)


def test_tables_have_the_promised_columns(simulated, fit):
    groups = fit.further_table("groups", "groups")
    assert groups.column_names == [
        *("item", "group", "n_labels", "label", "expectation", "low", "high"),
        *(f"p_{n}" for n in range(1, 6)),
    ]
    labels = simulated.crowd.labels
    pair = labels.item_of_label() * 4 + simulated.group[labels.annotator]
    assert len(groups) == len(np.unique(pair))
    assert groups["n_labels"].to_numpy().sum() == labels.n_labels
    np.testing.assert_allclose(group_shares(fit).sum(axis=1), 1.0)
    mean = group_shares(fit) @ np.arange(1.0, 6.0)
    np.testing.assert_allclose(groups["expectation"].to_numpy(), mean, atol=1e-9)
    low, high = (groups[name].to_numpy() for name in ("low", "high"))
    assert ((low <= mean) & (mean <= high)).all()
    assert groups["item"].to_pylist() == sorted(groups["item"].to_pylist())
    differences = fit.further_table("groups", "group_differences")
    assert differences.column_names == [
        *("item", "p_value", "q_value", "differs", "group", "other", "distance")
    ]
    assert differences["item"].to_pylist() == labels.items.to_pylist()
    assert list(fit.groups().columns) == groups.column_names
    assert list(fit.group_differences().columns) == differences.column_names
    assert fit.group_summary()["n_annotators"].tolist() == [10, 10, 10, 10]


def test_opinions_of_groups_are_closer_to_the_truth_than_separate_fits(simulated, fit):
    labels = simulated.crowd.labels
    table = fit.further_table("groups", "groups")
    group = np.array(["abcd".index(name) for name in table["group"].to_pylist()])
    truth = simulated.distributions[group, table["item"].to_numpy() - 1]
    pooled = hellinger(group_shares(fit), truth).mean()
    separate = []
    for code in range(4):
        own = at.fit(labels.subset(simulated.group[labels.annotator] == code), truth="opinions")
        items = own.data.items.to_numpy() - 1
        shares = own.distribution.dense(5)
        separate.append(hellinger(shares, simulated.distributions[code, items]))
    assert pooled < 0.8 * np.concatenate(separate).mean()


def test_the_share_of_items_that_differ_is_learned(simulated, fit):
    assert fit.further["groups"].facts["differing_share"] == pytest.approx(0.2, abs=0.1)
    alike = at.simulate.groups(n_items=100, differing_share=0.0, labels_per_item=20, seed=1)
    same = at.fit(alike.crowd.labels, annotators=alike.annotators, by="group")
    assert same.further["groups"].facts["differing_share"] < 0.1
    assert same.further["groups"].facts["n_items_differ"] == 0


def test_intervals_of_groups_contain_the_true_scores(simulated, fit):
    table = fit.further_table("groups", "groups")
    group = np.array(["abcd".index(name) for name in table["group"].to_pylist()])
    truth = simulated.distributions[group, table["item"].to_numpy() - 1] @ np.arange(1.0, 6.0)
    low, high = (table[name].to_numpy() for name in ("low", "high"))
    assert ((low <= truth) & (truth <= high)).mean() > 0.85


def test_a_minority_with_another_opinion_is_not_taken_for_spammers():
    minority = at.simulate.groups(
        n_items=200,
        sizes={"most": 34, "few": 6},
        differing_share=1.0,
        spammer_share=0.0,
        least_reliability=0.8,
        seed=0,
    )
    few = minority.group == 1
    labels = minority.crowd.labels
    plain = at.fit(labels, truth="opinions")
    grouped = at.fit(labels, annotators=minority.annotators, by="group")
    assert {plain.behavior[s] for s in np.flatnonzero(few)} == {"another opinion"}
    assert (plain.reliability[few] < 0.5).all()
    assert plain.n_spammers == grouped.n_spammers == 0
    assert (grouped.accuracy[few] > plain.accuracy[few] + 0.1).all()
    assert grouped.p_serious[few[labels.annotator]].mean() > 0.8


def test_groups_may_differ_about_the_right_label():
    rng = np.random.default_rng(0)
    rows, traits = [], {"annotator": [], "side": []}
    classes = rng.integers(3, size=(2, 80))
    classes[1, :60] = classes[0, :60]  # they differ on the last items
    for person in range(16):
        side = person % 2
        traits["annotator"].append(person)
        traits["side"].append("left" if side else "right")
        for item in range(80):
            label = classes[side, item] if rng.random() < 0.9 else rng.integers(3)
            rows.append((item, person, "xyz"[label]))
    fit = at.fit(rows, annotators=pa.table(traits), by="side")
    table = fit.further_table("groups", "groups").to_pydict()
    assert "expectation" not in table
    right = [
        label == "xyz"[classes[int(side == "left"), item]]
        for item, side, label in zip(table["item"], table["group"], table["label"], strict=True)
    ]
    assert np.mean(right) > 0.97
    differ = fit.further_table("groups", "group_differences")
    found = set(np.array(differ["item"].to_pylist())[differ["differs"].to_numpy()].tolist())
    truly = set(np.flatnonzero(classes[0] != classes[1]).tolist())
    assert len(found & truly) > 0.6 * len(truly)
    assert len(found - truly) <= 1
    assert fit.n_spammers == 0


def test_groups_may_contradict_each_other():
    rng = np.random.default_rng(1)
    rows, sides = [], []
    truth = rng.integers(2, size=80)
    for person in range(12):
        sides.append("for" if person % 2 else "against")
        said = np.where(rng.random(80) < 0.9, truth ^ (person % 2), 1 - (truth ^ (person % 2)))
        rows += [(item, person, ["no", "yes"][label]) for item, label in enumerate(said)]
    fit = at.fit(rows, annotators=pa.table({"annotator": range(12), "side": sides}), by="side")
    assert fit.n_spammers == 0
    table = fit.further_table("groups", "groups").to_pydict()
    right = [
        label == ("no", "yes")[truth[item] ^ (side == "for")]
        for item, side, label in zip(table["item"], table["group"], table["label"], strict=True)
    ]
    assert np.mean(right) > 0.95


def test_labels_of_chance_have_no_groups_that_differ():
    rng = np.random.default_rng(0)
    rows = [(item, person, "xyz"[rng.integers(3)]) for item in range(60) for person in range(10)]
    traits = pa.table({"annotator": range(10), "side": ["l", "r"] * 5})
    fit = at.fit(rows, annotators=traits, by="side")
    assert fit.verdict == "chance"
    assert not fit.further_table("groups", "group_differences")["differs"].to_numpy().any()
    assert np.isfinite(group_shares(fit)).all()


def test_real_groups_do_not_differ_on_single_items(datasets):
    folder = datasets / "groups-offensiveness"
    fit = at.fit(folder / "labels.csv", annotators=folder / "annotators.csv", by="gender")
    facts = fit.further["groups"].facts
    assert facts["n_groups"] == 3
    assert facts["n_items_differ"] == 0
    assert facts["differing_share"] < 0.05


def test_the_order_of_rows_does_not_matter(simulated, fit):
    labels = simulated.crowd.labels
    rows = list(
        zip(
            labels.items.take(pa.array(labels.item_of_label())).to_pylist(),
            labels.annotators.take(pa.array(labels.annotator)).to_pylist(),
            labels.scale.categories.take(pa.array(labels.category_of_label())).to_pylist(),
            strict=True,
        )
    )
    order = np.random.default_rng(0).permutation(len(rows))
    traits = simulated.annotators.take(np.random.default_rng(1).permutation(40))
    again = at.fit([rows[k] for k in order], annotators=traits, by="group")
    for name in ("groups", "group_differences"):
        one, other = (
            each.further_table("groups", name).sort_by([("item", "ascending")])
            for each in (fit, again)
        )
        for column in one.column_names:
            if pa.types.is_floating(one[column].type):
                np.testing.assert_allclose(one[column], other[column], atol=1e-9)
    by_id = np.argsort(again.data.annotators.to_numpy())
    np.testing.assert_allclose(fit.reliability, again.reliability[by_id], atol=1e-9)
    assert fit.history.objective[-1] == pytest.approx(again.history.objective[-1], abs=1e-12)


def test_the_objective_does_not_fall_without_acceleration(simulated):
    fit = at.fit(
        simulated.crowd.labels, annotators=simulated.annotators, by="group", acceleration=False
    )
    assert np.diff(fit.history.objective).min() > -1e-5


def test_a_saved_fit_keeps_its_groups(fit, tmp_path):
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    for name, table in fit.further["groups"].tables.items():
        assert loaded.further_table("groups", name).equals(table)
    assert loaded.summary() == fit.summary()
    again = at.fit(loaded, by="group")  # the traits are saved with the labels
    assert again.further["groups"].facts == fit.further["groups"].facts


def test_updates_keep_the_groups(simulated, fit):
    more = [(1, "somebody new", 3), (2, "somebody new", 4)]
    updated = at.update(fit, more)
    facts = updated.further["groups"].facts
    assert facts["by"] == ["group"]
    assert facts["n_annotators_without_group"] == 1
    assert updated.data.n_labels == fit.data.n_labels + 2


def test_annotators_without_a_trait_count_for_the_crowd_only(simulated):
    names = simulated.annotators["group"].to_pylist()
    traits = simulated.annotators.set_column(1, "group", pa.array([None, "", *names[2:]]))
    fit = at.fit(simulated.crowd.labels, annotators=traits, by="group")
    assert fit.further["groups"].facts["n_annotators_without_group"] == 2
    assert "2 annotators have no group, and count for the crowd only" in fit.summary()
    labels = simulated.crowd.labels
    table = fit.further_table("groups", "groups")
    assert table["n_labels"].to_numpy().sum() == labels.labels_per_annotator[2:].sum()
    assert np.isfinite(fit.reliability).all()


def test_several_columns_are_combined(simulated):
    traits = simulated.annotators.append_column("old", pa.array([True, False] * 20))
    fit = at.fit(simulated.crowd.labels, annotators=traits, by=["group", "old"])
    names = fit.further_table("groups", "group_summary")["group"].to_pylist()
    assert names[:2] == ["a, false", "a, true"]
    assert fit.further["groups"].facts["by"] == ["group", "old"]


def test_fits_without_groups_say_how_to_get_them(simulated):
    plain = at.fit(simulated.crowd.labels)
    with pytest.raises(InputError, match="no results on groups: fit with traits of annotators"):
        plain.groups()
    assert "groups" not in plain.further


TRAITS = {"annotator": ["x", "y"], "sex": ["f", "m"], "one": [1, 1], "none": [None, None]}
LABELS = [("a", "x", 1), ("a", "y", 2), ("b", "x", 3), ("b", "y", 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "age"}, "annotators have no column 'age' .*: choose sex, one, none"),
        ({"by": "one"}, "no two groups by 'one': all annotators are in the group '1'"),
        ({"by": "none"}, "no two groups by 'none'"),
        ({"by": 3}, "by is 3: give the name of a column"),
        ({"by": []}, r"by is \[\]"),
        ({"by": None}, "name a column of them, such as by="),
        ({"by": "sex", "model": "gpm"}, "gpm has no groups"),
        ({"by": "sex", "model": "auto"}, "auto has no groups"),
        ({"by": "sex", "memory": "1GB"}, "groups need the labels in memory"),
        ({"by": "sex", "engine": "spark"}, "not for spark"),
        ({"by": "sex", "classifier": {}}, "groups take no classifier"),
        (
            {"by": "sex", "annotators": {"annotator": ["u"], "sex": ["f"]}},
            "check that the ids match",
        ),
        ({"by": "sex", "annotators": None}, "no traits of annotators"),
    ],
)
def test_groups_that_cannot_be_are_refused_in_one_line(options, message):
    traits = options.pop("annotators", TRAITS)
    table = None if traits is None else pa.table(traits)
    with pytest.raises(InputError, match=message) as refused:
        at.fit(LABELS, annotators=table, **options)
    assert "\n" not in str(refused.value)


def test_many_numbers_are_no_groups():
    rows = [("a", person, person % 3) for person in range(40)]
    ages = pa.table({"annotator": range(40), "age": range(20, 60)})
    with pytest.raises(InputError, match=r"40 different numbers.*replace them by bands"):
        at.fit(rows, annotators=ages, by="age")
    many = [("a", person, person % 3) for person in range(60)]
    names = pa.table({"annotator": range(60), "name": [f"n{k}" for k in range(60)]})
    with pytest.raises(InputError, match="60 groups by 'name', and at most 50"):
        at.fit(many, annotators=names, by="name")


def test_hostile_names_are_escaped_in_the_report(tmp_path):
    crowd = at.simulate.groups(n_items=20, sizes={"<b>&": 6, "\x1b[31m|": 6}, seed=0)
    fit = at.fit(crowd.crowd.labels, annotators=crowd.annotators, by="group")
    fit.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert '<section id="groups">' in page
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page
    assert "\x1b" not in page
    assert "\x1b" not in fit.summary()


def test_the_command_line_writes_tables_and_the_report(run, tmp_path):
    crowd = at.simulate.groups(n_items=20, labels_per_item=10, seed=0)
    labels, traits = tmp_path / "labels.csv", tmp_path / "people.csv"
    crowd.labels.to_codes().to_pandas().to_csv(labels, index=False)
    crowd.annotators.to_pandas().to_csv(traits, index=False)
    out, page = tmp_path / "out", tmp_path / "report.html"
    code, said, _ = run(
        *("fit", labels, "--annotators", traits, "--by", "group", "--out", out, "--report", page),
        "--json",
    )
    assert code == 0
    assert json.loads(said)["groups"]["n_groups"] == 2
    assert {"groups.csv", "group_differences.csv", "group_summary.csv"} <= {
        each.name for each in out.iterdir()
    }
    assert "Groups overall" in page.read_text()
    code, _, error = run("fit", labels, "--annotators", traits, "--by", "grp")
    assert code == 2
    assert f"{traits}: annotators have no column 'grp'" in error.replace("\n", " ")
    code, _, error = run("fit", labels, "--by", "group")
    assert code == 2
    assert "--annotators FILE" in error


@pytest.mark.parametrize("truth", ["opinions", "class"])
def test_the_reference_engine_gives_the_same(simulated, truth):
    # The session's known truths number pairs of item and group: the table of classes has fewer rows.
    memory, reference = (
        at.fit(
            simulated.crowd.labels,
            annotators=simulated.annotators,
            by="group",
            truth=truth,
            engine=engine,
        )
        for engine in ("memory", "reference")
    )
    np.testing.assert_allclose(group_shares(memory), group_shares(reference), atol=1e-5)
    np.testing.assert_allclose(memory.accuracy, reference.accuracy, atol=1e-9)
    assert memory.behavior == reference.behavior
    counted = memory.further_table("groups", "group_summary")["n_spammers"].to_pylist()
    assert sum(counted) == memory.n_spammers
