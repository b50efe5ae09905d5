"""`annotruth agreement`: values of other packages, intervals, the command."""

import json
import math

import numpy as np
import pytest
from scipy.stats import t

import annotruth as at
from annotruth.analyses.agreement import agreement_of

# The example of Gwet's "Handbook of Inter-Rater Reliability": four raters, twelve subjects.
GWET = (
    (1, 1, None, 1),
    (2, 2, 3, 2),
    (3, 3, 3, 3),
    (3, 3, 3, 3),
    (2, 2, 2, 2),
    (1, 2, 3, 4),
    (4, 4, 4, 4),
    (1, 1, 2, 1),
    (2, 2, 2, 2),
    (None, 5, 5, 5),
    (None, None, 1, 1),
    (None, None, 3, None),
)
# Of the package irrCAC 0.4.4 (CAC(data, weights).fleiss() and so on); alpha of krippendorff 0.9.0.
IRR_CAC = {
    ("percent agreement", "identity"): 0.81818,
    ("Fleiss' kappa", "identity"): 0.76117,
    ("Fleiss' kappa", "linear"): 0.81794,
    ("Fleiss' kappa", "quadratic"): 0.86494,
    ("Gwet's AC1", "identity"): 0.77544,
    ("Gwet's AC2", "linear"): 0.85874,
    ("Gwet's AC2", "quadratic"): 0.91400,
    ("Krippendorff's alpha", "nominal"): 0.74342,
    ("Krippendorff's alpha", "ordinal"): 0.81539,
    ("Krippendorff's alpha", "interval"): 0.84911,
}
# pingouin 0.6.1, intraclass_corr of its example "icc": eight wines, four judges.
WINES = {
    "A": (1, 1, 3, 6, 6, 7, 8, 9),
    "B": (2, 3, 8, 4, 5, 5, 7, 9),
    "C": (0, 3, 1, 3, 5, 6, 7, 9),
    "D": (1, 2, 4, 3, 6, 2, 9, 8),
}
PINGOUIN = {"ICC(1)": 0.727521, "ICC(2)": 0.727689, "ICC(3)": 0.729487}
PINGOUIN |= {"ICC(1k)": 0.914384, "ICC(2k)": 0.914450, "ICC(3k)": 0.915159}


def rows_of(table):
    return [
        (f"subject {u}", f"rater {s}", value)
        for u, row in enumerate(table)
        for s, value in enumerate(row)
        if value is not None
    ]


@pytest.fixture(scope="module")
def gwet():
    return at.agreement(rows_of(GWET), scale="ordinal")


@pytest.mark.parametrize(("name", "printed"), IRR_CAC.items())
def test_coefficients_equal_those_of_irrcac_and_krippendorff(gwet, name, printed):
    value, low, high = gwet.value(*name)
    assert value == pytest.approx(printed, abs=5e-6)
    assert low < value < high


def test_intraclass_correlations_equal_those_of_pingouin():
    rows = [(f"wine {n}", who, x) for who, row in WINES.items() for n, x in enumerate(row)]
    found = at.agreement(rows, scale="ordinal")
    for name, printed in PINGOUIN.items():
        assert found.value(name)[0] == pytest.approx(printed, abs=1e-6)


def test_cohens_kappa_equals_its_definition():
    rng = np.random.default_rng(0)
    first = rng.integers(1, 5, 60)
    second = np.where(rng.random(60) < 0.6, first, rng.integers(1, 5, 60))
    rows = [(e, s, int(x)) for s, row in enumerate((first, second)) for e, x in enumerate(row)]
    rows += [(99, 0, 1), (98, 1, 2)]  # of one annotator
    found = at.agreement(rows, scale="ordinal")
    for power, name in ((1, "linear"), (2, "quadratic")):
        gap = np.abs(first - second) ** power
        expected = np.abs(first[:, np.newaxis] - second) ** power
        kappa = 1 - gap.mean() / expected.mean()
        assert found.value("Cohen's kappa", name)[0] == pytest.approx(kappa)


def test_repeated_labels_are_compared_with_themselves():
    rng = np.random.default_rng(1)
    rows = [(e, s, (e + (rng.random() < 0.2)) % 3) for e in range(40) for s in range(5)]
    again = [(e, s, x if rng.random() < 0.9 else (x + 1) % 3) for e, s, x in rows]
    once = at.agreement(rows, scale="nominal")
    twice = at.agreement([*rows, *again], scale="nominal", duplicates="keep")
    assert twice.value("Fleiss' kappa") == pytest.approx(once.value("Fleiss' kappa"))
    same, low, high = twice.value("test-retest percent agreement")
    assert same == np.mean([a[2] == b[2] for a, b in zip(rows, again, strict=True)])
    assert low < same < high
    assert twice.notes[-1].startswith("200 labels repeat")


