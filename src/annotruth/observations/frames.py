"""Tables of callers: which column is which, and conversion between their library and Arrow."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import (
    InputError,
    did_you_mean,
    function,
    listed,
    option,
    printable,
    shorten,
    shown,
)

if TYPE_CHECKING:
    import narwhals as nw

ChooseColumns = Callable[[list[str]], Iterable[str]]
"""Picks the columns to convert, given the names of all columns."""

# Column names that need no option, per role, however they are spelled (`spelling`). A name counts
# only where the table has none of an earlier group: first ours and those of crowd-kit, the VLDB'17
# benchmark and rater, then usual ids, then what an item shows.
KnownNames = Mapping[str, tuple[tuple[str, ...], ...]]
KNOWN_NAMES: KnownNames = {
    "item": (
        ("item", "task", "question"),
        ("item_id", "sample_id", "unit_id", "question_id", "example_id", "task_id"),
        (
            *("unit", "instance", "instance_id", "object", "object_id", "orig_id", "stimulus_id"),
            *(
                "text_id",
                "sentence_id",
                "doc_id",
                "document_id",
                "tweet_id",
                "post_id",
                "comment_id",
            ),
            *("image_id", "img_id", "image_name", "picture_id", "video_id", "clip_id", "rev_id"),
        ),
        ("text", "stimulus", "image", "pvs"),
        ("video", "clip", "photo", "picture", "sentence", "tweet", "document", "filename"),
        ("hit_id",),
    ),
    "annotator": (
        ("annotator", "worker", "rater"),
        (
            *("annotator_id", "worker_id", "rater_id", "user_id"),
            *("user", "observer", "subject", "judge", "coder"),
        ),
        (
            *(
                "participant",
                "participant_id",
                "labeler",
                "labeller",
                "respondent",
                "respondent_id",
            ),
            *("judge_id", "coder_id", "observer_id", "subject_id", "labeler_id", "annotator_name"),
            *("worker_ids", "amt_worker_ids", "amt_worker_id", "mturk_id", "assignment_worker"),
            *("performer", "performer_id", "contributor", "contributor_id", "turker", "turker_id"),
            *(
                "evaluator",
                "evaluator_id",
                "assessor",
                "assessor_id",
                "prolific_id",
                "prolific_pid",
            ),
            *("annotated_by", "labeled_by", "rated_by", "completed_by", "user_name"),
        ),
    ),
    "label": (
        ("label", "answer", "rating"),
        (
            *("sentiment", "score", "category", "vote", "response", "class", "choice", "value"),
            *("judgment", "judgement", "annotation", "verdict", "opinion_score"),
        ),
    ),
    "truth": (
        ("label", "truth", "answer", "rating"),
        ("grade", "score"),
        ("gold", "gold_label", "ground_truth", "true_label"),
    ),
}
NAMES_OF = {role: {*chain(*groups)} for role, groups in KNOWN_NAMES.items()}
_MARKS = re.compile(r"[\s_.:!-]+")
_SPELLED = {name.replace("_", "") for names in NAMES_OF.values() for name in names}
LABEL_ROLES = ("item", "annotator", "label")
TIME_ROLES = ("time", "order", "seconds")
# Column names of times of labels that need no option; the first that a table has is taken.
TIME_NAMES: Mapping[str, tuple[str, ...]] = {
    "time": (
        *("time", "timestamp", "created_at", "submitted_at", "completed_at", "annotated_at"),
        *("labelled_at", "labeled_at", "answered_at", "submit_time", "end_time", "datetime"),
    ),
    "order": ("order", "position", "trial", "trial_number", "sequence_number"),
    "seconds": (
        *("seconds", "lead_time", "response_time", "reaction_time", "duration", "time_spent"),
        *("work_time_in_seconds", "duration_seconds", "seconds_per_answer"),
        *("milliseconds", "response_time_ms", "reaction_time_ms", "duration_ms", "time_ms"),
    ),
}
TRUTH_ROLES = ("item", "truth")


class ColumnsNotFoundError(InputError):
    """Columns of a table are not found by their names: ``problem`` says which, ``known`` has the others."""

    def __init__(
        self, message: str, problem: str = "", known: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.problem, self.known = problem, known or {}


def find_columns(
    names: Sequence[str],
    roles: Sequence[str],
    given: Mapping[str, str] | None = None,
    known: KnownNames = KNOWN_NAMES,
) -> dict[str, str]:
    """Return the column of each role, by the given name or by a known name."""
    given = _check_given(given, roles)
    has_option = len(roles) > 2  # the option columns is for labels and comparisons alone
    columns, matches = {}, {}
    for role in roles:
        if role in given:
            matches[role] = [given[role]] if given[role] in names else []
        else:
            matches[role] = find_known(known[role], names)
        columns[role] = next(iter(matches[role]), "")
    if any(len(found) != 1 for found in matches.values()):
        raise _columns_not_found(matches, given, names, known, has_option=has_option)
    for name in columns.values():
        if names.count(name) > 1:
            raise InputError(f"two columns are named {name!r}: rename one")
        roles_of_column = [role for role, column in columns.items() if column == name]
        if len(roles_of_column) > 1:
            raise InputError(
                f"column {name!r} cannot be the {' and the '.join(roles_of_column)} at once; "
                f"{pass_column(roles_of_column[1]) if has_option else 'add the other column'}"
            )
    return columns


def check_column_roles(given: object) -> None:
    """Refuse a value of the option columns that is not a mapping from roles."""
    if not isinstance(given, Mapping | None):
        raise InputError(f"columns is {shown(given)}: give a mapping from role to column name")


def _check_given(given: Mapping[str, str] | None, roles: Sequence[str]) -> dict[str, str]:
    check_column_roles(given)
    if not given:
        return {}
    # pandas numbers columns that have no names; here every name is text.
    given = {role: str(name) for role, name in given.items()}
    unknown = sorted(set(given) - set(roles))
    if unknown:
        raise InputError(
            f"columns has the unknown role {unknown[0]!r}: the roles are "
            + ", ".join((*roles, *TIME_ROLES) if tuple(roles) == LABEL_ROLES else roles)
        )
    return given


def spelling(name: object) -> str:
    """Return a column name without case and separators: workerId, Worker ID and _worker_id are one."""
    text = str(name).strip().lower()
    return _MARKS.sub("", text) or text


def find_known(groups: Sequence[Sequence[str]], names: Iterable[str]) -> list[str]:
    """Return the columns that could have a role: those of the first group that has any.

    Of several spellings of a name, the one as it is known comes first, then one that differs in
    case; others could each be meant.
    """
    spelled: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        spelled.setdefault(spelling(name), []).append(name)
    for group in groups:
        found: list[str] = []
        for known in group:
            several = spelled.get(spelling(known), [])
            closer = [name for name in several if name == known] or [
                name for name in several if str(name).strip().lower() == known
            ][:1]
            found += closer or several
        if found:
            return found
    return []


def _columns_not_found(
    matches: Mapping[str, Sequence[str]],
    given: Mapping[str, str],
    names: Sequence[str],
    known: KnownNames,
    *,
    has_option: bool,
) -> ColumnsNotFoundError:
    """Return the error that asks for all unclear columns at once.

    ``matches`` hold what each could be, and ``given`` what the caller said.
    """
    several = {role: found for role, found in matches.items() if len(found) > 1}
    missing = [role for role, found in matches.items() if not found and role not in given]
    wrong = [given[role] for role, found in matches.items() if not found and role in given]
    absent = list(map(repr, wrong))
    problems = [
        f"columns {' and '.join(map(repr, found))} could {'both' if len(found) == 2 else 'all'} "
        f"be the {role}"
        for role, found in several.items()
    ]
    if absent:
        problems.append(f"no column {' and no column '.join(absent)}")
    if missing:
        problems.append(f"no column for the {' and the '.join(missing)}")
    if absent or missing:
        problems[-1] += f" (found: {listed(names)})"
    steps = []
    usual = [repr(known[role][0][0]) for role in missing]
    if len(missing) == 1 and not absent:
        steps.append(f"name it {usual[0]}")
    elif missing and not has_option:
        steps.append(f"name them {' and '.join(usual)}, in the first row")
    if has_option:
        taken = {name for found in matches.values() for name in found}
        rest = [name for name in names if name not in taken]
        is_clear = len(rest) == len(missing) + len(absent) == 1 and printable(rest[0]) == rest[0]
        only = rest[0] if is_clear else ""
        # What is pasted replaces what was given, so it has all of that.
        steps.append(
            pass_columns(
                {
                    role: next(iter(found), only)
                    for role, found in matches.items()
                    if len(found) != 1 or role in given
                }
            )
        )
    elif several:
        steps.append("rename one")
    if "question" in several.get("item", ()):
        steps.append(
            "if 'question' says which question was answered, pass "
            f"{option('question', 'NAME')}, or {option('question', 'all')} to {function('fit')}"
        )
    similar = next(filter(None, (did_you_mean(name, names) for name in wrong)), "")
    message = "; ".join([*problems, *([", or ".join(steps)] if steps else [])]) + similar
    found = {role: each[0] for role, each in matches.items() if len(each) == 1}
    return ColumnsNotFoundError(message, "; ".join(problems) + similar, {} if absent else found)


def pass_columns(columns: Mapping[str, str]) -> str:
    """Return what to do, in a message, where columns are not known; empty names are NAME."""
    return f"pass {option('columns', {role: name or 'NAME' for role, name in columns.items()})}"


def pass_column(role: str) -> str:
    """Return what to do, in a message, where the column of a role is not known."""
    return pass_columns({role: ""})


def describe_columns(columns: Mapping[str, str], given: Mapping[str, str] | None = None) -> str:
    """Return which column was taken for which role; nothing where the caller or the names say so."""
    known = given or {}
    if all(role in known or name.strip().lower() == role for role, name in columns.items()):
        return ""
    return ", ".join(f"{role} = {shorten(name)}" for role, name in columns.items())


# Names of annotators that may also be those of authors, or of what is labelled.
_UNSURE_ANNOTATORS = {"user", "userid", "username", "subject", "subjectid", "contributor"}


def check_annotator_column(
    columns: Mapping[str, str], given: Mapping[str, str] | None, *, n_items: int, n_labels: int
) -> None:
    """Refuse a column taken for the annotator that may be the author of items with a class each."""
    name = columns["annotator"]
    if "annotator" in (given or {}) or spelling(name) not in _UNSURE_ANNOTATORS:
        return
    if 1 < n_items == n_labels:
        raise InputError(
            f"every item has one label, so {name!r} may not be who gave it; if it is, "
            f"{pass_columns(columns)}"
        )


def is_known_name(name: str) -> bool:
    """Return whether a column of this name needs no option."""
    return spelling(name) in _SPELLED


def check_further_columns(
    role: str, names: Sequence[str], further: Sequence[str], used: Sequence[str]
) -> None:
    """Refuse further columns that are missing or have another role; ``used`` are those."""
    for name in further:
        if name not in names:
            raise InputError(f"no column {name!r} for the {role} (found: {listed(names)})")
        if name in used:
            raise InputError(
                f"column {name!r} has another role already and cannot be the {role}: leave it out"
            )
        if names.count(name) > 1:
            raise InputError(f"two columns are named {name!r}: rename one")


def to_arrow(
    data: Any, choose: ChooseColumns | None = None, roles: Sequence[str] = LABEL_ROLES
) -> tuple[pa.Table, str]:
    """Return a frame, a list of tuples, (item, annotator, label), or of dicts as an Arrow table.

    The second value is the name of the caller's frame library, in which tables are returned.
    ``choose`` picks the columns of a frame to convert; ``roles`` are the entries of a tuple.
    """
    if isinstance(data, pa.Table):
        return data, "pyarrow"
    library = distributed_library(data)
    if library is not None:
        raise InputError(
            f"this is a distributed frame: pass {option('engine', library)}, or collect it"
        )
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(data, pass_through=True)
    except DuplicateError as error:
        raise InputError("two columns of the frame have the same name: rename one") from error
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        # Columns that are not needed may hold anything, so they are not converted.
        by_text = {str(name): name for name in frame.columns}
        chosen = list(by_text) if choose is None else dict.fromkeys(choose(list(by_text)))
        columns = {name: _to_column(name, frame.get_column(by_text[name])) for name in chosen}
        return pa.table(columns), frame.implementation.name.lower()
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        with suppress(pa.ArrowInvalid):  # a single column is not a table
            return pa.table(data), "pyarrow"
    is_one = isinstance(data, (str, bytes, dict)) or getattr(data, "shape", None) == ()
    if isinstance(data, Iterable) and not is_one:
        rows = list(data)
        if rows and isinstance(rows[0], Mapping):
            return records_to_arrow(rows, choose), default_frame()
        return tuples_to_arrow(rows, roles), default_frame()
    what = "labels" if tuple(roles) == LABEL_ROLES else "comparisons"
    raise InputError(
        f"cannot read {what} from {type(data).__name__}: give a pandas, polars or pyarrow frame, a "
        f"list of ({', '.join(roles)}) tuples, or read a file with annotruth.read_{what}"
    )


def distributed_library(data: Any) -> str | None:
    """Return the library, and engine, of a frame whose rows are on other machines; else None.

    Such a frame must not be collected implicitly.
    """
    kind = type(data)
    is_spark = kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"
    return "spark" if is_spark else None


def from_arrow(table: pa.Table, frame: str) -> Any:
    """Return an Arrow table as a frame of the named library."""
    if frame == "pyarrow":
        return table
    import narwhals as nw

    return nw.from_arrow(table, backend=frame).to_native()  # type: ignore[arg-type]


def default_frame() -> str:
    """Return the frame library for callers who used none: pandas if it is installed."""
    return "pandas" if importlib.util.find_spec("pandas") else "pyarrow"


def _to_column(name: str, series: nw.Series[Any]) -> pa.Array:
    try:
        return series.to_arrow()
    except (pa.ArrowException, OverflowError, UnicodeError):
        # Arrow's message names no row, so convert again and find it.
        return make_column(name, series.to_list())


def records_to_arrow(
    records: Sequence[Mapping[str, Any]], choose: ChooseColumns | None = None
) -> pa.Table:
    """Return the chosen entries of dicts, given all their keys; entries that are missing are null."""
    for number, row in enumerate(records, start=1):
        if not isinstance(row, Mapping):
            raise InputError(f"row {number} is {shown(row)}: each must be a dict, as others are")
    names = list(dict.fromkeys(chain.from_iterable(records)))
    if not all(isinstance(name, str) for name in names):
        raise InputError("a row has a key that is not text: give dicts of item, annotator, label")
    chosen = names if choose is None else choose(names)
    return pa.table(
        {name: make_column(name, [row.get(name) for row in records]) for name in chosen}
    )


def tuples_to_arrow(rows: Sequence[Any], roles: Sequence[str]) -> pa.Table:
    """Return a list of tuples as a table with a column per role."""
    for number, row in enumerate(rows, start=1):
        is_sequence = isinstance(row, Sequence) and not isinstance(row, (str, bytes))
        if not is_sequence or len(row) != len(roles):
            raise InputError(f"row {number} is {shown(row)}: each must be ({', '.join(roles)})")
    columns = list(zip(*rows, strict=True)) or [()] * len(roles)
    return pa.table(
        {role: make_column(role, list(values)) for role, values in zip(roles, columns, strict=True)}
    )


def is_list(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds lists."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def make_column(name: str, values: list[Any]) -> pa.Array:
    """Return values as an Arrow column; where types are mixed, the error names the row."""
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeError):
        pass
    else:
        # Arrow takes numbers among dates for days since 1970.
        if not (pa.types.is_temporal(column.type) and any(isinstance(v, int) for v in values)):
            return column
    present = [(row, v) for row, v in enumerate(values, start=1) if not _is_missing(v)]
    if all(isinstance(v, list | tuple | set | frozenset) for _, v in present):
        # Sets of labels, some of them frozen, or of several types.
        texts = [None if _is_missing(v) else [str(each) for each in v] for v in values]
        with suppress(pa.ArrowException, UnicodeError):
            return pa.array(texts)
    first = type(present[0][1])
    other = next(((row, v) for row, v in present if type(v) is not first), None)
    if other is None and first is int:
        # Arrow has no integers beyond 64 bits: keep their text.
        with suppress(ValueError):  # which Python has not where there are thousands of digits
            return pa.array([None if _is_missing(v) else str(v) for v in values])
    if other is None:
        row, value = next((each for each in present if not _is_readable(each[1])), present[0])
        raise InputError(
            f"column {name!r} holds {first.__name__} values that cannot be read, such as "
            f"{shown(value)} (row {row}): turn them into text or numbers"
        )
    row, value = other
    raise InputError(
        f"column {name!r} mixes {first.__name__} and {type(value).__name__} "
        f"(row {row}: {shown(value)}): make them one type"
    )


def _is_readable(value: Any) -> bool:
    """Return whether Arrow has a type for a value, or for its text."""
    try:
        pa.array([str(value) if isinstance(value, int) else value])
    except (pa.ArrowException, OverflowError, ValueError):
        return False
    return True


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas' NA; an array is a value like others."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - NaN
    except TypeError:  # comparing pandas' NA with itself yields no boolean
        return True
    except (ValueError, RuntimeError):  # nor does comparing arrays, those of NumPy and of PyTorch
        return False


# Arrow's own conversions to and from NumPy load pandas wherever it is installed, which takes as
# long as all the rest of a small fit.


def as_numpy(array: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return numbers or booleans, none of them null, as an array that may be read-only."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_boolean(array.type):
        return as_numpy(array.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(array)


def as_arrow(values: NDArray[Any] | Sequence[str]) -> pa.Array:
    """Return numbers, booleans, or a list of text as an Arrow array."""
    if not isinstance(values, np.ndarray):
        texts = [*map(str.encode, values)]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(pa.string(), len(texts), buffers)
    if values.dtype == np.bool_:
        return as_arrow(values.view(np.uint8)).cast(pa.bool_())
    kind = pa.from_numpy_dtype(values.dtype)
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
