"""The threads that tell: a server that is away, slow or back again delays nobody, and misses nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.faults.rig.trial import eventually
from tests.unit.lineage.receiver import Received, receive
from tests.unit.lineage.test_received_events import make_batch, make_names, snapshot_of
from tests.unit.shop import sales_pipeline

from seamline.lineage import batch_reporter, stream_reporter
from seamline.lineage.batch_reporter import report_task
from seamline.lineage.stream_reporter import StreamReporter
from seamline.model.protocol.offsets import Lane
from seamline.plan.lineage.batch_events import BatchOutcome, describe_intervals, make_build_event
from seamline.plan.lineage.lineage_events import LineageEvent, RunState
from seamline.plan.lineage.run_ids import make_run_id
from seamline.plan.lineage.stream_events import StreamSnapshot, make_stream_event
from seamline.plan.lineage.told_offsets import Told

PIPELINE = sales_pipeline()
LANE = Lane("id-of-sales", 0)
RETRY = '{"total": 0}'


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    """A server that the client asks once for each event."""
    with receive() as found:
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", found.url)
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__RETRY", RETRY)
        yield found


class Stream:
    """A stream that reads when it is told to, and the reporter of its driver."""

    def __init__(self, memory: Path, run: str = "first", read: int = 10, every: float = 0.01) -> None:
        self.here = replace(snapshot_of(PIPELINE, make_names(PIPELINE)), vector={LANE: read})
        run = str(make_run_id(datetime(2026, 3, 1, tzinfo=UTC), run))
        self.reporter = StreamReporter(
            partial(make_stream_event, PIPELINE, make_names(PIPELINE)),
            run,
            self.look,
            memory,
            every=every,
            began=self.here,
        )

    def look(self) -> StreamSnapshot:
        """Look where it stands."""
        return self.here

    def read(self, rows: int) -> None:
        """Read on."""
        self.here = replace(self.here, vector={LANE: self.here.vector[LANE] + rows})

    def end(self, state: RunState = RunState.COMPLETE, error: str = "") -> None:
        """End it, and wait for the thread, too."""
        self.reporter.end(self.here, state, error)


def told(event: dict[str, Any]) -> tuple[str, int, int]:
    """Return what an event says: the state, and which offsets were read."""
    [topic] = [each for each in event["inputs"] if each["namespace"].startswith("kafka://")]
    facet = topic["inputFacets"].get("seamline_offsets", {"partitions": [{"start": 0, "end": 0}]})
    [part] = facet["partitions"]
    return event["eventType"], part["start"], part["end"]


def test_a_stream_tells_its_life(received: Received, tmp_path: Path) -> None:
    """Where it begins, what it has read since, and its end with the rest."""
    stream = Stream(tmp_path / "lineage.json")
    stream.read(5)
    eventually("what was read to be told", lambda: len(received.events) == 2)
    stream.read(2)
    stream.end()
    assert [told(each) for each in received.events] in (
        [("START", 10, 10), ("RUNNING", 10, 15), ("COMPLETE", 15, 17)],
        [("START", 10, 10), ("RUNNING", 10, 15), ("RUNNING", 15, 17), ("COMPLETE", 0, 0)],
    )
    assert len({each["run"]["runId"] for each in received.events}) == 1
    assert Told.from_json((tmp_path / "lineage.json").read_text()).vector == {LANE: 17}


def test_what_a_server_has_missed_is_told_when_it_is_back(received: Received, tmp_path: Path) -> None:
    """One event has all that was read meanwhile: nothing waits in a queue."""
    refused = threading.Event()

    def refuse() -> int:
        refused.set()
        return 503

    stream = Stream(tmp_path / "lineage.json")
    eventually("the beginning to be told", lambda: received.states == ["START"])
    received.answer = refuse
    for _ in range(3):
        stream.read(1)
        refused.clear()
        assert refused.wait(30)
    received.answer = lambda: 201
    eventually("what was read to be told", lambda: len(received.events) == 2)
    stream.end(RunState.FAIL, "Boom: it failed")
    assert told(received.events[1]) == ("RUNNING", 10, 13)
    assert received.states[-1] == "FAIL"


def test_a_look_that_fails_is_not_the_last(received: Received, tmp_path: Path) -> None:
    """The thread would be gone without a word, and with it all that the run reads."""
    stream, failed = Stream(tmp_path / "lineage.json"), threading.Event()

    def look() -> StreamSnapshot:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("dictionary changed size during iteration")
        return stream.here

    stream.reporter.look = look
    assert failed.wait(30)
    stream.read(5)
    eventually("what was read to be told", lambda: "RUNNING" in received.states)
    stream.end()


def test_a_slow_server_holds_no_end_up(
    received: Received, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver waits its time and goes; the next one tells how it has ended, and what it had read."""
    monkeypatch.setattr(stream_reporter, "PATIENCE", 0.05)
    stream = Stream(tmp_path / "lineage.json")
    eventually("the beginning to be told", lambda: received.states == ["START"])
    hung, go_on = threading.Event(), threading.Event()

    def hang() -> int:
        hung.set()
        assert go_on.wait(60)
        return 503

    received.answer = hang
    stream.read(4)
    assert hung.wait(30)
    stream.end(RunState.FAIL, "Boom: it failed")
    assert stream.reporter.thread.is_alive()
    received.answer = lambda: 201
    following = Stream(tmp_path / "lineage.json", "second", read=14)
    eventually(
        "the next driver to begin", lambda: received.states[-1] == "START" and len(received.events) > 2
    )
    go_on.set()
    following.end()
    stream.reporter.thread.join()
    first, second = (each["run"]["runId"] for each in received.events[1:3])
    assert [told(each) for each in received.events[:3]] == [
        ("START", 10, 10),
        ("FAIL", 10, 14),
        ("START", 14, 14),
    ]
    assert received.events[1]["run"]["facets"]["errorMessage"]["message"] == "Boom: it failed"
    assert first != second


