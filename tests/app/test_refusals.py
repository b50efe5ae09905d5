"""Commands that are refused: in one line, with exit code 2, before anything is written."""

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
GOOD = "item,annotator,label\na,x,1\na,y,3\nb,x,3\nb,y,3\n"
FILES = {
    "in.csv": LABELS,
    "tags.csv": TAGS,
    "votes.csv": VOTES,
    "questions.csv": QUESTIONS,
    "gold.csv": "item,label\n1,2\n",
    "ranks.csv": "item,annotator,rank\na,x,1\nb,x,two\n",
    "grades.csv": "item,grade\na,1\nb,good\n",
    "good.csv": GOOD,
    "empty.csv": "",
    "header.csv": "item,annotator,label\n",
    "column.csv": "item,annotator\na,x\n",
    "one.csv": "item,annotator,label\na,x,1\n",
    "blank.csv": "item,annotator,label\na,x,\nb,y,\n",
    "ragged.csv": "item,annotator,label\na,x,1\nb,y\n",
    "bytes.csv": b"item,annotator,label\na,x,\xff\xfe\n",
    "twice.csv": GOOD + "a,x,2\n",
    "text.parquet": GOOD,
    "half.json": '[{"id": 1, "data": {}, "annotations": [{"resu',
    "deep.json": "[" * 10**5,
    "none.json": "[]",
    "other.json": '{"a": 1}',
}

