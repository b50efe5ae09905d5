"""Reading and writing files; names load on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotruth.io.readers import read_labels, read_table
    from annotruth.io.writers import TableFormat, write_table, write_tables

__all__ = ["TableFormat", "read_labels", "read_table", "write_table", "write_tables"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'annotruth.io' has no attribute {name!r}")
    module = "readers" if name.startswith("read_") else "writers"
    return getattr(importlib.import_module(f"annotruth.io.{module}"), name)
