"""`python -m tests.attack`: attack the service on both databases, and report what it let happen.

python -m tests.attack --seconds 30                          # rights, and hostile requests
python -m tests.attack --tools .venv-attack/bin              # also Schemathesis and a generated client
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.attack.matrix import attack_matrix
from tests.attack.protocol import attack_protocol
from tests.attack.targets import DATABASES, target
from tests.attack.tools import run_generated_client, run_schemathesis
from tests.postgresql import NoServerError
from tests.serve.web.conftest import Server


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.attack")
    parser.add_argument("--database", action="append", choices=DATABASES, help="by default both")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each part that has no end")
    parser.add_argument("--count", type=int, default=1_000_000, help="of hostile requests, at most")
    parser.add_argument("--tools", type=Path, help="the folder of schemathesis and the generator")
    options = parser.parse_args()
    logging.disable()  # each refused request would be a line
    n_problems = 0
    for database in options.database or DATABASES:
        try:
            with target(database) as server:
                n_problems += _attack(database, server, options)
        except NoServerError as error:
            _write(f"{database}: skipped, {error}")
    sys.exit(bool(n_problems))


def _attack(database: str, server: Server, options: argparse.Namespace) -> int:
    """Run all parts on a server; return how many problems there are."""
    parts: dict[str, Callable[[], tuple[str, list[str]]]] = {}
    if options.tools is not None:
        tools = options.tools.absolute()  # the client first: other parts change the settings
        parts["client"] = lambda: _one(run_generated_client(server, tools))
    parts["rights"] = lambda: _rights(server)
    parts["protocol"] = lambda: _protocol(server, options.seconds, options.count)
    if options.tools is not None:
        parts["schemathesis"] = lambda: _one(run_schemathesis(server, tools, options.seconds))
    n_problems = 0
    for name, run in parts.items():
        begin = time.monotonic()
        what, problems = run()
        alive = server.send("GET", "/healthz").status == 200
        problems += [] if alive else ["the server does not answer any more"]
        n_problems += len(problems)
        took = time.monotonic() - begin
        _write(f"{database}, {name}: {what}, {len(problems)} problems; {took:.0f} s")
        for problem in problems[:20]:
            _write(f"  {problem}")
    return n_problems


def _rights(server: Server) -> tuple[str, list[str]]:
    replies = list(attack_matrix(server))
    return f"{len(replies):,} requests", [str(each) for each in replies if not each.is_right]


def _protocol(server: Server, seconds: float, count: int) -> tuple[str, list[str]]:
    attacks = list(attack_protocol(server, seconds, count))
    statuses = Counter(each.status for each in attacks)
    found = ", ".join(f"{n:,} x {status}" for status, n in sorted(statuses.items()))
    return f"{len(attacks):,} requests ({found})", [
        str(each) for each in attacks if each.status >= 500
    ]


def _one(problem: str) -> tuple[str, list[str]]:
    return "done", [problem] if problem else []


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
