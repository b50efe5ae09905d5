"""Boards by a column of the comparisons: partially pooled, and where the order differs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.errors import InputError


def votes_by_language(
    *, reverse: bool, n_votes: tuple[int, ...] = (600, 600, 600), seed: int = 0
) -> pa.Table:
    """Votes on four systems in three languages; with ``reverse``, the order in the last is reversed."""
    rng = np.random.default_rng(seed)
    scores = np.array([1.0, 0.4, -0.4, -1.0])
    rows = []
    for number, (language, n) in enumerate(zip(("de", "en", "fr"), n_votes, strict=True)):
        own = -scores if reverse and number == 2 else scores
        for _ in range(n):
            left, right = rng.choice(4, 2, replace=False)
            p = 1.0 / (1.0 + np.exp(own[right] - own[left]))
            rows.append(
                {
                    "left": f"m{left}",
                    "right": f"m{right}",
                    "annotator": int(rng.integers(12)),
                    "winner": "left" if rng.random() < p else "right",
                    "language": language,
                }
            )
    return pa.Table.from_pylist(rows)


def test_boards_differ_where_the_order_is_reversed() -> None:
    fit = at.rank(votes_by_language(reverse=True), by="language")
    boards = fit.boards().to_pylist()
    first = {row["board"]: row["item"] for row in boards if row["rank"] == 1}
    assert first == {"de": "m0", "en": "m0", "fr": "m3"}
    differences = fit.further["boards"].tables["board_differences"].to_pylist()
    assert {row["board"] for row in differences} == {"fr"}
    assert ("m3", "m0") in {(row["item"], row["other"]) for row in differences}
    assert "the order differs from that of all votes: m3 before m0 (fr)" in fit.summary()
    scores = {(row["board"], row["item"]): row for row in boards}
    assert scores["fr", "m3"]["low"] < 1.0 < scores["fr", "m3"]["high"]


def test_boards_alike_are_pooled_and_nothing_differs() -> None:
    few = (600, 600, 25)
    fit = at.rank(votes_by_language(reverse=False, n_votes=few), by="language")
    rows = fit.boards().to_pylist()
    distance = max(abs(row["difference"]) for row in rows)
    assert distance < 0.35
    assert fit.further["boards"].facts["n_differences"] == 0
    assert "the order of no two items clearly differs by language" in fit.summary()


def test_intervals_of_boards_cover_their_scores() -> None:
    covered = []
    for seed in range(10):
        fit = at.rank(
            votes_by_language(reverse=True, n_votes=(200, 200, 200), seed=seed),
            "bradley-terry",
            by="language",
        )
        for row in fit.boards().to_pylist():
            true = np.array([1.0, 0.4, -0.4, -1.0])[int(row["item"][1])]
            true = -true if row["board"] == "fr" else true
            covered.append(row["low"] <= true <= row["high"])
    assert 0.88 <= np.mean(covered) <= 1.0


def test_boards_are_saved_updated_written_and_reported(tmp_path: Path) -> None:
    table = votes_by_language(reverse=True)
    fit = at.rank(table.slice(0, 1700), "bradley-terry", by="language")
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    assert loaded.boards().equals(fit.boards())
    after = at.update(loaded, table.slice(1700))
    assert (
        sum({r["board"]: r["n_comparisons"] for r in after.boards().to_pylist()}.values()) == 1800
    )
    assert {"boards", "board_differences"} <= after.tables().keys()
    after.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Boards by language" in page
    assert "Where the order differs" in page


def test_columns_that_make_no_boards_are_refused() -> None:
    table = votes_by_language(reverse=False, n_votes=(40, 0, 0))
    with pytest.raises(InputError, match="column 'language' has 1 value: boards"):
        at.rank(table, by="language")
    with pytest.raises(InputError, match="no column 'lang'"):
        at.rank(table, by="lang")
    with pytest.raises(InputError, match="thurstone has none"):
        at.rank(votes_by_language(reverse=False), "thurstone", by="language")
    with pytest.raises(InputError, match="no results on boards: rank with a column"):
        at.rank(table, "bradley-terry").boards()
