"""Tables on the terminal, however narrow it is and whatever they hold."""

import pyarrow as pa
import pytest

from annotruth.app import console

TABLE = pa.table({"item": ["a", "x" * 5000], "n": [3, 4], "why": ["[b]odd[/b]", "y" * 200]})


@pytest.mark.parametrize("width", [40, 80, 200])
def test_only_the_widest_columns_are_cut(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    console.show_table("Items", TABLE)
    title, header, first, second = capsys.readouterr().out.splitlines()
    assert (title.strip(), header.split()) == ("Items", ["item", "n", "why"])
    assert first.split() == ["a", "3", "[b]odd[/b]"]
    assert [each[-1] for each in second.split()] == ["…", "4", "…"]
    assert {len(line) for line in (header, first, second)} <= {width - 1, width}


def test_no_column_is_left_out_on_a_terminal_that_is_too_narrow(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "8")
    console.show_table("Items", TABLE)
    assert capsys.readouterr().out.splitlines()[-1].split() == ["x" * 9 + "…", "4", "y" * 9 + "…"]


def test_a_table_without_rows_has_its_header(capsys):
    console.show_table("Items", TABLE.slice(0, 0))
    assert capsys.readouterr().out.splitlines()[1].split() == ["item", "n", "why"]
