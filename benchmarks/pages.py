"""Tables in pages of the documentation, between comments that name them."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path


def replace_tables(page: Path, tables: dict[str, str]) -> None:
    """Replace what stands between ``<!-- NAME -->`` and ``<!-- end NAME -->`` by each table."""
    text = page.read_text("utf-8")
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
        pattern = f"{re.escape(begin)}.*?{re.escape(end)}"
        if not re.search(pattern, text, flags=re.DOTALL):
            raise ValueError(f"{page} has no place for the table {name}: {begin} and {end}")
        block = f"{begin}\n\n{table}\n\n{end}"
        text = re.sub(pattern, partial(_text, block), text, flags=re.DOTALL)
    page.write_text(text, "utf-8")


def _text(block: str, _: re.Match[str]) -> str:
    """Return the block as it is: a replacement that is no function would have its backslashes read."""
    return block
