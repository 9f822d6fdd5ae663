"""What a restart policy says of a failure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from tests.unit.model.test_definition import ORDERS

from seamline import ExponentialDelay, FailureRate, FixedDelay, NoRestart, Stream
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.fingerprint import fingerprint_view, record_version
from seamline.model.definition.restarts import Failures, RestartPolicy
from seamline.model.errors import DefinitionError


@dataclass(frozen=True)
class Patient(FixedDelay):
    """A policy of a user's own, which no release could read again where the definition is stored."""


def pauses(policy: RestartPolicy, *rows: int) -> list[float | None]:
    """Return the pauses after failures of some numbers in a row."""
    return [policy.find_pause(Failures(row, [0.0] * row)) for row in rows]


def test_pauses_grow_and_end_growing() -> None:
    """A crash is retried at once, and a crash loop does not eat the machine."""
    assert pauses(ExponentialDelay(), 1, 2, 3, 5, 6, 19) == [1, 2, 4, 16, 30, 30]
    assert pauses(ExponentialDelay(), 20, 99) == [None, None]
    assert pauses(ExponentialDelay("5 seconds", "1 minute", failures=0), 1, 2, 5, 10**6) == [5, 10, 60, 60]


def test_what_needs_a_person_waits_the_longest_at_once() -> None:
    """Trying again soon would not help."""
    assert ExponentialDelay().find_pause(Failures(1, [0.0], needs_person=True)) == 30


def test_a_fixed_delay_is_the_same_each_time() -> None:
    """Until there were too many in a row."""
    assert pauses(FixedDelay("3 seconds", failures=3), 1, 2, 3) == [3, 3, None]
    assert pauses(FixedDelay("3 seconds", failures=0), 1, 10**6) == [3, 3]


def test_a_rate_counts_what_is_near() -> None:
    """An epoch in between forgives nothing: the driver fails too often."""
    policy = FailureRate(failures=3, within="1 minute", delay="2 seconds")
    assert policy.find_pause(Failures(1, [0.0, 30.0, 61.0])) == 2
    assert policy.find_pause(Failures(1, [0.0, 30.0, 60.0])) is None
    assert replace(policy, failures=0).find_pause(Failures(9, [0.0] * 9)) == 2


def test_none_gives_up_at_once() -> None:
    """Whatever runs the supervisor decides."""
    assert pauses(NoRestart(), 1) == [None]


@pytest.mark.parametrize(
    ("policy", "field", "message"),
    [
        (FixedDelay("soon"), "stream.restart.delay", "not a duration"),
        (FixedDelay(failures=-1), "stream.restart.failures", "-1 is not a number of failures"),
        (ExponentialDelay(longest="0 seconds"), "stream.restart.longest", "0 seconds"),
        (FailureRate(within=""), "stream.restart.within", "not a duration"),
        (
            FailureRate(failures=1001),
            "stream.restart.failures",
            "1001 failures are more than the supervisor remembers",
        ),
        (RestartPolicy(), "stream.restart", "RestartPolicy is not one of the restart policies"),
        (Patient(), "stream.restart", "Patient is not one of the restart policies"),
    ],
)
def test_what_cannot_be_is_refused_at_load(policy: RestartPolicy, field: str, message: str) -> None:
    """It would be found out at the first failure."""
    with pytest.raises(DefinitionError, match=message) as told:
        compile_pipeline(replace(ORDERS, stream=Stream(restart=policy)))
    assert told.value.field == field


def test_a_policy_changes_no_version() -> None:
    """It says when a driver runs, and not what it computes."""
    other = replace(ORDERS, stream=Stream(restart=NoRestart()))
    assert record_version(other) == record_version(ORDERS)
    assert fingerprint_view(other, other.views[0]) == fingerprint_view(ORDERS, ORDERS.views[0])
