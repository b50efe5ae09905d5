"""Warnings about labels that can be read, but may not be what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from annotruth.labels.buffers import as_arrow
from annotruth.labels.formatting import listed, shown
from annotruth.labels.scale import Scale, is_text, parse_numbers

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+\s*")
_WHOLE = re.compile(r"\s*[-+]?\d+\s*")
_MAX_TEXTS = 5  # among numbers; where there are more, the numbers are text as well


def input_warnings(scale: Scale) -> Iterator[str]:
    """Return warnings about labels that were read as text, as classes without an order."""
    if scale.is_ordinal or not is_text(scale.categories.type):
        return
    names = scale.names
    if pair := _find_spelling_variants(names):
        yield (
            f"labels {shown(pair[0])} and {shown(pair[1])} differ only in spaces or capitals, "
            "and are two categories: spell them alike if they are one"
        )
    if any(map(_DECIMAL_COMMA.fullmatch, names)) and all(
        _DECIMAL_COMMA.fullmatch(name) or _WHOLE.fullmatch(name) for name in names
    ):
        yield (
            f"labels such as {shown(names[0])} were read as text: if they are numbers, write "
            "them with a point"
        )
        return
    not_numbers = (name for name in names if parse_numbers(as_arrow([name])) is None)
    texts = list(islice(not_numbers, _MAX_TEXTS + 1))
    if texts and len(texts) <= _MAX_TEXTS and len(names) - len(texts) > 1:
        yield (
            f"the labels are numbers except {listed(map(shown, texts))}, so all of them were read "
            "as text: leave a cell empty where there is no label"
        )


def _find_spelling_variants(names: list[str]) -> tuple[str, str] | None:
    """Return two names that differ only in spaces and capitals, if there are such."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(" ".join(name.split()).casefold(), name)
        if other != name:
            return other, name
    return None
