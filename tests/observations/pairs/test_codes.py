"""Winners written as 0, 1 and 2 are read where it is known which is a tie, and refused otherwise."""

import numpy as np
import pytest

import annotruth as at

CODINGS = ({"0": "tie", "1": "left", "2": "right"}, {"0": "left", "1": "right", "2": "tie"}, {"0": "left", "1": "tie", "2": "right"})  # fmt: skip


def votes(*, swapped=True, n=1200, seed=3):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        left, right = rng.choice(5, 2, replace=False)
        if not swapped and left > right:
            left, right = right, left
        better = "left" if rng.random() < 1 / (1 + np.exp(right - left)) else "right"
        rows.append(
            (
                f"m{left}",
                f"m{right}",
                f"w{rng.integers(9)}",
                "tie" if rng.random() < 0.25 else better,
            )
        )
    return rows


def coded(rows, coding, header="model_a,model_b,judge,winner", dot=""):
    codes = {outcome: code for code, outcome in coding.items()}
    return "\n".join([header, *(",".join((*row[:3], codes[row[3]] + dot)) for row in rows)])


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("dot", ["", ".0"])
def test_votes_show_which_code_is_a_tie(write_votes, coding, dot):
    rows = votes()
    data = at.read_comparisons(write_votes(coded(rows, coding, dot=dot)))
    expected = at.Comparisons.of(rows)
    assert data.to_arrow().equals(expected.to_arrow())
    tie = next(code for code, outcome in coding.items() if outcome == "tie")
    assert f"winners {tie} = tie" in data.read_as


@pytest.mark.parametrize(
    "header", ["response1,response2,worker,winner", "model_1,model_2,worker,winner"]
)
def test_numbered_sides_leave_0_for_ties(write_votes, header):
    rows = votes(swapped=False, n=20)
    data = at.read_comparisons(write_votes(coded(rows, CODINGS[0], header)))
    assert data.to_arrow().equals(at.Comparisons.of(rows).to_arrow())


@pytest.mark.parametrize("coding", CODINGS)
def test_where_it_is_open_one_line_asks(write_votes, run, coding):
    rows = votes(swapped=False, n=300)
    path = write_votes(coded(rows, coding))
    code, _, err = run("rank", path)
    assert (code, err.count("\n")) == (2, 1)
    assert "winners are 0, 1, 2, and it is not known which of them is what: pass `--outcomes 0=tie,1=left,2=right`" in err  # fmt: skip
    text = ",".join(f"{value}={outcome}" for value, outcome in coding.items())
    assert run("rank", path, "--model", "bradley-terry", "--outcomes", text, "--quiet")[0] == 0
    data = at.read_comparisons(path, outcomes=coding)
    assert data.to_arrow().equals(at.Comparisons.of(rows).to_arrow())


def test_two_codes_with_0_are_open(write_votes):
    rows = [row for row in votes() if row[3] != "tie"]
    path = write_votes(coded(rows, {"0": "right", "1": "left"}))
    with pytest.raises(at.InputError, match=r"pass outcomes=\{'0': 'left', '1': 'right'\} or "):
        at.read_comparisons(path)


@pytest.mark.parametrize(
    ("codes", "first", "second"),
    [
        ("-1 1", "-1=left,1=right", "-1=right,1=left"),
        ("-1 0 1", "-1=left,0=tie,1=right", "-1=right,0=tie,1=left"),
        ("0.0 0.5 1.0", "0=left,0.5=tie,1=right", "0=right,0.5=tie,1=left"),
        ("1 2 3", "1=left,2=tie,3=right", "1=left,2=right,3=tie"),
        ("-2 -1 1 2", "-2=left,-1=left,1=right,2=right", "-2=right,-1=right,1=left,2=left"),
    ],
)
def test_other_numbers_are_asked_for_with_the_option_to_paste(
    run, write_votes, codes, first, second
):
    pairs = ("x,y", "y,z", "z,x") * 4
    rows = [f"{pair},a,{codes.split()[n % len(codes.split())]}" for n, pair in enumerate(pairs)]
    path = write_votes("left,right,worker,winner\n" + "\n".join(rows))
    code, _, err = run("rank", path)
    assert (code, err.count("\n")) == (2, 1)
    sign = "=" if first.startswith("-") else " "  # else it is read as an option
    assert err.endswith(f"or pass `--outcomes{sign}{first}` or `--outcomes{sign}{second}`\n")
    for coding in (first, second):
        given = ("--outcomes", coding, "--model", "bradley-terry", "--quiet")
        assert run("rank", path, *given)[0] == 0


def test_other_words_are_not_proposed(write_votes):
    path = write_votes("left,right,worker,winner\nx,y,a,good\ny,z,a,1\nz,y,a,nan?\n")
    with pytest.raises(at.InputError, match=r"or the id of the item that won$"):
        at.read_comparisons(path)


def test_items_of_these_names_come_first(write_votes):
    path = write_votes("left,right,worker,winner\n0,1,a,0\n1,2,a,1\n2,0,b,0\n")
    assert at.read_comparisons(path).outcome.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ({"0": "draw"}, "has '0' as 'draw': give left, right, tie"),
        ({"0": "tie"}, "does not say what winner '1' stands for"),
        ("0=tie", "give a mapping"),
    ],
)
def test_wrong_outcomes_are_refused(write_votes, outcomes, message):
    path = write_votes("left,right,worker,winner\nx,y,a,1\ny,z,a,0\n")
    with pytest.raises(at.InputError, match=message):
        at.read_comparisons(path, outcomes=outcomes)


def test_outcomes_are_not_for_labels():
    with pytest.raises(at.InputError, match="outcomes is for comparisons"):
        at.Labels.of([(1, "a", "x"), (1, "b", "x")], outcomes={"0": "tie"})


@pytest.fixture
def write_votes(tmp_path):
    def write(text):
        path = tmp_path / "votes.csv"
        path.write_text(text + "\n")
        return path

    return write
