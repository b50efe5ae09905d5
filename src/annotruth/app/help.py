"""The help that fits one screen: the commands, and of a command the options that most users need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

_WIDTH = 80
_INDENT = 24  # where the texts begin


def brief_help(command: Any, context: Any, names: Sequence[str]) -> str:
    """Return the help of a command with these options, on one screen."""
    parameters = command.get_params(context)
    lines = [command.get_usage(context), "", command.help.partition("\n\n")[0].replace("\n", " ")]
    for each in parameters:
        if each.param_type_name == "argument":
            lines.append(f"{each.metavar}: {_shortened(each.help, _WIDTH - len(each.metavar) - 2)}")
    shown = [each for each in parameters if each.name in (*names, "help_all")]
    for group, options in groupby(shown, key=attrgetter("rich_help_panel")):
        lines += [group, *map(_option_line, options)]
    example = (command.epilog or "").split("\n")[2:3]
    return "\n".join([*lines, "", *(f"Example: {each}" for each in example)])


def _option_line(option: Any) -> str:
    flags = f"  {', '.join(option.opts)} {option.metavar or ''}".ljust(_INDENT - 1)
    return f"{flags} {_shortened(option.help, _WIDTH - _INDENT)}"


def _shortened(text: str, width: int) -> str:
    """Return the first clause of a help text; of a long one, as many words as there is room for."""
    text = text.replace("`", "")
    clause = re.split(r"(?:[.:]|,? such as|, for) ", text)[0].rstrip(".")
    while len(clause) > width:
        clause = clause.removesuffix(" ...").rpartition(" ")[0] + " ..."
    return clause


def front_page(group: Any, context: Any) -> str:
    """Return the commands in their groups on one screen."""
    lines = ["Usage: annotruth COMMAND ...", group.help, ""]
    commands = [group.get_command(context, name) for name in group.list_commands(context)]
    for title, some in groupby(commands, key=attrgetter("rich_help_panel")):
        lines.append(title)
        lines += [f"  {each.name:<11}{_first_sentence(each.help)}" for each in some]
    more = "annotruth COMMAND --help explains one. Options: --version, --verbose"
    return "\n".join([*lines, "", more])


def _first_sentence(text: str) -> str:
    return text.partition("\n\n")[0].replace("\n", " ")
