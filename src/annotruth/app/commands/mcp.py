"""`annotruth mcp`: tools for agents, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

from annotruth.errors import InputError


def mcp(root: Path = Path(), max_size: str | None = None) -> None:
    """Serve tools to an agent over stdio (MCP).

    Speaks the Model Context Protocol on standard input and output. The tools open, fit, rank, next,
    explain_item and explain_annotator read files of one folder, and write only reports that are asked
    for by name, to new files in it. A client starts this command itself; see the documentation for its
    configuration.

    **Examples**

        annotruth mcp

        annotruth mcp --root ~/labels
    """
    try:
        from annotruth.mcp.server import make_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "pydantic"):
            raise
        raise InputError('this needs the package mcp: pip install "annotruth[mcp]"') from None
    if not root.is_dir():
        raise InputError(f"--root {root} is no folder: name the folder that has the files")
    make_server(root, max_size).run("stdio")
