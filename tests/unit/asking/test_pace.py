"""How fast another system is asked, and how hard it is tried while it does not answer; time is an argument."""

from __future__ import annotations

import pytest

from seamline.asking.pace import BURST, FAILURES, LONGEST_WAIT, Circuit, Pace


def test_requests_are_spread_over_a_second() -> None:
    """Ten a second: after a silence a tenth of a second's worth may go at once, then one each 0.1 s."""
    pace, made, now = Pace(10), [], 100.0
    while now < 102.0:
        now += pace.delay(now)
        pace.take(now, 1)
        made.append(now)
    gaps = [later - earlier for earlier, later in zip(made, made[1:], strict=False)]
    assert gaps == pytest.approx([0.0] + [0.1] * (len(gaps) - 1))


def test_a_silence_earns_no_more_than_a_burst() -> None:
    """What was not asked at night is not asked in one second of the morning."""
    pace = Pace(1000)
    pace.take(0.0, 1)
    at_once, now = 0, 1_000_000.0
    while not pace.delay(now):
        pace.take(now, 1)
        at_once += 1
    assert at_once == pytest.approx(1000 * BURST, abs=2)


def test_a_batch_counts_as_its_requests() -> None:
    """The bound is on requests: a batch of fifty at ten a second is paid for in five seconds."""
    pace = Pace(10)
    pace.take(0.0, 50)
    assert pace.delay(0.0) == pytest.approx(5 - BURST)


def test_no_bound_is_no_delay() -> None:
    pace = Pace(0)
    pace.take(7.0, 1_000_000)
    assert pace.delay(7.0) == 0.0


def broken(now: float = 0.0, failures: int = FAILURES) -> Circuit:
    """Return a circuit after some failures at one time."""
    circuit = Circuit()
    for _ in range(failures):
        circuit.fail(now)
    return circuit


def test_twenty_failures_in_a_row_mean_away() -> None:
    """One fewer may be bad luck, or a bad request."""
    assert not broken(failures=FAILURES - 1).is_open
    assert broken(failures=FAILURES - 1).delay(0.0, flying=63) == 0.0
    assert broken().is_open


def test_a_success_between_failures_begins_the_count_anew() -> None:
    circuit = broken(failures=FAILURES - 1)
    circuit.succeed()
    for _ in range(FAILURES - 1):
        circuit.fail(5.0)
    assert not circuit.is_open
    assert circuit.since == 5.0


def test_while_it_is_away_one_call_is_tried_at_a_time() -> None:
    """Whoever wakes up under load goes down again."""
    circuit = broken()
    assert circuit.delay(0.0, flying=1) is None
    assert circuit.delay(0.0, flying=0) == 1.0
    assert circuit.delay(0.25, flying=0) == 0.75
    assert circuit.delay(1.0, flying=0) == 0.0


def test_each_attempt_in_vain_doubles_the_wait() -> None:
    """Up to half a minute: so much later than it could be is the first answer after an outage."""
    circuit, now, waits = broken(), 0.0, []
    for _ in range(8):
        wait = circuit.delay(now, flying=0)
        assert wait is not None
        waits.append(wait)
        now += wait
        circuit.fail(now)
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]
    assert waits[-1] == LONGEST_WAIT
    assert circuit.since == 0.0


def test_calls_that_were_under_way_when_it_went_away_are_no_attempts() -> None:
    """64 calls fail together; the system has been tried once."""
    circuit = broken(failures=64)
    assert circuit.delay(0.0, flying=0) == 1.0


def test_a_success_closes_it() -> None:
    circuit = broken()
    circuit.fail(1.0)
    circuit.succeed()
    assert not circuit.is_open
    assert circuit.delay(1.0, flying=63) == 0.0
    again = FAILURES * [2.0]
    for now in again:
        circuit.fail(now)
    assert circuit.delay(2.0, flying=0) == 1.0, "the next outage begins with the first wait"
