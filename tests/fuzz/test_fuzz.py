"""A short run of the fuzzer; `make fuzz` is a longer one."""

import pytest
from tests.fuzz.parts import PARTS
from tests.fuzz.runner import Plan, run_cases

SEED = 15
COUNTS = {"tables": 60, "files": 120, "columns": 60, "options": 60, "fits": 40, "crowds": 2}


@pytest.mark.parametrize("part", COUNTS)
def test_random_cases(part):
    plan = Plan({part: (1.0, PARTS[part][1])}, SEED)
    outcomes = list(run_cases(plan, range(COUNTS[part]), seconds=1800.0))
    assert len(outcomes) == COUNTS[part]
    failed = {outcome.number: outcome.problem for outcome in outcomes if outcome.problem}
    assert not failed, f"again: python -m tests.fuzz --part {part} --seed {SEED} --only N\n{failed}"
