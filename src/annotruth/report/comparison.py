"""The page of a comparison: tables of models and of pairs of them, with pictures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from annotruth.kernels.arrays import Floats
from annotruth.report import shapes
from annotruth.report.drawing import escaped
from annotruth.report.markup import charts, figure, plain_table, section
from annotruth.report.picture import Picture
from annotruth.report.shell import packed, rounded, shell

_TITLES = {
    "model": "Model",
    "held_out": "Held-out",
    "held_out_error": "±",
    "accuracy": "Accuracy",
    "f1_macro": "F1",
    "plcc": "PLCC",
    "srocc": "SROCC",
    "rmse": "RMSE",
    "spammers": "Spammers",
    "iterations": "Iterations",
    "converged": "Converged",
    "seconds": "Seconds",
}
_LINKS = {
    "models": "Models",
    "truth": "Truth",
    "agreement": "Agreement",
    "refused": "Not compared",
}
_95_PERCENT = 1.96


def page(
    models: pa.Table, pairs: pa.Table, *, why: str, said: str, source: str | None = None
) -> str:
    """Make the page, as text.

    Parameters
    ----------
    models, pairs
        The tables of `Comparison`: a row a model, a row a pair of models.
    why
        Which model the labels speak for, in a sentence.
    said
        What the labels are.
    source
        What they are called, such as their file.
    """
    is_refused = models["refused"].is_valid()
    fitted, refused = models.filter(models["refused"].is_null()), models.filter(is_refused)
    drawn = pictures(fitted, pairs)
    body = {
        "models": _models(fitted, why, drawn),
        "truth": _pictured("truth", "Against the truth", drawn, ("accuracy", "correlation")),
        "agreement": _pictured(
            "agreement", "Agreement between models", drawn, ("same-label", "score-correlation")
        ),
        "refused": _refused(refused),
    }
    there = {name: part for name, part in body.items() if part}
    return shell(
        kind="Comparison of models",
        heading=source or "Labels",
        under=said,
        links={name: _LINKS[name] for name in there},
        sections=there.values(),
        data=packed({"charts": {n: rounded(p) for n, p in drawn.items()}, "tables": {}}),
        footer="Numbers are rounded; compare --out writes them in full. This page asks nothing of "
        "the network.",
    )


def pictures(fitted: pa.Table, pairs: pa.Table) -> dict[str, Picture]:
    """Draw what the tables hold, by name."""
    drawn = [
        _held_out(fitted),
        _two(
            "accuracy",
            "Accuracy and F1",
            fitted,
            {"f1_macro": "F1 (macro)", "accuracy": "accuracy"},
        ),
        _two(
            "correlation",
            "Correlation of scores with the truth",
            fitted,
            {"srocc": "SROCC", "plcc": "PLCC"},
        ),
        _pairs("same-label", "same_label", "Share of items with the same label", fitted, pairs),
        _pairs("score-correlation", "score_correlation", "Correlation of scores", fitted, pairs),
    ]
    return {picture.name: picture for picture in drawn if picture is not None}


def _models(fitted: pa.Table, why: str, drawn: dict[str, Picture]) -> str:
    shown = [name for name in _TITLES if fitted[name].null_count < len(fitted)]
    rows = [[_cell(row[name]) for name in shown] for row in fitted.to_pylist()]
    parts = [f'<p class="lead">{escaped(why)}.</p>']
    if "held-out" in drawn:
        parts.append(charts(figure(drawn["held-out"])))
    parts.append(plain_table([_TITLES[name] for name in shown], rows))
    parts.append(
        '<p class="quiet">Held-out is the mean log-probability that a model, fitted without a '
        "label, gave to it: higher is better, and ± is its standard error. Seconds are those of "
        "one fit to all labels.</p>"
    )
    return section("models", "Models", *parts)


def _pictured(name: str, title: str, drawn: dict[str, Picture], wanted: Sequence[str]) -> str:
    there = [figure(drawn[one]) for one in wanted if one in drawn]
    return section(name, title, charts(*there)) if there else ""


def _refused(refused: pa.Table) -> str:
    if not len(refused):
        return ""
    lines = [
        f"<li><p><b>{escaped(row['model'])}</b> {escaped(row['refused'])}</p></li>"
        for row in refused.to_pylist()
    ]
    listed = f'<div class="steps"><ul>{"".join(lines)}</ul></div>'
    return section("refused", "Models that do not suit these labels", listed)


def _held_out(fitted: pa.Table) -> Picture | None:
    score, error = (_numbers(fitted[name]) for name in ("held_out", "held_out_error"))
    some = ~np.isnan(score)
    if not some.any():
        return None
    names = [name for name, there in zip(fitted["model"].to_pylist(), some, strict=True) if there]
    value, half = score[some], _95_PERCENT * error[some]
    low, high = value - half, value + half
    ends = np.concatenate([value, low[~np.isnan(low)], high[~np.isnan(high)]])
    room = 0.04 * (float(np.ptp(ends)) or 1.0)
    ranges = shapes.Ranges(
        names, value, low, high, [False] * len(names),
        (float(ends.min()) - room, float(ends.max()) + room), "mean log-probability", digits=4,
    )  # fmt: skip
    return Picture(
        name="held-out",
        title="How well held-out labels are predicted",
        caption="Further right is better. Lines are 95% intervals; labels are the same for all "
        "models, so that differences are surer than they look.",
        records={"model": names, "held_out": value.tolist(), "low": low.tolist(),
                 "high": high.tolist()},
        draw=lambda width: shapes.named_ranges(ranges, width),
    )  # fmt: skip


def _two(name: str, title: str, fitted: pa.Table, wanted: dict[str, str]) -> Picture | None:
    """Draw two measures of each model on one line, the first in grey."""
    measures = {told: _numbers(fitted[key]) for key, told in wanted.items()}
    some = ~np.isnan(np.array(list(measures.values()))).all(axis=0)
    if not some.any():
        return None
    names = [name for name, there in zip(fitted["model"].to_pylist(), some, strict=True) if there]
    rows = [(told, values[some]) for told, values in measures.items()]
    lowest = min(float(np.nanmin(values)) for _, values in rows if not np.isnan(values).all())
    domain = (min(0.0, lowest), 1.0)
    return Picture(
        name=name,
        title=title,
        caption="1 is best.",
        records={"model": names} | {told: values.tolist() for told, values in rows},
        draw=lambda width: shapes.dumbbells(names, rows, domain, width, title.lower()),
    )


def _pairs(name: str, column: str, title: str, fitted: pa.Table, pairs: pa.Table) -> Picture | None:
    """Draw a square for each pair of models that have the measure."""
    value = _numbers(pairs[column])
    some = {
        model
        for row, v in zip(pairs.to_pylist(), value, strict=True)
        if not np.isnan(v)
        for model in (row["model"], row["other"])
    }
    names = [model for model in fitted["model"].to_pylist() if model in some]
    if not names:
        return None
    at = {model: k for k, model in enumerate(names)}
    share = np.eye(len(names))
    tips = [f"{one}" for one in names for _ in names]
    for row, v in zip(pairs.to_pylist(), value, strict=True):
        if row["model"] in at and row["other"] in at:
            one, other = at[row["model"]], at[row["other"]]
            share[one, other] = share[other, one] = v
            told = "none" if np.isnan(v) else f"{v:.4f}"
            for i, j in ((one, other), (other, one)):
                tips[i * len(names) + j] = f"{names[i]} and {names[j]}: {told}"
    numbered = [f"{k}  {model}" for k, model in enumerate(names, start=1)]
    columns = [str(k) for k in range(1, len(names) + 1)]
    return Picture(
        name=name,
        title=title,
        caption="The fuller the colour, the closer; a square is empty where there is no number. Columns are numbered like rows.",
        records={"model": pairs["model"].to_pylist(), "other": pairs["other"].to_pylist(),
                 column: value.tolist()},
        draw=lambda width: shapes.squares(numbered, columns, share, width, tips),
    )  # fmt: skip


def _numbers(column: pa.ChunkedArray) -> Floats:
    return np.array([np.nan if v is None else v for v in column.to_pylist()], dtype=np.float64)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else f"{value}"
