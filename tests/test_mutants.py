"""The list of mutants (`tests/mutants`) keeps up with the code; trying them takes too long."""

from tests.mutants.catalog import ROOT, read_mutants

MUTANTS = read_mutants()


def test_there_are_enough_mutants_with_names_of_their_own():
    assert len(MUTANTS) >= 100
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_every_mutant_applies_exactly_once_and_compiles():
    for mutant in MUTANTS:
        source = (ROOT / mutant.file).read_text()
        changed = mutant.applied_to(source)
        assert changed != source, mutant.name
        if mutant.file.suffix == ".py":
            compile(changed, mutant.file, "exec")


def test_every_mutant_names_tests_that_exist():
    for test in {test for mutant in MUTANTS for test in mutant.tests}:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}" in (ROOT / file).read_text(), test
