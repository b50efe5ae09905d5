"""Winners as words for sides, and as ids of items."""

import pyarrow as pa
import pytest

from annotruth.errors import InputError
from annotruth.observations import LEFT, RIGHT, TIE, Comparisons
from annotruth.observations.pairs.outcomes import outcome_of_word


def outcomes(*rows):
    left, right, winner = zip(*rows, strict=True)
    table = {"left": left, "right": right, "annotator": ["x"] * len(rows), "winner": winner}
    return Comparisons.of(pa.table(table)).outcome.tolist()


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        *((word, LEFT) for word in ("left", " Left ", "LEFT", "l", "A", "1", "model_a", "Model A")),
        *((word, RIGHT) for word in ("right", "b", "2", "model_b", "response 2", "B is better")),
        *((word, TIE) for word in ("tie", "Tie (bothbad)", "both_bad", "draw", "equal")),
        *((word, -1) for word in ("", "0", "-1", "maybe", "model", "model_c", "abc", "leftright")),
    ],
)
def test_words(word, outcome):
    assert outcome_of_word(word) == outcome


def test_ids_of_the_winning_items():
    assert outcomes(("p", "q", "p"), ("q", "p", "p"), ("p", "q", "tie")) == [LEFT, RIGHT, TIE]


def read_as(*rows):
    left, right, winner = zip(*rows, strict=True)
    table = {"left": left, "right": right, "annotator": ["x"] * len(rows), "winner": winner}
    return Comparisons.of(pa.table(table)).read_as


def test_ties_that_say_more_are_named():
    assert read_as(("p", "q", "left"), ("p", "q", "tie")) == ""
    assert read_as(("p", "q", "Both_Bad"), ("p", "q", "left")) == "'Both_Bad' counts as a tie"
    both = read_as(("p", "q", "both_bad"), ("p", "q", "left"), ("p", "q", "neither"))
    assert both == "'both_bad', 'neither' count as ties"
    assert read_as(("neither", "q", "neither"), ("q", "z", "z")) == ""  # an item


def test_an_item_may_be_named_like_a_side():
    rows = ("left", "right", "right"), ("right", "x", "right")
    with pytest.raises(InputError, match=r"winner 'right' of row 2 may be a side or an item"):
        outcomes(*rows)


def test_items_named_like_sides_are_read_where_both_readings_agree():
    assert outcomes((1, 2, 1), (1, 2, 2)) == [LEFT, RIGHT]
    with pytest.raises(InputError, match=r"winner 1 of row 2 may be a side or an item"):
        outcomes((1, 2, 1), (2, 1, 1))


def test_an_item_named_tie_wins_where_winners_are_ids():
    assert outcomes(("tie", "q", "tie"), ("q", "z", "z")) == [LEFT, RIGHT]


def test_unknown_winners_are_named_with_their_rows():
    rows = [("p", "q", word) for word in ("left", "u", "v", "u", "w", "z")]
    with pytest.raises(InputError) as error:
        outcomes(*rows)
    assert str(error.value) == (
        "5 winners are neither left, right or tie nor one of the two items: 'u' (row 2), 'v' (row "
        "3), 'w' (row 5) and others; write left, right or tie, or the id of the item that won"
    )


def test_a_winner_that_was_not_compared_is_refused():
    with pytest.raises(InputError, match=r"1 winner is neither .*: 'z' \(row 2\)"):
        outcomes(("p", "q", "p"), ("p", "q", "z"), ("q", "z", "z"))


def test_rows_without_a_winner_are_left_out_and_counted():
    table = {"left": ["a", "a"], "right": ["b", "b"], "annotator": [1, 1], "winner": [None, "a"]}
    data = Comparisons.of(pa.table(table))
    assert (data.n_comparisons, data.n_dropped) == (1, 1)
    with pytest.raises(InputError, match=r"every row has an empty winner \(1 in all\)"):
        Comparisons.of(pa.table(table).slice(0, 1))


def test_an_item_is_not_compared_with_itself():
    with pytest.raises(InputError, match=r"row 2 compares item 'q' with itself \(1 in all\)"):
        outcomes(("p", "q", "left"), ("q", "q", "left"))


@pytest.mark.parametrize("role", ["left", "right", "annotator"])
def test_rows_without_an_id_are_refused(role):
    table = {"left": ["a", "a"], "right": ["b", "b"], "annotator": ["x", "x"], "winner": ["a", "a"]}
    table[role] = [table[role][0], ""]
    who = role if role == "annotator" else f"{role} item"
    with pytest.raises(InputError, match=rf"row 2 has an outcome but no {who} \(1 in all\)"):
        Comparisons.of(pa.table(table))


@pytest.mark.parametrize("role", ["winner", "loser"])
def test_winners_and_losers_without_an_id_are_called_so(role):
    table = {"winner": ["a", "a"], "loser": ["b", "b"], "annotator": ["x", "x"], "tie": [0, 1]}
    table[role] = [table[role][0], ""]
    with pytest.raises(InputError, match=rf"row 2 has an outcome but no {role} \(1 in all\)"):
        Comparisons.of(pa.table(table))
