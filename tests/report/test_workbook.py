"""What the workbook of a fit says, checked against the fit and its advice."""

import numpy as np
import pytest

import annotruth as at

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("xlsxwriter")


def sheets_of(path):
    """Return each sheet of a workbook as a list of rows, dictionaries by heading."""
    found = {}
    for sheet in openpyxl.load_workbook(path):
        header, *rows = sheet.iter_rows(values_only=True)
        found[sheet.title] = [dict(zip(header, row, strict=True)) for row in rows]
    return found


def written(fit, folder, **options):
    fit.write(folder / "w.xlsx", **options)
    return sheets_of(folder / "w.xlsx")


@pytest.fixture(scope="module")
def crowd():
    """Forty items, nine people who are mostly right, and three who always answer c."""
    rng = np.random.default_rng(5)
    rows = []
    for item in range(40):
        for person in range(12):
            right = "abc"[item % 3] if rng.random() < 0.85 else "abc"[rng.integers(3)]
            rows.append((f"item {item}", f"p{person}", right if person < 9 else "c"))
    return at.fit(rows)


def test_every_person_has_a_verdict_a_proposal_and_room_for_a_decision(crowd, tmp_path):
    sheets = written(crowd, tmp_path, price=0.05, source="labels.csv")
    assert list(sheets) == ["Decisions", "Relabel", "Items", "Disputed", "Pay", "About"]
    people = {row["annotator"]: row for row in crowd.verdict_table().to_pylist()}
    rows = sheets["Decisions"]
    assert [row["Annotator"] for row in rows[:3]] == ["p9", "p10", "p11"]
    assert {row["Proposal"] for row in rows[:3]} == {"in question"}
    for row in rows:
        known = people.pop(row["Annotator"])
        assert (row["Verdict"], row["Reason"]) == (known["verdict"], known["reason"])
        assert row["Your decision"] is None
    assert not people
    assert rows[0]["Behavior"] == "repeated c"
    about = {(row["About"], row["What"]): row["Value"] for row in sheets["About"]}
    assert about["What was read", "File"] == "labels.csv"
    assert about["Result", "Model"] == "robust-gpm"
    assert about["Result", "People"] == "3 in question, 9 pay"
    assert about["Pay", "Amount: all"] == "24.00"
    assert about["Pay", "Amount: in question"] == "6.00"
    named = {(sheet, heading) for sheet, heading in about if sheet in sheets}
    assert named >= {(name, each) for name in ("Decisions", "Pay") for each in sheets[name][0]}


def test_pay_counts_all_labels_and_withholds_nothing(crowd, tmp_path):
    for row in written(crowd, tmp_path, price=0.07)["Pay"]:
        assert (row["Labels"], row["Price"], row["Amount"]) == (40, 0.07, 2.8)
        assert row["Amount decided"] is None
    assert "Amount" not in written(crowd, tmp_path)["Pay"][0]


def test_relabel_is_the_advice(crowd, tmp_path):
    fewer = at.fit([row for k, row in enumerate(rows_of(crowd)) if k % 3])
    advice = at.next_labels(fewer, 7)
    rows = written(fewer, tmp_path, advice=advice)["Relabel"]
    assert sum(row["Labels to add"] for row in rows) == 7
    assigned = {}
    for item, who in zip(*advice.assignment_table().to_pydict().values(), strict=True):
        assigned.setdefault(item, []).append(who)
    labelled = {}
    for item, who, _ in rows_of(fewer):
        labelled.setdefault(item, set()).add(who)
    for row in rows:
        known = [who for who in assigned[row["Item"]] if who is not None]
        assert row["Give it to"].split(", ")[: len(known)] == known
        assert set(row["Not again"].split(", ")) == labelled[row["Item"]]


def rows_of(fit):
    return list(zip(*fit.data.to_arrow().to_pydict().values(), strict=True))


def test_items_are_those_of_the_fit(crowd, tmp_path):
    rows = written(crowd, tmp_path)["Items"]
    for row, known in zip(rows, crowd.item_table().to_pylist(), strict=True):
        assert (row["Item"], row["Label"]) == (known["item"], known["label"])
        assert row["P c"] == pytest.approx(known["p_c"])
        assert row["Confidence"] == pytest.approx(known["confidence"])


