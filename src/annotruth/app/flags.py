"""The flags that several commands share: their types and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

Flags: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Types and defaults of flags."""

TEXT, FILE, FLAG = (str | None, None), (Path | None, None), (bool, False)
TEXTS, NUMBER = (list[str] | None, None), (float | None, None)

SHARED_READ_FLAGS: Flags = {
    "columns": TEXT,
    "duplicates": (Literal["refuse", "keep", "last"], "refuse"),
    "input_format": TEXT,
    "question": TEXT,
    "query": TEXT,
    "sets": FLAG,
    "separator": TEXT,
    "covariates": TEXT,
    "content": TEXT,
    "drop": TEXT,
    "max_size": TEXT,
    "outcomes": TEXT,
}

READ_FLAGS: Flags = {
    "scale": (Literal["auto", "nominal", "ordinal"], "auto"),
    "categories": TEXT,
    "bins": TEXT,
    **SHARED_READ_FLAGS,
}
"""The flags for reading labels."""

SHARED_OUTPUT_FLAGS: Flags = {
    "out": TEXT,
    "save": FILE,
    "price": NUMBER,
    "format_": (Literal["csv", "parquet", "json"], "csv"),
    "safe_cells": FLAG,
    "report": FILE,
    "title": TEXT,
    "keep": FILE,
    "force": FLAG,
}
