"""Write the workbook of a fit, or of a comparison of models."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotruth.errors import InputError, option
from annotruth.io.workbook import check_workbook, write_workbook
from annotruth.models import base_fit
from annotruth.models.result import Fit
from annotruth.observations.options import Campaign
from annotruth.report.workbook.about import about_fit, about_sheet, made_rows
from annotruth.report.workbook.book import Book
from annotruth.report.workbook.part import Part

if TYPE_CHECKING:
    from annotruth.analyses.advice.advice import Advice
    from annotruth.analyses.advice.pairs.advice import PairAdvice
    from annotruth.selection.compare import Comparison


def write_fit(
    fit: Fit[Any],
    path: str | Path,
    *,
    price: float | None = None,
    source: str | None = None,
    advice: Advice | PairAdvice | None = None,
    sheets: Collection[str] | None = None,
) -> None:
    """Write the workbook of a fit, as `Fit.write` does; only some ``sheets``, and "About".

    ``price``: that of one label; by default the one that the fit remembers.
    """
    check_workbook(path)
    if fit.kind == "distributed" or getattr(fit.data, "on_disk", False):
        raise InputError(
            f"{path}: a workbook needs all labels in memory: leave out {option('memory')}, or name a folder "
            "for the tables"
        )
    price = fit.campaign.price if price is None else Campaign(price=price).price
    book = Book(fit, advice, None if price is None else Decimal(str(price)))
    parts = [part for part in book.parts() if sheets is None or part.name in sheets]
    about = about_sheet(about_fit(book, parts, source or ""))
    shown = [*(part.sheet() for part in parts), about]
    write_workbook(shown, path, created=fit.fitted_at or base_fit.now())


def write_comparison(compared: Comparison, path: str | Path, *, source: str | None = None) -> None:
    """Write the workbook of a comparison of models: the models, and how far pairs of them agree."""
    about = [
        ("What was read", "File", source or ""),
        ("What was read", "Labels", compared.data.describe()),
        ("Result", "Finding", compared.finding),
        *made_rows(base_fit.now()),
        ("Models", "Held-out", "mean log-probability of labels that the model was fitted without"),
        ("Models", "Behind", "how far the model is behind the best one, with its standard error"),
        ("Agreement", "Same label", "share of items with the same label by both models"),
    ]
    models = compared.model_table()
    known = [name for name in models.column_names if models[name].null_count < len(models)]
    parts = [
        Part("Models", models.select(known), "No model was compared."),
        Part("Agreement", compared.agreement_table(), "One model only."),
    ]
    sheets = [*(part.sheet() for part in parts), about_sheet(about)]
    fits = [fit.fitted_at for fit in compared.fits.values() if fit.fitted_at is not None]
    write_workbook(sheets, path, created=max(fits, default=base_fit.now()))