def test_a_driver_that_was_killed_is_ended_by_the_next(received: Received, tmp_path: Path) -> None:
    """A run without an end would be shown as running for ever."""
    memory = tmp_path / "lineage.json"
    memory.write_text(Told(str(make_run_id(datetime(2026, 3, 1, tzinfo=UTC), "killed")), {LANE: 3}).to_json())
    stream = Stream(memory)
    eventually("both to be told", lambda: len(received.events) == 2)
    stream.end()
    assert [told(each) for each in received.events[:2]] == [("ABORT", 3, 10), ("START", 10, 10)]


def look_at_build(state: RunState, error: str) -> LineageEvent:
    """Make the event of a build."""
    now = datetime(2026, 3, 1, tzinfo=UTC)
    facts = describe_intervals("shop", "run", 3, ["2026-03-01"])
    return make_build_event(make_batch(PIPELINE), BatchOutcome(now, state, facts, error=error))


def test_a_task_tells_its_end(received: Received) -> None:
    """Complete, failed, or broken off."""
    with report_task(look_at_build):
        pass
    with pytest.raises(ValueError, match="no such"), report_task(look_at_build):
        raise ValueError("no such row\nand more")
    with pytest.raises(KeyboardInterrupt), report_task(look_at_build):
        raise KeyboardInterrupt
    assert received.states == ["START", "COMPLETE", "START", "FAIL", "START", "ABORT"]
    assert received.events[3]["run"]["facets"]["errorMessage"]["message"] == "ValueError: no such row"


def test_what_cannot_be_told_fails_no_task(received: Received, caplog: pytest.LogCaptureFixture) -> None:
    """A table that cannot be read for its version is no reason to build again."""

    def look(state: RunState, error: str) -> LineageEvent:
        raise OSError("the store is away")

    with report_task(look):
        pass
    assert received.events == []
    assert "OSError: the store is away" in caplog.text


def test_a_slow_server_holds_no_task_up(
    received: Received, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The task goes on at once, and at its end it waits its time."""
    monkeypatch.setattr(batch_reporter, "PATIENCE", 0.05)
    go_on = threading.Event()

    def hang() -> int:
        assert go_on.wait(60)
        return 503

    received.answer = hang
    with report_task(look_at_build):
        pass
    go_on.set()
    assert "Lineage is not told within" in caplog.text