# What is typed after `annotruth`, with one blank between words, and a part of the line that follows.
REFUSED = """\
fit absent.csv -> no such file
fit empty.csv --out out -> empty
fit header.csv --out out -> no rows
fit column.csv --out out -> no column for the label
fit blank.csv --out out -> empty label
fit ragged.csv --out out -> row 2
fit bytes.csv --out out -> UTF-8
fit twice.csv --out out -> labelled twice: annotator 'x' on item 'a'
fit text.parquet --out out -> Parquet
fit half.json --out out -> half.json
fit deep.json --out out -> deep.json
fit none.json --out out -> none.json
fit other.json --out out -> other.json
fit  --model gpm -> the name of a file is empty: name a file
fit nothing -> this is a folder with no saved fit in it
fit good.csv --model oracle -> unknown model 'oracle'
fit good.csv --model auto --set tol=1 -> auto chooses the model
fit one.csv --model auto -> add labels, or choose a model by name
fit good.csv --set speed=9 -> no option 'speed'
fit good.csv --set tol -> such as `--set tol=1e-6`, not 'tol'
fit good.csv --set tol=small -> tol is 'small': give a number
fit good.csv --set tol=true -> tol is True: give a number
fit good.csv --set max_iter=1.5 -> max_iter is 1.5: give a whole
fit good.csv --set acceleration=so -> give true or false
fit good.csv --set model=gpm -> --set is for options of the model, such as tol=1e-6, and 'model'
fit good.csv --set further=a -> and 'further' is none
next good.csv --set progress=x -> and 'progress' is none
next good.csv --set scale=ordinal -> and 'scale' is none
report good.csv --set gold=x -> and 'gold' is none
fit good.csv --columns item -> --columns takes NAME=VALUE, such as
fit good.csv --columns item=thing -> no column 'thing'
fit good.csv --columns item=item,item=label -> names 'item' twice
fit good.csv --columns thing=item -> unknown role 'thing'
fit good.csv --scale odd -> '--scale'
fit good.csv --scale interval -> Invalid value for '--scale': 'interval' is not one of 'auto',
fit good.csv --categories 1,2 -> not among the categories
fit good.csv --speed 9 -> --speed
fit good.csv --soft soft.txt -> soft labels are written to a name that ends in
fit good.csv --keep people.npz -> the name must end in .csv, .parquet, .json
fit in.csv --machine-margin 0.2 -> `--machine-margin` needs machines
fit in.csv --model gpm --machine-margin 0.2 -> needs machines: name them (`--machine`)
fit tags.csv --separator | --machine-margin 0.2 -> `--machine-margin` is not for sets
fit questions.csv --question all --machine-margin 0.2 -> `--machine-margin` is of one question
fit in.csv --machine-margin x -> Invalid value for '--machine-margin': give a number. T
fit in.csv --format parquet -> --format parquet is for the tables of --out DIR
fit in.csv --out items.csv --format json -> the name of a file says its format
fit in.csv --safe-cells -> --safe-cells is for CSV files of --out and --soft
fit in.csv --out o --format json --safe-cells -> --safe-cells is for CSV files
fit in.csv --soft s.parquet --safe-cells -> --safe-cells is for CSV files
fit in.csv --soft-readout right -> --soft-readout needs --soft FILE
fit fit --duplicates last -> `--duplicates`: only for labels, and this is a fit
fit fit --scale nominal -> `--scale`: only for labels, and this is a fit
fit fit --question x -> `--question`: only for labels, and this is a fit
fit fit --question all -> `--question`: only for labels, and this is a fit
fit fit --separator | -> `--separator`: only for labels, and this is a fit
fit ranking -> a fit of comparisons, not of labels
update nothing good.csv -> no saved fit in
update out in.csv -> no saved fit in out: out/fit.json is missing; name the folder of
update fit tags.csv --separator | -> sets of labels are not added to a fit
update ranking votes.csv --sets -> `--sets` is for labels, not for comparisons
update ranking votes.csv --gold gold.csv -> --gold is for labels, and these are comparisons
update ranking votes.csv --soft s.csv -> --soft is for labels, and these are comparisons
update ranking votes.csv --predictions p.json -> --predictions is for labels, and these
report nothing -> this is a folder with no saved fit in it
report fit --model gpm -> `--model`: only for labels, and this is a fit
report ranking --model gpm -> `--model`: only for labels, and this is a fit
report ranking --gold gold.csv -> `--gold`: only for labels, and this is a fit
report ranking --scale nominal -> `--scale`: only for labels, and this is a fit
report sets --set tol=0.1 -> `--set tol`: only for labels, and this is a fit
rank absent.csv -> absent.csv
rank  -> the name of a file is empty: name a file
rank votes.csv --machine-margin 0.2 -> `--machine-margin` needs
rank votes.csv --format parquet -> --format parquet is for the tables of --out DIR
rank votes.csv --model nonsense -> unknown model 'nonsense': choose one of
rank votes.csv --set nonsense=1 -> has no option 'nonsense'
rank votes.csv --out votes.csv -> is also the input VOTES
rank votes.csv --covariates winner -> has another role already and cannot be the cov
rank votes.csv --truth votes.csv -> votes.csv
rank votes.csv --truth gold.csv -> no item of the truth has comparisons (first: '1', 1
rank votes.csv --truth grades.csv -> grades.csv: the truth has the grade 'good'
rank ranks.csv -> ranks.csv: ranks such as 'two' are not numbers
next absent.csv -> no such file
next nothing -> no saved fit in it
next good.csv --budget 0 -> budget is 0: give a whole number of labels from 1
next good.csv --budget -5 -> budget is -5
next good.csv --budget 2.5 -> Invalid value for '--budget': give a whole number. Try 'annotru
next good.csv --keep next.txt -> must end in .csv, .parquet, .json
next good.csv --assign a.txt -> ends in .csv, .parquet, .json, .jsonl
next good.csv --assign a.csv --assign-format x -> unknown format 'x'
next good.csv --assign-format mturk -> --assign-format needs --assign FILE
next good.csv --predictions p.csv -> ends in .json
next good.csv --label-studio name=x -> --label-studio needs --predictions FILE
next good.csv --predictions p.json --label-studio tag=x -> has no 'tag': pass name, to_name, type
next good.csv --assign a.json --predictions a.json -> choose another path
next good.csv --out o --assign o/items.csv -> choose another path
next fit --scale nominal -> only for labels, and this is a fit
next fit --model gpm -> only for labels, and this is a fit
next fit --set tol=1 -> only for labels, and this is a fit
next votes.csv --sets -> `--sets` is for labels, not for comparisons
next votes.csv --model bradley-terry --gold votes.csv -> --gold is for labels, and these are comp
next ranking --model bradley-terry -> `--model`: only for comparisons, and this is a fit
next ranking --budget 0 -> give a whole number of
next ranking --assign tasks.json -> name a .csv or .parquet file
next ranking --assign a.csv --assign-format mturk -> leave out --assign-format
next sets -> this is a fit of sets of labels, which can be reported and evaluated, but tak
plan absent.csv --target accuracy=0.9 -> no such file
plan good.csv -> Missing option --target, such as `--target accuracy=0.9`. Try 'annotruth
plan good.csv --target speed=9 -> unknown target 'speed'
plan good.csv --target accuracy=1.5 -> target accuracy is 1.5
plan good.csv --target accuracy -> as `--target accuracy=0.9`
plan good.csv --target accuracy=high -> one NAME=NUMBER
plan good.csv --target accuracy=0.9,score=1 -> one NAME=NUMBER
plan good.csv --target accuracy=0.9 --seed -1 -> seed is -1: give a whole number from 0
plan good.csv --target score=0.5 --scale nominal -> the target score needs an ordinal scale
plan good.csv --target tau=0.9 -> tau is for comparisons: for labels, choose accuracy, hellinger
plan fit --target accuracy=0.9 --scale nominal -> only for labels, and this is a fit
plan fit --target accuracy=0.9 --model gpm -> only for labels, and this is a fit
plan fit --target accuracy=0.9 --set tol=1 -> only for labels, and this is a fit
plan ranking --target tau=2 -> above 0 and below 1
plan votes.csv --model bradley-terry --target accuracy=0.9 -> for comparisons, choose one of tau
compare good.csv --models gmp --report page.html -> unknown model 'gmp'
compare good.csv --models , --report page.html -> no model to compare
compare good.csv --models mean --truth nowhere.csv --report page.html -> nowhere.csv
compare good.csv --models majority --report / -> --report /: this is a folder: name a file in it
compare good.csv --models pair-gpm -> pair-gpm ranks comparisons, and these are labels: leave
compare votes.csv --separator | -> `--separator` is for labels, not for comparisons
compare votes.csv --report page.html -> --report is for labels, and these are comparisons
compare ranking --report page.html -> --report
compare ranking --models , -> no model to compare: pass `--models`
fit good.csv --out  -> Invalid value for '--out': it is empty: give a value, or leave it out. Try 'ann
fit good.csv --out= -> Invalid value for '--out': it is empty: give a value, or leave it out.
fit good.csv --drop  -> Invalid value for '--drop': it is empty: give a value, or leave it out.
fit good.csv -o  -> Invalid value for '-o': it is empty: give a value, or leave it out.
fit good.csv --out - -> --out -: standard output is not written to: name a file or a folder
fit good.csv --save - -> --save -: standard output is not written to: name a file or a folder
fit good.csv --report - -> --report -: standard output is not written to: name a file or a folder
fit good.csv --out /dev/null -> --out /dev/null: this is neither a file nor a folder: choose
fit good.csv --report /dev/null -> --report /dev/null: this is neither a file nor a folder: choose
fit good.csv --modle gpm -> --modle. Did you mean --model? Try 'annotruth fit --help'
fit good.csv --zzzz -> No such option: --zzzz. Try 'annotruth fit --help'.
fti good.csv -> No such command 'fti'. Did you mean 'fit'? Try 'annotruth --help'
next good.csv --bugdet 5 -> --bugdet. Did you mean --budget? Try
next good.csv --nothing -> Try 'annotruth next --help'.
next good.csv --model -> Try 'annotruth next --help'.
serve --port -> Try 'annotruth serve --help'.
serve token create --kind -> Try 'annotruth serve token create --help'.
fit sets --sets -> `--sets`: only for labels, and this is a fit
fit tags.csv --separator | --engine spark -> --separator needs all items in memory
fit tags.csv --sets --memory 1GB -> leave out `--memory`
fit tags.csv --separator | --predictions p.json --quiet -> this is a fit of sets of labels, which has
update sets tags.csv -> this is a fit of sets of labels
plan sets --target accuracy=0.9 -> this is a fit of sets of labels
fit questions.csv --question all --engine spark -> leave out --engine spark
fit questions.csv --question all --memory 1GB -> leave out `--memory`
fit questions.csv --question all --predictions p.json -> --predictions is for one question
fit questions.csv --question all --soft s.npz -> are a long table
simulate --out s --spammers 2 -> annotruth: `--spammers` is 2.0: give a number from 0
simulate --out s --items 100000000000000000000 -> `--items` is 100000000000000000000: give
simulate --out s --items 1000000000 -> such a crowd needs about 2,600.0 GB of memory, and
simulate --out s --categories 1000000000 -> such a crowd needs about 3,000.0 GB of memory, and
simulate --out s --generator comparers --annotators 1000000000 -> such a crowd needs about 4,950.0 GB
simulate --out s --generator sets --items 1000000000 -> such a crowd needs about 1,360.0 GB
simulate --out s --generator comparers --categories 3 -> --categories is not for `--generator
simulate --out s --generator comparers --labels-per-item 3 -> --labels-per-item is not for `--generator
simulate --out s --tie-rate 1 -> --tie-rate is not for `--generator
simulate --out s --generator sets --behavior random -> --behavior is not for `--generator
serve --port 99999999 -> port is '99999999': it should be less than or equal to 65535
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Files of all kinds, saved fits of labels, comparisons and sets, and a folder with nothing in it."""
    folder = tmp_path_factory.mktemp("inputs")
    for name, content in FILES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "nothing").mkdir()
    at.fit(folder / "in.csv", "gpm").save(folder / "fit")
    at.rank(folder / "votes.csv", "bradley-terry").save(folder / "ranking")
    at.fit(folder / "tags.csv", separator="|").save(folder / "sets")
    return folder


@pytest.mark.parametrize("line", REFUSED.splitlines())
def test_a_command_is_refused_before_anything_is_written(refused, inputs, monkeypatch, line):
    monkeypatch.chdir(inputs)
    words, _, said = line.partition(" -> ")
    before = sorted(inputs.rglob("*"))
    assert said in refused(*words.split(" "))
    assert sorted(inputs.rglob("*")) == before


def test_a_list_that_is_too_long_is_refused(refused, inputs):
    words = ("fit", inputs / "good.csv", "--categories", "x" * 140_000)
    assert "cannot be parsed (field larger" in refused(*words)


@pytest.mark.parametrize(
    "words",
    [
        "--out o --safe-cells",
        "--out items.csv --safe-cells",
        "--soft s.csv --safe-cells",
        "--soft s.csv --out p --format parquet --safe-cells",
    ],
)
def test_an_option_with_what_it_needs_is_taken(run, inputs, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    given = ("fit", inputs / "in.csv", "--model", "majority", "--quiet", *words.split())
    assert run(*given) == (0, "", "")
