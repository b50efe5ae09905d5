"""`annotruth plan`: how many labels a target needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from annotruth.app import console, named_files, values
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions


def plan(
    *,
    data: list[str],
    target: str,
    model: str | None = None,
    read: ReadOptions,
    gold: str | None = None,
    annotator_prior: str | None = None,
    settings: list[str] | None = None,
    seed: int = 0,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Estimate how many labels a target needs.

    Takes the folder of a saved fit, or labels or pair comparisons, which it fits first, and
    simulates more of them from what the fit says of items and annotators, spent evenly or where
    they gain most. The plan is as good as the model: where annotators agree on a wrong label, it
    cannot know.

    **Examples**

        annotruth plan labels.csv --target accuracy=0.9

        annotruth plan fit --target hellinger=0.15

        annotruth plan ratings.csv --scale ordinal --target score=0.5 --json

        annotruth plan ranking --target tau=0.9
    """
    name, value = _parse_target(target)
    with console.running(quiet=quiet, as_json=as_json) as progress:
        from annotruth import advising, ranking  # slow to load

        source = named_files.one_or_several(data)
        shared: dict[str, Any] = {"model": model, "seed": seed, "progress": progress, "read": read}
        shared |= values.parse_model_options(settings)
        planned = named_files.choose_path(
            read,
            model,
            {"--gold": gold, "--annotator-prior": annotator_prior},
            lambda: advising.plan_labels(
                source, name, value, gold=gold, annotator_prior=annotator_prior, **shared
            ),
            lambda: ranking.plan_comparisons(source, name, value, **shared),
        )
    if as_json:
        console.show_json(planned.to_dict())
    elif not quiet:
        console.show_lines(planned.summary())


def _parse_target(target: str) -> tuple[str, float]:
    """Parse ``accuracy=0.9``."""
    pairs = values.parse_pairs(target, "--target")
    try:
        ((name, value),) = pairs.items()
        return name, float(value)
    except ValueError:
        raise InputError(
            f"--target takes one NAME=NUMBER, such as accuracy=0.9, not {target!r}"
        ) from None
