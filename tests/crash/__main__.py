"""Kill commands and make their writes fail; check that there is exactly the old or the new afterwards.

Run as ``python -m tests.crash [--kills N] [--faults N] [--seed N]`` in the root of the repository. The
commands are `update` in place, `fit` over existing outputs, `next` with a workbook, and `report`. Each is killed (SIGKILL) at random
times, and gets each of several faults at every operation that changes files. Afterwards each output
must be exactly the old or exactly the new one, and after the next run there must be no leftovers.
Then ten processes update one fit at once.
The exit code is 1 if one is not.
"""

from __future__ import annotations

import argparse
import io
import itertools
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash import commands
from tests.crash.commands import COMMANDS, FIRST, Command
from tests.crash.faults import FAULTS, Fault, Outcome, run, start

import annotruth as at
from annotruth.app import cli

_MAX_SHOWN = 20


@dataclass
class Trials:
    """The trials of one command: what it starts from, what it ends in, and what was found."""

    name: str
    command: Command
    template: Path
    folder: Path
    complete: Outcome
    old: dict[str, str]
    new: dict[str, str]
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    @classmethod
    def prepare(cls, name: str, template: Path, folder: Path) -> Trials:
        """Run the command once without a fault."""
        command = COMMANDS[name]
        commands.restore(template, folder)
        old = commands.digests(command, folder)
        complete = run(command.words, folder)
        if complete.code != 0:
            raise SystemExit(f"{name} fails without a fault: {complete.errors}")
        new = commands.digests(command, folder)
        if commands.leftovers(folder):
            raise SystemExit(f"{name} leaves {commands.leftovers(folder)} without a fault")
        return cls(name, command, template, folder, complete, old, new)

    def try_fault(self, fault: Fault) -> None:
        """Run the command with a fault."""
        commands.restore(self.template, self.folder)
        outcome = run(self.command.words, self.folder, fault)
        self._check(str(fault), outcome)
        if fault.kind in ("ENOSPC", "EIO") and "Traceback" in outcome.errors:
            self.violations.append(f"{self.name}, {fault}: traceback\n{outcome.errors[-2000:]}")

    def try_kill(self, seconds: float) -> None:
        """Run the command and kill it after some seconds."""
        commands.restore(self.template, self.folder)
        outcome = run(self.command.words, self.folder, kill_after=seconds)
        self._check(f"kill after {seconds:.4f} s", outcome)

    def _check(self, what: str, outcome: Outcome) -> None:
        allowed = [self.old, self.new] if outcome.code != 0 else [self.new]
        if outcome.code is not None and outcome.code < 0:
            self.violations.append(f"{self.name}, {what}: ended by signal {-outcome.code}")
        found = commands.violations(self.command, self.folder, *allowed)
        now = commands.digests(self.command, self.folder)
        n_new = sum(now[name] == self.new[name] != self.old[name] for name in now)
        changed = sum(self.new[name] != self.old[name] for name in now)
        self.counts["new" if n_new == changed else "some new" if n_new else "old"] += 1
        if commands.leftovers(self.folder) or found:
            self.counts["leftovers"] += bool(commands.leftovers(self.folder))
            again = run(FIRST, self.folder)
            if again.code != 0:
                found.append(f"the next run fails: {again.errors[-500:]}")
            found += [f"the next run leaves {each}" for each in commands.leftovers(self.folder)]
            first = commands.digests(COMMANDS["fit"], self.template)
            for each in commands.violations(COMMANDS["fit"], self.folder, first):
                found.append(f"after the next run, {each}")
        self.violations += [f"{self.name}, {what}: {each}" for each in found]

    def summary(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(self.counts.items()))
        return f"{self.name}: {counts}"


def faults(trials: Trials, max_faults: int | None, rng: random.Random) -> Iterator[Fault]:
    """Return every fault of a command, or some of them."""
    numbers = range(1, len(trials.complete.operations) + 1)
    every = [Fault(kind, number) for kind, number in itertools.product(FAULTS, numbers)]
    sizes = {path.stat().st_size for path in trials.folder.rglob("*") if path.is_file()}
    limits = {limit for size in sizes for limit in (0, size // 2, size - 1) if limit >= 0}
    every += [Fault(max_bytes=limit) for limit in sorted(limits)]
    yield from every if max_faults is None else rng.sample(every, min(max_faults, len(every)))


def main() -> None:
    """Run all trials, print a summary, and exit with 1 after a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500, help="how often to kill, in all")
    parser.add_argument("--faults", type=int, help="how many faults per command; default all")
    parser.add_argument("--seed", type=int, default=None, help="of the times of kills")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    rng = random.Random(seed)
    print(f"seed {seed}")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        found = _run_trials(Path(scratch).resolve(), options, rng)
    for each in found[:_MAX_SHOWN]:
        print(each)
    print(f"{len(found)} violations, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if found else 0)


def _run_trials(scratch: Path, options: argparse.Namespace, rng: random.Random) -> list[str]:
    template = scratch / "template"
    commands.write_inputs(template)
    _load_everything(scratch / "first")
    first = run(FIRST, template)
    if first.code != 0:
        raise SystemExit(f"cannot begin: {first.errors}")
    found = []
    for name in COMMANDS:
        trials = Trials.prepare(name, template, scratch / "trial")
        print(
            f"{name}: {len(trials.complete.operations)} operations, {trials.complete.seconds:.3f} s"
        )
        for fault in faults(trials, options.faults, rng):
            trials.try_fault(fault)
        print(f"faults of {trials.summary()}", flush=True)
        trials.counts.clear()
        if name != "report":
            for _ in range(options.kills // 2):
                trials.try_kill(rng.uniform(0.0, 1.1 * trials.complete.seconds))
            print(f"kills of {trials.summary()}", flush=True)
        found += trials.violations
    return found + _update_at_once(template, scratch / "trial", n_updates=10)


def _update_at_once(template: Path, folder: Path, n_updates: int) -> list[str]:
    """Update one fit from several processes at once; each exits with an error, or its label is in."""
    commands.restore(template, folder)
    names = [f"new {number}" for number in range(n_updates)]
    for name in names:
        (folder / f"{name}.csv").write_text(f"item,annotator,label\nitem 1,{name},a\n")
    running = [start(("update", "fit", f"{name}.csv"), folder) for name in names]
    codes = [each.wait().code for each in running]
    annotators = at.load(folder / "fit").data.annotators.to_pylist()
    found = [
        f"update {name} exited with {code}, and its label is {'' if name in annotators else 'not '}in"
        for name, code in zip(names, codes, strict=True)
        if (code == 0) != (name in annotators)
    ]
    n_in = sum(name in annotators for name in names)
    print(f"{n_updates} updates at once: labels of {n_in} are in, {codes.count(0)} exited with 0")
    return [*found, *(f"updates at once leave {each}" for each in commands.leftovers(folder))]


def _load_everything(folder: Path) -> None:
    """Run the commands once in this process, so that forked ones need not load or compile."""
    commands.write_inputs(folder)
    for words in (FIRST, *(command.words for command in COMMANDS.values())):
        with chdir(folder), redirect_stdout(io.StringIO()), suppress(SystemExit):
            sys.argv = ["annotruth", *words]
            cli.main()


if __name__ == "__main__":
    main()
