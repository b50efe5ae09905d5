"""A short run of the attacks; `make attack` is a longer one, with further tools."""

import logging
import os
import re
import sys

import pytest
from tests.attack import __main__ as attack
from tests.attack.targets import DATABASES

TOOLS = os.environ.get("ANNOTRUTH_ATTACK_TOOLS", "")


@pytest.mark.parametrize("database", DATABASES)
def test_the_service_withstands_a_short_attack(database, monkeypatch, capsys):
    words = ["--database", database, "--seconds", "60", "--count", "200"]
    words += ["--tools", TOOLS] if TOOLS else []
    monkeypatch.setattr(sys, "argv", ["attack", *words])
    with pytest.raises(SystemExit) as ended:
        attack.main()
    logging.disable(logging.NOTSET)
    said = capsys.readouterr().out
    assert not ended.value.code, said
    if "skipped" in said:
        pytest.skip(said.strip())
    (n_requests,) = re.findall(rf"{database}, rights: (\d+) requests", said)
    assert int(n_requests) > 300
    assert f"{database}, protocol: 200 requests" in said
