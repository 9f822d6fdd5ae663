"""Refused records are told of once and then now and then: an operator reads every line, or none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from seamline.model.protocol.epoch import Epoch
from seamline.plan.stream.refusal_news import Refusals
from seamline.serve.pipeline_status import format_refusal_counts

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SEE = "See `seamline quarantine list payments`."


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def test_one_alarm_then_a_summary_every_ten_minutes() -> None:
    """A client that goes on for a day is 144 lines, not 86,400."""
    told = Refusals("payments")
    assert told.add(7, {}, at(0)) == []
    first = f"Records are refused: mistyped field amount (3 in epoch 8). {SEE}"
    assert told.add(8, {"mistyped field amount": 3}, at(0)) == [first]
    # 12:00        :01   :02 :03     :10       :20
    # alarm A       A     B   A    summary   summary
    assert told.add(9, {"mistyped field amount": 4}, at(1)) == []
    assert told.add(10, {"rule x": 1}, at(2)) == [f"Records are refused: rule x (1 in epoch 10). {SEE}"]
    assert told.add(11, {"rule x": 2, "mistyped field amount": 5}, at(3)) == []
    assert told.take_due(at(9.9)) == []
    since = "Since 2026-03-01T12:00:00Z more records were refused: 9 mistyped field amount, 2 rule x."
    assert told.take_due(at(10)) == [f"{since} {SEE}"]
    assert told.take_due(at(10)) == told.add(12, {"rule x": 1}, at(11)) == []
    assert told.take_due(at(19)) == []
    assert told.take_due(at(20)) == [f"Since 2026-03-01T12:10:00Z more records were refused: 1 rule x. {SEE}"]
    assert told.take_due(at(30)) == []


def test_a_reason_that_was_gone_is_an_alarm_again() -> None:
    """Whoever mended it wants to know that it is back."""
    told = Refusals("payments")
    told.add(1, {"rule x": 1}, at(0))
    assert told.add(2, {"rule x": 1}, at(10)) == [f"Records are refused: rule x (1 in epoch 2). {SEE}"]
    assert told.add(3, {"rule x": 1}, at(19)) == []
    assert told.take_due(at(20)) == [f"Since 2026-03-01T12:10:00Z more records were refused: 1 rule x. {SEE}"]


def test_the_last_word_is_said_when_the_stream_ends() -> None:
    """What was counted and not told would be lost with the process."""
    told = Refusals("payments")
    told.add(1, {"rule x": 1}, at(0))
    told.add(2, {"rule x": 2}, at(1))
    assert told.take_due(at(2), ending=True) == [
        f"Since 2026-03-01T12:00:00Z more records were refused: 2 rule x. {SEE}"
    ]
    assert told.take_due(at(2), ending=True) == []


@given(st.lists(st.tuples(st.integers(0, 8), st.dictionaries(st.sampled_from("ab"), st.integers(1, 5)))))
def test_lines_are_few_and_lose_no_record(epochs: list[tuple[int, dict[str, int]]]) -> None:
    """All that was refused is in the lines; between two summaries, and two alarms of a reason, are ten minutes."""
    told, minute = Refusals("p"), 0
    lines: list[tuple[int, str]] = []
    for number, (pause, counts) in enumerate(epochs):
        minute += pause
        lines += [(minute, line) for line in told.add(number, counts, at(minute))]
    lines += [(minute + 10, line) for line in told.take_due(at(minute + 10))]
    for starts in ("Since", "Records are refused: a", "Records are refused: b"):
        moments = [moment for moment, line in lines if line.startswith(starts)]
        assert all(later - earlier >= 10 for earlier, later in zip(moments, moments[1:], strict=False))
    for reason in "ab":
        found = 0
        for _, line in lines:
            if line.startswith(f"Records are refused: {reason} ("):
                found += int(line.split("(")[1].split(" ")[0])
            elif line.startswith("Since"):
                said = line.split(": ")[1].split(". ")[0].split(", ")
                found += sum(int(each.split(" ")[0]) for each in said if each.endswith(reason))
        assert found == sum(counts.get(reason, 0) for _, counts in epochs)


def test_the_status_counts_by_reason_and_names_the_last() -> None:
    """Whether it still goes on is the first question."""
    ledger = [
        Epoch(number, 1, at(number), "v", refused=refused)
        for number, refused in enumerate([{"tombstone": 1}, {"mistyped field amount": 4, "tombstone": 1}, {}])
    ]
    assert list(format_refusal_counts(ledger)) == [
        "    4 mistyped field amount, last in epoch 1 (2026-03-01T12:01:00Z)",
        "    2 tombstone, last in epoch 1 (2026-03-01T12:01:00Z)",
    ]
