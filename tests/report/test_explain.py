"""What a fit says of one item or annotator."""

import json

import numpy as np
import polars as pl
import pytest

import annotruth as at

HOSTILE = ["=1+1", "<script>alert(1)</script>", "two\nlines\x1b[31m", "x" * 5_000, "ü 字", ""]


@pytest.fixture(scope="module")
def labels():
    """Ten people label 40 items; eve clicks at random."""
    rng = np.random.default_rng(3)
    people = ["ann", "bob", "cid", "dan", "eve", "fay", "gil", "hal", "ida", "jon"]
    rows = []
    for item in range(40):
        for person in people:
            right = person != "eve" and rng.random() < 0.85
            rows.append(
                (
                    f"item {item}",
                    person,
                    ["cat", "dog", "fox"][item % 3 if right else rng.integers(3)],
                )
            )
    return rows


@pytest.fixture(scope="module")
def fit(labels):
    return at.fit(labels)


def fits():
    made = at.simulate.comparers(n_items=8, n_annotators=10, comparisons_per_annotator=40, seed=1)
    return {
        "opinions": at.fit(at.simulate.crowd(n_items=30, n_annotators=9, seed=1).labels),
        "scores": at.fit(at.simulate.crowd(n_items=30, n_annotators=9, seed=1).labels, "mean"),
        "votes": at.fit([("a", "x", 1), ("a", "y", 2), ("b", "x", 2)], "majority"),
        "comparisons": at.rank(made.comparisons),
        "sets": at.fit(at.simulate.sets(n_items=40, n_annotators=8, n_labels=3, seed=1).answers),
    }


def test_an_item_has_its_label_distribution_votes_and_reasons(fit):
    item = fit.item("item 4")
    row = fit.items().set_index("item").loc["item 4"]
    assert item.facts["label"] == row.label == "dog"
    assert next(iter(item.distribution)) == "dog"
    assert item.distribution == {n: row[f"p_{n}"] for n in item.distribution}
    assert sum(item.distribution.values()) == pytest.approx(1.0)
    votes = item.table()
    assert set(votes.annotator) == {person for _, person, _ in labels_of(fit, "item 4")}
    n_right = int((votes.label == "dog").sum())
    assert (votes.label[:n_right] == "dog").all()  # those for the label come first
    assert f"{n_right} of 10 labels say so" in item.sentences[1]
    assert item.sentences[-1] == f"{item.facts['status']}: {item.facts['why']}"
    lines = repr(item).splitlines()
    assert lines[0].startswith("item item 4: dog: ")
    assert lines[len(item.sentences)].split()[:2] == ["annotator", "label"]
    assert len(lines) == len(item.sentences) + 11


def labels_of(fit, item):
    return [
        row
        for row in fit.labels()[["item", "annotator", "label"]].values.tolist()
        if row[0] == item
    ]


def test_an_annotator_has_verdict_reason_and_doubtful_labels_first(fit):
    eve = fit.annotator("eve")
    verdict = fit.keep().set_index("annotator").loc["eve"]
    assert eve.sentences[0] == f"{verdict.verdict}: {verdict.reason}"
    assert eve.facts["verdict"] == "drop"
    given = eve.table()
    assert given.p_serious.is_monotonic_increasing
    recovered = fit.items().set_index("item").label
    assert (given.recovered == recovered.loc[given.item].to_numpy()).all()
    assert repr(eve).splitlines()[-1] == "and 26 more"


@pytest.mark.parametrize("kind", fits())
def test_every_kind_of_fit_explains_items_and_annotators(kind):
    fit = fits()[kind]
    for name, ids in (("item", fit.data.items), ("annotator", fit.data.annotators)):
        for each in ids.to_pylist():
            found = getattr(fit, name)(each)
            assert found.id == each
            as_json = json.loads(json.dumps(found.to_dict(max_rows=3), allow_nan=False))
            assert list(as_json) == [name, "why", "facts", "distribution", "rows", "n_rows"]
            assert len(as_json["rows"]) == min(3, as_json["n_rows"])
            assert as_json["n_rows"] == as_json["facts"][f"n_{fit.unit}s"]
            assert all(found.sentences)
            assert len(repr(found).splitlines()) >= 3


def test_the_wins_of_an_item_are_counted():
    votes = [
        ("a", "b", "x", "left"),
        ("b", "a", "y", "left"),
        ("a", "c", "x", "tie"),
        ("c", "b", "y", "left"),
    ]
    fit = at.rank(votes, "bradley-terry")
    assert fit.item("a").sentences[1] == "won 1, lost 1, tied 1 of 3 comparisons"


def test_known_truths_and_disputes_are_said(labels):
    few = [("a", "x", 1), ("a", "y", 1), ("b", "x", 2), ("b", "y", 2)]
    fit = at.fit(few, "gpm", gold=[("a", 2)])
    assert fit.item("a").sentences[-1] == "known truth: its truth was given"
    assert fit.item("a").distribution == {2: 1.0}
    fit = at.fit(labels)
    for n in np.flatnonzero(fit.disputed):
        assert any(
            "disputed" in line for line in fit.item(fit.data.items[int(n)].as_py()).sentences
        )


def test_what_limits_a_fit_is_said_after_the_result():
    rng = np.random.default_rng(0)
    rows = [(item, person, int(rng.integers(4))) for item in range(30) for person in range(8)]
    fit = at.fit(rows)
    assert fit.verdict == "chance"
    assert fit.item(3).sentences[1] == fit.annotator(3).sentences[1] == f"WARNING: {fit.notice()}"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda fit: fit.item("itm 4"), "no item 'itm 4' among 40; did you mean item 4"),
        (lambda fit: fit.annotator("Ev"), "no annotator 'Ev' among 10; did you mean eve"),
        (lambda fit: fit.item(None), "the fit has no item None"),
        (lambda fit: fit.item("\x1b[31m\n"), r"the fit has no item '\\x1b\[31m\\n'"),
    ],
)
def test_unknown_ids_are_refused_with_the_nearest(fit, ask, message):
    with pytest.raises(at.InputError, match=message) as caught:
        ask(fit)
    assert "\n" not in str(caught.value)


def test_hostile_ids_stay_text():
    rows = [(item, f"{item}!", "<b>&") for item in HOSTILE[:-1]] + [("plain", "x", "<b>&")]
    fit = at.fit(
        pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row"), "majority"
    )
    for item in HOSTILE[:-1]:
        shown = fit.item(item)
        page = shown._repr_html_()
        assert "<script>" not in page
        assert "<b>" not in page
        assert "\x1b" not in repr(shown)
        assert len(repr(shown)) < 1_000
        assert repr(shown).count("\n") == len(shown.sentences) + 1
        assert isinstance(shown.table(), pl.DataFrame)


def test_a_loaded_fit_explains_the_same(fit, tmp_path):
    fit.save(tmp_path / "fit")
    again = at.load(tmp_path / "fit")
    assert repr(again.item("item 7")) == repr(fit.item("item 7"))
    assert again.annotator("eve").to_dict() == fit.annotator("eve").to_dict()
