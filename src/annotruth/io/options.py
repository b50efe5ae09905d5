"""How labels are read: the options of `annotruth.fit`, `read_labels` and their kin."""

from __future__ import annotations

from dataclasses import dataclass

from annotruth.labels.options import TableOptions


@dataclass(frozen=True, kw_only=True)
class ReadOptions(TableOptions):
    """Options for reading labels from a file or a table.

    Functions that read labels take them as keywords, ``at.fit("labels.csv", scale="ordinal")``,
    or as one object, ``at.fit("labels.csv", read=options)``.

    Parameters
    ----------
    columns, scale, categories, duplicates, bins, covariates
        As in `TableOptions`.
    input_format
        The format of a file ("wide", "mturk", ...), where it is not recognised as it should be.
    question
        The question to take, where a file has labels for several.
    memory
        How much memory the labels and the fit may take, such as "1GB": the labels then stay on
        disk, in the folder for temporary files, and the result is the same. For files that hold
        a long table, and the models gpm, robust-gpm and dawid-skene.

    Examples
    --------
    >>> ReadOptions(scale="ordinal", duplicates="last").scale
    'ordinal'
    """

    input_format: str | None = None
    question: str | None = None
    memory: str | int | None = None
