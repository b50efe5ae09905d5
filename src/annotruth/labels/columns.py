"""Which column of a table is the item, the annotator, the label, or a covariate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from annotruth.errors import InputError
from annotruth.labels.formatting import listed, shown

# Column names that need no option, per role: ours, and those of crowd-kit, the VLDB'17 benchmark
# and rater.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "item": ("item", "task", "question"),
    "annotator": ("annotator", "worker", "rater"),
    "label": ("label", "answer", "rating"),
    "truth": ("label", "truth", "answer", "rating"),
}
LABEL_ROLES = ("item", "annotator", "label")
TRUTH_ROLES = ("item", "truth")


def find_columns(
    names: Sequence[str], roles: Sequence[str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the column of each role, by the given name or by a known name."""
    if not isinstance(given, Mapping | None):
        raise InputError(f"columns is {shown(given)}: give a mapping from role to column name")
    # pandas numbers columns that have no names; here every name is text.
    given = {role: str(name) for role, name in (given or {}).items()}
    unknown = sorted(set(given) - set(roles))
    if unknown:
        raise InputError(
            f"columns has the unknown role {unknown[0]!r}: the roles are {', '.join(roles)}"
        )
    is_labels = tuple(roles) == LABEL_ROLES  # the option columns is for the labels alone
    by_spelling = {str(name).strip().lower(): name for name in reversed(names)}
    by_spelling.update((name, name) for name in names)  # the exact spelling comes first
    found = {}
    for role in roles:
        if role in given:
            if given[role] not in names:
                raise InputError(f"no column {given[role]!r} (found: {listed(names)})")
            found[role] = given[role]
            continue
        matches = [by_spelling[alias] for alias in ALIASES[role] if alias in by_spelling]
        if not matches:
            raise InputError(
                f"no column for the {role} (found: {listed(names)}); "
                f"name it {ALIASES[role][0]!r}{f', or {pass_column(role)}' if is_labels else ''}"
            )
        if len(matches) > 1:
            raise InputError(
                f"columns {' and '.join(map(repr, matches))} could both be the {role}; "
                f"{pass_column(role) if is_labels else 'rename one'}"
            )
        found[role] = matches[0]
    for name in found.values():
        if names.count(name) > 1:
            raise InputError(f"two columns are named {name!r}: rename one")
        roles_of_column = [role for role, column in found.items() if column == name]
        if len(roles_of_column) > 1:
            raise InputError(
                f"column {name!r} cannot be the {' and the '.join(roles_of_column)} at once; "
                f"{pass_column(roles_of_column[1]) if is_labels else 'add the other column'}"
            )
    return found


def pass_column(role: str) -> str:
    """Return what to do, in a message, where the column of a role is not known."""
    return f"pass columns={{'{role}': NAME}} (`--columns {role}=NAME`)"


def is_known_name(name: str) -> bool:
    """Return whether a column of this name needs no option."""
    return any(name.strip().lower() in known for known in ALIASES.values())


def check_covariate_columns(
    names: Sequence[str], covariates: Sequence[str], used: Sequence[str]
) -> None:
    """Refuse covariates without a column, or whose column has a role; ``used`` are those."""
    for name in covariates:
        if name not in names:
            raise InputError(f"no column {name!r} for the covariate (found: {listed(names)})")
        if name in used:
            raise InputError(
                f"column {name!r} is the item, annotator or label, not a covariate: leave it out"
            )
        if names.count(name) > 1:
            raise InputError(f"two columns are named {name!r}: rename one")
