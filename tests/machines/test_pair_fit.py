"""Rankings with machines among the annotators."""

import numpy as np
import pytest
from tests.machines.crowds import copies, votes

import annotruth as at
from annotruth.analyses.machines.fits import measure_bias, outcome_labels
from annotruth.errors import InputError

MACHINES = ["m0", "m1"]


@pytest.fixture(scope="module")
def rows():
    return votes(3, length=0.8)


@pytest.fixture(scope="module")
def fit(rows):
    return at.rank(rows, machines=MACHINES, covariates=["length_difference"])


def test_side_bias_and_effect_of_length_are_recovered(fit):
    table = fit.machines()
    for name, truth, of_people in (("side_bias", 1.0, 0.0), ("length_difference_effect", 0.8, 0.0)):
        assert (table[f"{name}_low"] < truth).all()
        assert (table[f"{name}_high"] > truth).all()
        assert (table[f"{name}_low"] > of_people).all()
        assert table[f"people_{name}"].tolist() == pytest.approx([of_people] * 2, abs=0.2)
    assert "machine m0: side bias +" in fit.summary()
    assert "machine m0: effect of length_difference +" in fit.summary()
    assert table["n_both_orders"].tolist() == [0, 0]


@pytest.mark.parametrize(("by_prompt", "atol"), [(False, 1e-9), (True, 1e-5)])
def test_five_copies_count_as_one(rows, by_prompt, atol):
    # With contexts up to the approximation of a vote: five fifths of one have five sites, not one.
    if not by_prompt:
        rows = [{name: row[name] for name in row if name != "prompt"} for row in rows]
    options = {"covariates": ["length_difference"]}
    alone, together = (
        at.rank(
            copies(rows, "m0", n, "annotator"),
            machines=[f"m0 copy {k}" for k in range(n)],
            **options,
        )
        for n in (1, 5)
    )
    np.testing.assert_allclose(together.scores.mean, alone.scores.mean, rtol=0, atol=atol)
    np.testing.assert_allclose(together.scores.covariance, alone.scores.covariance, atol=atol)
    assert together.machines()["weight"].tolist() == [0.2] * 5
    as_votes = at.rank(copies(rows, "m0", 5, "annotator"), **options)
    assert np.abs(as_votes.scores.mean - alone.scores.mean).max() > 0.05


def test_saved_and_loaded(fit, tmp_path):
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    np.testing.assert_array_equal(loaded.data.annotator_weight, fit.data.annotator_weight)
    assert loaded.machines().equals(fit.machines())
    assert loaded.summary() == fit.summary()
    assert at.rank(loaded, "bradley-terry").data.annotator_weight is None
    with pytest.raises(InputError, match="this fit has machines"):
        at.update(loaded, [("a00", "a01", "p01", "left")])


def test_outcomes_are_turned_to_the_side_shown_more_often():
    rows = [
        *[("q", "b", "a", who, "left") for who in ("x", "y")],
        ("q", "a", "b", "z", "left"),
        ("q", "a", "b", "w", "tie"),
        ("r", "a", "b", "x", "right"),
    ]
    names = ("prompt", "left", "right", "annotator", "winner")
    labels = outcome_labels(at.Comparisons.of([dict(zip(names, row, strict=True)) for row in rows]))
    assert labels.scale.names == ["left", "right", "tie"]
    table = labels.to_arrow()
    outcomes = dict(zip(zip(table["item"].to_pylist(), table["annotator"].to_pylist(), strict=True),
                       table["label"].to_pylist(), strict=True))  # fmt: skip
    # Equally often on both sides: the item that comes first in the votes is left, which is b.
    assert outcomes[(0, "x")] == outcomes[(0, "y")] == "left"
    assert outcomes[(0, "z")] == "right"
    assert outcomes[(0, "w")] == "tie"
    assert outcomes[(1, "x")] == "right"


def test_consistency_of_both_orders():
    rows = [("a", "b", "m", "left"), ("b", "a", "m", "right"), ("a", "c", "m", "left"),
            ("c", "a", "m", "left"), ("b", "c", "m", "left")]  # fmt: skip
    bias = measure_bias(at.Comparisons.of(rows), np.zeros(3))
    assert (bias.n_both_orders, bias.consistency) == (2, 0.5)


def _in_order(row):
    """Return the winner and the loser."""
    pair = row["left"], row["right"]
    return pair if row["winner"] == "left" else pair[::-1]


def test_winners_and_losers_have_no_sides():
    rows = [
        dict(
            zip(("winner", "loser", "annotator"), (*_in_order(row), row["annotator"]), strict=True)
        )
        for row in votes(1, n_pairs=60)
    ]
    fit = at.rank(rows, machines=["m0"])
    assert "side_bias" not in fit.machines()
    assert "machine m0: side bias" not in fit.summary()
    # Winners are not on the left for that.
    assert fit.machines()["agreement"][0] < 0.9


@pytest.mark.parametrize(
    ("machines", "options", "message"),
    [
        (["m7"], {}, r"the machine 'm7' is no annotator: similar ids are m1, m0"),
        (["m0"], {"model": "bradley-terry"}, r"need the model pair-gpm, not bradley-terry"),
    ],
)
def test_errors(rows, machines, options, message):
    with pytest.raises(InputError, match=message):
        at.rank(rows, machines=machines, **options)


def test_command_line(run, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n")
    given = ("rank", "votes.csv", "--machine", "m0", "--machine", "m1")
    code, out, err = run(*given, "--report", "r.html", "--out", "o")
    assert (code, err) == (0, "")
    assert "machine m1: side bias +" in out
    assert (tmp_path / "o" / "machines.csv").exists()
    page = (tmp_path / "r.html").read_text()
    assert "Side bias" in page
    assert '<section id="machines">' in page


def test_llmfao(datasets):
    folder = datasets / "pairs-llmfao"
    files = [folder / f"{name}.csv" for name in ("comparisons", "gpt-3", "gpt-4")]
    fit = at.rank(files, machines=["gpt-3", "gpt-4"])
    table = fit.machines().set_index("machine")
    # gpt-3 prefers the left answer, gpt-4 the right one.
    assert table.loc["gpt-3", "side_bias_low"] > 0.5
    assert table.loc["gpt-4", "side_bias_high"] < 0.0
    assert table["may_replace"].tolist() == ["no", "no"]
    assert fit.dependence()["n_items"].tolist() == [2139]
