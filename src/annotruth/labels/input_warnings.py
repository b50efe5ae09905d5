"""What is odd about labels that can be read: worth a line, not a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from annotruth.labels.buffers import as_arrow
from annotruth.labels.formatting import listed, shown
from annotruth.labels.scale import Scale, is_text, numbers_behind

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+\s*")
_WHOLE = re.compile(r"\s*[-+]?\d+\s*")
_MOST_WORDS = 5  # among numbers; of more, the numbers are words too


def doubts(scale: Scale) -> Iterator[str]:
    """Say what may be wrong with words that were taken for classes as they stand."""
    if scale.is_ordinal or not is_text(scale.categories.type):
        return
    names = scale.names
    if pair := _spelled_twice(names):
        yield (
            f"labels {shown(pair[0])} and {shown(pair[1])} differ in blanks or capitals alone, "
            "and are two categories: spell them alike if they are one"
        )
    if any(map(_DECIMAL_COMMA.fullmatch, names)) and all(
        _DECIMAL_COMMA.fullmatch(name) or _WHOLE.fullmatch(name) for name in names
    ):
        yield (
            f"labels such as {shown(names[0])} were taken for words: if they are numbers, write "
            "them with a point"
        )
        return
    among = (name for name in names if numbers_behind(as_arrow([name])) is None)
    words = list(islice(among, _MOST_WORDS + 1))
    if words and len(words) <= _MOST_WORDS and len(names) - len(words) > 1:
        yield (
            f"the labels are numbers but for {listed(map(shown, words))}, so all of them were "
            "taken for words: leave a cell empty where there is no label"
        )


def _spelled_twice(names: list[str]) -> tuple[str, str] | None:
    """Find two names that are the same but for blanks around them and capitals."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(" ".join(name.split()).casefold(), name)
        if other != name:
            return other, name
    return None
