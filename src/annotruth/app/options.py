"""The options of all commands: what the help says of them, and how their values are parsed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_type_hints

import typer

from annotruth.app import console
from annotruth.app.commands.serve import Service
from annotruth.app.flags import (
    FILE,
    FLAG,
    NUMBER,
    READ_FLAGS,
    SHARED_OUTPUT_FLAGS,
    SHARED_READ_FLAGS,
    TEXT,
    TEXTS,
    Flags,
)
from annotruth.app.outputs import Outputs
from annotruth.app.values import make_read_options
from annotruth.io.formats import INPUT_FORMATS
from annotruth.models.pairs.registry import DEFAULT_PAIR_MODEL, PAIR_MODELS
from annotruth.models.registry import DEFAULT_MODEL, MODELS

Command: TypeAlias = Callable[..., None]
"""A command as it is declared: a function whose parameters are its arguments and options."""

ALL_QUESTIONS = "all"
"""The value of ``--question`` for every question of LABELS."""

_LABELS = (
    "CSV, TSV, Parquet, Arrow or JSON lines, also compressed, with columns item, annotator, label; "
    "or a matrix, or what a platform exports; an Excel, SQLite or DuckDB file, a URL (https, s3, "
    "gs), or that of a database with --query. Several files of one kind are read one after the "
    "other: name them, a folder, or a quoted pattern such as 'day-*.csv'; - is standard input."
)

# The arguments and options of all commands, in the groups and the order of the help:
# the parameter, of one command only if its name comes first; its flags, where these are not its name;
# what stands for the value; the help; and what the help says of the default, if not the default itself.
_HELP = """\
[Arguments]
fit.labels LABELS: {labels} Or the folder of a saved fit, whose labels are fitted again. With
    --engine spark also a folder of files, or a table by name.
update.labels LABELS: The new labels, or all labels again, in any format that `annotruth fit`
    reads, also several files; for a saved ranking, comparisons that `annotruth rank` reads.
compare.labels FIT|LABELS: {fit_or_labels}
agreement.labels FIT|LABELS: {fit_or_labels}
open_.file FILE: Labels or comparisons, in any format that `annotruth fit` or `annotruth rank` reads.
votes VOTES: Comparisons with columns left, right, annotator, winner (left, right, tie, or the
    item); or winner, loser, annotator; or what an arena, crowd-kit or a platform exports; in the
    file formats of `annotruth fit`, also several files. Or the folder of a saved ranking, whose
    comparisons are fitted again.
fit FIT: A folder that `annotruth fit --save` or `annotruth rank --save` wrote.
data FIT|LABELS: {fit_or_labels}
experiment NAME: exp1a, exp1b, exp1c, exp1d, dog, face, movie, all, or settings.
token_create.name NAME: What the token is for.
project_create.name NAME: 1 to 60 lower-case letters, digits and -.
token ID: The token's id, as `token list` shows it.
project PROJECT: The project's name.
import_.file FILE: Labels, or comparisons, in any format that `annotruth fit` reads.
backup.file FILE: A new file.
export.out OUT: A new file: .csv, .parquet or .json.
annotator ANNOTATOR: The person's id.
[Advice]
budget N: How many labels to spend. | all that are worth it in this round
target NAME=VALUE: accuracy=0.9: share of right top labels. hellinger=0.15: distance of
    distributions from the truth. score=0.5: half the width of a score's 95% interval. Each on
    average over items. Of comparisons: tau=0.9, the Kendall tau between the ranking and the true
    one, or score.
[Simulation]
generator NAME: Truth of an item: a distribution from a Beta (crowd), a score with Gaussian noise
    (gaussian), or a set of labels (sets); or pair comparisons of items with scores (comparers).
n_items --items N: Number of items. | 150, comparers 30, sets 200
n_annotators --annotators N: Number of annotators. | 25, comparers 40, sets 15
n_categories --categories N: Number of categories, 1 to N; of sets, number of labels. | 5, sets 6
behavior NAME: Behavior of annotators when they are not serious: random, repeated, inverted or
    mixed; of comparers also 'always left', 'always right', 'always tie' or 'favours one item', but
    not repeated. Not for sets. | mixed
