"""Options that would change nothing are refused in one line, before anything is written."""

import pytest

import annotruth as at

LABELS = "item,annotator,label\n" + "".join(
    f"{e},{s},{(e + (n == e % 4)) % 3 + 1}\n" for e in range(8) for n, s in enumerate("uvwx")
)
TAGS = "item,annotator,label\n" + "".join(
    f"{e},{s},{'a|b' if (e + n) % 3 else 'b'}\n" for e in range(8) for n, s in enumerate("uvwx")
)
VOTES = "left,right,annotator,winner\n" + "".join(
    f"{a},{b},{s},left\n" for a, b in ("ab", "bc", "ac") for s in "uvwx"
)
QUESTIONS = "question,item,annotator,label\n" + "".join(
    f"{q},{row}\n" for q in "ab" for row in LABELS.splitlines()[1:]
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    files = {"in.csv": LABELS, "tags.csv": TAGS, "votes.csv": VOTES, "questions.csv": QUESTIONS}
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "gold.csv").write_text("item,label\n1,2\n")
    (folder / "ranks.csv").write_text("item,annotator,rank\na,x,1\nb,x,two\n")
    (folder / "grades.csv").write_text("item,grade\na,1\nb,good\n")
    at.fit(folder / "in.csv", "gpm").save(folder / "fit")
    at.rank(folder / "votes.csv", "bradley-terry").save(folder / "ranking")
    at.fit(folder / "tags.csv", separator="|").save(folder / "sets")
    return folder


@pytest.fixture
def files(inputs, monkeypatch):
    monkeypatch.chdir(inputs)
    return inputs


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("fit in.csv --machine-margin 0.2", "machine_margin (`--machine-margin`) needs machines"),
        ("fit in.csv --model gpm --machine-margin 0.2", "needs machines (`--machine NAME`)"),
        ("fit tags.csv --separator | --machine-margin 0.2", "machine_margin (`--machine-margin`)"),
        ("fit questions.csv --question all --machine-margin 0.2", "machine_margin (`--machine"),
        ("rank votes.csv --machine-margin 0.2", "machine_margin (`--machine-margin`) needs"),
        ("fit in.csv --format parquet", "--format parquet is for the tables of --out DIR"),
        ("fit in.csv --out items.csv --format json", "the name of a file says its format"),
        ("rank votes.csv --format parquet", "--format parquet is for the tables of --out DIR"),
        ("fit in.csv --safe-cells", "--safe-cells is for CSV files of --out and --soft"),
        ("fit in.csv --out o --format json --safe-cells", "--safe-cells is for CSV files"),
        ("fit in.csv --soft s.parquet --safe-cells", "--safe-cells is for CSV files"),
        ("fit in.csv --soft-readout right", "--soft-readout needs --soft FILE"),
        ("fit in.csv --embed", "--embed needs --report FILE"),
        ("fit tags.csv --separator | --out o --report r.html --embed", "--embed is for reports of"),
        ("fit fit --duplicates last", "duplicates: only for labels, and this is a fit"),
        ("fit fit --scale nominal", "scale: only for labels, and this is a fit"),
        ("fit fit --question x", "question: only for labels, and this is a fit"),
        ("fit fit --question all", "question: only for labels, and this is a fit"),
        ("fit fit --separator |", "separator: only for labels, and this is a fit"),
        ("update ranking votes.csv --sets", "sets is for labels, not for comparisons"),
        ("next votes.csv --sets", "sets is for labels, not for comparisons"),
        ("compare votes.csv --separator |", "separator is for labels, not for comparisons"),
        ("report ranking --model gpm", "model: only for labels, and this is a fit"),
        ("report ranking --gold gold.csv", "gold: only for labels, and this is a fit"),
        ("report ranking --scale nominal", "scale: only for labels, and this is a fit"),
        ("report ranking --embed", "--embed is for reports of labels"),
        ("rank votes.csv --groups 2 --set n_groups=3", "--groups and --set n_groups say the same"),
        ("rank votes.csv --covariates winner", "has another role already and cannot be the cov"),
        ("rank votes.csv --truth gold.csv", "no item of the truth has comparisons (first: '1', 1"),
        ("rank votes.csv --truth grades.csv", "grades.csv: the truth has the grade 'good'"),
        ("rank ranks.csv", "ranks.csv: ranks such as 'two' are not numbers"),
        ("compare ranking --models ,", "no model to compare: pass models (`--models A,B`)"),
        ("compare in.csv --no-model-reports", "--no-model-reports needs --report FILE"),
        ("update fit tags.csv --separator |", "sets of labels (`--sets`, `--separator`) are not"),
        ("serve --port 99999999", "port is 99999999: give a number from 0 to 65535"),
        ("fit  --model gpm", "the name of a file is empty: name a file"),
        ("rank ", "the name of a file is empty: name a file"),
        (
            "update ranking votes.csv --soft s.csv",
            "--soft is for labels, and these are comparisons",
        ),
        (
            "update ranking votes.csv --report r.html --embed",
            "--embed is for labels, and these are",
        ),
        ("update ranking votes.csv --predictions p.json", "--predictions is for labels, and these"),
        (
            "next fit --budget 1.5",
            "Invalid value for '--budget': give a whole number. Try 'annotru",
        ),
        ("fit in.csv --machine-margin x", "Invalid value for '--machine-margin': give a number. T"),
        (
            "serve prune films --days -1",
            "Invalid value for '--days': it must be greater than or eq",
        ),
        (
            "next sets",
            "this is a fit of sets of labels, which can be reported and evaluated, but tak",
        ),
        (
            "update out in.csv",
            "no saved fit in out: out/fit.json is missing; name a folder that `--s",
        ),
        ("next ranking --assign a.csv --assign-format mturk", "leave out --assign-format"),
        ("report sets --set tol=0.1", "tol: only for labels, and this is a fit"),
    ],
)
def test_an_option_without_effect_is_refused(refused, files, words, expected):
    before = sorted(files.rglob("*"))
    assert expected in refused(*words.split(" "))
    assert sorted(files.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        "--out o --safe-cells",
        "--out items.csv --safe-cells",
        "--soft s.csv --safe-cells",
        "--soft s.csv --out p --format parquet --safe-cells",
        "--report r.html --embed",
    ],
)
def test_an_option_with_what_it_needs_is_taken(run, inputs, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    given = ("fit", inputs / "in.csv", "--model", "majority", "--quiet", *words.split())
    assert run(*given) == (0, "", "")
