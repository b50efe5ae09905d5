"""Which column of a table is which, by its name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from annotruth.errors import (
    AnnotruthWarning,
    ComparisonsError,
    InputError,
    did_you_mean,
    function,
    listed,
    option,
    printable,
    shorten,
    shown,
)

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


# Columns by which exports of platforms are known: their own formats read them, even
# where other columns of theirs have names as in a long table.
_PLATFORM_COLUMNS = (
    {"annotator", "annotation_id", "lead_time"},
    {"_unit_id", "_worker_id"},
    {"_unit_id", "_golden", "_unit_state"},
    {"classification_id", "workflow_id"},
    {"HITId", "WorkerId"},
    {"ASSIGNMENT:worker_id"},
    {"_input_hash", "_task_hash"},
    {"subject_id", "reducer"},
    {"trial_type", "trial_index", "time_elapsed"},
    {"Participant Private ID", "Zone Type"},
    {"participant.code", "session.code"},
    {"StartDate", "RecordedDate", "ResponseId"},
)


def is_platform_export(names: Iterable[str]) -> bool:
    """Return whether a table has the columns by which a platform's export is known."""
    found = set(names)
    of_potato = any(":::" in name for name in found)
    return of_potato or any(columns <= found for columns in _PLATFORM_COLUMNS)


_SIDES = ({"left", "right"}, {"model_a", "model_b"}, {"winner", "loser"})
_BOX = {"top", "bottom"}  # beside left and right, the places of a box in a picture


def refuse_comparisons(names: Iterable[str], given: Mapping[str, str] | None) -> None:
    """Refuse a table whose columns are those of pair comparisons where labels are read."""
    found = {name.strip().lower() for name in names}
    if given or "item" in found or found & _BOX:
        return
    if any(sides <= found for sides in _SIDES):
        raise ComparisonsError(
            f"these are comparisons of pairs (columns {listed(names)}), not labels: rank the items "
            f"with {function('rank')}"
        )


def find_time_columns(
    names: Sequence[str], given: Mapping[str, str], used: Iterable[str]
) -> dict[str, str]:
    """Return the column of each of `TIME_ROLES` that a table has, as named by the caller or usually.

    ``used`` are columns that have another role.
    """
    check_further_columns("times", names, list(given.values()), list(used))
    taken = {*used, *given.values()}
    by_spelling = {spelling(name): name for name in reversed(names) if name not in taken}
    found = dict(given)
    for role in TIME_ROLES:
        known = map(by_spelling.get, map(spelling, TIME_NAMES[role]))
        column = next(filter(None, known), None)
        if column is not None:
            found.setdefault(role, column)
    return {role: found[role] for role in TIME_ROLES if role in found}


def warn_of_unused_times(names: Sequence[str], used: Iterable[str], where: str) -> None:
    """Warn of columns of times that are not read, because of where labels are."""
    found = [repr(name) for name in find_time_columns(names, {}, used).values()]
    if found:
        what = f"column {found[0]} is" if len(found) == 1 else f"columns {listed(found)} are"
        warnings.warn(
            f"{what} not used: labels {where} do not carry times", AnnotruthWarning, stacklevel=2
        )
