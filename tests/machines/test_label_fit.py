"""Fits of labels with machines: the consensus, the tables, the errors."""

import csv
import json

import numpy as np
import pytest
from tests.machines.crowds import class_labels, copies, opinion_labels

import annotruth as at
from annotruth.errors import InputError

MACHINES = ["m0", "m1", "m2"]


@pytest.fixture(scope="module")
def rows():
    return class_labels(7, n_items=150, correlation=0.6)


@pytest.fixture(scope="module")
def fit(rows):
    return at.fit(rows, machines=MACHINES)


@pytest.fixture
def labels_file(rows, tmp_path, monkeypatch):
    """The labels as a file in the working directory."""
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("item", "annotator", "label"), *rows])
    return tmp_path


def _numbers(fit):
    """Return the numbers of the items' table, by item."""
    table = fit.item_table().sort_by("item")
    columns = [
        table[name].to_numpy() for name in table.column_names if name not in ("item", "label")
    ]
    return np.stack([column for column in columns if column.dtype.kind == "f"], axis=1)


def _shares(fit):
    """Return the probabilities of the categories, by item."""
    table = fit.item_table().sort_by("item")
    return np.stack([table[n].to_numpy() for n in table.column_names if n.startswith("p_")], axis=1)


@pytest.mark.parametrize("ordinal", [False, True])
def test_five_copies_count_as_one(ordinal):
    if ordinal:
        table = opinion_labels(2, n_machines=1).to_arrow()
        rows = list(zip(*(table[name].to_pylist() for name in table.column_names[:3]), strict=True))
        machine = "machine-1"
    else:
        rows, machine = class_labels(2, n_items=120, n_machines=1), "m0"
    scale = "ordinal" if ordinal else "nominal"
    one, five = (copies(rows, machine, n, 1) for n in (1, 5))

    def names(n):
        return [f"{machine} copy {k}" for k in range(n)]

    alone = at.fit(one, machines=names(1), scale=scale)
    together = at.fit(five, machines=names(5), scale=scale)
    assert alone.readout == ("opinion" if ordinal else "right")
    np.testing.assert_allclose(_numbers(together), _numbers(alone), rtol=0, atol=1e-9)
    assert together.further_table("machines", "machines")["weight"].to_pylist() == [0.2] * 5
    # Without the discount, copies move the consensus.
    votes = at.fit(five, scale=scale)
    assert np.abs(_shares(votes) - _shares(together)).max() > 0.05


def test_tables_and_summary(fit):
    machines = fit.machines()
    assert machines["machine"].tolist() == MACHINES
    assert machines["n_labels"].tolist() == [150] * 3
    assert (machines["accuracy_low"] < 0.8).all()
    assert (machines["accuracy_high"] > 0.75).all()
    assert (machines["weight"] < 0.7).all()
    assert set(machines["may_replace"]) <= {"yes", "no", "too few labels to tell"}
    pairs = fit.dependence()
    assert list(pairs)[:8] == [
        *("annotator", "other", "n_items", "agreement", "expected", "correlation", "low", "high")
    ]
    confusion = fit.further_table("machines", "machine_confusion").to_pandas()
    assert len(confusion) == 3 * 9
    totals = confusion.groupby(["machine", "consensus"])["share"].sum()
    np.testing.assert_allclose(totals, 1.0)
    assert "machine m0: agrees with people" in fit.summary()
    assert "WARNING: m0 and m1 err together" in fit.summary()


def test_people_and_machines_are_all_in_the_fit(fit, rows):
    plain = at.fit(rows)
    assert set(fit.data.annotators.to_pylist()) == set(plain.data.annotators.to_pylist())
    assert fit.data.n_labels == plain.data.n_labels
    np.testing.assert_allclose(fit.data.annotator_weight[-3:], fit.machines()["weight"])
    assert plain.data.annotator_weight is None


def test_the_summary_says_that_times_are_not_used(fit, rows):
    timed = at.fit(
        [
            {"item": item, "annotator": annotator, "label": label, "order": place}
            for place, (item, annotator, label) in enumerate(rows)
        ],
        machines=MACHINES,
    )
    assert "times of labels are not used" in timed.summary()
    assert "times of labels" not in fit.summary()


def test_the_order_of_rows_does_not_matter(fit, rows):
    turned = at.fit(rows[::-1], machines=MACHINES[::-1])
    np.testing.assert_allclose(_numbers(turned), _numbers(fit), atol=1e-8)
    ordered = turned.machines().sort_values("machine")
    np.testing.assert_allclose(ordered["weight"], fit.machines()["weight"], atol=1e-9)


