"""The list of mutants: single changes that make the package wrong, each of which a test must notice.

Each TOML file of this folder has the mutants of one part of the package. A mutant replaces a text that
occurs exactly once in its file.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = Path("src", "annotruth")


@dataclass(frozen=True)
class Mutant:
    """One change, and the tests that should notice it."""

    name: str  # what is wrong with it
    part: str  # the name of the TOML file
    file: Path  # relative to the repository
    old: str
    new: str
    tests: tuple[str, ...]  # files or tests, as pytest takes them

    @property
    def is_kernel(self) -> bool:
        """Whether compiled code may depend on it."""
        return self.file.is_relative_to(PACKAGE / "kernels")

    def applied_to(self, source: str) -> str:
        """Return the source with the change."""
        occurrences = source.count(self.old)
        if occurrences != 1:
            found = f"occurs {occurrences} times" if occurrences else "is not"
            raise ValueError(
                f"mutant {self.name!r}: {self.old!r} {found} in {self.file}: "
                f"edit its `old` in tests/mutants/{self.part}.toml"
            )
        return source.replace(self.old, self.new)


def read_mutants() -> list[Mutant]:
    """Return all mutants, in the order of the files' names."""
    return [
        Mutant(
            name=entry["name"],
            part=path.stem,
            file=PACKAGE / entry["file"],
            old=entry["old"],
            new=entry["new"],
            tests=tuple(f"tests/{test}" for test in entry["tests"]),
        )
        for path in sorted(HERE.glob("*.toml"))
        for entry in tomllib.loads(path.read_text())["mutants"]
    ]
