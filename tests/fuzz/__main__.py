"""`python -m tests.fuzz`: run random cases and report those that fail.

python -m tests.fuzz --count 20000                   # all parts but tampered fits and crowds
python -m tests.fuzz --part fits --count 5000        # tampered fits
python -m tests.fuzz --part crowds --count 1000      # renamed and reordered crowds
python -m tests.fuzz --seed 7 --only 1234            # one case again, in this process
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.columns import odd_columns
from tests.fuzz.crowds import renamed_crowd
from tests.fuzz.files import mutated_file
from tests.fuzz.flips import flipped_bit
from tests.fuzz.options import hostile_options
from tests.fuzz.runner import Part, Plan, Results, run_case, run_cases
from tests.fuzz.saved_fits import tampered_fit
from tests.fuzz.tables import counted_table
from tests.fuzz.votes import odd_votes

# The parts by name: their share of the cases, and what runs one. With a share of 0 it must be named.
PARTS: dict[str, tuple[float, Part]] = {
    "tables": (0.2, counted_table),
    "files": (0.4, mutated_file),
    "columns": (0.15, odd_columns),
    "options": (0.15, hostile_options),
    "votes": (0.1, odd_votes),
    "fits": (0.0, tampered_fit),
    "flips": (0.0, flipped_bit),
    "crowds": (0.0, renamed_crowd),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="run only this part")
    parser.add_argument("--count", type=int, default=2000, help="the number of cases")
    parser.add_argument("--seconds", type=float, default=600.0, help="stop after this time")
    parser.add_argument("--seed", type=int, help="the seed; drawn if not given")
    parser.add_argument("--only", type=int, metavar="N", help="run the case of this number only")
    options = parser.parse_args()
    names = options.part or [name for name, (weight, _) in PARTS.items() if weight]
    seed = int(time.time()) if options.seed is None else options.seed
    plan = Plan({name: (PARTS[name][0] or 1.0, PARTS[name][1]) for name in names}, seed)
    again = "".join(f" --part {name}" for name in options.part or ())
    if options.only is not None:
        outcome = run_case(plan, options.only)
        sys.stdout.write(f"{outcome.part}: {outcome.what}\n{outcome.problem or 'all is well'}\n")
        sys.exit(bool(outcome.problem))
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    results, begin = Results(), time.monotonic()
    for outcome in run_cases(plan, range(options.count), options.seconds):
        results.add(outcome)
        if results.n_cases.total() % 1000 == 0:
            sys.stdout.write(f"{results.summary()}\n")
            sys.stdout.flush()
        if outcome.problem:
            sys.stdout.write(
                f"\n{outcome.part} {outcome.number} failed: {outcome.what}\n{outcome.problem}\n"
                f"again: python -m tests.fuzz{again} --seed {seed} --only {outcome.number}\n"
            )
            sys.stdout.flush()
    sys.stdout.write(f"\nseed {seed}: {results.summary()}; {time.monotonic() - begin:.0f} s\n")
    sys.exit(bool(results.failures) or not results.n_cases)


if __name__ == "__main__":
    main()
