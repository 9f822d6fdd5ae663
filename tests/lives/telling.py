"""What all lives of a run of pytest come to, in whatever processes they were lived."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from tests.lives.lives import Tally, revision

PROPERTY = "lives"


def tell(record: Any, tally: Tally) -> None:
    """Hand a tally on to the process that prints."""
    record(
        PROPERTY, [tally.lives, tally.operations, sorted(map(hash_of, tally.distinct)), sorted(tally.kinds)]
    )


def hash_of(text: str) -> str:
    """Shorten an operation's words."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many lives were lived, how many operations, and how many different ones, with the revision."""
    passed = terminalreporter.getreports("passed")
    found = [value for each in passed for name, value in each.user_properties if name == PROPERTY]
    if found:
        lives, operations = (sum(each[at] for each in found) for at in (0, 1))
        distinct, kinds = (len({one for each in found for one in each[at]}) for at in (2, 3))
        terminalreporter.write_line(
            f"{lives} lives, {operations} operations, {distinct} of them distinct, of {kinds} kinds, at {revision()}"
        )
