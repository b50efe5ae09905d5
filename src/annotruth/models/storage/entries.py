"""What ``fit.json`` says of a saved fit, with every entry checked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

from annotruth.bindings import bound
from annotruth.errors import InputError, shown
from annotruth.models.base_fit import RANKING, SETS, Readout, Verdict
from annotruth.models.fits.further import further_kinds
from annotruth.models.pairs.registry import PAIR_MODELS, get_pair_model
from annotruth.models.registry import MODELS, get_model
from annotruth.observations.validate import check_option

if TYPE_CHECKING:
    from annotruth.models.options import OptionsBase

_FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf")
_SHA256 = "[0-9a-f]{64}"
_TIME = r"[12]\d{3}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\+00:00"
_MAX_DEPTH = 8
_OPTIONAL = {"chosen", "further", "campaign"}

Check: TypeAlias = Callable[[Any], bool]
"""Returns whether the value of an entry is right."""


def check_entries(entries: Mapping[str, Any]) -> None:
    """Raise a ValueError for entries that are missing, unexpected, or of a wrong type."""
    kind = entries.get("kind")
    checks = {**_COMMON_CHECKS, **_KIND_CHECKS.get(kind, _LABEL_CHECKS)}
    for name in entries.keys() - checks.keys():
        raise ValueError(f"unexpected entry {shown(name)} in fit.json")
    for name in checks.keys() - entries.keys() - _OPTIONAL:
        raise ValueError(f"no entry {name} in fit.json")
    for name, value in entries.items():
        if not checks[name](value):
            raise ValueError(f"the entry {name} in fit.json is {shown(value)}")
    if entries["n_iter"] != len(entries["history"]["objective"]):
        raise ValueError("n_iter is not the length of the history")
    _check_settings(_model_class(kind, entries["model"]), entries["settings"])


def _model_class(kind: str | None, model: str) -> type[OptionsBase]:
    """Return the class of a model that fits of the kind have."""
    if kind == SETS:
        return cast("type[OptionsBase]", bound("sets.model"))
    return get_pair_model(model) if kind == RANKING else get_model(model)


def _check_settings(cls: type[OptionsBase], settings: Mapping[str, Any]) -> None:
    """Refuse options that the model does not have, and values of a wrong type."""
    try:
        cls.check_options(settings)
        for option in fields(cls):
            if option.name in settings:
                check_option(option.name, str(option.type), settings[option.name])
    except InputError as error:
        raise ValueError(f"in the settings, {error}") from None
    texts = [option.name for option in fields(cls) if isinstance(option.default, str)]
    if not all(isinstance(settings.get(name, ""), str) for name in texts):
        raise ValueError(f"in the settings, one of {', '.join(texts)} is not text")


def _is_text(value: Any) -> bool:
    # Half of a surrogate pair cannot be printed.
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 1 << 62)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool) or _is_text(value) or _is_number(value)


def _is_any(value: Any, depth: int = 0) -> bool:
    """Return whether a value can be printed and written again."""
    if depth > _MAX_DEPTH:
        return False
    if isinstance(value, dict):
        return all(_is_text(key) and _is_any(each, depth + 1) for key, each in value.items())
    if isinstance(value, list):
        return all(_is_any(each, depth + 1) for each in value)
    return _is_scalar(value)


def _is_one_of(*values: Any) -> Check:
    return lambda value: any(type(value) is type(one) and value == one for one in values)


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _dict_of(check: Check) -> Check:
    """Return a check of an object with any keys and such values."""
    return lambda value: (
        isinstance(value, dict) and all(map(_is_text, value)) and all(map(check, value.values()))
    )


def _object_of(**checks: Check) -> Check:
    """Return a check of an object with these keys, each with a check of its value."""
    return lambda value: (
        isinstance(value, dict)
        and value.keys() == checks.keys()
        and all(check(value[name]) for name, check in checks.items())
    )


def _is_decimal(value: str) -> bool:
    return re.fullmatch(r"[0-9.]+(e-[0-9]+)?", value) is not None


def _is_chosen(value: Any) -> bool:
    return isinstance(value, dict) and _is_any(value) and isinstance(value.get("why"), str)


def _matches(pattern: str) -> Check:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _is_further(value: Any) -> bool:
    """Return whether a value is what ``fit.json`` says of further results."""
    each = _object_of(facts=_dict_of(_is_any), lines=_list_of(_is_text))
    return _dict_of(each)(value) and value.keys() <= further_kinds().keys()


def _is_campaign(value: Any) -> bool:
    """Return whether a value is what ``fit.json`` remembers of a campaign."""
    checks: dict[str, Check] = {
        "columns": _dict_of(_is_text),
        "question": _is_text,
        "drop": _list_of(_is_text),
        "price": lambda price: _is_finite(price) and price >= 0,
    }
    return isinstance(value, dict) and all(
        name in checks and checks[name](each) for name, each in value.items()
    )


def _is_estimate(value: Any) -> bool:
    """Return whether a value is an estimate with the ends of its interval."""
    return isinstance(value, list) and len(value) == 3 and all(map(_is_finite, value))


_COMMON_CHECKS: Mapping[str, Check] = {
    "format": _is_count,
    "settings": _dict_of(_is_scalar),
    "n_items": _is_count,
    "n_annotators": _is_count,
    "n_dropped": _is_count,
    "n_repeated": _is_count,
    "n_read": _or_none(_is_count),
    "unused": _or_none(_dict_of(_is_count)),
    "read_as": _or_none(_is_text),
    "left_out": _or_none(_is_text),
    "fitted_at": _matches(_TIME),
    "frame": _is_one_of(*_FRAMES),
    "n_iter": _is_count,
    "converged": _is_one_of(True, False),
    "stop_reason": _is_text,
    "log_likelihood": _or_none(_is_number),
    "history": _object_of(log_likelihood=_list_of(_is_number), objective=_list_of(_is_number)),
    "versions": _dict_of(_is_text),
    "further": _is_further,
    "campaign": _is_campaign,
    "data": _is_text,
    "files": _dict_of(_object_of(bytes=_is_count, sha256=_matches(_SHA256))),
    "checksum": _is_text,
}
_is_verdict = _or_none(_is_one_of(*get_args(Verdict)))
_LABEL_CHECKS: Mapping[str, Check] = {
    "model": _is_one_of(*MODELS),
    "n_labels": _is_count,
    "n_categories": _is_count,
    "scale": _is_one_of("nominal", "ordinal"),
    "scale_reason": _or_none(_is_text),
    "bins": _or_none(_list_of(_is_finite)),
    "readout": _is_one_of(*get_args(Readout)),
    "verdict": _is_verdict,
    "chosen": _or_none(_is_chosen),
}
_KIND_CHECKS: Mapping[Any, Mapping[str, Check]] = {
    RANKING: {
        "kind": _is_one_of(RANKING),
        "model": _is_one_of(*PAIR_MODELS),
        "n_comparisons": _is_count,
        "sides_known": _is_one_of(True, False),
        "parts": _is_count,
        "side_bias": _or_none(_is_estimate),
        "coefficients": _dict_of(_is_estimate),
        "verdict": _is_verdict,
        "chosen": _or_none(_is_text),
    },
    SETS: {
        "kind": _is_one_of(SETS),
        "model": _is_one_of(SETS),
        "n_answers": _is_count,
        "n_labels": _is_count,
        "n_sets": _is_count,
        "labels": _list_of(_is_text),
        "separator": _is_text,
        "chosen": _or_none(_is_text),
    },
}

QUESTIONS_FORMAT = 1
"""Version of the manifest of the fits of several questions."""

QUESTION_FOLDER = "q[1-9][0-9]{0,8}"
"""The name of the folder of a question's fit, as a regular expression."""

_QUESTION_CHECKS: Mapping[str, Check] = {
    "format": _is_one_of(QUESTIONS_FORMAT),
    "kind": _is_one_of("questions"),
    "questions": _list_of(_object_of(question=_is_text, folder=_matches(QUESTION_FOLDER))),
    "sharing": _object_of(
        strength=_is_finite,
        why=_is_text,
        gain=_or_none(_is_finite),
        error=_or_none(_is_finite),
        scores=lambda value: _dict_of(_is_finite)(value) and all(map(_is_decimal, value)),
    ),
}


def check_question_entries(entries: Mapping[str, Any]) -> None:
    """Raise a ValueError for a manifest of several questions that is not one."""
    for name, check in _QUESTION_CHECKS.items():
        if not check(entries.get(name) if isinstance(entries, dict) else None):
            raise ValueError(f"its entry {name} is not that of this version of annotruth")