def test_disputed_items_say_who_said_what_and_why_it_was_overruled(tmp_path):
    rows = [(f"i{e}", s, "ab"[e % 2]) for e in range(30) for s in ("ann", "bob", "cy")]
    rows += [
        (f"i{e}", s, "ab"[(7 * e + k) % 11 % 2]) for e in range(30) for k, s in enumerate("uvwxy")
    ]
    rows += [("x", "ann", "a"), ("x", "bob", "a"), *(("x", s, "b") for s in "uvwxy")]
    fit = at.fit(rows)
    (label,) = [r["label"] for r in fit.item_table().to_pylist() if r["item"] == "x"]
    assert label == "a"
    found = {row["Item"]: row for row in written(fit, tmp_path)["Disputed"]}
    assert found["x"]["Who said what"] == "a: ann, bob\nb: u, v, w, x, y"
    assert (found["x"]["Labels"], found["x"]["Labels for it"]) == (7, 2)
    assert found["x"]["Why"].startswith("2 labels for a, mean accuracy 1.00; 5 others, ")
    assert "odds of a against b: times 2" in found["x"]["Why"]
    for row in found.values():
        assert 2 * row["Labels for it"] < row["Labels"]


@pytest.mark.parametrize("model", ["robust-gpm", "gpm", "majority", "dawid-skene", "subject-bias"])
def test_nobody_in_question_and_nothing_disputed(tmp_path, model):
    rows = [(f"i{e}", f"p{s}", 1 + e % 3) for e in range(30) for s in range(6)]
    sheets = written(at.fit(rows, model, scale="ordinal"), tmp_path)
    assert {row["Proposal"] for row in sheets["Decisions"]} == {"pay"}
    if "Disputed" in sheets:
        assert sheets["Disputed"][0]["Item"] == "No label overrules most of an item's labels."
    assert len(sheets["Items"]) == 30


def test_labels_of_chance_put_nobody_in_question(tmp_path):
    rng = np.random.default_rng(1)
    rows = [(e, s, "abc"[rng.integers(3)]) for e in range(40) for s in range(6)]
    sheets = written(at.fit(rows), tmp_path)
    assert {row["Proposal"] for row in sheets["Decisions"]} == {"pay"}
    assert sheets["Relabel"][0]["Item"].startswith("Ask nobody yet")


@pytest.mark.parametrize("model", ["pair-gpm", "bradley-terry"])
def test_rankings_have_their_sheets(tmp_path, model):
    made = at.simulate.comparers(n_items=8, n_annotators=10, comparisons_per_annotator=20, seed=2)
    fit = at.rank(made.comparisons, model)
    advice = at.next_comparisons(fit, 5)
    sheets = written(fit, tmp_path, price=1, advice=advice)
    own = ["Decisions"] if fit.reliability is not None else []
    assert [name for name in sheets if name != "Disputed"] == [
        *("Ranking", *own, "Compare next", "Pay", "About"),
    ]
    assert [row["Item"] for row in sheets["Ranking"]] == fit.item_table()["item"].to_pylist()
    assert len(sheets["Compare next"]) == 5
    assert all(row["Amount"] == 20.0 for row in sheets["Pay"])


def test_sets_of_labels(tmp_path):
    rows = [(e, s, ["a"] if e % 2 else ["a", "b"]) for e in range(12) for s in range(4)]
    sets = at.fit(rows, sets=True)
    sheets = written(sets, tmp_path)
    assert list(sheets) == ["Decisions", "Items", "Pay", "About"]
    assert len(sheets["Items"]) == 12


@pytest.mark.parametrize("price", [-1, float("nan"), "5"])
def test_bad_prices_are_refused(crowd, tmp_path, price):
    with pytest.raises(at.InputError, match="give the price of one label"):
        crowd.write(tmp_path / "w.xlsx", price=price)
    assert not list(tmp_path.iterdir())
