"""`drop`: annotators who are left out."""

import pandas as pd
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.observations import Labels

ROWS = [
    (f"i{e}", s, (e + (s == "=2+3")) % 2) for e in range(6) for s in ("ann", "bob", "=2+3", "7")
]


def annotators(drop, rows=ROWS):
    return at.fit(rows, "gpm", drop=drop).data.annotators.to_pylist()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.txt", "ann\n\n  =2+3 \n"),
        ("list", "\ufeffann\r\n=2+3\r\n"),
        ("table.csv", "annotator,why\nann,rude\n'=2+3,'=4\n"),
        ("table.tsv", "why\tWorker\nrude\tann\nx\t=2+3\n"),
        ("keep.csv", "annotator,verdict,ask\nann,drop,true\nbob,keep,true\n'=2+3,drop,false\n"),
        (
            "keep.json",
            '[{"annotator": "ann", "verdict": "drop"}, {"annotator": "=2+3", "verdict": "drop"}]',
        ),
    ],
)
def test_files_of_annotators(tmp_path, name, content):
    (tmp_path / name).write_text(content, newline="")
    for path in (tmp_path / name, str(tmp_path / name)):
        assert annotators(path) == ["bob", "7"]


def test_lists_frames_and_verdicts_of_a_fit():
    assert annotators(["ann", "7"]) == ["bob", "=2+3"]
    assert annotators({"ann"}) == ["bob", "=2+3", "7"]
    assert annotators(pd.DataFrame({"annotator": ["ann", "bob"]})) == ["=2+3", "7"]
    assert annotators(pa.table({"annotator": ["ann", "bob"], "verdict": ["keep", "drop"]})) == [
        "ann",
        "=2+3",
        "7",
    ]
    assert annotators([]) == annotators(()) == ["ann", "bob", "=2+3", "7"]
    numbers = [(e, s, e % 2) for e in range(4) for s in (1, 2, 3)]
    assert annotators(["2"], numbers) == [1, 3]


def test_what_keep_writes_can_be_dropped(run, tmp_path):
    made = at.simulate.crowd(n_items=80, n_annotators=10, behavior="random", seed=2)
    fit = at.fit(made.labels)
    verdicts = fit.verdict_table()
    dropped = [row["annotator"] for row in verdicts.to_pylist() if row["verdict"] == "drop"]
    assert dropped
    fit.save(tmp_path / "fit")
    words = ("--keep", tmp_path / "k.csv", "--save", tmp_path / "again", "--quiet")
    assert run("fit", tmp_path / "fit", *words)[0] == 0
    assert run("fit", tmp_path / "fit", "--drop", tmp_path / "k.csv", "--json")[0] == 0
    for command in ("next", "report"):
        words = (command, tmp_path / "fit", "--drop", tmp_path / "k.csv", "--quiet")
        more = ("--report", tmp_path / "r.html") if command == "report" else ()
        assert run(*words, *more)[0] == 0
    compared = at.compare(tmp_path / "fit", ["majority"], drop=tmp_path / "k.csv")
    assert compared.data.n_annotators == fit.data.n_annotators - len(dropped)
    fewer = at.next_labels(tmp_path / "fit", drop=tmp_path / "k.csv").fit
    assert set(fewer.data.annotators.to_pylist()) == set(fit.data.annotators.to_pylist()) - set(
        dropped
    )
    assert fewer.data.left_out.startswith(f"{len(dropped)} annotator")


def test_items_gold_and_priors_stay_right():
    rows = [("a", "ann", 1), ("b", "bob", 0), ("b", "cal", 1), ("c", "cal", 0)]
    fit = at.fit(rows, "gpm", gold={"a": 1, "c": 0}, drop=["ann"])
    assert fit.data.items.to_pylist() == ["b", "c"]
    assert fit.data.known.tolist() == [-1, 0]
    assert fit.data.left_out == "1 annotator left out: ann; 1 label"


@pytest.mark.parametrize(
    ("drop", "line"),
    [
        (["zoe"], r"no annotator to leave out has a label \(1 id, first: 'zoe'\)"),
        (["ann", "bob", "=2+3", "7"], "all annotators are left out"),
        ("no-such-file.csv", "no-such-file.csv: no such file"),
    ],
)
def test_what_cannot_be_left_out_is_refused(drop, line):
    with pytest.raises(at.InputError, match=line):
        annotators(drop)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("lists.json", '[{"annotator": ["ann"]}]', "holds values of type list<item: string>"),
        ("list.csv", "ann\nbob\n", "the header has only one column, 'ann'"),
    ],
)
def test_files_without_ids_are_refused(tmp_path, name, content, line):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(at.InputError, match=f"^{path}: .*{line}"):
        annotators(path)


def test_unknown_annotators_are_counted_in_one_warning():
    with pytest.warns(at.AnnotruthWarning, match="2 of 3 annotators to leave out have no labels"):
        assert annotators(["ann", "y", "z"]) == ["bob", "=2+3", "7"]


def test_labels_on_disk_keep_everybody(tmp_path):
    Labels.of(ROWS).to_arrow().to_pandas().to_csv(tmp_path / "labels.csv", index=False)
    with pytest.raises(at.InputError, match="in memory only"):
        at.fit(tmp_path / "labels.csv", "gpm", memory="1GB", drop=["ann"])
    assert at.read_labels(tmp_path / "labels.csv", drop=["ann"]).n_annotators == 3