spammers SHARE: Share of annotators with a reliability below one half.
labels_per_item N: Annotators per item, drawn at random. | all, sets 4
comparisons_per_annotator N: Comparers: pairs per annotator. | 40
side_bias X: Comparers: added log odds of the left item. | 0
tie_rate X: Comparers: how often equal items tie; 1: a third. | 0
seed N: Seed of the random numbers; the same gives the same result.
[Experiment]
runs N: Number of runs of a simulation. | 100; for settings 20
data_dir DIR: Folder of the real labels, for dog, face and movie.
[Reading labels]
scale NAME: nominal, ordinal or auto: text is nominal, listed categories are ordinal, and for
    numbers the labels decide: on a scale, people who disagree choose neighbours.
categories A,B,C: All categories, lowest first; those that no label names count too. Quote one that
    contains a comma.
columns NAMES: Which columns are which, where they have other names, such as
    item=film,annotator=user,label=stars; also time, order, seconds of labels.
rank.columns NAMES: Which columns are which, where they have other names, such as
    left=model_a,right=model_b,annotator=judge,winner=choice.
outcomes PAIRS: What the values of the winner of comparisons stand for, where that is not known, such
    as 0=tie,1=left,2=right.
duplicates RULE: Several labels of one annotator for one item: refuse them (identical rows count
    once), keep all of them, or count only the last: refuse, keep or last.
bins BINS: Put numbers of a continuous scale into bins: their number, such as 20, or their edges,
    such as 0,25,50,100.
input_format FORMAT: The format of LABELS, where it is not recognised: {formats}.
question NAME: The question to take, where LABELS has several; `annotruth fit --question all` fits
    every one.
rank.question NAME: The question to take, where VOTES has several.
query SELECT: What to read from a database: one SELECT with the columns of labels or comparisons;
    of an Excel file, the name of a sheet.
sets: Answers are sets of labels: all rows of an item and annotator are one answer; lists and
    exports of several choices are sets without it.
separator TEXT: Answers are sets of labels with this text between the labels of a cell, such as
    '|'; a cell with nothing else is the empty set.
covariates NAMES: Further columns to keep with the labels, such as time,seconds.
rank.covariates NAMES: Columns of numbers whose influence is estimated and removed, such as
    length_difference.
content NAMES: Columns that hold what the items are, for the report: text, or URLs or paths of
    images, audio or video.
drop FILE|A,B: Leave these annotators out: their ids, a .txt with one id per line, or a file with
    a column annotator; of what --keep wrote, those with the verdict drop; of a workbook, those whom
    somebody decided not to pay.
fit.memory SIZE: Fit within this much memory, such as 1GB; the labels stay on disk (TMPDIR).
max_size SIZE: How much memory reading a file may take, such as 20GB. | 500MB, or 200 times its
    size
[Known truths]
gold FILE: Known truths (item, label) that the fit may use.
update.gold FILE: Known truths (item, label) of new or old items.
truth FILE: Known truths (item, label) to measure the fit against.
rank.truth FILE: Known grades (item, grade; higher is better) to measure the ranking against.
[Model]
model NAME: The model, or auto to let held-out labels choose: {models}. | {default_model}
rank.model NAME: The model: {pair_models}. | {default_pair_model}
project_create.model NAME: The model, or auto. | robust-gpm, pair-gpm
models A,B,C: Some of {models}; of comparisons, some of {pair_models}. | all
settings --set NAME=VALUE: An option of the model, such as tol=1e-6.
reproduce.settings --set NAME=VALUE: A setting that the paper leaves open, or a size.
annotator_prior FILE: What is known about annotators: their table from an earlier fit (robust-gpm).
classifier FILE: A classifier's probabilities: item and one column per category, such as p_cat,
    p_dog (robust-gpm, dawid-skene). The labels decide how much they count.
