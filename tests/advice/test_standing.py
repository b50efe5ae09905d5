"""What is different between two fits: standing verdicts, which change on clear evidence only, and labels."""

from types import SimpleNamespace

import numpy as np
import pytest

import annotruth as at
from annotruth.analyses.advice.standing import Standing, standing_verdicts


def fit_of(n_labels, p_spammer, agreement=0.0, verdict=None):
    """Return what standing verdicts read of a fit of one annotator by a model that flags people."""
    return SimpleNamespace(
        too_few=("too few labels", ""),
        data=SimpleNamespace(labels_per_annotator=np.array([n_labels])),
        annotator_columns={
            "flagged": np.array([False]),
            "p_spammer": np.array([p_spammer]),
            "agreement": np.array([agreement]),
        },
        verdict=verdict,
        is_void=False,
    )


def follow(*steps):
    """Return the standing verdicts of fits: verdict, labels, probability, and further values of each."""
    held, found = {}, []
    for said, n_labels, p_spammer, *rest in steps:
        fit = fit_of(n_labels, p_spammer, *rest)
        (now,) = standing_verdicts(fit, ["ann"], np.array([said]), held)
        held = {"ann": now}
        found.append(now.verdict)
    return found


NONE = "too few labels"


def test_a_flag_needs_clear_evidence_and_stays():
    assert follow(("drop", 20, 0.94), ("drop", 30, 0.95)) == [NONE, "drop"]
    steps = [("drop", 20, 0.97), ("unsure", 30, 0.5), (NONE, 31, 0.7)]
    assert follow(*steps) == ["drop"] * 3
    assert follow(*steps, ("unsure", 32, 0.49)) == ["drop"] * 3 + [NONE]
    assert follow(*steps, ("keep", 80, 0.02)) == ["drop"] * 3 + ["keep"]


def test_a_flag_by_a_tenth_of_the_labels_has_to_stay():
    steps = [("keep", 90, 0.02), ("drop", 100, 0.99)]
    assert follow(*steps) == ["keep", "drop"]
    soon = [("keep", 91, 0.02), ("drop", 100, 0.99)]
    assert follow(*soon) == ["keep", "keep"]
    assert follow(*soon, ("drop", 111, 0.99)) == ["keep", "keep", "keep"]
    assert follow(*soon, ("drop", 112, 0.99)) == ["keep", "keep", "drop"]


@pytest.mark.parametrize(
    ("n_labels", "agreement", "stays"), [(100, 0.19, True), (100, 0.21, False)]
)
def test_a_flag_that_counts_contradict_is_taken_back(n_labels, agreement, stays):
    steps = [("drop", 50, 0.99), ("unsure", n_labels, 0.9, agreement)]
    assert follow(*steps) == ["drop", "drop" if stays else NONE]


def test_keep_needs_clear_evidence_and_open_questions_do_not_end_it():
    assert follow(("keep", 10, 0.06), ("keep", 12, 0.05)) == [NONE, "keep"]
    assert follow(("keep", 12, 0.05), (NONE, 40, 0.3), ("drop", 50, 0.9)) == ["keep"] * 3


def test_a_notice_is_given_after_labels_grew_by_half():
    steps = [("keep", 60, 0.01), ("unsure", 61, 0.1), ("unsure", 91, 0.1)]
    assert follow(*steps) == ["keep", "keep", "keep"]
    assert follow(*steps, ("unsure", 92, 0.1)) == ["keep"] * 3 + ["unsure"]
    assert follow(*steps, ("keep", 92, 0.1), ("unsure", 100, 0.1)) == ["keep"] * 5
    assert follow(("unsure", 20, 0.6), ("unsure", 60, 0.6), ("unsure", 61, 0.4)) == [
        NONE,
        NONE,
        "unsure",
    ]
    noticed = [("unsure", 20, 0.1), ("unsure", 30, 0.1)]
    later = [("keep", 40, 0.01), ("keep", 59, 0.01), ("keep", 60, 0.01)]
    assert follow(*noticed, *later) == [NONE, "unsure", "unsure", "unsure", "keep"]


def test_fits_without_verdicts_change_nothing():
    steps = [
        ("drop", 20, 0.99),
        ("unsure", 60, 0.0, 0.9, "camps"),
        ("unsure", 200, 0.0, 0.9, "camps"),
    ]
    assert follow(*steps) == ["drop"] * 3
    assert follow(*steps[1:]) == [NONE, NONE]


def test_the_run_of_a_verdict_is_counted_in_labels():
    (now,) = standing_verdicts(
        fit_of(90, 0.1), ["ann"], np.array(["unsure"]), {"ann": Standing("keep", "unsure", 70, 80)}
    )
    assert now == Standing("keep", "unsure", 70, 90)
    (now,) = standing_verdicts(
        fit_of(90, 0.1), ["ann"], np.array(["keep"]), {"ann": Standing("keep", "unsure", 70, 80)}
    )
    assert now == Standing("keep", "keep", 90, 90)


def test_only_updated_fits_show_standing_verdicts():
    made = at.simulate.crowd(n_items=120, n_annotators=10, spammer_share=0.2, seed=3).labels
    table = made.to_arrow()
    fit = at.fit(table.slice(0, 300))
    assert "standing" not in fit.verdict_table().column_names
    later = at.update(fit, table.slice(300))
    assert later.verdict_table().column_names == [
        "annotator",
        "verdict",
        "standing",
        "ask",
        "reason",
    ]
    whole = at.fit(table)
    assert later.verdict_table().drop_columns("standing").equals(whole.verdict_table())
    rows = later.past_fit_table().slice(len(fit.data.annotators))
    assert rows["standing"].to_pylist() == later.verdict_table()["standing"].to_pylist()
    assert {"keep", "drop"} <= set(rows["standing"].to_pylist())


ROWS = [(f"i{e}", f"a{s}", "cat" if e % 2 else "dog") for e in range(4) for s in range(3)]


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ([*ROWS, ("new", "a0", "ape")], {}),
        (ROWS, {"categories": ["dog", "cat"]}),
        (ROWS, {"categories": ["ape", "bat", "cat", "dog"]}),
    ],
    ids=["a new category", "another order", "more categories"],
)
def test_labels_are_compared_by_the_names_of_categories(rows, options):
    before, after = at.fit(ROWS, "majority"), at.fit(rows, "majority", **options)
    assert at.changes(before, after).item_table.num_rows == 0


def test_a_label_whose_category_is_gone_has_changed():
    after = at.fit([(e, s, "ape" if e == "i1" else "dog") for e, s, _ in ROWS], "majority")
    table = at.changes(at.fit(ROWS, "majority"), after).item_table
    assert table.select(["item", "before", "label"]).to_pylist() == [
        {"item": "i1", "before": "cat", "label": "ape"},
        {"item": "i3", "before": "cat", "label": "dog"},
    ]


def test_other_things_than_fits_of_labels_are_refused():
    fit = at.fit(ROWS, "majority")
    ranking = at.rank([("a", "b", "ann", "left")], "bradley-terry")
    for other in (ranking, None, "fit"):
        with pytest.raises(at.InputError, match=r"is no fit of labels: give two fits of annotruth"):
            at.changes(fit, other)
