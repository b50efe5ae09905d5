"""What is different between two fits of labels."""

import pytest

import annotruth as at

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