annotators FILE: Traits of annotators, for --by: annotator and further columns, such as gender.
fit.by COLUMN: A column of --annotators whose values are groups: each group's opinion per item, and
    which items and groups differ (robust-gpm). Repeat it for combinations.
rank.by COLUMN: A column of VOTES, such as category or language: one board per value, those with
    few votes drawn towards all, and where the order differs.
beside NAME: What to show beside the scores: the name that two columns of numbers have in common,
    such as cost of cost_a and cost_b.
machines --machine NAME: The id of an annotator that is a machine, such as a language model. Repeat
    it for several. They are compared with people; those that err together count less.
machine_margin SHARE: By how much a machine may be worse than a person to replace one: 0.1 for
    crowd workers, 0.15 for trained annotators, 0.2 for experts. | 0.1
fit.warm_start FIT: Continue this saved fit with exactly these LABELS, such as a later export: with
    its model, options and scale, unless others are given, and its past fits.
refit: Fit all labels again, also if none of them is new.
same_people: Intervals for other items labelled by the same people; without it, for other people,
    too, which makes them wide where there are few.
[Engine]
fit.engine ENGINE: Where the passes over the labels run: memory (this machine), gpu (an NVIDIA
    card: gpm, dawid-skene and robust-gpm), auto (the faster of the two), or spark.
master URL: Where Spark runs: local[4], spark://host:7077, yarn, or sc://host for Connect. | as
    Spark is configured, else this machine
storage URL: A folder that all of Spark's machines can reach.
[Service]
database URL: sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/NAME, which is better given as
    ANNOTRUTH_SERVE_DATABASE in the environment: other users of the machine do not see it. | a
    SQLite file in the data folder
root DIR: Folder whose files the tools read; nothing outside of it is read or written. | the current
    folder
folder --data-dir DIR: Folder of the service's files: snapshots and the database. | annotruth-data
host HOST: Address to listen on; 0.0.0.0 for all, behind a proxy with TLS. | 127.0.0.1
port PORT: Port to listen on; 0 for any free one. | 8377
demo: Let a simulated team label and compare items live. Without --data-dir, all is removed at the
    end.
kind KIND: labels of items, or comparisons of pairs of items.
scope SCOPE: read: see results. write: also send labels. admin: also change settings.
only --project PROJECT: A project's name. | all projects
token_create.days N: Expires after so many days. | never
[Output]
out --out,-o PATH: Write the tables to this folder: items, annotators, labels or comparisons, and
    fit.json; if it ends in .csv, .parquet or .json, only that of items to this file; if in .xlsx, a
    workbook for people: whom to pay, what to relabel, what is disputed.
compare.out --out,-o PATH: Write the tables of models and their agreement to this folder; if it
    ends in .csv, .parquet or .json, only that of models to this file; if in .xlsx, both to a
    workbook.
agreement.out --out,-o PATH: Write the table to this file (.csv, .parquet or .json), or into this
    folder.
next_.out --out,-o PATH: Write the tables to this folder: items, annotators and assignments; if it
    ends in .csv, .parquet or .json, only that of items to this file; if in .xlsx, a workbook.
simulate.out --out,-o DIR: Write the tables to this folder.
reproduce.out --out,-o DIR: Write pages, tables, charts and runs to this folder.
price AMOUNT: The price of one label, such as 0.05, for the amounts in a workbook. Saved fits
    remember it.
format_ --format NAME: The file format of the tables: csv, parquet or json.
safe_cells: Put ' before text in the CSV of --out and --soft that a spreadsheet would run as a
    formula.
save DIR: Save the fit to this folder, for `annotruth update` and annotruth.load.
update.save DIR: Save the new fit to this folder, and leave FIT as it is. | FIT itself
report FILE: Write a report with tables and charts: one file, .html or .pdf.
compare.report FILE: Write a page with the tables here: one file, .html or .pdf.
demo.report FILE: Write a report here: one file, .html or .pdf.
page --report FILE: Write the report here: one file, .html or .pdf.
title TEXT: The heading of the report. | the name of the input
source NAME: The name of the labels in the heading. | the name of FIT|LABELS
keep FILE: Write whom to keep, to drop and to ask, and why: .csv, .parquet, .json or .xlsx.
preferences FILE: Write the decided comparisons for training here, with the probability that each
    was serious as its weight (prompt, chosen, rejected, weight): .csv, .parquet or .json.
