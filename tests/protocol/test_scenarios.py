"""Every scenario that the protocol excludes is in the table, and what the table names is there."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest
from tests.protocol.test_rules import BROKEN

ROOT = Path(__file__).parent.parent.parent
SCENARIOS = tomllib.loads((ROOT / "tests/protocol/scenarios.toml").read_text())
KNOWN = [
    f"{letter}{number}" for letter, last in (("C", 12), ("H", 11), ("N", 8)) for number in range(1, last + 1)
]
NOT_SHIPPED = {"H9"}


@cache
def functions(path: str) -> frozenset[str]:
    """List the tests of a file."""
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))


def test_every_scenario_is_there() -> None:
    """One that is forgotten is one that nobody looks for."""
    assert set(KNOWN) <= SCENARIOS.keys()
    for id, scenario in SCENARIOS.items():
        assert scenario["what"].endswith(".") and scenario["rule"].endswith("."), id
        # What is not in the model, or not shipped, has a reason.
        assert scenario["model"] or scenario["note"], id
        assert bool(scenario["shipped"]) == (id not in NOT_SHIPPED), id


@pytest.mark.parametrize("id", SCENARIOS)
def test_what_a_scenario_names_is_there(id: str) -> None:
    """A table of tests that were renamed proves nothing."""
    scenario = SCENARIOS[id]
    for test in [*scenario["model"], *scenario["shipped"]]:
        path, _, name = test.partition("::")
        function, _, case = name.removesuffix("]").partition("[")
        assert function in functions(path), test
        if path.endswith("test_rules.py"):
            assert case in BROKEN, test
    for mutant in scenario["mutants"]:
        assert (ROOT / f"tests/mutants/{mutant}.patch").is_file(), mutant


def test_every_broken_rule_and_every_mutant_belongs_to_a_scenario() -> None:
    """One that belongs to none has lost its reason."""
    cases = {test.partition("[")[2][:-1] for each in SCENARIOS.values() for test in each["model"]}
    assert BROKEN.keys() <= cases
    mutants = {path.stem for path in (ROOT / "tests/mutants").glob("*.patch")}
    assert mutants <= {mutant for each in SCENARIOS.values() for mutant in each["mutants"]}
