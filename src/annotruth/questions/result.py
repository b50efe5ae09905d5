"""`QuestionFits`: the fits of several questions, their tables as one, and their folder.

The folder has ``questions.json`` and a saved fit per question. The manifest names the folder of each
question's fit: q1, q2, ..., never the question, which may be any text. Saving writes the fits to new
folders, replaces the manifest in one step and then removes the old fits, so there is always one complete
set. Each fit is a saved fit of its own, which can be loaded, reported and updated.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, KeysView, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from annotruth.bindings import bound
from annotruth.coefficients import krippendorff_alpha, suitable_metrics
from annotruth.errors import InputError, counted, listed, shorten, system_errors_reported
from annotruth.io.atomic import atomic_write, folders_created, path_behind_links
from annotruth.io.system import exclusive
from annotruth.models.base_fit import FORMAT, Readout
from annotruth.models.fits.tables import share_names
from annotruth.models.result import QUESTIONS_MANIFEST, Fit
from annotruth.models.storage import load_fit
from annotruth.models.storage.entries import (
    QUESTION_FOLDER,
    QUESTIONS_FORMAT,
    check_question_entries,
)
from annotruth.models.storage.folder import MANIFEST, WAIT_SECONDS
from annotruth.observations.columns.questions import concat_questions, every_annotator
from annotruth.observations.encode import decode_table
from annotruth.observations.frames import from_arrow
from annotruth.questions.sharing import Sharing

_LOCK = ".lock"
_FOLDER = re.compile(QUESTION_FOLDER)
_OWN_TABLES = ("items", "annotators", "labels", "distributions")


@dataclass(frozen=True, eq=False)
class QuestionFits:
    """The fits of several questions of one file. Frozen.

    ``fits["tone"]`` is the `Fit` of one question; ``in``, ``len``, iteration and ``keys`` are as in a
    dictionary. `items`, `annotators` and `labels` return the tables of all questions, one after the
    other, with a first column ``question``.

    Attributes
    ----------
    questions
        The fit of each question, by name.
    sharing
        How much of what is known of annotators was shared between questions, and why.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = at.simulate.questions(n_items=20, n_annotators=8, seed=0).table
    >>> fits = at.fit(labels, model="gpm", question="all")
    >>> fits
    QuestionFits(q1, q2, q3: 300 labels by 8 annotators)
    >>> fits["q2"].data.n_labels, len(fits)
    (100, 3)
    >>> fits.annotator_table().column_names[:4]
    ['question', 'annotator', 'n_labels', 'reliability']
    """

    kind: ClassVar[str] = "questions"

    questions: Mapping[str, Fit]
    sharing: Sharing

    def __post_init__(self) -> None:
        if not self.questions:
            raise InputError("there is no question: give the fit of one or more")
        object.__setattr__(self, "questions", MappingProxyType(dict(self.questions)))

    def __repr__(self) -> str:
        return f"QuestionFits({listed(self.questions)}: {self.describe()})"

    def __getitem__(self, question: str) -> Fit:
        if question not in self.questions:
            raise KeyError(f"no question {question!r} (found: {listed(self.questions)})")
        return self.questions[question]

    def __iter__(self) -> Iterator[str]:
        return iter(self.questions)

    def __len__(self) -> int:
        return len(self.questions)

    def __contains__(self, question: object) -> bool:
        return question in self.questions

    def keys(self) -> KeysView[str]:
        """Return the names of the questions."""
        return self.questions.keys()

    @property
    def model(self) -> str:
        """The name of the model; of several models, all of them."""
        return ", ".join(dict.fromkeys(fit.model for fit in self.questions.values()))

    @cached_property
    def annotator_ids(self) -> pa.Array:
        """The ids of all annotators as text, in order of appearance."""
        return every_annotator(fit.data.annotators for fit in self.questions.values())

    def describe(self) -> str:
        """Return the numbers of labels and annotators, in words."""
        n_labels = sum(fit.data.n_labels for fit in self.questions.values())
        people = counted(len(self.annotator_ids), "annotator")
        return f"{counted(n_labels, 'label')} by {people}"

    def items(self) -> Any:
        """Return one row per question and item: label, score, confidence and entropy.

        The columns p_<label> are left out, as questions differ in their labels: see `distributions`.
        """
        return self._frame(self.item_table())

    def annotators(self) -> Any:
        """Return one row per question and annotator: reliability with its interval, and behavior."""
        return self._frame(self.annotator_table())

    def labels(self) -> Any:
        """Return one row per label, with the probability that it was serious."""
        return self._frame(self._concat(Fit.label_table))

    def distributions(self, readout: Readout | None = None) -> Any:
        """Return one row per question, item and label of probability above 0: p.

        ``readout`` is as in `Fit.distributions`. These are also the soft labels of all questions.
        """
        return self._frame(self.distribution_table(readout))

    def keep(self) -> Any:
        """Return one row per question and annotator: verdict, ask and reason, as in `Fit.keep`."""
        return self._frame(self.verdict_table())

    def overview(self) -> Any:
        """Return one row per question: counts, agreement, annotators and the verdict on its labels.

        The columns are question, model, scale, n_items, n_annotators, n_labels, n_categories,
        agreement (Krippendorff's alpha), accuracy and reliability (the medians), spammers and verdict
        ("informative", "chance" if labels agree no better than chance, or "camps" if about half of the
        annotators contradict the others).
        """
        return self._frame(self.overview_table())

    def item_table(self) -> pa.Table:
        """Return the items table in Arrow."""
        return self._concat(_items_without_shares)

    def annotator_table(self) -> pa.Table:
        """Return the annotators table in Arrow."""
        return self._concat(Fit.annotator_table)

    def distribution_table(self, readout: Readout | None = None) -> pa.Table:
        """Return the table of distributions in Arrow."""
        return self._concat(lambda fit: fit.distribution_table(readout))

    def verdict_table(self) -> pa.Table:
        """Return the table of verdicts on annotators in Arrow."""
        return self._concat(Fit.verdict_table)

    def overview_table(self) -> pa.Table:
        """Return the overview in Arrow."""
        rows = [{"question": name, **_overview(fit)} for name, fit in self.questions.items()]
        types = {name: pa.string() for name in ("question", "model", "scale", "verdict")}
        types |= {name: pa.float64() for name in ("agreement", "reliability")}
        schema = pa.schema([(name, types.get(name, pa.int64())) for name in rows[0]])
        return pa.Table.from_pylist(rows, schema=schema)

    def tables(self) -> dict[str, pa.Table]:
        """Return all tables by name, to be written to files."""
        of_fits = {name: fit.tables() for name, fit in self.questions.items()}
        further = dict.fromkeys(name for tables in of_fits.values() for name in tables)
        tables = {
            "items": self.item_table(),
            "annotators": self.annotator_table(),
            "labels": self._concat(Fit.label_table),
            "overview": self.overview_table(),
        }
        if all(fit.distribution is not None for fit in self.questions.values()):
            tables["distributions"] = self.distribution_table()
        for name in further:
            if name not in _OWN_TABLES:
                parts = {
                    question: decode_table(made[name].slice(0, made[name].num_rows))
                    for question, made in of_fits.items()
                    if name in made
                }
                tables[name] = concat_questions(parts)
        return tables

    def summary(self) -> str:
        """Return a few lines: the labels, what is shared, and one line per question."""
        lines = [f"{counted(len(self), 'question')}: {self.describe()}", self.sharing.why]
        lines += [f"{shorten(name)}: {_describe(fit)}" for name, fit in self.questions.items()]
        return "\n".join(lines)

    def report(
        self,
        path: str | Path,
        *,
        source: str | None = None,
        title: str | None = None,
        truth: Any = None,
        command: str | None = None,
        arguments: str | None = None,
    ) -> None:
        """Write a report on all questions, one HTML or PDF file; the arguments are as in `Fit.report`.

        ``truth`` has a column ``question``. The full report of one question is that of its fit,
        ``fits["tone"].report(path)``; there is no advice on all of them, for ``arguments``.
        """
        given = {"source": source, "title": title, "truth": truth, "command": command}
        bound("questions.report")(self, path, **given)

    def save(self, path: str | Path) -> None:
        """Write the fits to a folder that `annotruth.load` reads; each is a saved fit in it."""
        save_questions(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the entries of every fit, and what was shared, as JSON types."""
        return {
            "format": FORMAT,
            "kind": "questions",
            "model": self.model,
            "questions": {name: fit.to_dict() for name, fit in self.questions.items()},
            "sharing": self.sharing.to_dict(),
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def _concat(self, make: Callable[[Fit], pa.Table]) -> pa.Table:
        return concat_questions({name: make(fit) for name, fit in self.questions.items()})

    def _frame(self, table: pa.Table) -> Any:
        return from_arrow(table, next(iter(self.questions.values())).data.frame)


def _items_without_shares(fit: Fit) -> pa.Table:
    table = fit.item_table()
    shares = set(share_names(fit))
    return table.select([name for name in table.column_names if name not in shares])


def _overview(fit: Fit) -> dict[str, Any]:
    data = fit.data
    return {
        "model": fit.model,
        "scale": data.scale.kind,
        "n_items": data.n_items,
        "n_annotators": data.n_annotators,
        "n_labels": data.n_labels,
        "n_categories": data.n_categories,
        "agreement": agreement_of(fit),
        "accuracy": None if fit.accuracy is None else float(np.median(fit.accuracy)),
        "reliability": None if fit.reliability is None else float(np.median(fit.reliability)),
        "spammers": fit.n_spammers,
        "verdict": fit.verdict,
    }


def agreement_of(fit: Fit) -> float | None:
    """Return Krippendorff's alpha of all labels; None where it is not defined."""
    alpha = krippendorff_alpha(fit.data, suitable_metrics(fit.data.scale)[0])
    return float(alpha) if np.isfinite(alpha) else None


def _describe(fit: Fit) -> str:
    parts = [f"WARNING: {fit.notice()}"] if fit.notice() else []
    parts.append(fit.data.describe())
    alpha = agreement_of(fit)
    if alpha is not None:
        parts.append(f"alpha {alpha:.2f}")
    if fit.withholds_figures:
        return "; ".join(parts)
    if fit.accuracy is not None:
        parts.append(f"median accuracy {np.median(fit.accuracy):.2f}")
    elif fit.reliability is not None:
        parts.append(f"median reliability {np.median(fit.reliability):.2f}")
    if fit.n_spammers is not None and fit.verdict != "camps":
        parts.append(counted(fit.n_spammers, "spammer"))
    return "; ".join(parts)


def save_questions(fits: QuestionFits, path: str | os.PathLike[str]) -> None:
    """Write the fits of several questions to a folder; if that fails, it has the old ones."""
    folder = path_behind_links(path)
    if (folder / MANIFEST).exists():
        raise InputError(f"{path} holds a fit of one question, or tables: choose another folder")
    with (
        system_errors_reported(path),
        folders_created(folder),
        exclusive(folder / _LOCK, seconds=WAIT_SECONDS),
    ):
        try:
            used = [int(each.name[1:]) for each in folder.iterdir() if _FOLDER.fullmatch(each.name)]
            first = max(used, default=0) + 1
            names = {question: f"q{first + k}" for k, question in enumerate(fits)}
            for question, name in names.items():
                fits[question].save(folder / name)
            entries = {
                "format": QUESTIONS_FORMAT,
                "kind": "questions",
                "questions": [{"question": each, "folder": name} for each, name in names.items()],
                "sharing": fits.sharing.to_dict(),
            }
            with atomic_write(folder / QUESTIONS_MANIFEST) as temporary:
                text = json.dumps(entries, indent=2) + "\n"
                temporary.write_text(text, "utf-8", newline="\n")
        finally:
            _remove_unused(folder)


def _remove_unused(folder: Path) -> None:
    """Remove the fits that the manifest does not name."""
    with suppress(OSError, InputError):
        has_manifest = (folder / QUESTIONS_MANIFEST).is_file()
        used = _folders_in(folder, _read_manifest(folder)).values() if has_manifest else ()
        for path in folder.iterdir():
            if _FOLDER.fullmatch(path.name) and path not in used:
                shutil.rmtree(path, ignore_errors=True)


def load_questions(path: str | os.PathLike[str]) -> QuestionFits:
    """Read the fits of several questions that `QuestionFits.save` wrote."""
    folder = Path(path)
    entries = _read_manifest(folder)
    fits: dict[str, Fit] = {}
    for question, place in _folders_in(folder, entries).items():
        fits[question] = load_fit(place)
        if fits[question].kind != "labels":
            raise _damaged(folder, "one of its fits is of comparisons")
    sharing = dict(entries["sharing"])
    scores = {float(strength): score for strength, score in sharing.pop("scores").items()}
    return QuestionFits(fits, Sharing(**sharing, scores=MappingProxyType(scores)))


def _read_manifest(folder: Path) -> Mapping[str, Any]:
    try:
        entries = json.loads((folder / QUESTIONS_MANIFEST).read_bytes())
        check_question_entries(entries)
    except FileNotFoundError:
        raise InputError(f"no saved fits of questions in {folder}") from None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise _damaged(folder, str(error)) from None
    found: Mapping[str, Any] = entries
    return found


def _folders_in(folder: Path, entries: Mapping[str, Any]) -> dict[str, Path]:
    folders = {each["question"]: folder / each["folder"] for each in entries["questions"]}
    if not folders or len(folders) < len(entries["questions"]):
        raise _damaged(folder, "it names no questions, or one of them twice")
    return folders


def _damaged(folder: Path, reason: str) -> InputError:
    return InputError(
        f"{folder / QUESTIONS_MANIFEST} cannot be read ({reason}): fit the labels again and save "
        "the fits"
    )