def test_saved_and_loaded(fit, tmp_path):
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    np.testing.assert_array_equal(loaded.data.annotator_weight, fit.data.annotator_weight)
    assert loaded.machines().equals(fit.machines())
    assert loaded.dependence().equals(fit.dependence())
    assert loaded.summary() == fit.summary()
    codes = np.arange(3)
    first, second = (
        at.RobustGPM().load_fit(each).predict_proba(codes, codes) for each in (fit, loaded)
    )
    np.testing.assert_array_equal(first, second)
    # Fitted again without machines, all labels count alike.
    assert at.fit(loaded).data.annotator_weight is None
    with pytest.raises(InputError, match=r"this fit has machines.*fit all labels again"):
        at.update(loaded, [("new", "p01", "cat")])


def test_a_machine_without_common_items_is_not_compared():
    rows = class_labels(1, n_items=60, n_machines=1)
    rows += [(f"other {k}", "m9", "cat") for k in range(20)]
    fit = at.fit(rows, machines=["m0", "m9"])
    machines = fit.machines().set_index("machine")
    assert machines.loc["m9", "may_replace"] == "too few labels to tell"
    assert np.isnan(machines.loc["m9", "agreement"])
    assert "machine m9: no item of it has a person's label" in fit.summary()


@pytest.mark.parametrize(
    ("machines", "options", "message"),
    [
        (["M1"], {}, r"the machine 'M1' is no annotator: similar ids are .*m1"),
        (["zzzz"], {}, r"the machine 'zzzz' is no annotator: annotators are "),
        (["m0"], {"model": "gpm"}, r"need the model robust-gpm, not gpm"),
        (["m0"], {"model": "auto"}, r"need the model robust-gpm, not auto"),
        (["m0"], {"machine_margin": 1.5}, r"^machine_margin"),
        (["m0"], {"memory": "1GB"}, r"machines and memory do not go together"),
        ("m0", {}, r"machines is a list of ids: pass machines=\['m0'\]"),
    ],
)
def test_errors(rows, machines, options, message):
    with pytest.raises(InputError, match=message):
        at.fit(rows, machines=machines, **options)


def test_only_machines_are_refused():
    with pytest.raises(InputError, match="all annotators are machines"):
        at.fit([("a", "m", 1), ("b", "m", 2)], machines=["m"])


def test_numbers_as_ids_are_matched():
    numbered = {f"p{k:02}": k for k in range(20)} | {"m0": 100}
    rows = [
        (i, numbered[who], label) for i, who, label in class_labels(1, n_items=60, n_machines=1)
    ]
    assert at.fit(rows, machines=["100"]).machines()["machine"].tolist() == [100]


def test_command_line(run, labels_file):
    given = ("--machine", "m0", "--machine", "m1", "--machine-margin", "0.2")
    code, out, err = run("fit", "labels.csv", *given, "--out", "o", "--report", "r.html", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)["machines"]
    assert facts["margin"] == 0.2
    assert [each["machine"] for each in facts["machines"]] == ["m0", "m1"]
    for name in ("machines", "dependence", "machine_confusion"):
        assert (labels_file / "o" / f"{name}.csv").exists()
    page = (labels_file / "r.html").read_text()
    assert '<section id="machines">' in page
    assert "Confusion of m0" in page
    code, out, err = run("fit", "labels.csv", "--machine", "gpt", "--out", "o2")
    assert (code, out) == (2, "")
    assert err.startswith("annotruth: the machine 'gpt' is no annotator: ")
    assert not (labels_file / "o2").exists()


def test_hostile_names_are_escaped_in_the_report(tmp_path):
    name = "<script>alert(1)</script>"
    rows = [
        (i, name if w == "m0" else w, x) for i, w, x in class_labels(1, n_items=60, n_machines=2)
    ]
    at.fit(rows, machines=[name, "m1"]).report(tmp_path / "r.html")
    assert name not in (tmp_path / "r.html").read_text()


def test_one_ordinal_category_shows_no_dependence():
    rows = [(item, who, 1) for item in range(12) for who in ("ann", "bob", *MACHINES)]
    fit = at.fit(rows, machines=MACHINES, scale="ordinal")
    assert fit.further_table("machines", "dependence")["expected"].to_pylist() == [1.0] * 3