def test_leaving_out_equals_fits_without_each_part(gwet):
    """The variance over items is the jackknife's: all coefficients without each item in turn."""
    items = dict.fromkeys(row[0] for row in rows_of(GWET))
    without = [
        at.agreement(
            [row for row in rows_of(GWET) if row[0] != item],
            scale="ordinal",
            categories=[1, 2, 3, 4, 5],
        )
        for item in items
    ]
    same = at.agreement(rows_of(GWET), scale="ordinal", same_people=True)
    for name in (("Krippendorff's alpha", "ordinal"), ("Gwet's AC2", "linear"), ("ICC(1)", "")):
        z = np.array([-math.log(1 - each.value(*name)[0]) for each in without])
        deviation = math.sqrt(((z - z.mean()) ** 2).sum() * (len(z) - 1) / len(z))
        value, _, high = same.value(*name)
        width = math.log((1 - value) / (1 - high))
        assert width == pytest.approx(deviation * t.ppf(0.975, len(z) - 1), rel=1e-6)
        assert gwet.value(*name)[2] >= high


@pytest.mark.parametrize(
    ("rows", "empty"),
    [
        ([("a", "x", 1), ("b", "y", 2)], True),
        ([("a", "x", 1), ("a", "y", 1), ("b", "x", 1), ("b", "y", 1)], False),
    ],
)
def test_agreement_that_is_not_defined_is_empty(rows, empty):
    found = at.agreement(rows)
    assert (found.table.num_rows == 0) == empty
    if not empty:
        assert math.isnan(found.value("Fleiss' kappa")[0])
        _, low, high = found.value("percent agreement")
        assert (low, high) == (pytest.approx(0.025**0.5), 1.0)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("a", "x", ["p", "q"]), ("a", "y", ["p"])], "sets of labels.*annotruth.fit"),
        (at.simulate.comparers(n_items=3, n_annotators=3, seed=0), "comparisons.*annotruth.rank"),
    ],
)
def test_agreement_is_of_one_label_per_answer(rows, words):
    found = rows if isinstance(rows, list) else at.rank(rows.comparisons, "bradley-terry")
    with pytest.raises(at.InputError, match=f"these are {words}"):
        at.agreement(found)


def test_perfect_agreement_on_a_rare_class_says_little():
    rows = [(e, s, "rare" if e == 0 else "usual") for e in range(20) for s in range(3)]
    found = at.agreement(rows)
    share, kappa = (found.value(name) for name in ("percent agreement", "Fleiss' kappa"))
    assert share[:2] == (1.0, pytest.approx(0.025 ** (1 / 20)))
    assert kappa[0] == pytest.approx(1.0)
    assert kappa[1] == pytest.approx(max(1 - (1 - share[1]) / (1 - 0.95**2 - 0.05**2), -1))


def test_intervals_are_for_other_items_and_people():
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(60):
        accuracy = rng.beta(6, 2, 20)
        truth = rng.integers(3, size=60)
        rows = [
            (e, s, int(truth[e] if rng.random() < accuracy[s] else rng.integers(3)))
            for e in range(60)
            for s in range(20)
        ]
        _, low, high = at.agreement(rows, scale="nominal").value("Krippendorff's alpha")
        hits += low <= 0.5625 <= high  # the squared mean accuracy
    assert hits >= 52


def test_the_command_prints_and_writes_the_table(run, tmp_path):
    path = tmp_path / "labels.csv"
    lines = [f"{item},{who},{x}" for item, who, x in rows_of(GWET)]
    path.write_text("\n".join(["item,annotator,label", *lines]))
    code, out, _ = run("agreement", path, "--scale", "ordinal", "--out", tmp_path / "found.csv")
    assert code == 0
    assert "Gwet's AC2, quadratic" in out
    code, out, _ = run("agreement", path, "--scale", "ordinal", "--json")
    found = {(row["coefficient"], row["weights"]): row for row in json.loads(out)["coefficients"]}
    assert found["Krippendorff's alpha", "ordinal"]["value"] == pytest.approx(0.81539, abs=5e-6)
    assert (tmp_path / "found.csv").read_text().count("\n") == len(found) + 1
    run("fit", path, "--scale", "ordinal", "--save", tmp_path / "fit")
    code, out, _ = run("agreement", tmp_path / "fit", "--json")
    again = {(row["coefficient"], row["weights"]): row for row in json.loads(out)["coefficients"]}
    assert again == found


def test_what_cannot_be_measured_is_refused(refused, tmp_path):
    assert "no such file" in refused("agreement", tmp_path / "none.csv")
    with pytest.raises(at.InputError, match="choose one of percent agreement"):
        at.agreement(rows_of(GWET)).value("Scott's pi")
    wide = at.Scale.ordinal(list(range(300)))
    labels = at.Labels.from_codes(
        np.array([0, 0]), np.array([0, 1]), np.array([0, 299]),
        items=["a"], annotators=["x", "y"], scale=wide,
    )  # fmt: skip
    with pytest.raises(at.InputError, match="put them into bins"):
        agreement_of(labels)
