"""The parts of the fuzzer by name: their share of the cases, and what runs one of them.

A part with a share of 0 runs only if it is named.
"""

from __future__ import annotations

from tests.fuzz.columns import odd_columns
from tests.fuzz.crowds import renamed_crowd
from tests.fuzz.files import mutated_file
from tests.fuzz.flips import flipped_bit
from tests.fuzz.options import hostile_options
from tests.fuzz.runner import Part
from tests.fuzz.saved_fits import tampered_fit
from tests.fuzz.tables import counted_table
from tests.fuzz.votes import odd_votes

PARTS: dict[str, tuple[float, Part]] = {
    "tables": (0.2, counted_table),
    "files": (0.4, mutated_file),
    "columns": (0.15, odd_columns),
    "options": (0.15, hostile_options),
    "votes": (0.1, odd_votes),
    "fits": (0.0, tampered_fit),
    "flips": (0.0, flipped_bit),
    "crowds": (0.0, renamed_crowd),
}
