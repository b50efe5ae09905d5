"""The flags that several commands share: their types and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import typer

Flags: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Types and defaults of flags."""

_TEXT, _FILE, _FLAG = (str | None, None), (Path | None, None), (bool, False)
_TEXTS, _NUMBER = (list[str] | None, None), (float | None, None)

_SHARED_READ_FLAGS: Flags = {
    "columns": _TEXT,
    "duplicates": (Literal["refuse", "keep", "last"], "refuse"),
    "input_format": _TEXT,
    "question": _TEXT,
    "query": _TEXT,
    "sets": _FLAG,
    "separator": _TEXT,
    "covariates": _TEXT,
    "content": _TEXT,
    "drop": _TEXT,
    "max_size": _TEXT,
    "outcomes": _TEXT,
}

READ_FLAGS: Flags = {
    "scale": (Literal["auto", "nominal", "ordinal"], "auto"),
    "categories": _TEXT,
    "bins": _TEXT,
    **_SHARED_READ_FLAGS,
}
"""The flags for reading labels."""

_SHARED_OUTPUT_FLAGS: Flags = {
    "out": _TEXT,
    "save": _FILE,
    "price": _NUMBER,
    "format_": (Literal["csv", "parquet", "json"], "csv"),
    "safe_cells": _FLAG,
    "report": _FILE,
    "title": _TEXT,
    "keep": _FILE,
    "force": _FLAG,
}

_MACHINES: Flags = {"machines": _TEXTS, "machine_margin": _NUMBER}

EXPANDED: Mapping[str, Flags] = {
    "read": READ_FLAGS,
    "fit.read": {
        **{name: flag for name, flag in READ_FLAGS.items() if name != "outcomes"},
        "memory": _TEXT,
    },
    "update.read": _SHARED_READ_FLAGS,
    "open_.read": dict.fromkeys(
        ("columns", "input_format", "question", "query", "max_size"), _TEXT
    ),
    "rank.read": dict.fromkeys(
        ("columns", "outcomes", "question", "query", "covariates", "drop", "max_size"), _TEXT
    ),
    "outputs": {
        **_SHARED_OUTPUT_FLAGS,
        "soft": _FILE,
        "soft_readout": (Literal["right", "opinion"] | None, None),
        "predictions": _FILE,
        "label_studio": _TEXT,
    },
    "service": {
        "ctx": (typer.Context, inspect.Parameter.empty),
        "database": _TEXT,
        "folder": _FILE,
    },
    "fit.analyses": {"annotators": _FILE, "by": _TEXTS, **_MACHINES},
    "rank.analyses": _MACHINES,
    "rank.outputs": {**_SHARED_OUTPUT_FLAGS, "preferences": _FILE},
    "next_.outputs": {
        **dict.fromkeys(("out", "label_studio", "assign_format"), _TEXT),
        **dict.fromkeys(("keep", "predictions", "assign"), _FILE),
        "price": _NUMBER,
        "force": _FLAG,
    },
}
"""The flags that commands have in place of parameters such as ``read`` and ``outputs``."""
