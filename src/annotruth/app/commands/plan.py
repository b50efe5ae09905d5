"""`annotruth plan`: how many labels a target needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from annotruth.app import named_files, options
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions


@options.takes_read_options(without=("memory",))
def plan(
    *,
    data: options.FitOrLabels,
    target: Annotated[
        str,
        typer.Option(
            metavar="NAME=VALUE",
            help="accuracy=0.9: share of right top labels. hellinger=0.15: distance of "
            "distributions from the truth. score=0.5: half the width of a score's 95% interval. "
            "Each on average over items. Of comparisons: tau=0.9, the Kendall tau between the "
            "ranking and the true one, or score.",
        ),
    ],
    model: options.ModelOption = None,
    read: ReadOptions,
    gold: options.GoldOption = None,
    annotator_prior: options.AnnotatorPriorOption = None,
    settings: options.SettingsOption = None,
    seed: options.SeedOption = 0,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
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
    from annotruth.app import console

    name, value = _parse_target(target)
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        from annotruth import advising, ranking  # slow to load
        from annotruth.app.pair_advice import choose_path

        source = named_files.one_or_several(data)
        shared: dict[str, Any] = {"model": model, "seed": seed, "progress": progress, "read": read}
        shared |= options.parse_model_options(settings)
        planned = choose_path(
            read,
            model,
            {"--gold": gold, "--annotator-prior": annotator_prior},
            lambda: advising.plan_labels(
                source, name, value, gold=gold, annotator_prior=annotator_prior, **shared
            ),
            lambda: ranking.plan_comparisons(source, name, value, **shared),
        )
    if as_json:
        typer.echo(json.dumps(planned.to_dict()))
    elif not quiet:
        console.show_lines(planned.summary())


def _parse_target(target: str) -> tuple[str, float]:
    """Parse ``accuracy=0.9``."""
    pairs = options.parse_pairs(target, "--target")
    try:
        ((name, value),) = pairs.items()
        return name, float(value)
    except ValueError:
        raise InputError(
            f"--target takes one NAME=NUMBER, such as accuracy=0.9, not {target!r}"
        ) from None
