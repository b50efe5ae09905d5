"""Text that a spreadsheet would run as a formula is marked, and restored when it is read."""

import csv
import random
import re
from pathlib import Path

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.io.parse import read_table
from annotruth.io.readers import read_labels
from annotruth.io.writers import LazyTable, write_table
from annotruth.observations.encode import mark_formulas, restore_formulas

FORMULAS = [
    *("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", "\nx", "-", "--1"),
    *("=", "-inf"),
    *(" =1", '"=1"', "' =1", "'=1", "''=1", "'-1", "\u00a0=1", "\ufeff=1", "\x0b=1", "\uff1d1"),
    *("- item", "+49 170", "-1-1", "1e5\n=1"[3:], "-1e", "-1 ", "+.", "-\u0661"),
]
TEXTS = [
    *("a", "-1", "+1.5", "-1e-3", "-1E+3", "-.5", "+5.", "-1,5", "", " a", "'a", "'", "''", "a=1"),
    *("1-2", "''a", '"', "12", "1.5e3", "é", "p_=x", "\u202e", "-0"),
]


def _marked(texts, kind=None):
    kind = kind or pa.string()
    return mark_formulas(pa.table({"text": pa.array(texts, kind)}))["text"].to_pylist()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_formulas_are_marked_and_numbers_and_other_texts_are_not(kind):
    assert _marked([*FORMULAS, None], kind) == [*(f"'{text}" for text in FORMULAS), None]
    assert _marked([*TEXTS, None], kind) == [*TEXTS, None]


def test_numbers_stay_numbers_and_names_of_columns_are_marked():
    table = pa.table({"=a": [-1, 2], "b": pa.array(["=1", "c"]).dictionary_encode()})
    assert mark_formulas(table).to_pydict() == {"'=a": [-1, 2], "b": ["'=1", "c"]}


def test_any_text_is_restored():
    letters = "'\"=+-@ \t1.eé\n"
    generator = random.Random(0)
    for _ in range(300):
        texts = ["".join(generator.choices(letters, k=generator.randrange(6))) for _ in range(8)]
        marked = pa.array(_marked(texts))
        assert len(set(marked.to_pylist())) == len(set(texts))
        assert restore_formulas(marked).to_pylist() == texts


def test_a_column_with_an_unmarked_formula_is_not_restored():
    for texts in (["'=1", "=1"], ["'=1", "'-1"], ["'=1", "-a"]):
        assert restore_formulas(pa.array(texts)).to_pylist() == texts
    restored = restore_formulas(pa.array(["'=1", "-1", "a", None]))
    assert restored.to_pylist() == ["=1", "-1", "a", None]


def test_the_report_marks_the_same():
    script = Path(at.__file__).parent.joinpath("report/assets/data.js").read_text(encoding="utf-8")
    formula, number = (
        re.compile(re.search(rf"const {name} = /(.*)/;", script)[1].replace("$", r"\Z"))
        for name in ("FORMULA", "NUMBER")
    )
    for text in FORMULAS + TEXTS:
        marked = bool(formula.match(text)) and not number.match(text)
        assert marked == (text in FORMULAS), text


@pytest.fixture
def hostile(tmp_path):
    """A CSV whose items, annotators and labels are formulas."""
    path = tmp_path / "labels.csv"
    rows = [
        (f"{item}x", f"={who}", f"@{(n + m) % 2}")
        for n, item in enumerate("=+-'")
        for m, who in enumerate("abcd")
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("item", "annotator", "label"), *rows])
    return path


def _cells(path):
    with path.open(newline="", encoding="utf-8") as file:
        return [cell for row in csv.reader(file) for cell in row]


def test_files_for_people_are_marked_and_tables_for_programs_are_exact(run, hostile, tmp_path):
    words = ("--keep", tmp_path / "keep.csv", "--soft", tmp_path / "soft.csv")
    assert run("fit", hostile, "--out", tmp_path / "out", *words, "--quiet")[0] == 0
    assert run("next", hostile, "--out", tmp_path / "next.csv", "--quiet")[0] == 0
    assert {"'=a", "'=b"} <= set(_cells(tmp_path / "keep.csv"))
    assert {"'=x", "'+x", "'-x", "'x"} <= set(_cells(tmp_path / "next.csv"))
    assert {"=x", "=a", "@0"} <= set(_cells(tmp_path / "out" / "labels.csv"))
    assert {"=x", "+x"} <= set(_cells(tmp_path / "soft.csv"))
    words = (*words, "--safe-cells", "--quiet", "--force")
    assert run("fit", hostile, "--out", tmp_path / "out", *words)[0] == 0
    for name in ("out/labels.csv", "out/items.csv", "out/annotators.csv", "soft.csv"):
        assert not {"=x", "+x", "-x", "=a", "@0"} & set(_cells(tmp_path / name))


def test_marked_labels_are_read_as_they_were(run, hostile, tmp_path):
    assert run("fit", hostile, "--out", tmp_path / "out", "--safe-cells", "--quiet")[0] == 0
    before, after = (read_labels(path) for path in (hostile, tmp_path / "out" / "labels.csv"))
    assert after.to_arrow().equals(before.to_arrow())
    assert after.scale.names == ["@0", "@1"]
    on_disk = read_labels(tmp_path / "out" / "labels.csv", memory="100MB")
    assert on_disk.items.to_pylist() == before.items.to_pylist()
    prior = read_table(tmp_path / "out" / "annotators.csv")
    assert prior["annotator"].to_pylist() == before.annotators.to_pylist()
    assert at.fit(hostile, annotator_prior=tmp_path / "out" / "annotators.csv").data.n_labels == 16


def test_other_formats_are_exact(tmp_path):
    table = pa.table({"item": ["=1"]})
    write_table(table, tmp_path / "a.json", "json", safe_cells=True)
    assert '"=1"' in (tmp_path / "a.json").read_text()
    write_table(table, tmp_path / "a.parquet", "parquet", safe_cells=True)
    assert read_table(tmp_path / "a.parquet")["item"].to_pylist() == ["=1"]


def test_tables_in_partitions_are_marked(tmp_path):
    table = pa.table({"item": ["=1", "a", "=2"]})
    lazy = LazyTable(3, lambda rows: table[rows.start : rows.stop])
    write_table(lazy, tmp_path / "a.csv", safe_cells=True)
    assert _cells(tmp_path / "a.csv") == ["item", "'=1", "a", "'=2"]
