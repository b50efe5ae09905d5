"""What clients send and get, as pydantic models: they check requests and document the API."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    WithJsonSchema,
)

from annotruth.serve.outgoing import check_url
from annotruth.serve.store.projects import check_name
from annotruth.serve.store.tables import LabelEvent, ProjectKind, Scope

MAX_DEPTH = 10
"""How deep JSON values that are stored as they are may be nested."""

MAX_JSON = 20_000
"""How many values such a JSON value may have."""


def _checked_id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("give text or a whole number")  # noqa: TRY004 (pydantic takes no other)
    text = str(value)
    if not text:
        raise ValueError("give an id that is not empty")
    return text


def _checked_label(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise ValueError("give text, a number or true/false")  # noqa: TRY004 (as above)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("give a finite number")
        if value.is_integer():
            return str(int(value))
    return str(value)


def _checked_time(value: datetime) -> datetime:
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("give a time between the years 1 and 9999 in UTC") from None


def _checked_json(value: JsonValue) -> JsonValue:
    _refuse_hostile_json([value], [0], 0)
    return value


def _refuse_hostile_json(values: list[Any], count: list[int], depth: int) -> None:
    """Refuse values that a database cannot store, or that are too deep or too many."""
    if depth > MAX_DEPTH:
        raise ValueError(f"give values that are nested at most {MAX_DEPTH} deep")
    count[0] += len(values)
    if count[0] > MAX_JSON:
        raise ValueError(f"give at most {MAX_JSON:,} values")
    for value in values:
        if isinstance(value, dict):
            _refuse_hostile_json([*value, *value.values()], count, depth + 1)
        elif isinstance(value, list):
            _refuse_hostile_json(value, count, depth + 1)
        elif isinstance(value, str) and "\0" in value:
            raise ValueError("give text without zero characters")
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError("give finite numbers")


def _checked_by(check: Callable[[str], object]) -> AfterValidator:
    """Return what checks a text by a function that raises for a wrong one."""

    def checked(value: str) -> str:
        check(value)
        return value

    return AfterValidator(checked)


def _documented_as(*types: str) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": each} for each in types]})


Id = Annotated[str, BeforeValidator(_checked_id), _documented_as("string", "integer")]
LabelValue = Annotated[
    str, BeforeValidator(_checked_label), _documented_as("string", "boolean", "integer", "number")
]
Time = Annotated[datetime, AfterValidator(_checked_time)]
JsonObject = Annotated[dict[str, JsonValue], AfterValidator(_checked_json)]
AlertKind = Literal["verdict", "finished", "agreement"]
Name = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class _Sent(BaseModel):
    """What clients send; unknown fields are refused, since they are mostly misspelt."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class _NewEvent(_Sent):
    """What labels and comparisons have in common; ids are text or whole numbers."""

    annotator: Id | None = Field(None, description="Who labelled or compared; always given.")
    event_id: Id | None = Field(None, description="Makes sending again safe; a new one by default.")
    annotation: Id | None = Field(
        None,
        description="What later events edit or delete; by default that of item and annotator, and of a "
        "comparison its own.",
    )
    started: Time | None = Field(None, description="When the annotator began.")
    submitted: Time | None = Field(None, description="The time of receipt by default.")
    deleted: StrictBool = Field(False, description="Whether to delete the annotation.")

    def _event(self, item: str | None, label: str | None, other: str | None = None) -> LabelEvent:
        return LabelEvent(
            item or "",
            self.annotator or "",
            label or "",
            self.event_id,
            self.annotation,
            other or "",
            self.started,
            self.submitted,
            self.deleted,
        )


class NewLabel(_NewEvent):
    """A label, an edit of one, or its deletion."""

    item: Id | None = Field(None, description="Text or a whole number; always given.")
    label: LabelValue | None = Field(
        None, description="Text, a number or true/false; given unless deleted."
    )

    def to_event(self) -> LabelEvent:
        """Return the event of the store."""
        return self._event(self.item, self.label)


class NewComparison(_NewEvent):
    """A comparison of two items, an edit of one, or its deletion."""

    left: Id | None = Field(None, description="The item on the left; always given.")
    right: Id | None = Field(None, description="The item on the right; always given.")
    outcome: Literal["left", "right", "tie"] | None = Field(
        None, description="Which was preferred; given unless deleted."
    )

    def to_event(self) -> LabelEvent:
        """Return the event of the store."""
        return self._event(self.left, self.outcome, self.right)


class Accepted(BaseModel):
    """How many events were new, how many repeated, and the number of the project's last one."""

    accepted: int
    repeated: int
    last_seq: int


class Stored(BaseModel):
    """How many values were stored."""

    stored: int


class Problem(BaseModel):
    """What is wrong with a request, in one line."""

    detail: str


class ProjectSettings(_Sent):
    """How a project's labels are fitted, and what is aimed at."""

    model: Name | None = Field(default=None, description='A model\'s name, or "auto".')
    scale: Literal["auto", "ordinal", "nominal"] | None = None
    categories: list[LabelValue] | None = Field(
        default=None, max_length=10_000, description="The labels that are accepted; any by default."
    )
    labels_per_item: int | None = Field(default=None, ge=1, le=1000)
    cost_per_label: float | None = Field(default=None, ge=0.0, le=1e9, allow_inf_nan=False)

    def to_changes(self) -> dict[str, Any]:
        """Return the settings that were given; None for those to remove."""
        return self.model_dump(exclude_unset=True)


class NewProject(_Sent):
    """A project to create."""

    name: Annotated[str, _checked_by(check_name)] = Field(
        description="1 to 60 lower-case letters, digits and -."
    )
    kind: ProjectKind = "labels"
    settings: ProjectSettings = Field(default_factory=ProjectSettings)


class NewGold(_Sent):
    """The known truth of an item; null removes it."""

    item: Id
    label: LabelValue | None


class NewContent(_Sent):
    """What an item is: text, the address of a picture, or anything that pages show."""

    item: Id
    content: JsonObject


class NewTraits(_Sent):
    """What is known of an annotator, such as a team or a language."""

    annotator: Id
    traits: JsonObject


class NewToken(_Sent):
    """A token to create, for the project of the path, or for all projects."""

    name: Name
    scope: Scope
    expires: Time | None = Field(default=None, description="Never by default.")


class NewWebhook(_Sent):
    """Where alerts are sent; requests are signed by Standard Webhooks."""

    url: Annotated[str, _checked_by(check_url)] = Field(max_length=2000)
    kinds: list[AlertKind] = Field(
        default=list(get_args(AlertKind)), max_length=50, description="All by default."
    )


class NewConnection(_Sent):
    """A platform that sends labels to this project."""

    kind: Name = Field(description="The platform, such as label-studio; generic for any other.")
    settings: JsonObject = {}
    secret: str | None = Field(
        None,
        min_length=16,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="That of a platform which makes its own; a new one by default.",
    )
