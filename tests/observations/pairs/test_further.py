"""Further columns of comparisons: kept with the votes, saved and appended."""

from __future__ import annotations

from pathlib import Path

import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io.readers import read_comparisons
from annotruth.observations import Comparisons
from annotruth.observations.append import append_comparisons

TEXT = (
    "left,right,annotator,winner,language,ranking\n"
    "a,b,x,left,en,1\nb,c,y,tie (bothbad),de,1\na,c,x,right,en,1\nc,a,y,left,,2\n"
)


def test_further_columns_stay_beside_their_votes(tmp_path, write: Path) -> None:
    file = write("v.csv", TEXT)
    data = read_comparisons(file, further=["language"])
    table = data.to_arrow().to_pylist()
    assert [row["language"] for row in table] == ["en", "de", "en", None]
    assert data.in_row_order(data.further["both_bad"].to_numpy(zero_copy_only=False)).tolist() == [
        *(False, True, False, False)
    ]
    some = data.of_annotators(data.comparisons_per_annotator > 0).subset(data.left == 0)
    assert some.further["language"].to_pylist() == ["en", "en"]
    at.rank(data, "bradley-terry").save(tmp_path / "fit")
    again = at.load(tmp_path / "fit").data
    assert {k: v.to_pylist() for k, v in again.further.items()} == {
        k: v.to_pylist() for k, v in data.further.items()
    }


def test_several_files_have_rankings_of_their_own(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(TEXT)
    both = read_comparisons(tmp_path)
    alone = read_comparisons(tmp_path / "a.csv")
    n = len(set(alone.further["ranking"].to_pylist()))
    assert len(set(both.further["ranking"].to_pylist())) == 2 * n
    appended = append_comparisons(alone, alone.subset(alone.left == 0)).table
    assert appended.n_comparisons == 6
    assert len(appended.further["ranking"]) == 6


def test_a_missing_further_column_is_one_line() -> None:
    with pytest.raises(InputError, match="no column 'category' for the further column"):
        Comparisons.of(
            [{"left": 1, "right": 2, "annotator": 3, "winner": "left"}], further=["category"]
        )