soft FILE: Write soft labels for training, one row per item, one column per class: .csv, .parquet,
    .json or .npz.
soft_readout NAME: What the soft labels are: right, the probabilities of the right label, or
    opinion, the shares of serious opinion. | as in the table of items, which the summary says
assign FILE: Write who should label which item here: .csv or .parquet (item, annotator), .json
    (tasks for Label Studio) or .jsonl (tasks for Prodigy).
assign_format NAME: The format of --assign: csv, parquet, label-studio, prodigy or mturk. | by the
    end of FILE
predictions FILE: Write the labels with their confidence as predictions for Label Studio: .json.
label_studio NAMES: The tags of the Label Studio project: name is the one that takes the labels,
    to_name the one that shows the content; type is choices, rating or number. |
    name=label,to_name=text
force: Replace existing files. Without it, only saved fits, folders of tables, simulated crowds,
    pages, verdicts, advice and unchanged workbooks that annotruth wrote are replaced.
export.force: Replace the file if it exists.
backup.force: Replace the file if it exists.
[General]
as_json --json: Print one JSON object and nothing else.
quiet --quiet,-q: Print errors only.
verbose: Also print how the computation went: iterations, log-likelihood, seconds.
version
install_completion
show_completion
help_all: Show all options, and more examples.
help
""".format(
    labels=_LABELS,
    fit_or_labels="A folder that `annotruth fit --save` or `annotruth rank --save` wrote, or labels "
    "in any format that `annotruth fit` reads, also several files.",
    models=", ".join(MODELS),
    pair_models=", ".join(PAIR_MODELS),
    default_model=DEFAULT_MODEL,
    default_pair_model=DEFAULT_PAIR_MODEL,
    formats=", ".join(INPUT_FORMATS),
)
_LIMITS = {"token_create.days": (1, 36_500)}


class _Parameter(NamedTuple):
    """What the help says of an argument or option."""

    group: str
    name: str
    flags: tuple[str, ...]
    metavar: str | None
    text: str
    default: str | None


def _parse_help() -> dict[str, _Parameter]:
    found, group = {}, ""
    for line in _HELP.replace("\n    ", " ").splitlines():
        if line.startswith("["):
            group = line.strip("[]")
            continue
        head, _, rest = line.partition(": ")
        key, *words = head.split(" ")
        name = key.rpartition(".")[2]
        flags = tuple(words.pop(0).split(",")) if words and words[0].startswith("--") else ()
        text, _, default = rest.partition(" | ")
        flags = flags or (f"--{name.replace('_', '-')}",)
        metavar = words[0] if words else None
        found[key] = _Parameter(group, name, flags, metavar, text, default or None)
    return found


_PARAMETERS = _parse_help()

OPTION_GROUPS: dict[str, str] = {}
"""The group in the help of each option, in the order of the help."""

for _each in _PARAMETERS.values():
    if _each.group != "Arguments":
        OPTION_GROUPS.setdefault(_each.name, _each.group)


FIRST_OPTIONS: Mapping[str, tuple[str, ...]] = {
    name: tuple(options.split())
    for name, options in {
        "fit": "columns scale question drop gold truth model out save report keep",
        "rank": "columns question drop truth model by machines out save report keep",
        "update": "columns duplicates drop gold truth refit out save report keep",
        "compare": "columns scale question truth models out report",
        "next": "budget columns scale gold model out keep assign assign_format",
        "plan": "target columns scale gold model",
        "report": "columns scale gold truth model page source force",
    }.items()
}
"""Of commands with more options than a screen has lines: those that `--help` shows."""

HELP_ALL = "annotruth.help_all"
"""What is in ``meta`` of the context of a command whose help shows all options."""


def _show_all(ctx: typer.Context, requested: bool) -> None:
    if requested:
        ctx.meta[HELP_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


def _annotated(command: str, name: str, kind: Any) -> Any:
    """Return the type of a command's parameter with what the help says of it."""
    own = f"{command}.{name}"
    found = _PARAMETERS.get(own, _PARAMETERS.get(name))
    if found is None:
        return kind
    if found.group == "Arguments":
        return Annotated[kind, typer.Argument(metavar=found.metavar, help=found.text)]
    low, high = _LIMITS.get(own, (None, None))
    info = typer.Option(
        *found.flags,
        metavar=found.metavar,
        help=found.text,
        show_default=True if found.default is None else found.default,
        min=low,
        max=high,
    )
    return Annotated[kind, info]


