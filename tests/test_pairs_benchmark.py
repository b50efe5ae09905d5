"""The measurements of `benchmarks/pairs`, on tiny crowds and on figures known by hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed

from benchmarks.pairs import prompts, sets
from benchmarks.pairs.__main__ import main

from annotruth.models.pairs.pair_gpm.votes import ranking_weights


@pytest.fixture(scope="module")
def public_sets(tmp_path_factory):
    """Small files in the form of the public sets."""
    folder = tmp_path_factory.mktemp("sets")
    rng = np.random.default_rng(0)
    for name in ("passage", "llmfao", "lightfield"):
        (folder / f"pairs-{name}").mkdir()
    grades = ["item,grade", *(f"{item},{1 + item // 2}" for item in range(8))]
    (folder / "pairs-passage/truth.csv").write_text("\n".join(grades) + "\n")
    rows = ["winner,loser,annotator"]
    sided = ["left,right,annotator,winner"]
    for person in range(10):
        for _ in range(16):
            a, b = rng.choice(8, 2, replace=False)
            high, low = max(a, b), min(a, b)
            rows.append(f"{high},{low},w{person}")
            winner = "tie" if rng.random() < 0.1 else "left" if a > b else "right"
            sided.append(f"{a},{b},w{person},{winner}")
    (folder / "pairs-passage/comparisons.csv").write_text("\n".join(rows) + "\n")
    for name in ("llmfao", "lightfield"):
        (folder / f"pairs-{name}/comparisons.csv").write_text("\n".join(sided) + "\n")
    return folder


def test_spammers_are_added_to_the_annotators_of_the_passages(public_sets):
    folder = public_sets / "pairs-passage"
    clean = sets.passage_crowd(folder, "clean", 0)
    assert not clean.data.sides_known
    assert clean.grade.tolist() == [1 + int(item) // 2 for item in clean.data.items.to_pylist()]
    crowd = sets.passage_crowd(folder, "mixed", 1)
    data = crowd.data
    assert data.sides_known
    assert crowd.behavior.tolist()[10:] == [*sets.SPAMMERS["mixed"], *sets.SPAMMERS["mixed"]]
    votes_of = {
        name: data.outcome[np.isin(data.annotator_of_comparison(), np.flatnonzero(is_so))]
        for name in sets.SPAMMERS["mixed"]
        for is_so in [crowd.behavior == name]
    }
    assert (votes_of["always left"] == 0).all()
    assert (votes_of["always right"] == 1).all()
    # All real votes are for the higher id, and inverted ones are against it, on whichever side.
    ids = np.array([int(item) for item in data.items.to_pylist()])
    higher_wins = (ids[data.left] > ids[data.right]) == (data.outcome == 0)
    behavior = crowd.behavior[data.annotator_of_comparison()]
    assert higher_wins[behavior == "serious"].all()
    assert not higher_wins[behavior == "inverted"].any()
    # The side is fixed per pair.
    sides = {}
    for left, right in zip(data.left.tolist(), data.right.tolist(), strict=True):
        assert sides.setdefault(frozenset((left, right)), left) == left
    assert 0 < np.mean(ids[data.left] > ids[data.right]) < 1


def test_parts_print_tables(public_sets, capsys):
    parts = ["passage", "held-out"]
    named = [word for part in parts for word in ("--part", part)]
    arguments = ["--data-dir", str(public_sets), "--runs", "1", "--model", "bradley-terry"]
    assert main([*arguments, *named]) == 0
    printed = capsys.readouterr().out
    assert printed.count("| met |") == 2
    assert "| clean" in printed
    assert "| pairs-lightfield" in printed


def test_simulated_crowds_have_the_votes_of_their_design():
    design = prompts.Design(1.0, 40, 0.5, 30, ballot=2, annotators=10, spammers=0.2, few=20)
    drawn = prompts.draw(design, 0)
    spammers = drawn.kind != "serious"
    assert spammers.sum() == 2
    assert drawn.data.comparisons_per_annotator[spammers].tolist() == [20, 20]
    assert set(drawn.data.comparisons_per_annotator[~spammers]) == {40}
    ranked = prompts.draw(prompts.Design(1.0, 40, 0.5, 30, ballot=5, annotators=10), 0).data
    assert set(ranked.comparisons_per_annotator) == {40}
    _, is_ranked = ranking_weights(ranked)
    assert is_ranked
