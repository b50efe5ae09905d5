"""What stands beside the scores: both bad, and a column such as the cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError

COST = {"a": 9.0, "b": 3.0, "c": 5.0, "d": 1.0}


def arena(*, both_bad: bool = True, n: int = 900, seed: int = 0) -> list[dict[str, object]]:
    """Votes on four models, a the best; d is often bad, together with whatever it meets."""
    rng = np.random.default_rng(seed)
    score = {"a": 1.0, "b": 0.4, "c": -0.3, "d": -1.1}
    quality = {"a": 1.5, "b": 0.5, "c": 0.5, "d": -1.0}
    rows = []
    for _ in range(n):
        left, right = rng.choice(list(score), 2, replace=False).tolist()
        p_bad = 1.0 / (1.0 + np.exp(2.0 + quality[left] + quality[right]))
        p = 1.0 / (1.0 + np.exp(score[right] - score[left]))
        winner = "model_a" if rng.random() < p else "model_b"
        if both_bad and rng.random() < p_bad:
            winner = "tie (bothbad)"
        rows.append(
            {
                "model_a": left,
                "model_b": right,
                "judge": int(rng.integers(15)),
                "winner": winner,
                "cost_a": COST[left],
                "cost_b": COST[right],
            }
        )
    return rows


def test_both_bad_lowers_both_items() -> None:
    fit = at.rank(arena(), "bradley-terry")
    table = fit.further["both_bad"].tables["both_bad"].to_pylist()
    by_item = {row["item"]: row for row in table}
    assert (table[0]["item"], table[-1]["item"]) == ("a", "d")
    # Against an average item, whose quality is 0.375.
    for item, quality in {"a": 1.5, "d": -1.0}.items():
        row = by_item[item]
        true = 1.0 / (1.0 + np.exp(2.0 + quality + 0.375))
        assert row["low"] - 0.02 <= true <= row["high"] + 0.02
    assert "both bad: " in fit.summary()
    assert "d most often" in fit.summary()
    assert "both_bad" not in at.rank(arena(both_bad=False), "bradley-terry").further


def test_a_column_beside_the_scores_has_its_front(tmp_path: Path) -> None:
    fit = at.rank(arena(), "bradley-terry", beside="cost")
    rows = {row["item"]: row for row in fit.further["beside"].tables["beside"].to_pylist()}
    assert {item: row["value"] for item, row in rows.items()} == COST
    assert {item for item, row in rows.items() if row["on_front"]} == {"a", "b", "d"}
    assert "beside cost: no item is better with a lower mean than a, b, d" in fit.summary()
    fit.save(tmp_path / "fit")
    more = at.update(at.load(tmp_path / "fit"), arena(seed=1))
    assert more.further["beside"].tables["beside"]["n_values"].to_pylist() > [0] * 4
    more.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Beside the score" in page
    assert "Both bad" in page


def test_columns_beside_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(InputError, match="no two columns such as price_a and price_b"):
        at.rank(arena(), beside="price")
    words = [{**row, "cost_a": "much"} for row in arena()]
    with pytest.raises(InputError, match="cost of the left item is not a number"):
        at.rank(words, beside="cost")