_MACHINES: Flags = {"machines": TEXTS, "machine_margin": NUMBER}

# The flags that commands have in place of parameters such as ``read`` and ``outputs``.
_EXPANDED: Mapping[str, Flags] = {
    "read": READ_FLAGS,
    "fit.read": {
        **{name: flag for name, flag in READ_FLAGS.items() if name != "outcomes"},
        "memory": TEXT,
    },
    "update.read": SHARED_READ_FLAGS,
    "open_.read": dict.fromkeys(("columns", "input_format", "question", "query", "max_size"), TEXT),
    "rank.read": dict.fromkeys(
        ("columns", "outcomes", "question", "query", "covariates", "drop", "max_size"), TEXT
    ),
    "outputs": {
        **SHARED_OUTPUT_FLAGS,
        "soft": FILE,
        "soft_readout": (Literal["right", "opinion"] | None, None),
        "predictions": FILE,
        "label_studio": TEXT,
    },
    "service": {
        "ctx": (typer.Context, inspect.Parameter.empty),
        "database": TEXT,
        "folder": FILE,
    },
    "fit.analyses": {"annotators": FILE, "by": TEXTS, **_MACHINES},
    "rank.analyses": _MACHINES,
    "rank.outputs": {**SHARED_OUTPUT_FLAGS, "preferences": FILE},
    "next_.outputs": {
        **dict.fromkeys(("out", "label_studio", "assign_format"), TEXT),
        **dict.fromkeys(("keep", "predictions", "assign"), FILE),
        "price": NUMBER,
        "force": FLAG,
    },
}


def with_options(command: Command) -> Command:
    """Return a command as Typer takes it: all parameters by keyword, with their help."""
    # Typer resolves the types in the module of the command, where `ReadOptions` is not imported, as
    # that would load PyArrow.
    hints = get_type_hints(command, localns={"ReadOptions": object}, include_extras=True)
    expanded: dict[str, Flags] = {}
    parameters = []
    for each in inspect.signature(command).parameters.values():
        own = f"{command.__name__}.{each.name}"
        flags: Flags = {each.name: (hints[each.name], each.default)}
        if each.name in _PARSERS:
            flags = expanded[each.name] = _EXPANDED.get(own) or _EXPANDED[each.name]
        for name, (kind, default) in flags.items():
            kind = _annotated(command.__name__, name, kind)
            parameters.append(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
                )
            )

    @functools.wraps(command)
    def with_flags(**given: Any) -> None:
        given.pop("help_all", None)
        quiet = bool(given.get("quiet") or given.get("as_json"))
        for name, flags in expanded.items():
            values = {flag: given.pop(flag) for flag in flags}
            with console.progress_line(quiet=quiet or name != "read"):  # that loads PyArrow
                given[name] = _PARSERS[name](**values)
        command(**given)

    if command.__name__.rstrip("_") in FIRST_OPTIONS:
        info = typer.Option(
            "--help-all",
            help=_PARAMETERS["help_all"].text,
            callback=_show_all,
            is_eager=True,
        )
        kind = Annotated[bool, info]
        parameters.append(
            inspect.Parameter(
                "help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind
            )
        )
    with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_flags.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_flags


# What makes a command's parameter of the flags in its place.
_PARSERS: Mapping[str, Callable[..., Any]] = {
    "read": make_read_options,
    "outputs": Outputs,
    "analyses": dict,
    "service": Service,
}
